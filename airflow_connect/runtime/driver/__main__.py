"""The driver process: one RunSpec from stdin, the run, its events to stdout. Started by `process.py`.

Exit code: 0 done or nothing to do, 1 the run failed, 2 the configuration is wrong, 143 ended by SIGTERM.

1. The end of stdin means that the parent is gone: every process of the run is killed at once, this one last.
   No cleanup is needed, because a run can be killed at any point (exactly_once) and the next run sweeps its
   leftovers.
2. Only events reach the real stdout. File descriptor 1 is redirected to stderr before anything else is imported,
   because the JVM, pyspark and C libraries write to it.
3. The run has its own thread: the main thread stays free for signals, even while C code blocks the run.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.process_tree import TOKEN_ENV, end_processes, still_running
from airflow_connect.runtime.spec import RunSpec

PARENT_CHECK_S = 0.5
STOP_GRACE_S = 1.5
WAKE_UP_EVERY_S = 0.5
EXIT_TERMINATED = 128 + signal.SIGTERM
GARBAGE_AFTER_OBJECTS = 50_000
"""Python looks for garbage after 700 new objects. Imports make many that stay: that was a fifth of their CPU time."""


class Terminated(BaseException):
    """SIGTERM or SIGINT has arrived; raised in the main thread only."""


class EventPipe:
    """The real stdout as an observer: one event, one line; safe from several threads.

    Attributes:
        is_ended: whether the event `end`, which contains the report, was written.
    """

    def __init__(self, fd: int) -> None:
        """Write to the descriptor `fd`."""
        self._out = os.fdopen(fd, "wb", buffering=0)
        self._lock = threading.Lock()
        self.is_ended = False

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Write one event. A closed pipe is not an error here: the thread that watches the parent ends the process."""
        self.is_ended = self.is_ended or event["event"] == "end"
        rest = memoryview(json.dumps(event, default=str).encode() + b"\n")
        with self._lock:
            try:
                while rest:
                    rest = rest[self._out.write(rest) :]
            except BrokenPipeError:
                return


def main() -> int:
    """Do the run that stdin describes; return the exit code."""
    gc.set_threshold(GARBAGE_AFTER_OBJECTS)
    events, life_line = _take_streams()
    spec = RunSpec.from_json(json.loads(_read_line(life_line)))
    threading.Thread(target=_watch_parent, args=(life_line, os.getppid()), name="parent-watch", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise_terminated)
    outcome: list[RunReport] = []
    ended = threading.Event()
    try:
        threading.Thread(target=_run, args=(spec, EventPipe(events), outcome, ended), name="run", daemon=True).start()
        # Not `Thread.join`: if a signal interrupts it, Python before 3.13 takes the thread for ended.
        # The kernel may give a signal to another thread; Python handles it when the main thread wakes up.
        while not ended.wait(WAKE_UP_EVERY_S):
            pass
    except Terminated:
        return _stop(ended)
    gc.freeze()  # Python would look through all objects three times before it exits.
    return _exit_code(outcome[0]) if outcome else 1


def _run(spec: RunSpec, observer: EventPipe, outcome: list[RunReport], ended: threading.Event) -> None:
    try:
        _run_and_report(spec, observer, outcome)
    finally:
        ended.set()


def _run_and_report(spec: RunSpec, observer: EventPipe, outcome: list[RunReport]) -> None:
    # Imported here, so that the parent is watched and signals are handled from the first millisecond.
    started_ms = time.time_ns() // 1_000_000
    from airflow_connect.runtime.driver.entry import run_connector

    try:
        outcome.append(run_connector(spec, observer))
    except BaseException as error:  # noqa: BLE001 (no caller: the thread would end without a useful message)
        # run_connector reports failures; what arrives here is a defect, or concerns the whole process (out of memory).
        _report_unexpected(spec, observer, outcome, error, started_ms)


def _report_unexpected(
    spec: RunSpec, observer: EventPipe, outcome: list[RunReport], error: BaseException, started_ms: int
) -> None:
    """Log the traceback without secrets; report a defect, so that it is not retried.

    For anything else, the parent sees the exit code and shows the end of this log: a retry may help.
    """
    from airflow_connect.api.config.references import ResolvedReferences
    from airflow_connect.runtime.driver.reporting import failed
    from airflow_connect.runtime.reporting.internal_errors import (
        internal_error,
        is_defect,
        name_connector,
        traceback_of,
    )
    from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

    redact = Redactor(secret_values(spec.connector, spec.worker, spec.aws), ResolvedReferences(spec.references))
    name = str(spec.connector.get("name") or "")
    name_connector(error, name)
    print(traceback_of(error, redact), file=sys.stderr, flush=True)
    if not is_defect(error) or observer.is_ended:
        return
    report = failed(name, spec.run_id, started_ms, internal_error(error, redact), {})
    outcome.append(report)
    observer({"event": "end", "report": report.to_json()})


def _stop(ended: threading.Event) -> int:
    """Request that the run ends before its next irrevocable step, wait briefly, end its children."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    from airflow_connect.runtime.driver.entry import request_stop

    request_stop()
    ended.wait(STOP_GRACE_S)
    _end_children()
    sys.stderr.flush()
    # The run's thread may still be inside C code: it must do nothing more, not even commit.
    os._exit(EXIT_TERMINATED)


def _exit_code(report: RunReport) -> int:
    if report.error is None:
        return 0
    return 2 if report.error.get("type") == "ConfigError" else 1


def _take_streams() -> tuple[int, int]:
    """Private descriptors of stdout and stdin; stderr and /dev/null take their places."""
    events, life_line = os.dup(1), os.dup(0)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return events, life_line


def _read_line(fd: int) -> bytes:
    """The first line, of any length; the parent sends nothing after it."""
    parts: list[bytes] = []
    while chunk := os.read(fd, 1 << 16):
        parts.append(chunk)
        if chunk.endswith(b"\n"):
            break
    return b"".join(parts)


def _watch_parent(life_line: int, parent: int) -> None:
    """Kill the whole run when the parent is gone.

    Usually the end of the pipe shows this. The parent's pid is checked as well, because a child that the parent
    forked without exec also holds the pipe open.
    """
    while os.getppid() == parent:
        ready, _, _ = select.select([life_line], [], [], PARENT_CHECK_S)
        if ready and not os.read(life_line, 1 << 16):
            break
    _end_children()
    os.killpg(0, signal.SIGKILL)


def _end_children() -> None:
    left = end_processes(os.environ[TOKEN_ENV], grace_s=0, spare=[os.getpid()])
    if left:
        print(still_running(left), file=sys.stderr, flush=True)


def _raise_terminated(number: int, frame: object) -> None:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main())
