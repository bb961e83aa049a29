"""The driver's run with the real one's signature; it does what `fake` in the connector configuration says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.connectors.files.shared.publishing.time_progress import TimeDirectory
from airflow_connect.documents.run import Plan, RunReport, TaskPlan
from airflow_connect.errors import ConfigError, ConnectError, FencedError, UnavailableError

_stop = threading.Event()

# A child that left the process group, ignores SIGTERM and SIGHUP, and has a child of its own whose parent is
# gone.
STUBBORN = """
import os, signal, sys
os.setpgid(0, 0)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
signal.pause()  # until it gets a signal that cannot be ignored
"""
ERRORS = {"config": ConfigError, "fenced": FencedError, "away": UnavailableError}


def request_stop() -> None:
    _stop.set()


def run_connector(spec: Any, observer: Any, engine: Any = None) -> RunReport:
    connector = spec.connector
    observer({"event": "start", "connector": connector.get("name", ""), "run_id": spec.run_id})
    action = connector.get("fake", "copy")
    report = _REPORTS[action](spec, observer) if action in _REPORTS else _failed(spec, ERRORS[action])
    observer({"event": "end", "report": report.to_json()})
    return report


def plan_connector(spec: Any) -> Plan:
    action = spec.connector.get("fake", "copy")
    if action in ERRORS:
        raise ERRORS[action]("It went wrong.", suggestion="Do something.", config_path="some.key")
    return replace(plan_of(spec), tasks=()) if action == "empty" else plan_of(spec)


def validate_connector(spec: Any) -> list[dict[str, Any]]:
    return list(spec.connector.get("findings", ()))


def plan_of(spec: Any) -> Plan:
    ranges = tuple(OffsetRange("meetups", p, 0, 10) for p in range(2))
    return Plan(spec.connector.get("name", ""), spec.run_id, 0, (TaskPlan(0, ranges),))


def _copy(spec: Any, observer: Any) -> RunReport:
    observer({"event": "phase", "phase": "plan"})
    observer({"event": "plan", "plan": plan_of(spec).to_json(), "notes": []})
    observer({"event": "phase", "phase": "copy"})
    observer({"event": "progress", "phase": "copy", "done": 20, "total": 20, "bytes": 900, "seconds": 0.5})
    records = min(20, int(spec.connector.get("run.max.records", 20)))
    committed = {"meetups-0": 10, "meetups-1": 10}
    return _report(spec, records=records, files=2, size_bytes=900, committed=committed)


def _complete(spec: Any, observer: Any) -> RunReport:
    """A run that completed the hours that `hours` names."""
    hours = [int(number) for number in str(spec.connector["hours"]).split(",") if number]
    found = tuple(
        TimeDirectory(
            "meetups", f"topics/meetups/hour={n}", "meetups", n * 1000, n * 1000 + 1000, 10 * n, n, 100 * n
        ).to_json()
        for n in hours
    )
    return _report(spec, records=20, files=2, committed={"meetups-0": 10, "meetups-x-1": 5}, complete=found)


def _held(spec: Any, observer: Any) -> RunReport:
    """A run that ends when the file `release` appears."""
    observer({"event": "phase", "phase": "copy"})
    while not Path(spec.connector["release"]).exists() and not _stop.wait(0.02):
        pass
    return _copy(spec, observer)


def _empty(spec: Any, observer: Any) -> RunReport:
    return _report(spec, status="empty")


def _echo(spec: Any, observer: Any) -> RunReport:
    """Tell what arrived, secrets included: into the events, the log and the noise."""
    print("noise of Python on stdout")
    os.write(1, b"noise of C on stdout\n")
    subprocess.run(["echo", "noise of a child on stdout"], check=True)
    print(f"password is {spec.worker.get('sasl.password')}", file=sys.stderr)
    seen = {name: dict(getattr(spec, name)) for name in ("worker", "aws", "connector", "bounds")}
    observer({"event": "warning", "message": "seen", "seen": seen, "env": dict(os.environ), "argv": sys.argv})
    return _report(spec)


def _hang(spec: Any, observer: Any) -> RunReport:
    """Start children as pyspark and the JVM do, wait until told to stop; commit if that was not heard."""
    pids = Path(spec.connector["pids"])
    child = subprocess.Popen([sys.executable, "-c", STUBBORN, str(pids)])
    pids.open("a").write(f"{os.getpid()}\n{child.pid}\n")
    observer({"event": "phase", "phase": "copy"})
    if not spec.connector.get("deaf") and _stop.wait(600):
        threading.Event().wait(float(spec.connector.get("step_s", 0)))  # the step that has begun
        Path(spec.connector["stopped"]).write_text("asked to stop")
        return _failed(spec, UnavailableError)
    threading.Event().wait(600)
    Path(spec.connector["committed"]).write_text("committed")
    return _report(spec)


def _crash(spec: Any, observer: Any) -> RunReport:
    print("OutOfMemoryError: Java heap space", file=sys.stderr, flush=True)
    os._exit(52)


def _defect(spec: Any, observer: Any) -> RunReport:
    raise AssertionError(f"a defect of ours near {spec.connector.get('sasl.password', 'nothing')}")


def _trouble(spec: Any, observer: Any) -> RunReport:
    raise ConnectionResetError("gone")


def _late_defect(spec: Any, observer: Any) -> RunReport:
    observer({"event": "end", "report": _report(spec).to_json()})
    raise TypeError("too late")


def _report(spec: Any, **fields: Any) -> RunReport:
    known = {"connector": spec.connector.get("name", ""), "run_id": spec.run_id, "status": "done"}
    return RunReport(**{**known, "started_ms": 1000, "ended_ms": 1500, **fields})


def _failed(spec: Any, kind: type[ConnectError]) -> RunReport:
    error = kind("It went wrong.", suggestion="Do something.", config_path="some.key")
    return _report(spec, status="failed", error=error.to_json())


_REPORTS = {
    "copy": _copy,
    "complete": _complete,
    "empty": _empty,
    "held": _held,
    "echo": _echo,
    "hang": _hang,
    "crash": _crash,
    "defect": _defect,
    "trouble": _trouble,
    "late defect": _late_defect,
}
