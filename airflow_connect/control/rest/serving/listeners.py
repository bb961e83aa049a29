"""Addresses: `listeners` and `admin.listeners`."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from airflow_connect.errors import ConfigError, UnavailableError
from airflow_connect.runtime.listening import in_url, listen

LISTENERS, ADMIN_LISTENERS = "listeners", "admin.listeners"
DEFAULT_LISTENER = "http://127.0.0.1:8083"
HTTPS = "https"
_LISTENER = re.compile(r"(https?)://(\[[0-9a-fA-F:]+\]|[^:/\s]*):(\d{1,5})/?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listener:
    """Where a server listens.

    Attributes:
        scheme: `http` or `https`.
        host: "": every interface.
        port: 0: a free one.
        key: the configuration key that names it.
    """

    scheme: str = "http"
    host: str = "127.0.0.1"
    port: int = 8083
    key: str = LISTENERS

    def url(self, port: int) -> str:
        """Where it can be reached from this machine; `port`: on which it listens."""
        return f"{self.scheme}://{in_url(self.host or 'localhost')}:{port}"

    def open(self) -> socket.socket:
        """A socket that listens.

        Raises:
            UnavailableError: the address is taken, or is not of this machine.
        """
        try:
            return listen(self.host, self.port)
        except OSError as error:
            raise UnavailableError(
                f"The worker cannot listen on {self.host or 'every interface'}:{self.port}: {error.strerror or error}.",
                code="worker.address",
                suggestion=f"Choose another address: {self.key}.",
            ) from error


def listeners_of(key: str, value: str) -> tuple[Listener, ...]:
    """The listeners of a key.

    Raises:
        ConfigError: one of them is none, or two have the same address.
    """
    found = tuple(_listener(key, part.strip()) for part in value.split(",") if part.strip())
    addresses = [(each.host, each.port) for each in found if each.port]
    if len(addresses) != len(set(addresses)):
        raise ConfigError(
            f"{key}={value} names an address twice.",
            code="worker.listeners",
            config_path=key,
            suggestion="Name it once.",
        )
    return found


def port_of(key: str, text: str) -> int:
    """A port.

    Raises:
        ConfigError: it is none.
    """
    if not (text.isascii() and text.isdigit() and int(text[:6]) <= 65535):
        raise ConfigError(f"{key} has the port {text!r}; a port is a number from 0 to 65535.", config_path=key)
    return int(text)


def _listener(key: str, value: str) -> Listener:
    found = _LISTENER.fullmatch(value)
    if found is None:
        raise ConfigError(
            f"{key}={value} is not a listener.",
            code="worker.listeners",
            config_path=key,
            suggestion=f"Write {DEFAULT_LISTENER}, or https://HOST:PORT; several are separated by commas.",
        )
    scheme, host, port = found.groups()
    return Listener(scheme.lower(), host.strip("[]"), port_of(key, port), key)
