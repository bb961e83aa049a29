"""Clients that begin a request and do not end it keep no connection of the driver service."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from airflow_connect.runtime.driver_service.serving import ServiceSettings, serve
from tests.support.servers.driver_service import TOKEN

HEAD = f"PUT /v1/runs/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n".encode()


@pytest.fixture
def url() -> Iterator[str]:
    """A service. Only tests of a limit make it short: a whole request, too, takes its time on a busy machine."""
    stopping, listening, urls = threading.Event(), threading.Event(), list[str]()

    def heard(found: str) -> None:
        urls.append(found)
        listening.set()

    arguments = (ServiceSettings(port=0, token=TOKEN), lambda _: None, stopping, heard)
    thread = threading.Thread(target=serve, args=arguments, daemon=True)
    thread.start()
    assert listening.wait(20)
    yield urls[0]
    stopping.set()
    thread.join(20)


def received(url: str, sent: bytes) -> bytes:
    """What a client gets until the service closes its connection."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as slow:
        slow.sendall(sent)
        return b"".join(iter(lambda: slow.recv(1 << 16), b""))


@pytest.mark.parametrize("sent", [b"", b"GET /v1/service HTTP/1.1\r\nHost: x\r\n"], ids=["nothing", "half a head"])
def test_connection_without_a_whole_request_is_closed(url: str, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_connect.runtime.bounded_connections.HEAD_WITHIN_S", 0.2)
    assert received(url, sent) == b""


def test_body_that_does_not_arrive_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_connect.runtime.driver_service.app.BODY_WITHIN_S", 0.2)
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=20) as slow:
        slow.sendall(HEAD + b"{")
        assert b"The body did not arrive within" in slow.recv(1 << 16)


def test_head_without_an_end_is_cut_off(url: str) -> None:
    with contextlib.suppress(ConnectionError):
        assert received(url, b"GET / HTTP/1.1\r\n" + b"X-Long: x\r\n" * 10_000) == b""


def test_whole_head_that_is_too_large_is_refused(url: str) -> None:
    for headers in ({"X-Long": "x" * 70_000}, {f"X-{number}": "x" * 10_000 for number in range(7)}):
        answer = httpx.get(f"{url}/v1/service", headers=headers, timeout=20)
        assert (answer.status_code, answer.json()["message"]) == (431, "The head of the request is larger than 64 KiB.")


def test_service_answers_after_many_half_requests(url: str) -> None:
    place = urlsplit(url)
    with contextlib.ExitStack() as open_ones:
        for _ in range(200):
            slow = open_ones.enter_context(socket.create_connection((place.hostname or "", place.port or 0)))
            slow.sendall(b"GET /v1/service HTTP/1.1\r\n")
        answer = httpx.get(f"{url}/v1/service", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20)
    assert answer.json()["running"] == 0


def test_more_idle_connections_than_the_limit_close_the_oldest_and_keep_nobody_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_connect.runtime.bounded_connections.MOST_IDLE", 4)
    place = urlsplit(url)
    with contextlib.ExitStack() as open_ones:
        slow = []
        for _ in range(6):
            slow.append(open_ones.enter_context(socket.create_connection((place.hostname or "", place.port or 0))))
            slow[-1].sendall(b"GET /v1/service HTTP/1.1\r\n")
            slow[-1].settimeout(20)
        with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20) as kept:
            for _ in range(2):  # The second request comes on the connection of the first.
                assert kept.get(f"{url}/v1/service").json()["running"] == 0
        for closed in slow[:2]:
            with contextlib.suppress(ConnectionError):
                assert closed.recv(1) == b""
        slow[-1].sendall(f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert slow[-1].recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_body_nested_too_deeply_is_no_json(url: str) -> None:
    answer = httpx.put(
        f"{url}/v1/runs/a", content=b"[" * 200_000, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20
    )
    assert (answer.status_code, answer.json()["message"]) == (400, "The body is not JSON.")
