"""Sockets of servers: addresses, and which of them only this machine reaches."""

from __future__ import annotations

import ipaddress
import socket


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Args:
        host: an address or a name; "": every interface.
        port: 0: a free one.

    Raises:
        OSError: the address cannot be listened on.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def is_loopback(host: str) -> bool:
    """Whether an address, or a name that needs no server to resolve, is of this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def in_url(host: str) -> str:
    """The host as a part of a URL."""
    return f"[{host}]" if ":" in host else host
