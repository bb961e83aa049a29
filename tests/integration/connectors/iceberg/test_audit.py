"""`airflow-connect inspect table`: what the snapshots of a table say, beside the topic and the committed offsets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from airflow_connect.connectors.iceberg import chain
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError, IcebergError
from airflow_connect.observe.inspecting.lake_tables import TableAudit, audit_tables
from airflow_connect.runtime.driver.table_maintenance import expire_snapshots
from airflow_connect.runtime.spec import RunSpec
from tests.support.command_line import Done, run_command
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import TopicProducer, create_topic

pytestmark = pytest.mark.integration

NUMBERS = Schema(NestedField(1, "n", LongType(), required=False))


@pytest.fixture
def sink(kafka: KafkaBroker, tmp_path: Path, make_topic: Callable[..., str], produce: TopicProducer) -> IcebergSink:
    """A connector that has copied 5 records of a transaction and 5 plain ones, in two runs."""
    made = iceberg_sink(kafka, tmp_path, make_topic(1))
    produce.transaction(made.topic, numbered(0, 5)[0])
    made.run()
    produce(made.topic, numbered(5, 10)[0])
    made.run()
    return made


def audit(sink: IcebergSink, *, reads: bool = True) -> TableAudit:
    (found,) = audit_tables(sink.spec(), reads=reads)
    return found


def commit(sink: IcebergSink, offset: int) -> None:
    """Set the committed offset of the connector's group, as Kafka's own tools do."""
    consumer = Consumer({"bootstrap.servers": sink.kafka.bootstrap, "group.id": f"connect-{sink.name}"})
    consumer.commit(offsets=[Place(sink.topic, 0, offset)], asynchronous=False)
    consumer.close()


def show(sink: IcebergSink, *words: str) -> Done:
    file, worker = Path(sink.bucket) / "connector.json", Path(sink.bucket) / "worker.properties"
    file.write_text(json.dumps(sink.connector()))
    worker.write_text("".join(f"{key}={value}\n" for key, value in sink.worker().items()))
    return run_command("inspect", "table", file, "--worker", worker, *words)


def test_table_that_holds_every_record_has_no_findings(sink: IcebergSink) -> None:
    found = audit(sink)
    (partition,) = found.partitions

    assert (found.findings, found.notes) == ((), ())
    assert [(one.rows, [str(part) for part in one.offsets]) for one in found.snapshots] == [
        (5, [f"{sink.topic}-0[0, 5)"]),
        (5, [f"{sink.topic}-0[6, 11)"]),
    ]
    assert (partition.start, partition.end, partition.committed) == (0, 11, 11)
    assert (partition.missing, partition.missing_records, partition.records) == (1, 0, 10), "the end of a transaction"


def test_command_shows_snapshots_and_partitions(sink: IcebergSink) -> None:
    shown = show(sink, "--limit", "1")
    found = audit(sink, reads=False)
    lines = shown.out.splitlines()

    assert shown.exit_code == 0
    assert lines[0] == f"Table {sink.table_name}, branch main: 2 snapshots with 10 rows."
    assert lines[2].split()[0] == found.snapshots[-1].snapshot_id
    assert lines[4].split()[-6:] == ["0", "11", "11", "1", "not", "read"]
    assert "--records reads the topics" in lines[5]
    (told,) = show(sink, "--json", "--records").result["tables"]
    assert (told["findings"], told["partitions"][0]["missing_records"]) == ([], 0)


def test_records_that_a_table_lost_are_found(sink: IcebergSink) -> None:
    table = sink.table()
    assert table is not None
    first = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    (finding,) = audit(sink).findings

    assert finding.startswith(f"5 records of {sink.topic}-0 from 0 to 11 are in no snapshot of the table.")


def test_records_that_were_left_out_are_found(sink: IcebergSink, produce: TopicProducer) -> None:
    produce(sink.topic, [(0, None, None)])
    produce(sink.topic, numbered(10, 11)[0])
    sink.run()
    (finding,) = audit(sink).findings

    assert finding.startswith(f"1 record of {sink.topic}-0 from 0 to 13 is in no snapshot of the table.")


def test_records_that_were_copied_again_are_found(sink: IcebergSink) -> None:
    commit(sink, 3)
    (behind,) = audit(sink).findings
    sink.run()
    findings = audit(sink).findings

    assert f"holds {sink.topic}-0 up to 11, but the committed offset is 3" in behind
    assert [found.split(" hold ")[1].split(":")[0] for found in findings] == [
        f"{sink.topic}-0[3, 5)",
        f"{sink.topic}-0[6, 11)",
    ]
    assert len(sink.rows()) == 10 + 7


def test_snapshots_that_have_expired_are_named(sink: IcebergSink) -> None:
    table = sink.table()
    assert table is not None
    table.maintenance.expire_snapshots().by_id(table.metadata.snapshots[0].snapshot_id).commit()
    found = audit(sink)

    assert (len(found.snapshots), found.partitions[0].start, found.findings) == (1, 6, ())
    assert found.notes == (
        "Earlier snapshots have expired: nothing is said about the records before the first one shown.",
    )


def test_what_cannot_be_audited_is_refused(sink: IcebergSink) -> None:
    with pytest.raises(IcebergError, match=r"does not have table lake\.none"):
        audit_tables(sink.spec(), ["lake.none"])
    dynamic = {"iceberg.tables": None, "iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "n"}
    config = {key: value for key, value in {**sink.connector(), **dynamic}.items() if value is not None}
    with pytest.raises(ConfigError, match="from records"):
        audit_tables(RunSpec(config, sink.worker()))
    other = {"name": "x", "connector.class": "LocalSinkConnector", "topics": sink.topic, "store.url": "file:///x"}
    more = {"format.class": "JsonFormat", "flush.size": "2"}
    with pytest.raises(ConfigError, match="does not write tables"):
        audit_tables(RunSpec({**other, **more}, sink.worker()))


def test_table_that_was_created_again_is_found(sink: IcebergSink, produce: TopicProducer) -> None:
    """Its snapshots alone are without a gap."""
    sink.catalog.drop_table(sink.table_name)
    sink.catalog.create_table(sink.table_name, NUMBERS, properties={"format-version": "2"})
    (finding,) = audit(sink).findings
    (partition,) = audit(sink, reads=False).partitions

    assert finding.startswith(f"10 records of {sink.topic}-0 from 0 to 11 are in no snapshot of the table.")
    assert (partition.start, partition.end, partition.committed, partition.missing) == (0, 0, 11, 11)

    produce(sink.topic, numbered(10, 12)[0])
    sink.run()
    (note,) = audit(sink).notes
    assert note.startswith(f"The first snapshot begins with {sink.topic}-0 at 11, but Kafka has offsets from 0:")


def test_partition_whose_rows_are_all_lost_is_found(
    sink: IcebergSink, make_topic: Callable[..., str], produce: TopicProducer
) -> None:
    other = make_topic(1)
    produce(other, numbered(10, 13)[0])
    sink.config = {**sink.config, "topics": f"{sink.topic},{other}"}
    sink.run()
    table = sink.table()
    assert table is not None
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[1].snapshot_id).commit()
    (finding,) = audit(sink).findings

    assert finding.startswith(f"3 records of {other}-0 from 0 to 3 are in no snapshot of the table.")


def test_snapshots_that_maintenance_has_expired_are_named(
    sink: IcebergSink, produce: TopicProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library removes the id of a parent that has expired, and the chain has only the last runs."""
    monkeypatch.setattr(chain, "RUNS_KEPT", 1)
    produce(sink.topic, numbered(10, 11)[0])
    sink.run()
    expire_snapshots(sink.spec(), age_ms=0)
    found = audit(sink)

    assert (len(found.snapshots), found.findings) == (1, ())
    assert found.notes == (
        "Earlier snapshots have expired: nothing is said about the records before the first one shown.",
    )


def test_topic_that_was_created_again_is_read_to_its_end(sink: IcebergSink, produce: TopicProducer) -> None:
    admin = AdminClient({"bootstrap.servers": sink.kafka.bootstrap})
    admin.delete_topics([sink.topic])[sink.topic].result()
    create_topic(sink.kafka.bootstrap, sink.topic, 1)
    produce(sink.topic, numbered(0, 3)[0])
    sink.run(offsets_out_of_range="earliest")
    twice, behind = audit(sink).findings

    assert f"hold {sink.topic}-0[0, 3)" in twice
    assert f"holds {sink.topic}-0 up to 11, but the committed offset is 3" in behind
