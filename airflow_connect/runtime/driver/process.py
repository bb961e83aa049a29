"""The driver as a child process, seen from its parent.

    parent                                   driver (`python -m airflow_connect.runtime.driver`, own session)
      stdin   -- the RunSpec, one JSON line, then nothing: while the pipe is open, the parent is alive ---->
      stdout  <------------------------------------------------------------- events, one JSON object a line
      stderr  <------------------------------------------ logs of Python, Spark and the JVM, passed to
      `on_log`

The driver ends itself and all its children when stdin reaches its end, so a parent that was killed, even by
SIGKILL, leaves no process running. Secrets are sent through the pipe only, never in argv or in the environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.process_tree import (
    POLL_S,
    TOKEN_ENV,
    end_processes,
    new_token,
    still_running,
)
from airflow_connect.runtime.spec import RunSpec

TAIL_LINES = 40
# Airflow follows its SIGTERM by SIGKILL after five seconds: everything must be over by then.
STOP_GRACE_S = 2.5
# A JVM removes its temporary folders while it ends. After a driver was killed, the wait is shorter.
EXIT_GRACE_S, KILLED_GRACE_S = 5.0, 1.0
LAST_LINES_S = 1.0
"""How long to read the driver's last output if a process that cannot be ended keeps the pipe open."""


class DriverProcess:
    """One driver, running from construction on. Leaving the context manager kills what still runs.

    `kill()` may be called from a signal handler and from any thread, at any time; everything else from one
    thread.

    Attributes:
        pid: process id of the driver, and id of its session and process group.
        token: value of AIRFLOW_CONNECT_RUN_TOKEN in the environment of every process of the run.
    """

    def __init__(
        self, spec: RunSpec, env: Mapping[str, str] | None = None, on_log: Callable[[str], None] | None = None
    ) -> None:
        """Start the driver.

        Args:
            spec: what to do.
            env: environment variables added to this process's own.
            on_log: receives each line of the driver's standard error, without its line end, in a
                separate thread.
        """
        self.token = new_token()
        self._on_log = on_log
        self._events: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._report: RunReport | None = None
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._exit_code: int | None = None
        self._unended: list[int] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "airflow_connect.runtime.driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(self.token, env or {}),
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._threads = [
            threading.Thread(target=work, name=f"driver-{work.__name__.strip('_')}", daemon=True)
            for work in (self._read_events, self._read_log, self._reap)
        ]
        for thread in self._threads:
            thread.start()
        self._send(spec)

    def __enter__(self) -> DriverProcess:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the driver if it is still running, and wait until all of it is gone."""
        self.kill()
        self.wait()

    @property
    def is_running(self) -> bool:
        """Whether the driver itself has not ended yet."""
        return self._exit_code is None

    @property
    def log_tail(self) -> str:
        """The last lines of the driver's standard error."""
        return "\n".join(self._tail)

    def events(self) -> Iterator[dict[str, Any]]:
        """Events as they come, until the driver closes its output; can be interrupted by signals."""
        while (event := self._events.get()) is not None:
            yield event

    def wait(self) -> RunReport | int:
        """Wait until every process of the run is gone. One that cannot be ended is logged and not waited for.

        Returns:
            The report of the `end` event, or the exit code (negative: the signal) of a driver that ended
            without one.
        """
        events, log, reaper = self._threads
        while reaper.is_alive() and not self._unended:
            reaper.join(POLL_S)
        for thread in (events, log):
            thread.join(LAST_LINES_S if self._unended else None)
        exit_code = -signal.SIGKILL if self._exit_code is None else self._exit_code
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        return self._report if self._report is not None else exit_code

    def kill(self) -> None:
        """End all processes of the run: SIGTERM, then SIGKILL. Nothing is committed after it returns."""
        # Neither a lock nor Popen.wait() here: a signal handler may have interrupted the thread that holds
        # the lock.
        if self.is_running:
            self._signal_group(signal.SIGTERM)
            self._await_exit(STOP_GRACE_S)
        if self.is_running:
            self._signal_group(signal.SIGKILL)
        left = end_processes(self.token, grace_s=0)
        self._await_exit(STOP_GRACE_S)
        if self.is_running:
            self._give_up(left or [self.pid])

    def _await_exit(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.is_running and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.pid, number)

    def _send(self, spec: RunSpec) -> None:
        assert self._process.stdin is not None
        # A driver that died at once is reported by wait(), with the end of its log.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")
            self._process.stdin.flush()

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        try:
            with self._process.stdout as stdout:
                for line in stdout:
                    event = json.loads(line)
                    if event["event"] == "end":
                        self._report = RunReport.from_json(event["report"])
                    self._events.put(event)
        finally:
            self._events.put(None)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            for raw in stderr:
                self._take_line(raw.decode("utf-8", "replace").rstrip())

    def _take_line(self, line: str) -> None:
        self._tail.append(line)
        if self._on_log is not None:
            self._on_log(line)

    def _reap(self) -> None:
        exit_code = self._exit_code = self._process.wait()
        left = end_processes(self.token, EXIT_GRACE_S if exit_code >= 0 else KILLED_GRACE_S)
        if left:
            self._threads[0].join(LAST_LINES_S)  # The pipe may stay open; all events of the driver are in it.
            self._give_up(left)

    def _give_up(self, pids: list[int]) -> None:
        """Log which processes remain, and stop waiting for the pipes that they hold open."""
        self._unended = pids
        self._take_line(still_running(pids))
        self._events.put(None)


def _environment(token: str, extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with what every driver needs.

    PYSPARK_PYTHON: otherwise Spark uses `python3` of the PATH for its workers, which need this interpreter's
        packages.
    """
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return {**os.environ, **python, "PYTHONUNBUFFERED": "1", **extra, TOKEN_ENV: token}
