"""The connectors that `demo --ui` registers: one copies, one is behind, one has failed and can be repaired."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.devstack.topic_data import DemoRecord, create_topic, write_records
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.in_process import InProcessEngine

ORDERS, CLICKS, INVOICES = "orders-to-files", "clicks-to-files", "invoices-to-files"
PARTITIONS = 3
BEHIND = 25_000
"""Records of clicks that wait when the demo begins."""
CLICKS_PER_RUN = 3000
ROUND_S = 60
WRONG_AMOUNTS = 12
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_STRING = "org.apache.kafka.connect.storage.StringConverter"
_CAST = "transforms.amount.spec"
REPAIRED_CAST = "amount:string"


def worker_of(bootstrap: str, port: int) -> dict[str, str]:
    """The worker configuration of the demo: one broker keeps one replica. `port`: of its REST API, on loopback."""
    kinds = ("config", "offset", "status", "runs")
    replicas = {f"{kind}.storage.replication.factor": "1" for kind in kinds}
    interval = {"run.interval.seconds": str(ROUND_S)}
    return {"bootstrap.servers": bootstrap, "group.id": "connect-demo", "key.converter": _STRING,
            "value.converter": _JSON, "value.converter.schemas.enable": "false",
            "listeners": f"http://127.0.0.1:{port}", **replicas, **interval}  # fmt: skip


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
            create_topic(self._bootstrap, self._topic(connector), PARTITIONS)
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
        config = self._config(CLICKS, **{"run.max.records": str(CLICKS_PER_RUN)})
        self._herder.create(CLICKS, config)
        self._write(CLICKS, 1500)
        self._run(CLICKS, config)
        self._tell(CLICKS, None)
        self._write(CLICKS, BEHIND)

    def _failing(self) -> None:
        """Amounts with a comma go to the dead letter queue; then the connector fails, because its folder is a file."""
        queue = {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self._topic(INVOICES)}-dead-letters",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        cast = {"transforms": "amount", "transforms.amount.type": "Cast$Value", _CAST: "amount:float64"}
        config = self._config(INVOICES, **queue, **cast)
        self._herder.create(INVOICES, config)
        self._write(INVOICES, 300, wrong=WRONG_AMOUNTS)
        self._run(INVOICES, config)
        blocked = self._folder / "a-file"
        blocked.write_text("The folder of a connector cannot be here.\n")
        wrong = {**config, "store.url": f"file://{blocked}"}
        self._herder.put_config(INVOICES, wrong)
        self._write(INVOICES, 40)
        error = self._run(INVOICES, wrong).error or {"message": "The run has not failed.", "suggestion": ""}
        self._tell(INVOICES, f"{error['message']} {error['suggestion']}".strip())

    def repairs(self) -> dict[str, str]:
        """What the failed connector needs: its keys and their right values."""
        return {"store.url": f"file://{self._folder / 'files'}", _CAST: REPAIRED_CAST}

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

    def _write(self, connector: str, records: int, wrong: int = 0) -> None:
        write_records(self._bootstrap, self._topic(connector), sales(records, wrong))

    def _run(self, connector: str, config: Mapping[str, str | None]) -> RunReport:
        return run_connector(self._herder.spec_of(config, {"command": "demo"}), engine=InProcessEngine())

    def _tell(self, connector: str, trace: str | None) -> None:
        """What a worker tells after a run."""
        offset = self._topics.look(lambda state: state.config.connectors[connector].offset)
        self._herder.run_ended(connector, offset, trace, is_config=False)


def sales(count: int, wrong: int = 0, first: int = 0) -> Iterator[DemoRecord]:
    """Records with an id and an amount, with the present time.

    Args:
        count: number of records.
        wrong: so many of them, the last ones, have a comma in their amount, as text.
        first: id of the first one.
    """
    now_ms = time.time_ns() // 1_000_000
    for number in range(first, first + count):
        euros, cents = number * 7 % 500, number * 13 % 100
        amount = f"{euros}.{cents:02d}" if number < first + count - wrong else f'"{euros},{cents:02d}"'
        value = f'{{"id": {number}, "amount": {amount}}}'.encode()
        yield DemoRecord(number % PARTITIONS, b"%d" % number, value, now_ms)
