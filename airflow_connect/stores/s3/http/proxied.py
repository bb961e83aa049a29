"""Connections through an HTTP proxy, by urllib3.

Nothing else needs urllib3, whose import takes 0.1 s.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from typing import Any

import urllib3

from airflow_connect.errors import ConfigError
from airflow_connect.proxies import Proxy
from airflow_connect.stores.s3.http.connections import Target
from airflow_connect.stores.s3.http.errors import HttpResponse


class ProxiedConnections:
    """Like `DirectConnections`, through a proxy."""

    def __init__(self, target: Target, proxy: Proxy, most_idle: int) -> None:
        """Nothing is connected yet.

        Raises:
            ConfigError: the proxy's URL is invalid.
        """
        timeout = urllib3.Timeout(connect=target.connect_timeout_s, read=target.read_timeout_s)
        options: dict[str, Any] = {"maxsize": most_idle, "timeout": timeout, "ssl_context": target.tls}
        try:
            self._manager = proxy.manager(**options)
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
