"""Who may send requests: users with passwords, or everybody who is addressed as this machine."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.control.rest.paths import WITHOUT_USER, Asgi, Scope
from airflow_connect.control.rest.serving.origins import Origins

if TYPE_CHECKING:
    from starlette.responses import Response

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


UNKNOWN_USER = 401


class Guard:
    """Middleware: refuses requests before anything of them is read.

    With users, every request needs the name and the password of one (HTTP Basic). Without, only requests that name a
    loopback address as their host are answered. A browser that sends a request for a page of another host is refused
    in both cases: it adds the password that its user has entered, and reaches the loopback addresses of its machine.
    A link on such a page may be followed.

    `/health` is answered without a user, as the probes of Kubernetes and of load balancers ask, which have none.
    """

    def __init__(self, app: Asgi, users: Mapping[str, str], origins: Origins | None = None) -> None:
        """`users`: password by name; {}: there are none. `origins`: pages of other hosts that are let in."""
        self._app = app
        self._origins = origins or Origins()
        # Digests have one length, so a comparison does not show how long a password is.
        self._digests = {name: _digest(password) for name, password in users.items()}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer or pass on."""
        if scope["type"] == "http":
            refusal = self._refusal(dict(scope["headers"]))
            if refusal is not None and refusal.status_code == UNKNOWN_USER and _is_probe(scope):
                scope = {**scope, WITHOUT_USER: True}
            elif refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Mapping[bytes, bytes]) -> Response | None:
        from starlette.responses import JSONResponse

        if not self._is_of_known_page(headers):
            return JSONResponse({"error_code": 403, "message": "Requests from other web pages are refused."}, 403)
        if self._digests:
            if self._is_known(headers.get(b"authorization", b"")):
                return None
            body = {"error_code": 401, "message": "User cannot access the resource."}
            return JSONResponse(body, UNKNOWN_USER, {"WWW-Authenticate": "Basic"})
        if _host(headers) in LOOPBACK_HOSTS:
            return None
        message = (
            "This server has no users, so it answers only requests that are addressed to a loopback host."
            " Set rest.extension.classes and rest.basic.auth.file in the worker's configuration."
        )
        return JSONResponse({"error_code": 403, "message": message}, 403)

    def _is_of_known_page(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether the request comes from no web page, from one of this host (RFC 6454), or from one that is let in.

        A browser sends no `Origin` with the GET of a picture or a script, but `Sec-Fetch-Site` (W3C Fetch Metadata).
        """
        origin = headers.get(b"origin")
        if origin is None:
            is_link = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
            return is_link or headers.get(b"sec-fetch-site", b"none") in (b"none", b"same-origin")
        if origin.partition(b"://")[2] == headers.get(b"host", b""):
            return True
        return self._origins.allow(origin.decode("latin-1"))

    def _is_known(self, header: bytes) -> bool:
        scheme, _, encoded = header.partition(b" ")
        if scheme.lower() != b"basic":
            return False
        try:
            name, separator, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        # An unknown name costs as much time as a wrong password.
        known = self._digests.get(name, _digest(""))
        is_equal = hmac.compare_digest(known, _digest(password))
        return bool(separator) and name in self._digests and is_equal


def _is_probe(scope: Scope) -> bool:
    return scope["path"] == "/health" and scope["method"] in ("GET", "HEAD")


def _host(headers: Mapping[bytes, bytes]) -> str:
    """The host that the request is addressed to, without its port."""
    host = headers.get(b"host", b"").decode("latin-1")
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()
