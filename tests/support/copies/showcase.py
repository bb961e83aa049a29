"""An installation with connectors in every state that pages show: real topics, real runs, in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.config_fold import Restart
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.documents.run import RunReport, TaskPlan, TaskReport
from airflow_connect.runtime.driver import run_in_progress
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.run_in_progress import Engine
from airflow_connect.runtime.driver.sink import run as sink_run
from airflow_connect.runtime.executor.progress import ProgressSender
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.testing.runs import InProcessEngine
from tests.support.servers.rest import worker_of

BUSY = "uploads"
SECRET = "opensesame-of-the-pages"
DAG_ORIGIN = {"dag_id": "nightly", "dag_run_id": "manual__2026-11-23T01:00:00+00:00", "task_id": "copy"}
HEALTHY, LAGGING, FAILING, PAUSED, OF_DAG, NEW = (
    "orders", "clicks", "invoices", "archive", "nightly-meetups", "refunds",
)  # fmt: skip
Rows = list[tuple[int, bytes | None, bytes | None, int, list[Any]]]


@dataclass
class Showcase:
    """The installation.

    Attributes:
        topics: topic by connector.
        runs: reports by connector, oldest first.
    """

    bootstrap: str
    name: str
    folder: Path
    produce: Callable[[str, Rows], Any]
    topics: Mapping[str, str]
    runs: dict[str, list[RunReport]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.worker = {**worker_of(self.bootstrap, self.name), "run.interval.seconds": "600"}
        self.settings = ControlSettings.from_worker(self.worker)
        self.state = StateTopics(self.settings)
        self.state.open()
        self.herder = Herder(self.state, self.settings, "worker-1:8083")

    def config(self, connector: str, **more: str) -> dict[str, str | None]:
        """A sink that writes JSON files below the folder; keys with `_` for `.`."""
        return {
            "name": connector,
            "connector.class": "LocalSinkConnector",
            "tasks.max": "2",
            "topics": self.topics[connector],
            "store.url": f"file://{self.folder}",
            "format.class": "JsonFormat",
            "flush.size": "20",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def add(self, connector: str, records: int, *, partitions: int = 3, broken: int = 0) -> None:
        """Write records, `broken` of which are no JSON."""
        now_ms = time.time_ns() // 1_000_000
        rows: Rows = [(n % partitions, None, b'{"n":%d}' % n, now_ms, []) for n in range(records - broken)]
        rows += [(0, b"key-%d" % n, b"<script>alert(%d)</script>" % n, now_ms, []) for n in range(broken)]
        self.produce(self.topics[connector], rows)

    def restarts(self) -> list[Restart]:
        """Requests for runs, oldest first."""
        return self.state.look(lambda state: list(state.config.restarts))

    def run(
        self,
        connector: str,
        config: Mapping[str, Any],
        origin: Mapping[str, str] | None = None,
        days_ago: float = 0,
        engine: Engine | None = None,
    ) -> RunReport:
        """One run, in this process; `days_ago`: its clock is behind."""
        spec = self.herder.spec_of(config, origin or {"command": "worker"})
        behind_ms = round(days_ago * 24 * 3600 * 1000)
        with pytest.MonkeyPatch.context() as patch:
            for module in (run_in_progress, sink_run):
                patch.setattr(module, "now_ms", lambda: time.time_ns() // 1_000_000 - behind_ms)
            report = run_connector(replace(spec, connector=dict(config)), engine=engine or InProcessEngine())
        self.runs.setdefault(connector, []).append(report)
        return report

    def fill(self) -> None:
        """Register, write and run everything."""
        healthy = self.config(HEALTHY, file_delim="-", consumer_override_client_id="orders-client")
        self.herder.create(HEALTHY, {**healthy, "flush.size": "10"})
        self.herder.put_config(HEALTHY, {**healthy, "producer.override.sasl.password": SECRET})
        for days_ago, records in ((6, 40), (4.5, 25), (2, 140), (0, 60)):
            self.add(HEALTHY, records)
            assert self.run(HEALTHY, healthy, days_ago=days_ago).status == "done"
        self.ended(HEALTHY, None)

        lagging = self.config(LAGGING)
        self.herder.create(LAGGING, lagging)
        self.add(LAGGING, 30)
        limited = {**lagging, "run.max.records": "20"}
        assert self.run(LAGGING, limited, days_ago=3).left == 0
        assert self.run(LAGGING, lagging).status == "done"
        self.ended(LAGGING, None)
        self.add(LAGGING, 90)

        queue = f"{self.topics[FAILING]}-dlq"
        dead = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": queue,
                "errors_deadletterqueue_topic_replication_factor": "1",
                "errors_deadletterqueue_context_headers_enable": "true"}  # fmt: skip
        failing = self.config(FAILING, **dead)
        self.herder.create(FAILING, failing)
        self.add(FAILING, 20, broken=4)
        assert self.run(FAILING, failing).dead_lettered == 4
        self.add(FAILING, 6)
        self.ended(FAILING, "The directory /mnt/invoices cannot be written: No space left on device. Free some space.")

        self.herder.create(PAUSED, self.config(PAUSED))
        self.herder.pause(PAUSED)

        self.herder.create(NEW, self.config(NEW))

        of_dag = self.config(OF_DAG)
        self.add(OF_DAG, 50)
        assert self.run(OF_DAG, of_dag, DAG_ORIGIN).status == "done"

    def ended(self, connector: str, trace: str | None) -> None:
        """What a worker tells after a run."""
        offset = self.herder._topics.look(lambda state: state.config.connectors[connector].offset)
        self.herder.run_ended(connector, offset, trace, is_config=False)


class HeldEngine(InProcessEngine):
    """Tasks that report what they are told to report, and copy only when they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()
        self._target: Mapping[str, Any] = {}
        self.began = threading.Event()

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        """See `InProcessEngine`."""
        self._target = settings.progress
        self.began.set()
        assert self.let_go.wait(120), "nobody has let the run go"
        return super().run(replace(settings, progress={}), tasks)

    def report(self, task: int, records: int) -> None:
        """What a task on an executor sends: a real datagram."""
        sender = ProgressSender(self._target, task, 0)
        sender.update(records, records * 100, force=True)
        sender.close()


class BusyConnector:
    """A connector that copies 90 records, as slowly as a test likes; a context manager."""

    def __init__(self, showcase: Showcase) -> None:
        self.showcase, self.engine = showcase, HeldEngine()
        self.report: RunReport | None = None
        self._thread = threading.Thread(target=self._copy, name="busy")

    def __enter__(self) -> BusyConnector:
        config = self.showcase.config(BUSY)
        self.showcase.herder.create(BUSY, config)
        self.showcase.add(BUSY, 90, partitions=2)
        self._thread.start()
        assert self.engine.began.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def _copy(self) -> None:
        self.report = self.showcase.run(BUSY, self.showcase.config(BUSY), engine=self.engine)

    def finish(self) -> None:
        """Let it copy and commit."""
        self.engine.let_go.set()
        self._thread.join(60)
        assert self.report is not None and self.report.records == 90
