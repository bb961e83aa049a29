"""Runs of an S3 sink on the real broker and the real S3 server, and what the bucket holds afterwards."""

from __future__ import annotations

import gzip
import json
import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from airflow_connect.documents.run import Plan, RunReport, TaskPlan, TaskReport
from airflow_connect.exactly_once.journal import JournalView
from airflow_connect.kafka.state import runs_topic
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
from airflow_connect.runtime.executor.task import run_task
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.runtime.spec import RunSpec

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

    from airflow_connect.devstack.kafka import KafkaBroker
    from airflow_connect.devstack.s3 import S3Server

TEMPORARY = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class InProcessEngine:
    """Runs tasks one after the other in this process: the executor's real code without Spark."""

    may_leave_duplicates = False

    def __init__(self) -> None:
        self.jobs = 0

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        self.jobs += 1
        return [run_task(settings, task, attempt=0) for task in tasks]

    def progress_host(self) -> str:
        return "127.0.0.1"

    def cancel(self, run_id: str) -> None:
        """Its tasks are not interrupted: the run ends before its next step."""


@dataclass
class Sink:
    """One S3 sink connector of a test."""

    kafka: KafkaBroker
    s3: S3Server
    bucket: str
    name: str
    topic: str
    config: dict[str, Any] = field(default_factory=dict)
    worker_config: dict[str, Any] = field(default_factory=dict)
    engine: Any = field(default_factory=InProcessEngine)
    events: list[Mapping[str, Any]] = field(default_factory=list)

    def connector(self, **overrides: Any) -> dict[str, Any]:
        """The configuration as people write it for Confluent's sink; `None` removes a key, `_` stands for `.`."""
        config = {
            "name": self.name,
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "tasks.max": "2",
            "topics": self.topic,
            "s3.bucket.name": self.bucket,
            "s3.region": self.s3.region,
            "store.url": self.s3.endpoint_url,
            "aws.access.key.id": self.s3.access_key,
            "aws.secret.access.key": self.s3.secret_key,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
            "flush.size": "1000",
            **self.config,
        }
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    def worker(self) -> dict[str, Any]:
        """The worker configuration."""
        return {
            "bootstrap.servers": self.kafka.bootstrap,
            "group.id": "test-workers",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "runs.storage.replication.factor": "1",
            **self.worker_config,
        }

    def spec(self, **overrides: Any) -> RunSpec:
        """What a run is told."""
        return RunSpec(self.connector(**overrides), self.worker())

    def run(self, **overrides: Any) -> RunReport:
        """One run; fails the test with the run's own message unless it was done or empty."""
        report = self.try_run(**overrides)
        assert report.status in ("done", "empty"), report.error
        return report

    def try_run(self, **overrides: Any) -> RunReport:
        """One run, whatever comes of it."""
        self.events.clear()
        return run_connector(self.spec(**overrides), self.events.append, self.engine)

    def keys(self) -> list[str]:
        """Keys of all visible objects, sorted."""
        pages = _client(self.s3).get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return sorted(entry["Key"] for page in pages for entry in page.get("Contents", ()))

    def body(self, key: str) -> bytes:
        """An object's bytes, unzipped."""
        data: bytes = _client(self.s3).get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return gzip.decompress(data) if key.endswith(".gz") else data

    def values(self) -> list[Any]:
        """Every JSON value in the bucket, by key and then by line."""
        return [json.loads(line) for key in self.keys() for line in self.body(key).splitlines()]

    def uploads(self) -> list[str]:
        """Keys of unfinished uploads."""
        found = _client(self.s3).list_multipart_uploads(Bucket=self.bucket)
        return sorted(upload["Key"] for upload in found.get("Uploads", ()))

    def offsets(self, topic: str = "") -> dict[int, int]:
        """Committed offsets of the connector's group, by partition."""
        # Not the admin client: it dies where the coordinator has just changed (kafka.admin.consumer_group).
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": f"connect-{self.name}"})
        try:
            wanted = topic or self.topic
            found = consumer.list_topics(wanted, timeout=30).topics[wanted].partitions
            asked = [KafkaPartition(wanted, partition) for partition in sorted(found)]
            return {p.partition: p.offset for p in consumer.committed(asked, timeout=30) if p.offset >= 0}
        finally:
            consumer.close()

    def set_offsets(self, offsets: Mapping[int, int]) -> None:
        """Set the group's offsets, as an operator would."""
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        group = f"connect-{self.name}"
        positions = [KafkaPartition(self.topic, p, offset) for p, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, positions)]
        for position in admin.alter_consumer_group_offsets(request)[group].result(10).topic_partitions:
            assert position.error is None, position.error

    def settings_for_pieces(self, piece_bytes: int) -> dict[str, str]:
        """Settings with which files larger than this are staged in pieces."""
        return {"s3_part_size": str(piece_bytes)}

    def most_pieces(self) -> int:
        """In how many parts the object of the most parts was uploaded; an ETag ends with the number."""
        return max(int(etag.strip('"').rpartition("-")[2]) for etag, _ in self.identities().values())

    def remove_all(self) -> None:
        """Delete every object."""
        client = _client(self.s3)
        for key in self.identities():
            client.delete_object(Bucket=self.bucket, Key=key)

    def assert_exactly_once(self, expected: Sequence[Any]) -> None:
        """Every expected JSON value is in the bucket once, nothing else is, and nothing is left unfinished."""
        found = Counter(json.dumps(v, sort_keys=True) for v in self.values())
        wanted = Counter(json.dumps(v, sort_keys=True) for v in expected)
        assert found == wanted, (
            f"missing {list((wanted - found).elements())[:3]}, extra {list((found - wanted).elements())[:3]}"
        )
        assert self.uploads() == []

    def second(self, **config: Any) -> Sink:
        """Another connector on the same topic and bucket; `_` in a key stands for `.`."""
        changes = {key.replace("_", "."): value for key, value in config.items()}
        return replace(
            self,
            name=f"sink-{uuid.uuid4().hex[:8]}",
            config={**self.config, **changes},
            engine=InProcessEngine(),
            events=[],
        )

    def view(self) -> JournalView:
        """What the connector's journal holds: state and open manifest."""
        with SinkSession(SinkConfiguration.from_spec(self.spec())) as session:
            return session.peek()

    def history(self, runs: str = "connect-runs") -> list[str]:
        """Run ids in the connector's history, oldest first; `runs`: the runs topic."""
        with SinkSession(SinkConfiguration.from_spec(self.spec())) as session:
            topic = runs_topic.find(session.admin, runs)
            assert topic is not None
            records = runs_topic.read(session.admin, {"bootstrap.servers": self.kafka.bootstrap}, topic, self.name)
        return runs_topic.document_names(records, "run")

    def warnings(self) -> list[str]:
        """Warnings of the last run."""
        return [str(e["message"]) for e in self.events if e["event"] == "warning"]

    def plan(self) -> Plan:
        """The plan of the last run."""
        return Plan.from_json(next(e["plan"] for e in self.events if e["event"] == "plan"))

    def identities(self) -> dict[str, tuple[str, str]]:
        """ETag and time of last change of every visible object, by key."""
        pages = _client(self.s3).get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        entries = (entry for page in pages for entry in page.get("Contents", ()))
        # s3proxy's file system store shows the temporary file of a completion for an instant, as `<key>-<uuid>`.
        finished = (e for e in entries if "ETag" in e and not TEMPORARY.search(e["Key"]))
        return {entry["Key"]: (entry["ETag"], str(entry["LastModified"])) for entry in finished}


def numbered(start: int, end: int, partitions: int = 1) -> tuple[list[tuple[int, str, str]], list[dict[str, int]]]:
    """Rows to produce with the JSON values `{"n": start}` to `{"n": end - 1}`, and the values."""
    values = [{"n": n} for n in range(start, end)]
    return [(v["n"] % partitions, f"key-{v['n']}", json.dumps(v)) for v in values], values


@cache
def _client(server: S3Server) -> S3Client:
    """One for all tests: to make a client takes longer than what most are made for."""
    return server.client()
