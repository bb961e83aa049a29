"""A table that something else has dropped and created again does not have what earlier runs have written."""

from __future__ import annotations

import json

import pytest

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink import task
from tests.support.copies.jdbc_sink import JdbcSink, jdbc_sink
from tests.support.copies.jdbc_sink_tasks import SinkRun, put, record, records, written
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

NUMBER = s.struct(("n", s.INT64))


@pytest.fixture(params=["postgresql", "mariadb"])
def sink(request: pytest.FixtureRequest, kafka, make_topic) -> JdbcSink:
    return jdbc_sink(kafka, request.getfixturevalue(f"{request.param}_database"), make_topic(partitions=2))


def notes_of_a_run(sink: JdbcSink, produce, n: int, **config: str) -> list[str]:
    produce(sink.topic, [(partition, None, json.dumps({"n": n})) for partition in (0, 1)])
    report = sink.run(**config)
    assert report.records == 2
    return [note for note in report.notes if "is not the one that the last run has written" in note]


def made_again(sink: JdbcSink, *between: str) -> None:
    if sink.target.dialect == "mysql":  # The time when a table was made has whole seconds.
        # Files have the time of a clock that is some milliseconds behind.
        asked = "SELECT create_time < now(3) - INTERVAL 1100000 MICROSECOND FROM information_schema.tables"
        asked += " WHERE table_name = :name"
        wait_until(lambda: sink.target.rows(asked, name=sink.bucket) == [(1,)], "the next second")
    sink.target.execute(
        *between, f"DROP TABLE IF EXISTS {sink.table}", f"CREATE TABLE {sink.table} (n BIGINT, pad TEXT)"
    )


def test_table_that_was_dropped_and_created_again_is_named(sink: JdbcSink, produce) -> None:
    assert notes_of_a_run(sink, produce, 1) == []
    assert notes_of_a_run(sink, produce, 2) == []
    made_again(sink)
    (note,) = notes_of_a_run(sink, produce, 3)
    assert f"This run writes {sink.topic}-0 from offset 2 on" in note
    assert sorted(value["n"] for value in sink.values()) == [3, 3]
    assert notes_of_a_run(sink, produce, 4) == []


def test_table_that_was_replaced_by_a_copy_is_named_also_if_the_next_run_fails(sink: JdbcSink, produce) -> None:
    """An online change of a table copies its rows, and what a run writes until the names are changed stays behind."""
    assert notes_of_a_run(sink, produce, 1) == []
    old = sink.table.replace(sink.bucket, f"{sink.bucket}_old")
    made_again(sink, f"ALTER TABLE {sink.table} RENAME TO {old}")
    produce(sink.topic, [(0, None, json.dumps({"n": "no number"}))])
    assert sink.try_run().status == "failed"
    produce(sink.topic, [(1, None, json.dumps({"n": 2}))])
    report = sink.run(errors_tolerance="all")
    (note,) = [note for note in report.notes if "is not the one that the last run has written" in note]
    assert sink.bucket in note


def test_table_that_runs_have_created_or_changed_themselves_is_the_same(sink: JdbcSink, produce) -> None:
    sink.target.execute(f"DROP TABLE {sink.table}")
    config = {"auto_create": "true", "auto_evolve": "true", "fields_whitelist": "n,more"}
    for n in range(3):
        more = {"more": n} if n else {}
        produce(sink.topic, [(0, None, json.dumps({"n": n, **more}))])
        report = sink.run(**config)
        assert [note for note in report.notes if "is not the one" in note] == []


def test_table_that_was_made_again_without_a_column_is_named(sink: JdbcSink, produce) -> None:
    """An ALTER TABLE of a task of this connector is not the reason."""
    for n in (1, 2):
        produce(sink.topic, [(0, None, json.dumps({"n": n, "more": n}))])
        sink.run(auto_evolve="true", fields_whitelist="n,more")
    made_again(sink)
    produce(sink.topic, [(0, None, json.dumps({"n": 3}))])
    notes = sink.run(auto_evolve="true", fields_whitelist="n,more").notes
    assert len([note for note in notes if "is not the one that the last run has written" in note]) == 1


def test_table_that_was_made_again_is_named_if_the_run_begins_with_a_deletion(sink: JdbcSink, produce) -> None:
    config = {
        "auto_create": "true", "insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "k",
        "delete_enabled": "true",
    }  # fmt: skip
    sink.target.execute(f"DROP TABLE {sink.table}")
    produce(sink.topic, [(0, "a", json.dumps({"n": 1}))])
    sink.run(**config)
    made_again(sink)
    sink.target.execute(f"ALTER TABLE {sink.table} ADD COLUMN k VARCHAR(20) NOT NULL PRIMARY KEY")
    produce(sink.topic, [(0, "a", None), (0, "b", json.dumps({"n": 2}))])
    notes = sink.run(**config).notes
    assert len([note for note in notes if "is not the one that the last run has written" in note]) == 1


@pytest.mark.parametrize("start", [0, 5])
def test_table_that_is_dropped_while_the_first_run_writes_is_named(database, monkeypatch, start) -> None:
    """Only partitions of which earlier runs had left an offset counted, and the next run knew the new table only."""
    monkeypatch.setattr(task, "ROWS_PER_TRANSACTION", 1)
    runner = SinkRun(database, start=start, auto_create="true").open(partitions=(0, 1))
    put(runner, records({"n": 0}, schema=NUMBER, first=start))
    runner.deliver()
    database.execute("DROP TABLE orders")
    put(runner, [record(start, {"n": 1}, schema=NUMBER, partition=1)])
    runner.complete()
    runner.close()
    assert written(database) == [1]
    (note,) = [note for note in runner.notes.sentences if "table" in note]
    assert note.startswith("The table orders was dropped while this run wrote to it, and created again.")
    assert f"before, orders-0 from offset {start}, orders-1 from offset {start} on, is not" in note
