"""A sink under test: its topic, what was written to it, its runs, and what must be in the sink."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink import Delivery
from airflow_connect.testing.cases.connector_case import ConnectorCase
from airflow_connect.testing.topics import Row

if TYPE_CHECKING:
    from airflow_connect.testing.suites.sink_suite import SinkConformance

PARTITIONS = 3


class SinkCase(ConnectorCase):
    """Values are `{"n": number, "p": partition}`, numbered in the order written."""

    kind = "sink"
    partitions = PARTITIONS
    worker: ClassVar[Mapping[str, str]] = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}

    def __init__(self, suite: SinkConformance, bootstrap: str, target: Any) -> None:
        """`target`: the suite's fixture `target`."""
        super().__init__(suite, bootstrap)
        self._suite = suite
        self.target = target
        self.written: list[Any] = []

    @property
    def is_once(self) -> bool:
        """See `ConnectorCase`."""
        delivery: Delivery = self.connector.delivery
        return delivery is not Delivery.AT_LEAST_ONCE

    def own_config(self) -> Mapping[str, str]:
        """See `ConnectorCase`."""
        return {"topics": self.topic, "tasks.max": "2", **self._suite.connector_config(self.target)}

    def add(self, count: int) -> None:
        """Write the next `count` values, one partition after the other."""
        first = len(self.written)
        values = [{"n": n, "p": n % PARTITIONS} for n in range(first, first + count)]
        self.write_rows(*(Row(v["p"], str(v["n"]).encode(), json.dumps(v).encode()) for v in values))
        self.written += values

    def write_rows(self, *rows: Row) -> None:
        """Write records that are not counted as values that must arrive."""
        self.topics.write(self.topic, rows)

    def wanted(self) -> Sequence[Any]:
        """See `ConnectorCase`."""
        return self.written

    def found(self) -> Sequence[Any]:
        """What the sink holds."""
        return self._suite.read_back(self.target)

    def committed(self) -> dict[int, int]:
        """Committed offsets by partition."""
        return self.topics.committed(f"connect-{self.name}", self.topic, PARTITIONS)

    def reset(self, offset: int) -> None:
        """Set every partition to `offset`, as an operator does, after asking the connector."""
        offsets = {TopicPartition(self.topic, number): offset for number in range(PARTITIONS)}
        topic_ids = {self.topic: self.topics.topic_id(self.topic)}
        self.connector().alter_offsets(self.config(), offsets, topic_ids)
        self.topics.set_offsets(f"connect-{self.name}", offsets)

    def check_order(self) -> None:
        """Values of one partition are in the order in which they were written."""
        for partition in range(PARTITIONS):
            numbers = [value["n"] for value in self.found() if value is not None and value["p"] == partition]
            assert numbers == sorted(numbers), f"The values of partition {partition} are not in order: {numbers[:20]}"
