"""Kept-alive connections to one host, for the hot path.

urllib3 spends 100 microseconds of CPU on a small request and http.client 40, and ten thousand objects are thirty
thousand requests. Importing urllib3 takes 0.1 s, too; only proxies need it (proxied.py).
"""

from __future__ import annotations

import http.client
import os
import select
import ssl
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from airflow_connect.stores.s3.http.errors import HttpResponse


@dataclass(frozen=True, slots=True)
class Target:
    """The host to connect to. `tls` is None for plain http."""

    host: str
    port: int | None
    tls: ssl.SSLContext | None
    connect_timeout_s: float
    read_timeout_s: float


class Connections(Protocol):
    """Connections to one host."""

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | bytearray | memoryview
    ) -> HttpResponse:
        """Send one request and read the whole reply; OSError or HTTPException if none arrives."""

    def close(self) -> None:
        """Close idle connections."""


class DirectConnections:
    """A pool that opens a connection if none is idle; used by many threads."""

    def __init__(self, target: Target, most_idle: int) -> None:
        """`most_idle`: connections kept; more may be open at once."""
        self._target = target
        # Appending and popping at one end is atomic, and the warmest connection is used first.
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._most_idle = most_idle
        # A publisher is not closed when its run ends, only dropped.
        weakref.finalize(self, _close_all, self._idle)

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | bytearray | memoryview
    ) -> HttpResponse:
        """Send one request and read the whole reply.

        Args:
            method: HTTP method.
            path: encoded path with query.
            headers: all headers, `host` and `content-length` included.
            body: may be empty.

        Raises:
            OSError, http.client.HTTPException: no complete reply arrived; what the server did is unknown.
        """
        connection = self._checked_out()
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            _send(connection, body)
            reply = connection.getresponse()
            content = reply.read()
        except BaseException:
            # Also on Ctrl-C: a connection with half an exchange on it must never be used again.
            connection.close()
            raise
        if reply.will_close or len(self._idle) >= self._most_idle:
            connection.close()
        else:
            self._idle.append(connection)
        return HttpResponse(reply.status, {name.lower(): value for name, value in reply.getheaders()}, content)

    def close(self) -> None:
        """Close idle connections."""
        _close_all(self._idle)

    def _checked_out(self) -> http.client.HTTPConnection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connected()
            if not _is_stale(connection):
                return connection
            connection.close()

    def _connected(self) -> http.client.HTTPConnection:
        target = self._target
        timeout = target.connect_timeout_s
        connection: http.client.HTTPConnection
        if target.tls is None:
            connection = http.client.HTTPConnection(target.host, target.port, timeout=timeout)
        else:
            connection = http.client.HTTPSConnection(target.host, target.port, timeout=timeout, context=target.tls)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        connection.sock.settimeout(target.read_timeout_s)
        return connection


def _close_all(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()


def _send(connection: http.client.HTTPConnection, body: bytes | bytearray | memoryview) -> None:
    try:
        connection.endheaders(body or None)
    except (BrokenPipeError, ConnectionResetError):
        # The server may have refused before reading the whole body; its reply says why. If there is no reply, reading
        # it fails next.
        return


def _is_stale(connection: http.client.HTTPConnection) -> bool:
    """Whether the server closed an idle connection: then the socket is readable (end of stream)."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def tls_context() -> ssl.SSLContext:
    """Certificates as for every AWS tool.

    AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE, else the system's, else certifi's.
    """
    bundle = os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE")
    context = ssl.create_default_context(cafile=bundle or None)
    if not context.get_ca_certs() and not bundle:
        try:
            import certifi
        except ImportError:
            return context
        context.load_verify_locations(certifi.where())
    return context
