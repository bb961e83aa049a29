"""Airflow in a separate process, which runs the demo's DAG on request."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from airflow_connect.devstack.launching.process import log_tail
from airflow_connect.errors import ConnectError, TaskFailedError
from airflow_connect.runtime.spec import Observer

STOP_S = 10.0


class AirflowProcess:
    """An Airflow with its own home folder. Use it as a context manager; leaving it ends the process.

    Attributes:
        log_path: its log file, unless the log goes to stderr.
    """

    def __init__(self, home: Path, dags: Path, dag_id: str, connections: Mapping[str, Any], log: TextIO | None) -> None:
        """Start it; call `wait_until_ready` before the first run.

        Args:
            home: AIRFLOW_HOME; created, or reused if it exists.
            dags: folder of the DAG files.
            dag_id: the DAG to run.
            connections: Airflow connections by id, as objects.
            log: destination of Airflow's log; None: `airflow.log` in its home.
        """
        home.mkdir(parents=True, exist_ok=True)
        self.log_path = home / "airflow.log"
        with self.log_path.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow_connect.operators.run_dag", str(dags), dag_id],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file if log is None else log,
                env=_environment(home, dags, connections),
                text=True,
                start_new_session=True,
            )

    def __enter__(self) -> AirflowProcess:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process; a running DAG run is killed."""
        if error is not None:
            self._process.send_signal(signal.SIGTERM)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdin, self._process.stdout:
            pass
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_until_ready(self) -> None:
        """Wait until the database is migrated and the DAG is loaded.

        Raises:
            TaskFailedError: Airflow ended instead; the message has the end of its log.
        """
        self._next_event()

    def run(self, observer: Observer) -> dict[str, Any]:
        """Run the DAG once; the observer gets the connectors' events.

        Returns:
            The `dag_run` event: state, run_id and seconds.

        Raises:
            TaskFailedError: the DAG run failed.
        """
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        failure: dict[str, Any] | None = None
        while (event := self._next_event())["event"] != "dag_run":
            if event["event"] == "end":
                failure = event["report"]["error"]
            observer(event)
        if event["state"] != "success":
            raise self._failure(failure)
        return event

    def _next_event(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise TaskFailedError(
                f"Airflow ended. The end of its log {self.log_path}:\n{log_tail(self.log_path)}\n",
                code="demo.airflow",
                suggestion="Run again with -v to see all of it.",
            )
        event: dict[str, Any] = json.loads(line)
        return event

    def _failure(self, error: Mapping[str, Any] | None) -> ConnectError:
        if error is None:
            return TaskFailedError(
                f"The DAG run failed. The end of Airflow's log {self.log_path}:\n{log_tail(self.log_path)}\n",
                code="demo.airflow",
            )
        return TaskFailedError(error["message"], code=error["code"], suggestion=error["suggestion"])


def _environment(home: Path, dags: Path, connections: Mapping[str, Any]) -> dict[str, str]:
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "PYTHONWARNINGS": "ignore",
        **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(connection) for name, connection in connections.items()},
    }
