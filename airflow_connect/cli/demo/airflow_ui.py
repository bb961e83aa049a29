"""A whole Airflow for `demo --ui`: API server, scheduler, triggerer and DAG processor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from airflow_connect.devstack.launching.process import free_ports, log_tail
from airflow_connect.errors import TaskFailedError
from airflow_connect.retrying import Backoff, Retry

CONN_ID = "connect_demo"
"""Connection of the worker."""
USER = "admin"
PATIENCE_S = 300.0
STOP_S = 10.0
COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")


class AirflowUi:
    """API server, scheduler, triggerer and DAG processor with a home of their own, on loopback."""

    def __init__(self, home: Path, connections: Mapping[str, Any]) -> None:
        """Start it; it takes some twenty seconds.

        Args:
            home: AIRFLOW_HOME, with the folder `dags`.
            connections: Airflow connections by id, as objects.
        """
        home.mkdir(parents=True, exist_ok=True)
        self._log_path = home / "standalone.log"
        self._passwords = home / "simple_auth_manager_passwords.json.generated"
        ports = free_ports(3)
        self.url = f"http://127.0.0.1:{ports[0]}"
        with self._log_path.open("wb") as log:
            # A session of its own: Airflow starts its components as children, and all of them have to end.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=_environment(home, ports, connections),
            )

    def wait_until_ready(self) -> None:
        """Return when every component answers.

        Raises:
            TaskFailedError: Airflow ended, or did not start in time; the message has the end of its log.
        """
        tries = Retry(Backoff(0.3, longest_s=0.3), within_s=PATIENCE_S)
        while not self._is_healthy():
            if self._process.poll() is not None or not tries.pause():
                raise TaskFailedError(
                    f"Airflow did not start. The end of its log {self._log_path}:\n{log_tail(self._log_path)}\n",
                    code="demo.airflow",
                )

    def password(self) -> str:
        """The password of `USER`, which Airflow has made."""
        known: dict[str, str] = json.loads(self._passwords.read_text())
        return known[USER]

    def stop(self) -> None:
        """End it with all its components."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_S)

    def _is_healthy(self) -> bool:
        try:
            with urlopen(f"{self.url}/api/v2/monitor/health", timeout=5) as answer:
                found = json.load(answer)
        except (OSError, ValueError):
            return False
        return all((found[name] or {}).get("status") == "healthy" for name in COMPONENTS)


def _environment(home: Path, ports: Sequence[int], connections: Mapping[str, Any]) -> dict[str, str]:
    api, worker_log, trigger_log = ports
    settings = {
        "CORE__DAGS_FOLDER": home / "dags",
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": False,
        "CORE__LOAD_EXAMPLES": False,
        "CORE__PARALLELISM": 2,
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin,viewer:viewer",
        "API__HOST": "127.0.0.1",
        "API__PORT": api,
        "API__BASE_URL": f"http://127.0.0.1:{api}",
        "DATABASE__LOAD_DEFAULT_CONNECTIONS": False,
        "LOGGING__TRIGGER_LOG_SERVER_PORT": trigger_log,
        "LOGGING__WORKER_LOG_SERVER_PORT": worker_log,
        "AIRFLOW_CONNECT__WORKER_CONN_IDS": CONN_ID,
    }
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONWARNINGS": "ignore",
        **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(value) for name, value in connections.items()},
        **{f"AIRFLOW__{name}": str(value) for name, value in settings.items()},
    }
