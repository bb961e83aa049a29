"""Connections through an HTTP proxy: urllib3 handles tunnels, TLS to the proxy and its authentication.

Nothing else needs urllib3, whose import takes 0.1 s.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3

from airflow_connect.errors import ConfigError
from airflow_connect.stores.s3.http.connections import Target
from airflow_connect.stores.s3.http.errors import HttpResponse


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and our credentials for it; `url` may also contain user and password."""

    url: str
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        """Without the password."""
        return f"Proxy({urlsplit(self.url).hostname})"


class ProxiedConnections:
    """Like `DirectConnections`, through a proxy."""

    def __init__(self, target: Target, proxy: Proxy, most_idle: int) -> None:
        """Nothing is connected yet.

        Raises:
            ConfigError: the proxy's URL is invalid.
        """
        parts = urlsplit(proxy.url)
        user, password = proxy.user or parts.username or "", proxy.password or parts.password or ""
        headers = urllib3.make_headers(proxy_basic_auth=f"{user}:{password}") if user else None
        timeout = urllib3.Timeout(connect=target.connect_timeout_s, read=target.read_timeout_s)
        options: dict[str, Any] = {"maxsize": most_idle, "timeout": timeout, "ssl_context": target.tls}
        try:
            self._manager = urllib3.ProxyManager(
                f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", proxy_headers=headers, **options
            )
        except urllib3.exceptions.HTTPError as error:
            message = "s3.proxy.url is not an http or https address with host and port."
            raise ConfigError(message, code="s3.proxy", config_path="s3.proxy.url") from error
        scheme = "http" if target.tls is None else "https"
        port = f":{target.port}" if target.port else ""
        self._base = f"{scheme}://{target.host}{port}"

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | bytearray | memoryview
    ) -> HttpResponse:
        """Send one request and read the whole reply.

        Raises:
            OSError, http.client.HTTPException: no whole reply came.
        """
        options: dict[str, Any] = {"headers": headers, "retries": False, "redirect": False, "body": body}
        try:
            reply = self._manager.urlopen(method, self._base + path, **options)
        except urllib3.exceptions.SSLError as error:
            raise ssl.SSLCertVerificationError(str(error)) from error
        except urllib3.exceptions.HTTPError as error:
            raise http.client.HTTPException(f"{type(error).__name__}: {error}") from error
        return HttpResponse(reply.status, {name.lower(): value for name, value in reply.headers.items()}, reply.data)

    def close(self) -> None:
        """Close idle connections."""
        self._manager.clear()
