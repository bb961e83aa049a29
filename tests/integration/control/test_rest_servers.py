"""Servers of the REST API: several listeners, TLS, admin listeners, CORS, headers, slow clients."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from starlette.responses import PlainTextResponse

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.rest.serving.settings import ServerSettings
from airflow_connect.control.rest.worker_state import WorkerState
from airflow_connect.errors import UnavailableError
from airflow_connect.runtime.bounded_connections import Bounded
from tests.support.servers.certificates import as_pkcs12, encrypted, self_signed
from tests.support.servers.rest import RestServer, worker_of

pytestmark = pytest.mark.integration

PAGE = "https://ui.example.com"
PASSWORD = "hunter2-of-the-key"


@pytest.fixture(scope="module")
def worker(kafka) -> dict[str, str]:
    return worker_of(kafka.bootstrap, f"t-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def serve(worker) -> Iterator[Any]:
    """`serve({"listeners": ...})`: a server with these keys; `admin`, `state`: as of RestServer."""
    with contextlib.ExitStack() as stack:

        def start(given: dict[str, str], **more: Any) -> RestServer:
            return stack.enter_context(RestServer(worker, server=ServerSettings.from_worker(given), **more))

        yield start


def with_numbers(app: Any) -> Any:
    """Answers `/numbers`, and passes everything else on."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await (PlainTextResponse("42") if scope["path"] == "/numbers" else app)(scope, receive, send)

    return answer


def keystore(folder: Path, kind: str) -> dict[str, str]:
    pem = self_signed(folder)
    prefix = "listeners.https.ssl."
    if kind == "PKCS12":
        store = folder / "keystore.p12"
        store.write_bytes(as_pkcs12(pem, PASSWORD))
        found = {"keystore.location": str(store), "keystore.password": PASSWORD}
    elif kind == "text":
        text = encrypted(pem, PASSWORD).decode()
        found = {"keystore.certificate.chain": text, "key.password": PASSWORD}
    else:
        store = folder / "encrypted.pem"
        store.write_bytes(encrypted(pem, PASSWORD))
        found = {"keystore.location": str(store), "key.password": PASSWORD}
    kind = "PKCS12" if kind == "PKCS12" else "PEM"
    return {f"{prefix}keystore.type": kind, **{f"{prefix}{key}": value for key, value in found.items()}}


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "text"])
def test_http_and_https_answer_at_the_same_time_with_a_certificate_that_clients_can_check(serve, tmp_path, kind):
    given = {"listeners": "http://127.0.0.1:0,https://127.0.0.1:0", **keystore(tmp_path, kind)}
    server = serve(given)
    plain, secure = server.urls
    assert (plain[:5], secure[:6]) == ("http:", "https:")
    found = requests.get(f"{secure}/", verify=str(tmp_path / "server.pem"), timeout=20).json()
    assert found == requests.get(f"{plain}/", timeout=20).json()
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{secure}/", timeout=20)
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(secure.replace("https", "http"), timeout=20)


def test_only_clients_with_a_certificate_of_a_known_authority_are_let_in(serve, tmp_path):
    trust = {"truststore.type": "PEM", "truststore.location": str(tmp_path / "server.pem"), "client.auth": "required"}
    given = {"listeners": "https://127.0.0.1:0", **keystore(tmp_path, "PEM")}
    server = serve({**given, **{f"listeners.https.ssl.{key}": value for key, value in trust.items()}})
    pem = str(tmp_path / "server.pem")
    assert requests.get(f"{server.urls[0]}/connectors", verify=pem, cert=pem, timeout=20).json() == []
    with pytest.raises(requests.exceptions.RequestException):
        requests.get(f"{server.urls[0]}/connectors", verify=pem, timeout=20)


