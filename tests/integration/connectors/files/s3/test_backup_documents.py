"""`store.kafka.records`: what a backup keeps beside the records, from a real broker and a real registry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.connectors.files.shared.publishing.backup_document import BackupDocuments
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import UnavailableError
from tests.integration.connectors.files.s3.objects import PARQUET_FORMAT
from tests.integration.registry.conftest import Registry
from tests.support.copies.s3 import Sink

pytestmark = pytest.mark.integration

BACKUP = {"store.kafka.records": "true", "format.class": PARQUET_FORMAT}
REGISTRY = "store.kafka.records.schema.registry.url"


def document(sink: Sink, report: RunReport) -> dict[str, Any]:
    """The document of a run, which is the only one of this run."""
    (key,) = (key for key in sink.keys() if key.endswith(f"/{report.run_id}.json"))  # noqa: SIM118 (a sink is no dict)
    assert key == f"topics/+runs/{sink.name}/{report.run_id}.json"
    found: dict[str, Any] = json.loads(sink.body(key))
    return found


def commit(bootstrap: str, group: str, topic: str, partition: int, offset: int, metadata: str) -> None:
    client = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    client.commit(offsets=[TopicPartition(topic, partition, offset, metadata)], asynchronous=False)
    client.close()


def with_id(schema_id: int, rest: bytes = b"x") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + rest


def test_document_has_topics_groups_and_schemas(
    kafka: Any, make_topic: Any, produce: Any, make_sink: Any, registry_server: Any
) -> None:
    topic = make_topic(2, {"cleanup.policy": "compact", "retention.ms": "3600000"})
    empty = make_topic(3)
    registry = Registry(registry_server)
    used = registry.register(f"{topic}-used", {"type": "record", "name": "Used", "fields": []})
    schema = {"type": "record", "name": "R", "fields": [{"name": "u", "type": "Used"}]}
    reference = {"name": "Used", "subject": f"{topic}-used", "version": 1}
    schema_id = registry.register(f"{topic}-value", schema, [reference])
    key_id = registry.register(f"{topic}-key", '"string"')
    produce(topic, [(0, with_id(key_id), with_id(schema_id), 5, []), (1, b"k", b"\0\0", 6, []), (1, b"k", None, 7, [])])
    commit(kafka.bootstrap, f"{topic}-group", topic, 1, 1, "so far")
    commit(kafka.bootstrap, f"{topic}-other", empty, 2, 0, "")
    sink = make_sink(topic, topics=f"{topic},{empty}", **BACKUP, **{REGISTRY: registry.url})

    first = sink.run()
    produce(topic, [(0, b"k", b"v", 8, [])])
    second = sink.run()

    found = document(sink, first)
    facts = found["topics"][topic]
    assert {name: facts["settings"][name] for name in ("cleanup.policy", "retention.ms")} == {
        "cleanup.policy": "compact",
        "retention.ms": "3600000",
    }
    assert "segment.bytes" not in facts["settings"]  # a default
    assert (facts["partitions"], facts["replication_factor"], len(facts["id"])) == (2, 1, 22)
    assert found["topics"][empty]["partitions"] == 3
    assert found["groups"][f"{topic}-group"] == [[topic, 1, 1, "so far"]]
    assert found["groups"][f"{topic}-other"] == [[empty, 2, 0, ""]]
    assert [(one["id"], one["schemaType"]) for one in found["schemas"]] == [
        (number, "AVRO") for number in sorted([used, schema_id, key_id])
    ]
    (whole,) = (one for one in found["schemas"] if one["id"] == schema_id)
    assert (json.loads(whole["schema"]), whole["references"]) == (schema, [reference])
    assert {"subject": f"{topic}-value", "version": 1} in whole["subjects"]
    assert found["copied"] == [
        {"topic": topic, "partition": 0, "start": 0, "end": 1, "records": 1, "files": 1},
        {"topic": topic, "partition": 1, "start": 0, "end": 2, "records": 2, "files": 1},
    ]
    assert (found["v"], found["connector"], found["run_id"]) == (1, sink.name, first.run_id)
    later = document(sink, second)  # It has no new id, and keeps those of before.
    assert (later["schemas"], later["copied"][0]["start"]) == (found["schemas"], 1)


def test_ids_that_the_registry_does_not_know_are_named(
    make_topic: Any, produce: Any, make_sink: Any, registry_server: Any
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", with_id(987_654_321), 5, []), (0, b"\0\0\0\0", b"\0\0\0", 5, [])])
    sink = make_sink(topic, **BACKUP, **{REGISTRY: registry_server.url})

    report = sink.run()

    assert document(sink, report)["schemas"] == []
    (note,) = (note for note in report.notes if "987654321" in note)
    assert note.startswith("The Schema Registry does not know 1 id with which keys or values begin")


def test_run_that_recovers_another_writes_its_document(
    make_topic: Any, produce: Any, make_sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", b"v", 5, [])])
    sink = make_sink(topic, **BACKUP)

    def fail(*_: Any) -> Any:
        raise UnavailableError("Kafka did not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(BackupDocuments, "__call__", fail)
        failed = sink.try_run()
    assert failed.status == "failed"
    assert not [key for key in sink.keys() if "+runs" in key]  # noqa: SIM118 (a sink is no dict)

    sink.run()  # With converters of the worker, which the manifest has, too.

    (key,) = (key for key in sink.keys() if "+runs" in key)  # noqa: SIM118 (a sink is no dict)
    found = json.loads(sink.body(key))
    assert (found["run_id"], found["copied"][0]["records"]) == (failed.run_id, 1)


def test_registry_that_does_not_answer_is_found_before_anything_is_copied(
    make_topic: Any, produce: Any, make_sink: Any
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", b"v", 5, [])])
    settings = {REGISTRY: "http://127.0.0.1:9", "store.kafka.records.max.retries": "0"}
    sink = make_sink(topic, **BACKUP, **settings)

    report = sink.try_run()

    assert report.status == "failed" and "Schema Registry" in str(report.error)
    assert sink.keys() == []


def test_setting_of_the_registry_that_is_wrong_is_named_with_its_prefix(make_topic: Any, make_sink: Any) -> None:
    wrong = {REGISTRY: "http://127.0.0.1:9", "store.kafka.records.basic.auth.credentials.source": "NOWHERE"}

    report = make_sink(make_topic(1), **BACKUP, **wrong).try_run()

    assert report.error is not None
    assert report.error["configPath"] == "store.kafka.records.basic.auth.credentials.source"
