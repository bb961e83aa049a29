"""Expiring snapshots of a table between runs: what they still need stays, and they go on as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from airflow_connect.api.publishing import SWEEPS
from airflow_connect.connectors.iceberg import chain
from airflow_connect.connectors.iceberg.maintenance import DAY_MS
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.table_maintenance import expire_snapshots
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.copies.s3 import Sink, numbered
from tests.support.kafka_data import TopicProducer
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration

Fill = Callable[[], Any]


@pytest.fixture
def sink(kafka: KafkaBroker, tmp_path: Path, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Sink:
    """A connector whose chain keeps two runs, so that few runs show what is kept."""
    monkeypatch.setattr(chain, "RUNS_KEPT", 2)
    return iceberg_sink(kafka, tmp_path, make_topic(2))


@pytest.fixture
def run(sink: IcebergSink, produce: TopicProducer) -> Callable[[], Any]:
    """Runs with ten more records each."""
    done = [0]

    def more() -> Any:
        produce(sink.topic, numbered(done[0], done[0] + 10, 2)[0])
        done[0] += 10
        return sink.run()

    return more


def ids(sink: IcebergSink) -> list[int]:
    table = sink.table()
    assert table is not None
    return [one.snapshot_id for one in table.metadata.snapshots]


def append_nothing(sink: IcebergSink, times: int) -> None:
    """Another writer adds snapshots."""
    table = sink.table()
    assert table is not None
    for _ in range(times):
        table.append(table.scan(limit=0).to_arrow().cast(table.schema().as_arrow()))


def notes_on_tables(report: Any) -> list[str]:
    return [note for note in report.notes if "since run" in note or "rolled back" in note or "set back" in note]


def test_old_snapshots_expire_except_those_of_the_last_runs_and_of_tags(sink: IcebergSink, run: Fill) -> None:
    for _ in range(5):
        run()
    table = sink.table()
    assert table is not None
    first, second, third, *last = ids(sink)
    table.manage_snapshots().create_tag(second, "audit").commit()
    (young,) = expire_snapshots(sink.spec())
    assert (young.expired, young.young, young.needed) == ((), 5, 0)

    (planned,) = expire_snapshots(sink.spec(), age_ms=0, dry_run=True)
    assert ids(sink) == [first, second, third, *last]
    (done,) = expire_snapshots(sink.spec(), age_ms=0)
    assert done == planned
    assert (done.table, done.snapshots, done.expired) == (sink.table_name, 5, (str(first), str(third)))
    assert (done.young, done.needed) == (0, 3)
    assert ids(sink) == [second, *last]
    assert expire_snapshots(sink.spec(), age_ms=0)[0].expired == ()

    report = run()
    assert notes_on_tables(report) == []
    sink.assert_exactly_once(numbered(0, 60)[1])


def test_expiry_between_manifest_and_commit_of_a_killed_run_changes_nothing_for_the_next_one(
    sink: IcebergSink, run: Fill, produce: TopicProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Later runs look for what a dead one has left, and delete what no snapshot has: the chain must have it that long.
    monkeypatch.setattr(chain, "RUNS_KEPT", 2 * SWEEPS)
    run()
    steps = Steps(monkeypatch)
    for point in (crash_points.MANIFEST_WRITTEN, crash_points.PUBLISHED):
        append_nothing(sink, 2)
        run()
        steps.crash(point)
        with pytest.raises(Crashed):
            run()
        before = ids(sink)
        (done,) = expire_snapshots(sink.spec(), age_ms=0)
        assert len(done.expired) == 2
        report = run()
        assert report.recovered_run_id
        assert notes_on_tables(report) == []
        added = [one.snapshot_id for one in report.tables]
        assert ids(sink)[-2:] == [int(one) for one in added]
        # What was visible when the run was killed is not there twice.
        assert len(set(ids(sink)) - set(before)) == (2 if point == crash_points.MANIFEST_WRITTEN else 1)
    sink.assert_exactly_once(numbered(0, 70)[1])
    for _ in range(3):
        assert sink.run().swept == 0
    sink.assert_exactly_once(numbered(0, 70)[1])


def test_snapshot_of_an_open_manifest_stays_although_another_one_is_the_head(
    sink: IcebergSink, run: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "RUNS_KEPT", 0)  # Nothing but the manifest says that the snapshot is needed.
    steps = Steps(monkeypatch)
    steps.crash(crash_points.PUBLISHED)
    with pytest.raises(Crashed):
        run()
    (ours,) = ids(sink)
    append_nothing(sink, 2)
    (done,) = expire_snapshots(sink.spec(), age_ms=0)
    assert ours in ids(sink)
    assert len(done.expired) == 1


def test_others_between_the_last_run_and_the_head_stay_so_that_the_run_is_found(sink: IcebergSink, run: Fill) -> None:
    for _ in range(4):
        run()
    append_nothing(sink, 3)
    (done,) = expire_snapshots(sink.spec(), age_ms=0)
    assert len(done.expired) == 2
    assert notes_on_tables(run()) == []
    sink.assert_exactly_once(numbered(0, 50)[1])


def test_numbers_to_keep_come_from_the_request_the_branch_or_the_table(sink: IcebergSink, run: Fill) -> None:
    for _ in range(6):
        run()
    assert [len(one.expired) for one in expire_snapshots(sink.spec(), age_ms=0, least=4, dry_run=True)] == [2]
    table = sink.table()
    assert table is not None
    table.transaction().set_properties({"history.expire.min-snapshots-to-keep": "5"}).commit_transaction()
    assert [len(one.expired) for one in expire_snapshots(sink.spec(), age_ms=0, dry_run=True)] == [1]
    table.refresh()
    table.transaction().set_properties({"history.expire.max-snapshot-age-ms": "0"}).commit_transaction()
    assert [len(one.expired) for one in expire_snapshots(sink.spec(), dry_run=True)] == [1]
    assert [one.young for one in expire_snapshots(sink.spec(), age_ms=DAY_MS, dry_run=True)] == [6]


def test_commit_of_somebody_else_at_the_same_time_and_a_lost_answer_are_repeated(
    sink: IcebergSink, run: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        run()
    whole, tried = SqlCatalog.commit_table, []

    def spoilt(self: SqlCatalog, *arguments: Any) -> Any:
        tried.append(arguments)
        if len(tried) == 1:
            raise CommitFailedException("somebody was faster")
        answer = whole(self, *arguments)
        if len(tried) == 2:
            raise TimeoutError("no answer")
        return answer

    monkeypatch.setattr(SqlCatalog, "commit_table", spoilt)
    (done,) = expire_snapshots(sink.spec(), age_ms=0)
    assert (len(tried), len(done.expired), len(ids(sink))) == (2, 2, 2)


def test_tables_that_records_name_are_those_that_the_connector_has_filled(
    sink: IcebergSink, run: Fill, produce: TopicProducer
) -> None:
    sink.config |= {"iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "t", "iceberg.tables": ""}
    catalog = sink.catalog
    catalog.create_namespace("other")
    foreign = catalog.create_table("other.of_somebody_else", sink_schema())
    foreign.append(foreign.scan().to_arrow())
    catalog.close()
    for number in range(3):
        produce(sink.topic, [(0, None, json.dumps({"t": f"lake.{name}", "n": number})) for name in ("a", "b")])
        sink.run()
    assert [(one.table, len(one.expired)) for one in expire_snapshots(sink.spec(), age_ms=0)] == [
        ("lake.a", 1),
        ("lake.b", 1),
    ]


def test_expiry_leaves_no_old_metadata_if_the_table_says_so(sink: IcebergSink, run: Fill) -> None:
    prefix = "iceberg.tables.auto-create-props.write.metadata"
    sink.config |= {f"{prefix}.previous-versions-max": "1", f"{prefix}.delete-after-commit.enabled": "true"}
    for _ in range(4):
        run()
    expire_snapshots(sink.spec(), age_ms=0)

    assert len(ids(sink)) == 2
    assert len(list(Path(sink.bucket).rglob("*.metadata.json"))) == 2


def sink_schema() -> Any:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    return Schema(NestedField(1, "n", LongType(), required=False))


def test_other_connectors_are_refused(sink: IcebergSink) -> None:
    other = {"connector_class": "FileStreamSinkConnector", "file": "/tmp/no-such-file"}
    with pytest.raises(ConfigError, match="has no tables of a lake"):
        expire_snapshots(sink.spec(**other))
