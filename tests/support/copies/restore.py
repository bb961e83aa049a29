"""Runs of a restore source, and what a topic holds, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.documents.run import RunReport
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from airflow_connect.runtime.driver.source.kafka_session import SourceSession
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from tests.support.copies.s3 import Sink

S3_SOURCE = "io.confluent.connect.s3.source.S3SourceConnector"
LOCAL_SOURCE = "airflow_connect.connectors.local.LocalSourceConnector"
HDFS_SOURCE = "airflow_connect.connectors.hdfs.HdfsSourceConnector"


class Stored(NamedTuple):
    """Everything of a record that a restore must keep."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[bytes, bytes | None], ...]


def stored(bootstrap: str, topic: str) -> list[Stored]:
    """Every committed record of a topic, in the order of its partitions and offsets, without any converter."""
    found = []
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    client = Consumer(settings)
    partitions = client.list_topics(topic, timeout=30).topics[topic].partitions
    ends = {number: client.get_watermark_offsets(TopicPartition(topic, number))[1] for number in partitions}
    client.close()
    ranges = [OffsetRange(topic, number, 0, end) for number, end in ends.items()]
    for batch in RangeReader(settings, ranges).columns():
        headers: Any = batch.headers()
        for n in range(len(batch)):
            pairs = () if headers is None else tuple((one["key"], one["value"]) for one in headers[n].as_py())
            key, value = batch.keys[n].as_py(), batch.values[n].as_py()
            found.append((int(batch.offsets[n]), Stored(batch.partition, key, value, int(batch.timestamps[n]), pairs)))
    return [one for _, one in sorted(found, key=lambda pair: (pair[1].partition, pair[0]))]


@dataclass
class Restore:
    """A connector that restores the backup of one topic to another."""

    bootstrap: str
    topic: str
    target: str
    config: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the connector."""
        return f"restore-{self.target}"

    def spec(self, **overrides: str) -> RunSpec:
        """A run."""
        connector = {
            "name": self.name,
            "tasks.max": "2",
            "topics": self.topic,
            "topic.rename": f"{self.topic}:{self.target}",
            **self.config,
            **overrides,
        }
        # The converters of the worker are not those of a restore: it must not use them.
        converter = "org.apache.kafka.connect.json.JsonConverter"
        worker = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "restore-workers",
            "key.converter": converter,
            "value.converter": converter,
            "runs.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
        }
        return RunSpec(connector, worker)

    def try_run(self, *, columnar: bool = True, **overrides: str) -> RunReport:
        """One run in this process, with any outcome."""
        return run_here(self.spec(**overrides), columnar=columnar)[0]

    def run(self, *, columnar: bool = True, **overrides: str) -> RunReport:
        """One run in this process that must not fail."""
        report = self.try_run(columnar=columnar, **overrides)
        assert report.status in ("done", "empty"), report.error
        return report

    def offsets(self) -> dict[int, Mapping[str, Any]]:
        """Committed offsets, by partition."""
        with SourceSession(SourceConfiguration.from_spec(self.spec())) as session:
            return {partition["partition"]: dict(offset) for partition, offset in session.read_offsets().items()}


def restore_of(sink: Sink, target: str, **config: str) -> Restore:
    """A restore of what a sink for S3 has written."""
    made = sink.connector()
    same = ("s3.bucket.name", "s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key", "format.class")
    settings = {"connector.class": S3_SOURCE, **{key: str(made[key]) for key in same if key in made}}
    settings |= config
    return Restore(sink.kafka.bootstrap, sink.topic, target, settings)


def local_restore_of(sink: Sink, target: str, **config: str) -> Restore:
    """A restore of what a sink for directories has written."""
    made = sink.connector()
    settings = {"connector.class": LOCAL_SOURCE, "store.url": made["store.url"], "format.class": made["format.class"]}
    settings |= config
    return Restore(sink.kafka.bootstrap, sink.topic, target, settings)
