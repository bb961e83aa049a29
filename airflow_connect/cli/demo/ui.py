"""`airflow-connect demo --ui`: Airflow with its pages about connectors, and three connectors to look at."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.request import urlopen

from airflow_connect.cli.blocks import line
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.steps import Step
from airflow_connect.cli.terminal import Terminal
from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.launching.process import free_ports, log_tail
from airflow_connect.devstack.topic_data import DemoRecord, create_topic, write_records
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import TaskFailedError
from airflow_connect.retrying import Backoff, Retry
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.cache import cache_dir
from airflow_connect.runtime.engine.in_process import InProcessEngine

CONN_ID = "connect_demo"
USER = "admin"
PATIENCE_S = 180.0
STOP_S = 10.0
COMPONENTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
ORDERS, CLICKS, INVOICES = "orders-to-files", "clicks-to-files", "invoices-to-files"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_STRING = "org.apache.kafka.connect.storage.StringConverter"


def worker_of(bootstrap: str) -> dict[str, str]:
    """The worker configuration of the demo: one broker keeps one replica."""
    kinds = ("config", "offset", "status", "runs")
    replicas = {f"{kind}.storage.replication.factor": "1" for kind in kinds}
    interval = {"run.interval.seconds": "600"}
    return {"bootstrap.servers": bootstrap, "group.id": "connect-demo", "key.converter": _STRING,
            "value.converter": _JSON, "value.converter.schemas.enable": "false", **replicas, **interval}  # fmt: skip


class Scene:
    """Three registered sinks: one has copied everything, one is behind, one has dead letters and has failed."""

    def __init__(self, bootstrap: str, folder: Path, worker: Mapping[str, str], prefix: str = "") -> None:
        """Connects. Files go below `folder`; `prefix`: of the names of topics."""
        self._bootstrap, self._folder, self._prefix = bootstrap, folder, prefix
        settings = ControlSettings.from_worker(worker)
        self._topics = StateTopics(settings)
        self._topics.open()
        self._herder = Herder(self._topics, settings, "demo:8083")

    def fill(self) -> None:
        """Create topics and connectors, and let them run in this process."""
        for connector in (ORDERS, CLICKS, INVOICES):
            create_topic(self._bootstrap, self._topic(connector), 3)
        self._healthy()
        self._lagging()
        self._failing()

    def _healthy(self) -> None:
        config = self._config(ORDERS)
        self._herder.create(ORDERS, config)
        for records in (400, 900, 600, 1200):
            self._write(ORDERS, records)
            self._run(ORDERS, config)
        self._tell(ORDERS, None)

    def _lagging(self) -> None:
        config = self._config(CLICKS)
        self._herder.create(CLICKS, config)
        self._write(CLICKS, 1500)
        self._run(CLICKS, config)
        self._tell(CLICKS, None)
        self._write(CLICKS, 25_000)

    def _failing(self) -> None:
        queue = {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self._topic(INVOICES)}-dead-letters",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        config = self._config(INVOICES, **queue)
        self._herder.create(INVOICES, config)
        self._write(INVOICES, 300, broken=12)
        self._run(INVOICES, config)
        # A file where the directory has to be: the next run fails for a real reason.
        blocked = self._folder / "a-file"
        blocked.write_text("Remove this file, or correct store.url.\n")
        wrong = {**config, "store.url": f"file://{blocked}"}
        self._herder.put_config(INVOICES, wrong)
        self._write(INVOICES, 40)
        error = self._run(INVOICES, wrong).error or {"message": "The run has not failed.", "suggestion": ""}
        self._tell(INVOICES, f"{error['message']} {error['suggestion']}".strip())

    def _topic(self, connector: str) -> str:
        return self._prefix + connector.partition("-")[0]

    def _config(self, connector: str, **more: str) -> dict[str, str | None]:
        return {
            "name": connector,
            "connector.class": "LocalSinkConnector",
            "topics": self._topic(connector),
            "store.url": f"file://{self._folder / 'files'}",
            "format.class": "JsonFormat",
            "flush.size": "500",
            "tasks.max": "2",
            **more,
        }

    def _write(self, connector: str, records: int, broken: int = 0) -> None:
        now_ms = time.time_ns() // 1_000_000
        good = (DemoRecord(n % 3, b"%d" % n, b'{"id": %d}' % n, now_ms) for n in range(records - broken))
        bad = (DemoRecord(0, b"invoice-%d" % n, b'{"id": %d, "amount": 12.' % n, now_ms) for n in range(broken))
        write_records(self._bootstrap, self._topic(connector), [*good, *bad])

    def _run(self, connector: str, config: Mapping[str, str | None]) -> RunReport:
        return run_connector(self._herder.spec_of(config, {"command": "demo"}), engine=InProcessEngine())

    def _tell(self, connector: str, trace: str | None) -> None:
        """What a worker tells after a run."""
        offset = self._topics.look(lambda state: state.config.connectors[connector].offset)
        self._herder.run_ended(connector, offset, trace, is_config=False)


def show(terminal: Terminal) -> CommandOutcome:
    """Start the broker and Airflow, fill in connectors, print where to look, and wait for Ctrl-C."""
    folder = cache_dir() / "demo-ui"
    folder.mkdir(exist_ok=True)
    shutil.rmtree(folder / "files", ignore_errors=True)  # Of an earlier demo, with the same names.
    with ExitStack() as stack:
        with Step(terminal, KafkaBroker.name) as step:
            kafka = stack.enter_context(KafkaBroker.start())
            step.fact = kafka.bootstrap
        worker = worker_of(kafka.bootstrap)
        airflow = AirflowUi(folder / "airflow", worker)
        stack.callback(airflow.stop)
        with Step(terminal, "three connectors") as step:
            Scene(kafka.bootstrap, folder, worker).fill()
            step.fact = ", ".join((ORDERS, CLICKS, INVOICES))
        with Step(terminal, "Airflow") as step:
            airflow.wait_until_ready()
            step.fact = airflow.url
        rows = (f"{airflow.url}/plugin/kafka-connect", f"user {USER}, password {airflow.password()}")
        for row in rows:
            terminal.note(line((row, "bold"), indent=2, breaks=False))
        terminal.note(line("The servers run until you press Ctrl-C."))
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    return CommandOutcome(summary="The servers have ended.", result={"url": airflow.url})


class AirflowUi:
    """API server, scheduler, triggerer and DAG processor with a home of their own, on loopback."""

    def __init__(self, home: Path, worker: Mapping[str, str]) -> None:
        """Start it; it takes some twenty seconds."""
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
                env=_environment(home, ports, worker),
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


def _environment(home: Path, ports: Sequence[int], worker: Mapping[str, str]) -> dict[str, str]:
    api, worker_log, trigger_log = ports
    dags = home / "dags"
    dags.mkdir(exist_ok=True)
    settings = {
        "CORE__DAGS_FOLDER": dags,
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
    connection = json.dumps({"conn_type": "connect_worker", "extra": dict(worker)})
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONWARNINGS": "ignore",
        f"AIRFLOW_CONN_{CONN_ID.upper()}": connection,
        **{f"AIRFLOW__{name}": str(value) for name, value in settings.items()},
    }
