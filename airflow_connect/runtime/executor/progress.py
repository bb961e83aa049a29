"""How far a task is, told to the driver in datagrams. Losing one harms nothing; the result rows are the truth."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

INTERVAL_S = 0.5


class ProgressSender:
    """Sends the task's counters at most twice a second; silent when the driver cannot be reached."""

    def __init__(self, target: Mapping[str, Any], task: int, attempt: int) -> None:
        """`target`: `host`, `port`, `token` of the driver's listener, or {} for no progress."""
        self._target = (str(target["host"]), int(target["port"])) if target else None
        self._about = {"token": target.get("token", ""), "task": task, "attempt": attempt}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM) if self._target else None
        self._next = 0.0

    def update(self, records: int, size_bytes: int, *, force: bool = False) -> None:
        """Report `records` offsets copied and `size_bytes` read so far."""
        if self._socket is None or self._target is None:
            return
        now = time.monotonic()
        if now < self._next and not force:
            return
        self._next = now + INTERVAL_S
        datagram = json.dumps({**self._about, "records": records, "bytes": size_bytes}).encode()
        try:
            self._socket.sendto(datagram, self._target)
        except OSError:
            # A driver behind a firewall shows no bar; the copy goes on.
            self.close()

    def close(self) -> None:
        """Release the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
