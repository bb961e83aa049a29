"""An installation with connectors in every state that pages show: real topics, real runs, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.testing.runs import InProcessEngine
from tests.support.servers.rest import worker_of

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
        state = StateTopics(self.settings)
        state.open()
        self.herder = Herder(state, self.settings, "worker-1:8083")

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

    def run(self, connector: str, config: Mapping[str, Any], origin: Mapping[str, str] | None = None) -> RunReport:
        """One run, in this process."""
        spec = self.herder.spec_of(config, origin or {"command": "worker"})
        report = run_connector(replace(spec, connector=dict(config)), engine=InProcessEngine())
        self.runs.setdefault(connector, []).append(report)
        return report

    def fill(self) -> None:
        """Register, write and run everything."""
        healthy = self.config(HEALTHY, file_delim="-", consumer_override_client_id="orders-client")
        self.herder.create(HEALTHY, {**healthy, "flush.size": "10"})
        self.herder.put_config(HEALTHY, {**healthy, "producer.override.sasl.password": SECRET})
        for records in (40, 25, 60):
            self.add(HEALTHY, records)
            assert self.run(HEALTHY, healthy).status == "done"
        self.ended(HEALTHY, None)

        lagging = self.config(LAGGING)
        self.herder.create(LAGGING, lagging)
        self.add(LAGGING, 30)
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
