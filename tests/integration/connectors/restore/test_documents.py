"""Topics that a restore creates are like their originals, as the documents of the backup tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.kafka.admin.cluster_facts import AskedCluster
from airflow_connect.runtime.driver.kinds import kind_of
from tests.integration.connectors.files.s3.objects import PARQUET_FORMAT
from tests.integration.registry.conftest import Registry
from tests.support.copies.backups import TIME_MS, record, write_file
from tests.support.copies.restore import LOCAL_SOURCE, Restore, restore_of, stored

pytestmark = pytest.mark.integration


def document(topic: str, *, partitions: int, settings: dict[str, str], version: int = 1) -> str:
    facts = {"id": "x" * 22, "partitions": partitions, "replication_factor": 1, "settings": settings, "schema_ids": {}}
    return json.dumps({"v": version, "written_ms": TIME_MS, "topics": {topic: facts}, "groups": {}, "schemas": []})


def test_topic_is_created_like_its_original(kafka: Any, make_topic: Any, produce: Any, make_sink: Any) -> None:
    settings = {"cleanup.policy": "compact", "retention.ms": "3600000", "max.message.bytes": "2000000"}
    topic = make_topic(4, settings)
    produce(topic, [(0, b"k", b"v", TIME_MS, [])])
    sink = make_sink(topic, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT})
    sink.run()
    target = f"{topic}-restored"

    report = restore_of(sink, target).run()

    facts = AskedCluster({"bootstrap.servers": kafka.bootstrap}).topics([target])[target]
    assert (facts.partitions, facts.settings["max.message.bytes"]) == (4, "2000000")
    assert (facts.settings["cleanup.policy"], facts.settings["retention.ms"]) == ("delete", "-1")
    (note,) = (note for note in report.notes if note.startswith(f"Created {target}"))
    assert note.endswith("settings` sets retention.ms=3600000, cleanup.policy=compact when all is restored.")
    assert not [note for note in report.notes if "with other names" in note or "+runs" in note]


def test_offsets_that_no_run_has_copied_and_files_that_are_gone_are_told(
    make_topic: Any, produce: Any, make_sink: Any
) -> None:
    topic = make_topic(2)
    sink = make_sink(topic, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT, "flush.size": "2"})
    produce(topic, [(0, b"k", b"%d" % n, TIME_MS, []) for n in range(4)] + [(1, b"k", b"x", TIME_MS, [])])
    sink.run()
    produce(topic, [(0, b"k", b"%d" % n, TIME_MS, []) for n in range(4, 10)])
    sink.set_offsets({0: 7})
    sink.run()
    gone = next(key for key in sink.keys() if f"{topic}+0+0000000002." in key)  # noqa: SIM118 (a sink is no dict)
    sink.s3.client().delete_object(Bucket=sink.bucket, Key=gone)
    restore = restore_of(sink, f"{topic}-restored")

    planned = [note for note in kind_of(restore.spec()).plan().notes if "not restored" in note]
    report = restore.run()

    fewer = "Fewer files are here than runs have written, so what the others held is not restored: "
    assert planned == [
        f"No run of the backup has copied these offsets, so they are not restored: {topic}-0 4 to 6.",
        f"{fewer}{topic}-0 has 3 files, and 4 were written.",
    ]
    assert [note for note in report.notes if "not restored" in note] == planned
    assert [one.value for one in stored(restore.bootstrap, restore.target)] == [b"0", b"1", b"7", b"8", b"9", b"x"]


def test_newest_document_that_can_be_read_counts(kafka: Any, tmp_path: Path, unique_name: str) -> None:
    write_file(tmp_path / "topics", [record(0)])
    folder = tmp_path / "topics" / "+runs" / "sink"
    folder.mkdir(parents=True)
    (folder / "20261127T000001-aaaaaa.json").write_text(document("t", partitions=5, settings={}))
    settings = {"segment.ms": "7000000"}
    (folder / "20261127T000002-aaaaaa.json").write_text(document("t", partitions=3, settings=settings))
    (folder / "20261127T000003-aaaaaa.json").write_text(document("t", partitions=9, settings={}, version=2))
    (folder / "20261127T000004-aaaaaa.json").write_text("{")
    config = {"connector.class": LOCAL_SOURCE, "store.url": str(tmp_path), "format.class": "ParquetFormat"}
    restore = Restore(kafka.bootstrap, "t", unique_name, config)

    report = restore.run()

    facts = AskedCluster({"bootstrap.servers": kafka.bootstrap}).topics([restore.target])[restore.target]
    assert (facts.partitions, facts.settings["segment.ms"]) == (3, "7000000")
    told = [note for note in report.notes if "cannot be used" in note]
    assert ["000004-aaaaaa.json" in told[0], "its version is 2" in told[1]] == [True, True]
    assert [one.value for one in stored(restore.bootstrap, restore.target)] == [b"v"]


def test_schemas_of_the_backup_are_compared_with_those_of_the_registry(
    make_topic: Any, produce: Any, make_sink: Any, registry_server: Any
) -> None:
    topic = make_topic(1)
    registry = Registry(registry_server)
    known = registry.register(f"{topic}-value", {"type": "record", "name": "R", "fields": []})
    other = registry.register(f"{topic}-other", {"type": "record", "name": "Other", "fields": []})
    for number in (known, other):
        produce(topic, [(0, b"k", b"\0" + number.to_bytes(4, "big"), TIME_MS, [])])
    url = {"store.kafka.records.schema.registry.url": registry.url}
    sink = make_sink(topic, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT, **url})
    sink.run()
    restore = restore_of(sink, f"{topic}-restored", **{"target.schema.registry.url": registry.url})
    (key,) = (key for key in sink.keys() if "+runs" in key)  # noqa: SIM118 (a sink is no dict)
    body = json.loads(sink.body(key))
    by_id = {one["id"]: one for one in body["schemas"]}
    gone = 900_000_000 + known
    by_id[known]["id"], body["topics"][topic]["schema_ids"]["value"] = gone, [gone, other]
    by_id[other]["schema"] = by_id[other]["schema"].replace("Other", "Another")
    true = sink.body(key)
    sink.s3.client().put_object(Bucket=sink.bucket, Key=key, Body=json.dumps(body).encode())

    report = restore.try_run()

    assert report.status == "failed" and report.error is not None
    assert f"does not have 1 schema of the backup: id {gone}" in report.error["message"]
    assert f"other schemas than the backup under id {other}" in report.error["message"]
    assert restore.offsets() == {}
    sink.s3.client().put_object(Bucket=sink.bucket, Key=key, Body=true)
    assert restore.run().records == 2


def test_backup_without_schemas_cannot_be_compared(
    make_topic: Any, produce: Any, make_sink: Any, registry_server: Any
) -> None:
    topic = make_topic(1)
    produce(topic, [(0, b"k", b"v", TIME_MS, [])])
    sink = make_sink(topic, **{"store.kafka.records": "true", "format.class": PARQUET_FORMAT})
    sink.run()

    report = restore_of(sink, f"{topic}-restored", **{"target.schema.registry.url": registry_server.url}).run()

    assert [note for note in report.notes if note.startswith(f"The backup has no schemas of topic {topic}")]
