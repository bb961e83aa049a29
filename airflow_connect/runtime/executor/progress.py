"""Sends the progress of a task to the driver in datagrams. A lost one does no harm; the result rows are authoritative.

A datagram is the token of the run, a line end, and a JSON object. The driver compares the token before it parses the
rest, because anyone on its network could send a datagram.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

INTERVAL_S = 0.5


class ProgressSender:
    """Sends the task's counters at most twice a second; does nothing if the driver cannot be reached."""

    def __init__(self, target: Mapping[str, Any], task: int, attempt: int) -> None:
        """`target`: `host`, `port`, `token` of the driver's listener, or {} for no progress."""
        self._token = str(target.get("token", "")).encode()
        self._about = {"task": task, "attempt": attempt}
        self._socket = _connected(str(target["host"]), int(target["port"])) if target else None
        self._next = 0.0

    def update(self, records: int, size_bytes: int, parts: int = 0, *, force: bool = False) -> None:
        """Report `records` copied, `size_bytes` read, and `parts` of a source that are done so far."""
        if self._socket is None:
            return
        now = time.monotonic()
        if now < self._next and not force:
            return
        self._next = now + INTERVAL_S
        counters = json.dumps({**self._about, "records": records, "bytes": size_bytes, "parts": parts})
        try:
            self._socket.send(self._token + b"\n" + counters.encode())
        except BlockingIOError:
            return
        except OSError:
            # A driver behind a firewall shows no progress bar; the copy continues.
            self.close()

    def close(self) -> None:
        """Release the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _connected(host: str, port: int) -> socket.socket | None:
    """A socket to the driver, whose name is resolved once; None if it cannot be resolved or reached."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        sender = socket.socket(family, kind, protocol)
    except OSError:
        return None
    try:
        sender.setblocking(False)  # A full buffer drops a datagram; it must never delay the copy.
        sender.connect(address)
    except OSError:
        sender.close()
        return None
    return sender
