"""Receives the progress of the tasks in the driver: adds up the datagrams of runtime/executor/progress.py."""

from __future__ import annotations

import hmac
import json
import secrets
import selectors
import socket
import threading
import time
from types import TracebackType
from typing import Any

from airflow_connect.documents.run_progress import MOST_TASKS, TaskProgress
from airflow_connect.runtime.driver.reporting import now_ms
from airflow_connect.runtime.spec import Observer

SHOW_INTERVAL_S = 0.5
MAX_DATAGRAM_BYTES = 1024
"""More than a report needs; a longer datagram is cut and is then no longer valid JSON."""
DATAGRAMS_AT_ONCE = 10_000
"""A limit, so that a sender without pauses cannot delay the end of a job."""


class ProgressListener:
    """Receives counters of tasks while a job runs and passes the sums to the observer, at most twice a second."""

    def __init__(self, observer: Observer, host: str, total: int) -> None:
        """`host`: address of this driver that executors can reach. `total`: offsets to copy; 0: unknown."""
        self._observer = observer
        self._total = total
        self._token = secrets.token_hex(16)
        self._host = host
        self._socket = _bound(host)
        self._socket.setblocking(False)
        self._done: dict[int, tuple[int, int, int]] = {}
        self._parts: dict[int, int] = {}
        self._seen_ms: dict[int, tuple[int, int]] = {}
        self._is_news = False
        self._shown_at = 0.0
        self._first_news_at = 0.0
        # Closing one end wakes the thread, so the end of a job does not wait for a timeout.
        self._wakeup, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="progress", daemon=True)

    @property
    def target(self) -> dict[str, Any]:
        """What tasks need to report."""
        return {"host": self._host, "port": self._socket.getsockname()[1], "token": self._token}

    def tasks(self) -> list[TaskProgress]:
        """What the tasks have reported; call it where the observer is called."""
        known = sorted(self._done.items())[:MOST_TASKS]
        return [TaskProgress(task, *counted, *self._seen_ms[task]) for task, counted in known]

    def __enter__(self) -> ProgressListener:
        """Start listening."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the last counters, stop listening."""
        self._wakeup.close()
        self._thread.join()
        self._woken.close()
        self._receive_all()
        self._socket.close()
        if self._is_news:
            self._show()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                # With new counters, wake up when they may be shown, even if no further datagram arrives.
                pause = self._shown_at + SHOW_INTERVAL_S - time.monotonic()
                ready = selector.select(max(0.0, pause) if self._is_news else None)
                if any(key.fileobj is self._woken for key, _ in ready):
                    return
                self._receive_all()
                if self._is_news and time.monotonic() >= self._shown_at + SHOW_INTERVAL_S:
                    self._show()

    def _receive_all(self) -> None:
        for _ in range(DATAGRAMS_AT_ONCE):
            try:
                datagram = self._socket.recv(MAX_DATAGRAM_BYTES)
            except BlockingIOError:
                return
            self._receive(datagram)

    def _receive(self, datagram: bytes) -> None:
        token, _, counters = datagram.partition(b"\n")
        if not hmac.compare_digest(token, self._token.encode()):
            return  # A datagram of another sender: the port is open to the network.
        try:
            report = json.loads(counters)
            task, attempt = int(report["task"]), int(report["attempt"])
            counted = (attempt, int(report["records"]), int(report["bytes"]))
            parts = int(report.get("parts", 0))
        except (ValueError, KeyError, TypeError):
            return  # An executor with another version of this package. Only the progress bar suffers.
        if attempt >= self._done.get(task, (0, 0, 0))[0]:
            # The rate excludes the start of Spark.
            self._first_news_at = self._first_news_at or time.monotonic()
            at_ms, known = now_ms(), self._done.get(task)
            is_same = known is not None and known[0] == attempt
            self._seen_ms[task] = (self._seen_ms[task][0] if is_same else at_ms, at_ms)
            self._done[task], self._parts[task] = counted, parts
            self._is_news = True

    def _show(self) -> None:
        self._is_news = False
        self._shown_at = time.monotonic()
        done = sum(records for _, records, _ in self._done.values())
        self._observer(
            {
                "event": "progress",
                "phase": "copy",
                "done": min(self._total, done) if self._total else done,
                "total": self._total,
                "bytes": sum(size for _, _, size in self._done.values()),
                "parts": sum(self._parts.values()),
                "seconds": round(time.monotonic() - self._first_news_at, 1),
            }
        )


def _bound(host: str) -> socket.socket:
    """A socket on `host`, or on all addresses of this machine if `host` is not one of its own.

    In a container, and with `spark.driver.bindAddress`, executors know the driver by an address that it does not have.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError:
        listener, address = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("", 0)
    try:
        listener.bind(address)
    except OSError:
        listener.bind(("::" if listener.family == socket.AF_INET6 else "", 0))
    return listener
