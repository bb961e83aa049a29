"""A database that went back to an earlier state, while runs, groups or servers do not stay as they were."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest
from confluent_kafka.admin import AdminClient

from airflow_connect.runtime.driver.sink.run import SinkRun
from tests.integration.connectors.jdbc.sink.test_set_back import back_up, commit, numbers, restore, rows
from tests.support.copies.jdbc_sink import JdbcSink, jdbc_sink
from tests.support.kafka_data import every_record
from tests.support.steps import Crashed, HookedEngine, Steps

pytestmark = pytest.mark.integration

ALL = [*range(25), *range(100, 113)]


@pytest.fixture(params=["postgresql", "mariadb"])
def sink(request: pytest.FixtureRequest, kafka, make_topic) -> JdbcSink:
    topic = make_topic(partitions=2)
    return jdbc_sink(kafka, request.getfixturevalue(f"{request.param}_database"), topic, fields_whitelist="n")


def two_runs(sink: JdbcSink, produce) -> None:
    """With a backup between them."""
    produce(sink.topic, [*numbers(0, 10, 0), *numbers(100, 110, 1)])
    sink.run()
    back_up(sink)
    produce(sink.topic, [*numbers(10, 20, 0), *numbers(110, 113, 1)])
    sink.run()
    produce(sink.topic, numbers(20, 25, 0))


def set_back(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "set back" in note]


def test_group_that_was_deleted_after_a_restore_leaves_nothing_out(sink, kafka, produce):
    """So do offsets that have expired: the run went on at the remembered offset, without a look at the database."""
    two_runs(sink, produce)
    restore(sink)
    admin, group = AdminClient({"bootstrap.servers": kafka.bootstrap}), f"connect-{sink.name}"
    admin.delete_consumer_groups([group])[group].result(30)
    report = sink.run()
    assert rows(sink) == ALL
    assert report.records == 18 and len(set_back(report.notes)) == 2
    assert sink.offsets() == {0: 25, 1: 13}


@pytest.mark.parametrize("moment", ["begun", "audited"])
@pytest.mark.parametrize("tolerance", ["all", "none"])
def test_run_that_is_killed_while_it_writes_lost_records_again_leaves_its_part_to_the_next(
    sink, kafka, produce, make_topic, monkeypatch, moment, tolerance
):
    """The next run began at the group's offset: a record that was refused below it was in no dead letter."""
    letters = make_topic()
    config = {
        "errors_tolerance": tolerance, "errors_deadletterqueue_topic_name": letters,
        "errors_deadletterqueue_topic_replication_factor": "1",
    }  # fmt: skip
    two_runs(sink, produce)
    restore(sink)
    if tolerance == "all":
        sink.target.execute(f"ALTER TABLE {sink.table} ADD CHECK (n <> 12)")
    Steps(monkeypatch).crash(moment)
    with pytest.raises(Crashed):
        sink.run(**config)

    report = sink.run(**config)

    refused = [12] if tolerance == "all" else []
    assert rows(sink) == [n for n in ALL if n not in refused]
    assert [value for _, value in every_record(kafka.bootstrap, letters)] == [b'{"n": 12}'][: len(refused)]
    named = set_back(report.notes)
    assert len(named) == 2
    assert f"had the records of {sink.topic}-0 up to 10 only" in named[0]
    assert any("from 10 up to 25" in note for note in report.notes) == (moment == "audited")
    produce(sink.topic, numbers(25, 26, 0))
    assert set_back(sink.run(**config).notes) == []


def test_run_that_is_killed_as_soon_as_it_has_set_the_offsets_of_the_group_back_is_named(sink, produce, monkeypatch):
    """Group and state had the offsets of the database then, and nothing told why."""
    two_runs(sink, produce)
    restore(sink)
    monkeypatch.setattr(SinkRun, "_begin", Mock(side_effect=Crashed))
    with pytest.raises(Crashed):
        sink.run()
    monkeypatch.undo()
    assert sink.offsets() == {0: 10, 1: 10}
    assert len(set_back(sink.run().notes)) == 2
    assert rows(sink) == ALL


def test_database_that_goes_back_between_the_plan_and_the_tasks_fails_the_run_and_loses_nothing(sink, produce):
    """Tasks wrote from the planned offset on, and the records before it were missing, without a word."""
    two_runs(sink, produce)
    error = replace(sink, engine=HookedEngine(before=lambda: restore(sink)), events=[]).try_run().error
    assert error is not None and (error["code"], error["retriable"]) == ("jdbc.set_back", True)
    assert f"The offset of {sink.topic}-0 in airflow_connect_offsets was 20 when" in error["message"]
    assert rows(sink) == [*range(10), *range(100, 110)]
    report = sink.run()  # Its epoch is beyond those of tasks that have found the earlier state.
    assert rows(sink) == ALL
    assert len(set_back(report.notes)) == 2


def test_offset_that_an_operator_has_set_is_named_also_after_a_killed_run(sink, kafka, produce, monkeypatch):
    """The killed run had no report, and the next one finds nothing wrong with the database any more."""
    two_runs(sink, produce)
    restore(sink)
    commit(sink, kafka.bootstrap, 15)
    Steps(monkeypatch).crash("audited")
    with pytest.raises(Crashed):
        sink.run()
    (first, second) = set_back(sink.run().notes)
    assert rows(sink) == [n for n in ALL if n not in range(10, 15)]
    assert f"had the records of {sink.topic}-0 up to 10 only" in first
    assert "the records in [10, 15) are NOT written" in first and "NOT written" not in second


def test_record_that_a_killed_run_could_not_write_before_the_backup_is_tried_again(
    sink, kafka, produce, make_topic, monkeypatch
):
    """The next run wrote it, after the backup; the restored offset is beyond it."""
    letters = make_topic()
    config = {
        "errors_tolerance": "all", "errors_deadletterqueue_topic_name": letters,
        "errors_deadletterqueue_topic_replication_factor": "1",
    }  # fmt: skip
    produce(sink.topic, numbers(0, 10, 0))
    sink.run(**config)
    sink.target.execute(f"ALTER TABLE {sink.table} ADD CONSTRAINT no_twelve CHECK (n <> 12)")
    produce(sink.topic, numbers(10, 15, 0))
    Steps(monkeypatch).crash("audited")
    with pytest.raises(Crashed):
        sink.run(**config)
    back_up(sink)
    sink.target.execute(f"ALTER TABLE {sink.table} DROP CONSTRAINT no_twelve")
    sink.run(**config)
    produce(sink.topic, numbers(15, 20, 0))
    sink.run(**config)
    assert rows(sink) == [*range(20)]
    restore(sink)
    produce(sink.topic, numbers(20, 21, 0))

    (note,) = set_back(sink.run(**config).notes)

    assert rows(sink) == [*range(21)]
    assert f"{sink.topic}-0 up to 12, but earlier runs have committed 20" in note
    assert every_record(kafka.bootstrap, letters) == []
