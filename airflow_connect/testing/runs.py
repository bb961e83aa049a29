"""Runs of a conformance suite: the real protocol and the real task code, in this process or in one that may be killed.

Spark is not used: it would only decide where the same function runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.crash_points import VARIABLE
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.in_process import InProcessEngine
from airflow_connect.runtime.spec import RunSpec

RUN_TIMEOUT_S = 180.0
RECORDS = "--records"
"""Argument of run_once: no columns."""


class RunProcess:
    """A run in a separate process, which leads a process group, so that a crash point kills nothing else."""

    def __init__(self, spec: RunSpec, crash_at: str = "", *, columnar: bool = True) -> None:
        """Start it; `crash_at`: the step at which it is killed; `columnar`: whether the columnar path may be used."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        if crash_at:
            environment[VARIABLE] = crash_at
        self._process = _start([] if columnar else [RECORDS], environment)
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")
            self._process.stdin.flush()

    def wait(self) -> RunReport | None:
        """The report, or None if the run was killed.

        Raises:
            RuntimeError: it ended in another way.
        """
        out, log = self._process.communicate(timeout=RUN_TIMEOUT_S)
        if self._process.returncode == -signal.SIGKILL:
            return None
        if self._process.returncode != 0:
            raise RuntimeError(f"The process of a run failed: {log.decode(errors='replace')[-3000:]}")
        return RunReport.from_json(json.loads(out.splitlines()[-1]))

    def kill(self) -> None:
        """Kill it and the processes of its group; idempotent. JVMs of plugins end by themselves, within two seconds."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate(timeout=RUN_TIMEOUT_S)


def _start(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "airflow_connect.testing.run_once", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def run_here(spec: RunSpec, *, columnar: bool = True) -> tuple[RunReport, list[Mapping[str, Any]]]:
    """One run in this process; returns its report and its events."""
    events: list[Mapping[str, Any]] = []

    def observe(event: Mapping[str, Any]) -> None:
        events.append(event)

    return run_connector(spec, observe, InProcessEngine(columnar=columnar)), events
