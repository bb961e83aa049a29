"""The driver's ear for its tasks: adds up the datagrams of runtime/executor/progress.py."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from types import TracebackType
from typing import Any

from airflow_connect.runtime.spec import Observer


class ProgressListener:
    """Receives counters of tasks while a job runs and passes the sums to the observer, at most twice a second."""

    def __init__(self, observer: Observer, host: str, total: int) -> None:
        """`host`: address of this driver that executors can reach. `total`: offsets to copy."""
        self._observer = observer
        self._total = total
        self._token = secrets.token_hex(8)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._socket.settimeout(0.5)
        self._host = host
        self._done: dict[int, tuple[int, int, int]] = {}
        self._stopped = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._listen, name="progress", daemon=True)

    @property
    def target(self) -> dict[str, Any]:
        """What tasks need to report."""
        return {"host": self._host, "port": self._socket.getsockname()[1], "token": self._token}

    def __enter__(self) -> ProgressListener:
        """Start listening."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        self._stopped.set()
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        shown = 0.0
        while not self._stopped.is_set():
            try:
                self._receive(self._socket.recv(4096))
            except TimeoutError:
                continue
            if time.monotonic() - shown >= 0.5:
                shown = time.monotonic()
                self._show()

    def _receive(self, datagram: bytes) -> None:
        try:
            report = json.loads(datagram)
            if report["token"] != self._token:
                return
            task, attempt = int(report["task"]), int(report["attempt"])
            counted = (attempt, int(report["records"]), int(report["bytes"]))
        except (ValueError, KeyError, TypeError):
            return  # Somebody else's datagram: the port is open to the machine.
        if attempt >= self._done.get(task, (0, 0, 0))[0]:
            self._done[task] = counted

    def _show(self) -> None:
        self._observer(
            {
                "event": "progress",
                "phase": "copy",
                "done": min(self._total, sum(records for _, records, _ in self._done.values())),
                "total": self._total,
                "bytes": sum(size for _, _, size in self._done.values()),
                "seconds": round(time.monotonic() - self._started, 1),
            }
        )