def test_a_client_with_an_older_version_of_tls_than_the_settings_allow_is_refused(serve, tmp_path):
    given = {"listeners": "https://127.0.0.1:0", "listeners.https.ssl.enabled.protocols": "TLSv1.3"}
    server = serve({**given, **keystore(tmp_path, "PEM")})
    context = ssl.create_default_context(cafile=str(tmp_path / "server.pem"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(server.address) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_admin_listeners_have_log_levels_and_nothing_else(serve):
    server = serve({"listeners": "http://127.0.0.1:0", "admin.listeners": "http://127.0.0.1:0"}, admin=with_numbers)
    api, admin = server.urls
    codes = {
        (url, path): requests.get(url + path, timeout=20).status_code
        for url in server.urls
        for path in ("/connectors", "/health", "/admin/loggers", "/admin/loggers/root", "/numbers")
    }
    assert codes == {
        (api, "/connectors"): 200,
        (api, "/health"): 200,
        (api, "/admin/loggers"): 404,
        (api, "/admin/loggers/root"): 404,
        (api, "/numbers"): 404,
        (admin, "/numbers"): 200,
        (admin, "/connectors"): 404,
        (admin, "/health"): 404,
        (admin, "/admin/loggers"): 200,
        (admin, "/admin/loggers/root"): 200,
    }
    assert "/admin/loggers" not in requests.get(f"{api}/openapi.json", timeout=20).json()["paths"]


def test_with_an_empty_list_of_admin_listeners_log_levels_are_nowhere(serve):
    server = serve({"listeners": "http://127.0.0.1:0", "admin.listeners": ""})
    answer = requests.put(f"{server.urls[0]}/admin/loggers/root", json={"level": "DEBUG"}, timeout=20)
    assert (answer.status_code, answer.json()) == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})


def with_users(folder: Path) -> dict[str, str]:
    users = folder / "users"
    users.write_text("ann=secret")
    users.chmod(0o600)
    return {
        "listeners": "http://127.0.0.1:0",
        "rest.extension.classes": "BasicAuthSecurityRestExtension",
        "rest.basic.auth.file": str(users),
    }


def test_health_needs_no_user_and_then_says_nothing_else(serve, tmp_path):
    server = serve(with_users(tmp_path), state=WorkerState(running_s=lambda: {"orders": 7.04}))
    url = f"{server.urls[0]}/health"
    ready = {"status": "healthy", "message": "Worker has completed startup and is ready to handle requests."}

    assert requests.get(url, timeout=20).json() == ready
    assert requests.get(url, auth=("ann", "wrong"), timeout=20).json() == ready
    known = requests.get(url, auth=("ann", "secret"), timeout=20).json()
    assert known == {**ready, "runs": [{"connector": "orders", "seconds": 7.0}]}
    assert requests.get(f"{server.urls[0]}/connectors", timeout=20).status_code == 401
    assert requests.post(url, timeout=20).status_code == 401
    assert requests.get(url, headers={"Origin": "https://evil.example.com"}, timeout=20).status_code == 403


def test_health_without_a_user_does_not_tell_why_it_is_bad(serve, tmp_path, monkeypatch):
    def fail(_: object) -> None:
        raise UnavailableError("broker-7.internal:9092 does not answer.")

    server = serve(with_users(tmp_path))
    monkeypatch.setattr(Herder, "names", fail)
    url = f"{server.urls[0]}/health"
    unknown, known = requests.get(url, timeout=20), requests.get(url, auth=("ann", "secret"), timeout=20)
    assert (unknown.status_code, known.status_code) == (500, 500)
    assert unknown.json() == {"status": "unhealthy", "message": "See the log of the worker."}
    assert "broker-7.internal" in known.json()["message"]


