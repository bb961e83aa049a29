"""A whole Airflow, `airflow standalone`, and its REST API as tests use it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx

from airflow_connect.devstack.launching.process import Command, ServerProcess, free_ports
from airflow_connect.retrying import Backoff, Retry
from tests.support.processes.drivers import is_alive
from tests.support.processes.proc import command_lines, environment_of
from tests.support.waiting import wait_until

SUPPORT = Path(__file__).parents[1]
PROJECT = SUPPORT.parents[1]
COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
# Two cores that others use too: a run with Spark takes ten seconds, and three may run at once.
PATIENCE_S = 120.0
EVERY_S = 0.2
Json = dict[str, Any]
CONNECT_CONN_ID = "our_connect"
"""The connection that `/connect` uses; a test that needs it creates it."""


class AirflowServer:
    """Scheduler, DAG processor, triggerer and API server with a home of their own, on loopback.

    Attributes:
        home: AIRFLOW_HOME, a temporary folder.
        url: of UI and REST API; everybody is an administrator.
        log_path: the log of all components.
        pid: of the process whose descendants the components and the tasks are.
    """

    def __init__(self) -> None:
        """Start it; returns when every component is healthy."""
        self.home = Path(tempfile.mkdtemp(prefix="airflow-standalone-"))
        self.log_path = self.home / "standalone.log"
        self._dags = self.home / "dags"
        self._dags.mkdir()
        api, worker_log, trigger_log = free_ports(3)
        self.url = f"http://127.0.0.1:{api}"
        self._client = httpx.Client(base_url=self.url, timeout=PATIENCE_S)
        self._env = _environment(self.home, self.url, worker_log, trigger_log)
        self._processes = [self._start("standalone", self._is_healthy)]
        self.pid = self._processes[0].pid
        token = self._client.get("/auth/token").raise_for_status().json()["access_token"]
        self._client.headers["Authorization"] = f"Bearer {token}"

    def stop(self) -> None:
        """End every process of it and remove its home."""
        self._client.close()
        for process in reversed(self._processes):
            process.stop()
        shutil.rmtree(self.home)

    def _start(self, component: str, is_ready: Callable[[], bool]) -> ServerProcess:
        airflow = str(Path(sys.executable).with_name("airflow"))
        program = [sys.executable, str(SUPPORT / "processes" / "process_session.py"), airflow, component]
        cleanup = [self.home] if component == "standalone" else []
        command = Command(
            f"Airflow ({component})", program, self.log_path, cleanup=cleanup, start_s=PATIENCE_S, env=self._env
        )
        return ServerProcess.start(command, is_ready)

    def kill_triggerer(self) -> None:
        """Kill the triggerer and its process that runs the triggers, as the loss of their machine does."""
        pids = [pid for pid, command in command_lines() if "triggerer" in command and self._is_ours(pid)]
        assert pids
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # It may have ended with its parent.
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, pids)), "the triggerer to be gone")

    def start_triggerer(self) -> None:
        """Start another triggerer; it takes over when the one before it has been silent for some seconds."""
        self._processes.append(self._start("triggerer", lambda: True))

    def _is_ours(self, pid: int) -> bool:
        return f"AIRFLOW_HOME={self.home}" in environment_of(pid).split("\0")

    def _is_healthy(self) -> bool:
        try:
            health = self._client.get("/api/v2/monitor/health").raise_for_status().json()
        except httpx.HTTPError:
            return False
        return all(health[name] and health[name]["status"] == "healthy" for name in COMPONENTS)

    # --- REST ----------------------------------------------------------------------------------------------------

    def get(self, path: str, **query: Any) -> Json:
        """GET below /api/v2."""
        return self._call("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any]) -> Json:
        """POST below /api/v2."""
        return self._call("POST", path, json=dict(body))

    def patch(self, path: str, body: Mapping[str, Any], **query: Any) -> Json:
        """PATCH below /api/v2."""
        return self._call("PATCH", path, json=dict(body), params=query)

    def _call(self, method: str, path: str, **arguments: Any) -> Json:
        response = self._client.request(method, f"/api/v2/{path}", **arguments)
        tries = Retry(Backoff(EVERY_S, longest_s=EVERY_S), within_s=PATIENCE_S)
        while _is_locked(response) and tries.pause():
            response = self._client.request(method, f"/api/v2/{path}", **arguments)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        found: Json = response.json()
        return found

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """A request to any path of the server."""
        return self._client.request(method, path, json=body, headers=headers)

    # --- what tests do -------------------------------------------------------------------------------------------

    def connect(self, conn_id: str, conn_type: str, extra: Mapping[str, Any], **fields: Any) -> None:
        """Create a connection, in Airflow's database."""
        body = {"connection_id": conn_id, "conn_type": conn_type, "extra": json.dumps(extra), **fields}
        self.post("connections", body)

    def deploy(self, name: str, source: str, *dag_ids: str) -> None:
        """Write a DAG file and return when its DAGs are there, paused."""
        (self._dags / f"{name}.py").write_text(source)

        def is_there(dag_id: str) -> bool:
            errors = self.get("importErrors")["import_errors"]
            assert errors == [], errors
            return self._client.get(f"/api/v2/dags/{dag_id}").is_success

        for dag_id in dag_ids:
            wait_until(lambda found=dag_id: is_there(found), f"DAG {dag_id}", PATIENCE_S, EVERY_S)  # type: ignore[misc]

    def unpause(self, dag_id: str, *, paused: bool = False) -> None:
        """Let the scheduler start runs of a DAG, or not any more."""
        self.patch(f"dags/{dag_id}", {"is_paused": paused}, update_mask="is_paused")

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> Run:
        """Start a run as a REST client does, without a logical date."""
        body = {"logical_date": None, "conf": dict(conf or {})}
        return Run(self, dag_id, self.post(f"dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def runs(self, dag_id: str) -> list[Run]:
        """Runs of a DAG, oldest first."""
        found = self.get(f"dags/{dag_id}/dagRuns", order_by="id")["dag_runs"]
        return [Run(self, dag_id, run["dag_run_id"]) for run in found]

    def backfill(self, dag_id: str, from_date: str, to_date: str, max_active_runs: int) -> None:
        """Create a backfill, whose dates are ISO 8601, both inclusive."""
        dates = {"from_date": from_date, "to_date": to_date}
        body = {"dag_id": dag_id, "max_active_runs": max_active_runs, **dates}

        def is_created() -> bool:
            response = self._client.post("/api/v2/backfills", json=body)
            # SQLite has one writer at a time, and Airflow does not wait for its turn here.
            assert response.is_success or response.status_code == 503, response.text
            return response.is_success

        wait_until(is_created, f"a backfill of {dag_id}", PATIENCE_S, EVERY_S)

    def wait_for_runs(self, dag_id: str, count: int) -> list[Run]:
        """Return the runs of a DAG when there are as many and all have ended."""

        def have_ended() -> bool:
            runs = self.runs(dag_id)
            return len(runs) >= count and all(run.has_ended() for run in runs)

        wait_until(have_ended, f"{count} runs of {dag_id} to end", PATIENCE_S, EVERY_S)
        return self.runs(dag_id)


class Run:
    """A DAG run."""

    def __init__(self, server: AirflowServer, dag_id: str, run_id: str) -> None:
        """Name it."""
        self._server = server
        self.dag_id, self.run_id = dag_id, run_id
        self._path = f"dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"

    def facts(self) -> Json:
        """The run as REST tells it."""
        return self._server.get(self._path)

    def has_ended(self) -> bool:
        """Whether it is over."""
        return self.facts()["state"] in ("success", "failed")

    def wait(self) -> str:
        """Its state, once it has ended."""
        wait_until(self.has_ended, f"{self.dag_id} {self.run_id} to end", PATIENCE_S, EVERY_S)
        return str(self.facts()["state"])

    def succeed(self) -> Self:
        """Wait for its end, which has to be a success; if not, the logs of its failed tasks say why."""
        if self.wait() != "success":
            tasks = self._server.get(f"{self._path}/taskInstances")["task_instances"]
            failed = [(task["task_id"], task["try_number"]) for task in tasks if task["state"] == "failed"]
            raise AssertionError("\n".join(line for task in failed for line in [str(task), *self.messages(*task)]))
        return self

    def task(self, task_id: str) -> Json:
        """A task instance."""
        return self._server.get(f"{self._path}/taskInstances/{task_id}")

    def wait_for_task(self, task_id: str, is_reached: Callable[[Json], bool], what: str) -> None:
        """Return when a task instance is as wanted."""
        wait_until(lambda: is_reached(self.task(task_id)), f"{self.run_id}: {task_id} {what}", PATIENCE_S, EVERY_S)

    def set_task_state(self, task_id: str, state: str) -> None:
        """Mark a task instance as the UI's button does."""
        self._server.patch(f"{self._path}/taskInstances/{task_id}", {"new_state": state})

    def answer(self, task_id: str, option: str) -> Json:
        """Answer the question of a task as a person does; returns the question."""
        path = f"{self._path}/taskInstances/{task_id}/-1/hitlDetails"
        question = self._server.get(path)
        self._server.patch(path, {"chosen_options": [option], "params_input": {}})
        return question

    def clear(self) -> None:
        """Clear all of it and let it run again."""
        self._server.post(f"{self._path}/clear", {"dry_run": False})

    def log(self, task_id: str, attempt: int = 1) -> str:
        """The messages of a task's log, one a line, with level and everything else that Airflow keeps of them."""
        found = self._server.get(f"{self._path}/taskInstances/{task_id}/logs/{attempt}", full_content="true")
        return "\n".join(line if isinstance(line, str) else json.dumps(line) for line in found["content"])

    def messages(self, task_id: str, attempt: int = 1) -> list[str]:
        """The messages alone, and those of exceptions."""
        lines = [json.loads(line) for line in self.log(task_id, attempt).splitlines() if line.startswith("{")]
        return [
            ": ".join([str(line["event"]), *(error["exc_value"] for error in line.get("error_detail") or ())])
            for line in lines
        ]

    def wait_for_message(self, task_id: str, text: str, attempt: int = 1) -> None:
        """Return when a task's log holds a text; a killed task writes its last words after its state has changed."""
        wait_until(lambda: text in self.log(task_id, attempt), f"{text!r} in the log of {task_id}", PATIENCE_S, EVERY_S)

    def wait_for_trigger(self, task_id: str, attempt: int = 1) -> None:
        """Return when the triggerer has begun with the trigger of a deferred task.

        What happens to the task before that, its trigger does not learn.
        """
        self.wait_for_message(task_id, f"trigger {self.dag_id}/{self.run_id}/{task_id}/-1/{attempt} ", attempt)

    def wait_for_question(self, task_id: str) -> None:
        """Return when an approval waits, and the scheduler knows that its process has ended.

        Airflow takes an answer that comes earlier for a task that has failed: the end of the first process is reported
        when the task is already queued again. A person is never that fast.
        """
        self.wait_for_task(task_id, lambda task: task["state"] == "awaiting_input", "to ask")
        words = rf"Received executor event with state success.*{re.escape(task_id)}.*{re.escape(self.run_id)}"
        log = self._server.log_path
        wait_until(lambda: re.search(words, log.read_text()) is not None, "the scheduler to know", 60)

    def wait_until_message_is_older(self, task_id: str, message: str, seconds: float) -> None:
        """Return when a message has stood in a task's log for some seconds."""
        lines = [json.loads(line) for line in self.log(task_id).splitlines()]
        since = next(datetime.fromisoformat(line["timestamp"]) for line in lines if line["event"] == message)
        wait_until(lambda: (datetime.now(UTC) - since).total_seconds() > seconds, f"{message!r} to grow old")

    def xcom(self, task_id: str) -> Any:
        """What a task returned."""
        path = f"{self._path}/taskInstances/{task_id}/xcomEntries/return_value"
        return self._server.get(path, deserialize="true")["value"]


def _is_locked(response: httpx.Response) -> bool:
    """Whether SQLite refused the request because another component was writing; nothing was changed then."""
    return response.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "Database error" in response.text


def _environment(home: Path, url: str, worker_log_port: int, trigger_log_port: int) -> dict[str, str]:
    path = os.pathsep.join([str(SUPPORT / "loopback_only"), str(PROJECT), os.environ.get("PYTHONPATH", "")])
    settings = {
        "CORE__DAGS_FOLDER": home / "dags",
        "CORE__LOAD_EXAMPLES": False,
        "CORE__PARALLELISM": 4,
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": True,
        "CORE__UNIT_TEST_MODE": False,
        "API__HOST": "127.0.0.1",
        "API__PORT": url.rpartition(":")[2],
        "API__BASE_URL": url,
        "AIRFLOW_CONNECT__WORKER_CONN_IDS": CONNECT_CONN_ID,
        "DATABASE__LOAD_DEFAULT_CONNECTIONS": False,
        "DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": 1,
        "DAG_PROCESSOR__PARSING_PROCESSES": 1,
        "DAG_PROCESSOR__REFRESH_INTERVAL": 1,
        "TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": 10,
        "LOGGING__TRIGGER_LOG_SERVER_PORT": trigger_log_port,
        "LOGGING__WORKER_LOG_SERVER_PORT": worker_log_port,
        # A task that was marked failed learns it from the answer to its heartbeat.
        "WORKERS__MIN_HEARTBEAT_INTERVAL": 1,
    }
    return {
        "AIRFLOW_HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": path,
        "PYTHONWARNINGS": "ignore",
        **{f"AIRFLOW__{name}": str(value) for name, value in settings.items()},
    }
