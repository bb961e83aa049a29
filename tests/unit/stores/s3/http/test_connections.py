"""Kept-alive connections: reuse, staleness, TLS."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_connect.errors import AccessError
from airflow_connect.stores.s3.http.connections import DirectConnections, Target
from airflow_connect.stores.s3.requests import S3Requests
from tests.support.servers.certificates import self_signed, server_context
from tests.support.servers.s3_interceptor import Answer, S3Interceptor, error, times
from tests.unit.stores.s3.s3_clients import requests, transport

PART = Answer(200, headers={"etag": '"e1"'})
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\nok"
HEADERS = {"host": "h", "content-length": "0"}


@contextmanager
def plain_server(replies: list[bytes]) -> Iterator[tuple[DirectConnections, threading.Semaphore]]:
    """A server that answers one request of each connection and closes it; the semaphore counts those."""
    closed = threading.Semaphore(0)

    def serve(listener: socket.socket) -> None:
        for reply in replies:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)
            closed.release()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        pool = DirectConnections(Target("127.0.0.1", listener.getsockname()[1], None, 5, 5), 4)
        yield pool, closed
        thread.join(10)
        pool.close()


def test_exchange_on_a_connection_that_the_server_closed_opens_another() -> None:
    with plain_server([REPLY % b"", REPLY % b""]) as (pool, closed):
        assert pool.exchange("GET", "/", HEADERS, b"").body == b"ok"
        assert closed.acquire(timeout=5)
        assert pool.exchange("GET", "/", HEADERS, b"").body == b"ok"


def test_exchange_keeps_connections_alive() -> None:
    with S3Interceptor(times(5, PART)) as server:
        client = requests(server.url)
        assert [client.upload_part("k", "u", 1, b"x") for _ in range(3)] == ["e1"] * 3
        (pool,) = client.transport._connections.values()
        assert isinstance(pool, DirectConnections) and len(pool._idle) == 1


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"])
def test_exchange_without_a_whole_reply_raises_and_keeps_nothing(reply: bytes) -> None:
    import http.client

    with plain_server([reply]) as (pool, _), pytest.raises((OSError, http.client.HTTPException)):
        pool.exchange("GET", "/", HEADERS, b"")
    assert not pool._idle


def test_exchange_refused_in_the_middle_of_a_large_body_reads_why() -> None:
    refused = error(403, "AccessDenied")
    with S3Interceptor(times(1, refused)) as server, pytest.raises(AccessError, match="AccessDenied"):
        requests(server.url).upload_part("k", "u", 1, bytes(8 * 1024 * 1024))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    return self_signed(tmp_path)


def https_server(certificate: Path) -> S3Interceptor:
    return S3Interceptor(times(9, PART), tls=server_context(certificate))


def test_part_over_trusted_tls_carries_its_digest(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    with https_server(certificate) as server:
        client = requests(server.url)
        assert [client.upload_part("k", "u", number, b"x") for number in (1, 2)] == ["e1", "e1"]
        client.transport.close()
    assert [seen.headers["x-amz-content-sha256"] for seen in server.seen] == [hashlib.sha256(b"x").hexdigest()] * 2


def test_part_over_untrusted_tls_is_refused_at_once(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    pauses: list[float] = []
    with https_server(certificate) as server:
        client = S3Requests(transport(server.url, pauses))
        with pytest.raises(AccessError, match="AWS_CA_BUNDLE"):
            client.upload_part("k", "u", 1, b"x")
    assert (server.seen, pauses) == ([], [])
