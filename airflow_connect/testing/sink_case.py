"""One connector of a conformance run: its topic, what was written to it, its runs, and what must be in the sink."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.plugins import PluginKind, load_class
from airflow_connect.api.run import RunReport
from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Row, Topics

if TYPE_CHECKING:
    from airflow_connect.testing.sink_suite import SinkConformance

PARTITIONS = 3


class SinkCase:
    """A connector on a topic of its own. Values are `{"n": number, "p": partition}`, numbered in the order written."""

    def __init__(self, suite: SinkConformance, bootstrap: str, target: Any) -> None:
        """`target`: what the suite's `target` fixture gave."""
        self._suite = suite
        self._bootstrap = bootstrap
        self.target = target
        self.topics = Topics(bootstrap)
        self.topic = f"conformance-{uuid.uuid4().hex[:10]}"
        self.name = f"sink-{self.topic}"
        self.written: list[Any] = []
        self.topics.create(self.topic, PARTITIONS)

    @property
    def connector(self) -> type[SinkConnector]:
        """The class under test."""
        found: type[SinkConnector] = load_class(PluginKind.CONNECTOR, self._suite.connector_class)
        return found

    @property
    def is_once(self) -> bool:
        """Whether the sink promises that nothing is there twice."""
        return self.connector.delivery is not Delivery.AT_LEAST_ONCE

    # --- writing --------------------------------------------------------------------------------------------------

    def write(self, count: int) -> None:
        """Write the next `count` values, one partition after the other."""
        first = len(self.written)
        values = [{"n": n, "p": n % PARTITIONS} for n in range(first, first + count)]
        self.topics.write(self.topic, [Row(v["p"], str(v["n"]).encode(), json.dumps(v).encode()) for v in values])
        self.written += values

    def write_rows(self, *rows: Row) -> None:
        """Write records that are not counted as values that must arrive."""
        self.topics.write(self.topic, rows)

    # --- running --------------------------------------------------------------------------------------------------

    def config(self, **overrides: str | None) -> dict[str, str]:
        """The connector's configuration; `None` removes a key, `_` stands for `.`."""
        config: dict[str, str | None] = {
            "name": self.name,
            "connector.class": self._suite.connector_class,
            "topics": self.topic,
            "tasks.max": "2",
            **self._suite.connector_config(self.target),
        }
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    def spec(self, **overrides: str | None) -> RunSpec:
        """A run of it."""
        worker = {
            "bootstrap.servers": self._bootstrap,
            "group.id": "conformance-workers",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "runs.storage.replication.factor": "1",
            **self._suite.worker_config(),
        }
        return RunSpec(self.config(**overrides), worker)

    def try_run(self, *, columnar: bool = True, **overrides: str | None) -> RunReport:
        """One run in this process, whatever comes of it."""
        return run_here(self.spec(**overrides), columnar=columnar)[0]

    def run(self, *, columnar: bool = True, **overrides: str | None) -> RunReport:
        """One run in this process that must not fail."""
        report = self.try_run(columnar=columnar, **overrides)
        assert report.status in ("done", "empty"), f"The run failed: {report.error}"
        return report

    def start(self, crash_at: str = "") -> RunProcess:
        """One run in a process of its own."""
        return RunProcess(self.spec(), crash_at)

    # --- looking --------------------------------------------------------------------------------------------------

    def stored(self) -> Sequence[Any]:
        """What the sink holds."""
        return self._suite.read_back(self.target)

    def committed(self) -> dict[int, int]:
        """Committed offsets by partition."""
        return self.topics.committed(f"connect-{self.name}", self.topic, PARTITIONS)

    def reset(self, offset: int) -> None:
        """Set every partition to `offset`, as an operator would, the connector's consent included."""
        offsets = {TopicPartition(self.topic, number): offset for number in range(PARTITIONS)}
        self.connector().alter_offsets(self.config(), offsets)
        self.topics.set_offsets(f"connect-{self.name}", offsets)

    def check_everything_arrived(self) -> None:
        """Every value is there: once if the sink promises that, else at least once; and nothing else is there."""
        found, wanted = _counted(self.stored()), _counted(self.written)
        missing, unexpected = wanted - found, set(found) - set(wanted)
        assert not missing, f"{len(missing)} values are missing, such as {next(iter(missing))}"
        assert not unexpected, f"{len(unexpected)} values were never written, such as {next(iter(unexpected))}"
        twice = found - wanted
        assert not (self.is_once and twice), (
            f"{len(twice)} values are there more than once, such as {next(iter(twice))}"
        )

    def check_order(self) -> None:
        """Values of one partition are in the order in which they were written."""
        for partition in range(PARTITIONS):
            numbers = [value["n"] for value in self.stored() if value is not None and value["p"] == partition]
            assert numbers == sorted(numbers), f"The values of partition {partition} are not in order: {numbers[:20]}"


def _counted(values: Sequence[Any]) -> Counter[str]:
    return Counter(json.dumps(value, sort_keys=True) for value in values)


def own_keys(config: Mapping[str, str], connector: type[SinkConnector], shared: Sequence[str]) -> list[str]:
    """Given keys that the connector itself defines and requires."""
    keys = connector.config_def.keys
    return [name for name, key in keys.items() if key.is_required and name in config and name not in shared]