def test_a_page_of_an_allowed_host_is_answered_and_others_are_not(serve, tmp_path):
    pages = {"access.control.allow.origin": PAGE, "access.control.allow.methods": "GET,PUT"}
    server = serve({**with_users(tmp_path), **pages})
    url, ask = f"{server.urls[0]}/connectors", {"Access-Control-Request-Method": "PUT"}
    preflight = requests.options(url, headers={"Origin": PAGE, **ask}, timeout=20)
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, PAGE)
    assert {"GET", "PUT"} == set(preflight.headers["access-control-allow-methods"].replace(" ", "").split(","))
    answer = requests.get(url, auth=("ann", "secret"), headers={"Origin": PAGE}, timeout=20)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
    assert requests.get(url, headers={"Origin": PAGE}, timeout=20).status_code == 401
    evil = {"Origin": "https://evil.example.com"}
    refused = requests.options(url, headers={**evil, **ask}, timeout=20)
    assert (refused.status_code, refused.headers.get("access-control-allow-origin")) == (400, None)
    assert requests.get(url, auth=("ann", "secret"), headers=evil, timeout=20).status_code == 403
    assert requests.post(url, auth=("ann", "secret"), headers={"Origin": PAGE}, timeout=20).status_code == 415


def test_every_answer_has_the_headers_of_the_settings(serve):
    given = 'set Content-Type: text/x-test, "add Cache-Control: no-cache, no-store", addDate Expires: 1000'
    server = serve({"listeners": "http://127.0.0.1:0", "response.http.headers.config": given})
    for path, status in (("/connectors", 200), ("/nope", 404)):
        answer = requests.get(server.urls[0] + path, timeout=20)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/x-test")
        assert answer.headers["cache-control"] == "no-cache, no-store"
        assert answer.headers["expires"].endswith("GMT")


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /connectors HTTP/1.1\r\nHost: local", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ids=["nothing", "half a head", "one request, then nothing"],
)
def test_a_connection_whose_client_does_not_go_on_is_closed(serve, monkeypatch, sent):
    is_whole = sent.endswith(b"\r\n\r\n")
    # A whole request takes its time as well, on a busy machine.
    limit = "control.rest.serving.servers.IDLE_S" if is_whole else "runtime.bounded_connections.HEAD_WITHIN_S"
    monkeypatch.setattr(f"airflow_connect.{limit}", 0.2)
    server = serve({"listeners": "http://127.0.0.1:0"})
    with socket.create_connection(server.address) as slow:
        slow.settimeout(20)
        slow.sendall(sent)
        received = b"".join(iter(lambda: slow.recv(1 << 16), b""))
    assert received.startswith(b"HTTP/1.1 200") is is_whole


def test_a_head_without_an_end_is_cut_off(serve):
    server = serve({"listeners": "http://127.0.0.1:0"})
    with socket.create_connection(server.address) as endless:
        endless.settimeout(20)
        endless.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with contextlib.suppress(ConnectionError):  # The server closes it while there is still something to send.
            for _ in range(300):
                endless.sendall(b"X-Long: " + b"x" * 1000 + b"\r\n")
        with contextlib.suppress(ConnectionError):
            assert not endless.recv(1 << 16).startswith(b"HTTP/1.1 200")
    assert requests.get(f"{server.urls[0]}/connectors", timeout=20).status_code == 200


def test_a_client_that_does_not_read_its_answers_is_cut_off(serve, monkeypatch):
    monkeypatch.setattr("airflow_connect.runtime.bounded_connections.READ_WITHIN_S", 0.2)
    cut_off, was_cut_off = Bounded._cut_off, threading.Event()
    monkeypatch.setattr(Bounded, "_cut_off", lambda self: (cut_off(self), was_cut_off.set()))
    server = serve({"listeners": "http://127.0.0.1:0"})
    many, one = 300, b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    size = len(requests.get(f"{server.urls[0]}/openapi.json", timeout=20).content)
    with socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        idle.connect(server.address)
        idle.settimeout(20)
        idle.sendall(one * many)
        assert was_cut_off.wait(20)
        received = 0
        with contextlib.suppress(ConnectionError):
            while part := idle.recv(1 << 16):
                received += len(part)
    assert received < many * size / 2
