"""A database that goes back to an earlier state: a backup that is restored, a failover to a replica that was behind."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.errors import RetriableError
from airflow_connect.runtime.driver.entry import reset_offsets, set_offsets
from tests.support.copies.jdbc_sink import JdbcSink, jdbc_sink
from tests.support.kafka_data import delete_records
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration


@pytest.fixture(params=["postgresql", "mariadb"])
def sink(request: pytest.FixtureRequest, kafka, make_topic) -> JdbcSink:
    topic = make_topic(partitions=2)
    return jdbc_sink(kafka, request.getfixturevalue(f"{request.param}_database"), topic)


def numbers(first: int, end: int, partition: int) -> list[tuple[int, None, str]]:
    return [(partition, None, json.dumps({"n": n})) for n in range(first, end)]


def back_up(sink: JdbcSink) -> None:
    sink.target.execute(*(f"CREATE TABLE backup_{n} AS SELECT * FROM {t}" for n, t in enumerate(all_tables(sink))))


def restore(sink: JdbcSink) -> None:
    for number, table in enumerate(all_tables(sink)):
        sink.target.execute(f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM backup_{number}")


def all_tables(sink: JdbcSink) -> list[str]:
    return [sink.table, "airflow_connect_offsets"]


def rows(sink: JdbcSink) -> list[int]:
    return sorted(value["n"] for value in sink.values())


def test_records_that_a_restored_database_lacks_are_written_again_once(sink, produce):
    produce(sink.topic, [*numbers(0, 10, 0), *numbers(100, 110, 1)])
    assert sink.run().records == 20
    back_up(sink)
    produce(sink.topic, [*numbers(10, 20, 0), *numbers(110, 113, 1)])
    assert sink.run().records == 13
    restore(sink)
    produce(sink.topic, numbers(20, 25, 0))  # Partition 1 has nothing new.

    report = sink.run()

    assert rows(sink) == [*range(25), *range(100, 113)]
    assert report.records == 18
    of_target = [note for note in report.notes if "was set back since" in note]
    assert len(of_target) == 2
    assert f"{sink.topic}-0 up to 10, but earlier runs have committed 20" in of_target[0]
    produce(sink.topic, numbers(25, 26, 0))
    assert [note for note in sink.run().notes if "set back" in note] == []
    assert rows(sink) == [*range(26), *range(100, 113)]


def test_run_that_died_before_its_commit_is_named_without_files(sink, produce, monkeypatch):
    produce(sink.topic, numbers(0, 10, 0))
    Steps(monkeypatch).crash("manifest.written")
    with pytest.raises(Crashed):
        sink.run()
    with pytest.raises(RetriableError, match="has not committed its offsets"):
        reset_offsets(sink.spec())
    sink.run()
    (warning,) = sink.warnings()
    assert warning.endswith(" ended between manifest and commit; committing its offsets.")
    assert rows(sink) == list(range(10))


def test_records_that_kafka_no_longer_has_fail_the_run_with_both_offsets(sink, kafka, produce):
    produce(sink.topic, numbers(0, 10, 0))
    sink.run()
    back_up(sink)
    produce(sink.topic, numbers(10, 20, 0))
    sink.run()
    restore(sink)
    delete_records(kafka.bootstrap, sink.topic, 0, 15)
    produce(sink.topic, numbers(20, 25, 0))
    error = sink.try_run().error
    assert error is not None and error["code"] == "offset.out_of_range"
    assert f"{sink.topic}-0 up to 10, but earlier runs have committed 20" in error["message"]
    assert "is outside the log, which holds [15, 25)" in error["message"]
    assert rows(sink) == list(range(10))


def commit(sink: JdbcSink, bootstrap: str, offset: int) -> None:
    """As another client does."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"connect-{sink.name}"})
    consumer.commit(offsets=[TopicPartition(sink.topic, 0, offset)], asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("offset", [15, 5], ids=["beyond the database", "before it"])
def test_offset_that_an_operator_has_set_after_a_restore_leaves_nothing_out_without_a_note(
    sink, kafka, produce, offset
):
    """The operator knows the time of the backup only about: what was between both offsets was lost without a word."""
    produce(sink.topic, numbers(0, 10, 0))
    sink.run()
    back_up(sink)
    produce(sink.topic, numbers(10, 20, 0))
    sink.run()
    restore(sink)
    commit(sink, kafka.bootstrap, offset)
    produce(sink.topic, numbers(20, 22, 0))

    report = sink.run()

    named = [note for note in report.notes if "was set back since" in note]
    if offset < 10:
        assert rows(sink) == list(range(22)) and named == []
        return
    assert rows(sink) == [*range(10), *range(15, 22)]
    (note,) = named
    assert f"has the records of {sink.topic}-0 up to 10, and earlier runs had committed 20" in note
    assert "the records in [10, 15) are NOT written" in note and note.endswith("set the offset of the connector to 10.")
    produce(sink.topic, numbers(22, 23, 0))
    assert [one for one in sink.run().notes if "set back" in one] == []


def test_offset_that_an_operator_has_set_in_kafka_is_not_undone(sink, kafka, produce):
    produce(sink.topic, numbers(0, 10, 0))
    sink.run()
    produce(sink.topic, numbers(10, 20, 0))
    commit(sink, kafka.bootstrap, 15)
    report = sink.run()
    assert rows(sink) == [*range(10), *range(15, 20)]
    assert [note for note in report.notes if "set back" in note] == []


def test_offset_that_is_set_back_in_kafka_alone_is_named_for_what_it_does(sink, kafka, produce):
    """The report said that the records are copied again, and that a run had died: neither was so."""
    produce(sink.topic, numbers(0, 10, 0))
    sink.run()
    produce(sink.topic, numbers(10, 20, 0))
    commit(sink, kafka.bootstrap, 15)
    sink.run()
    commit(sink, kafka.bootstrap, 10)

    report = sink.run()

    assert rows(sink) == [*range(10), *range(15, 20)]
    assert not [note for note in report.notes if "copied again" in note or "ended before its commit" in note]
    of_group, of_table = [note for note in report.notes if "NOT written again" in note]
    assert "another client has changed it. The 10 offsets in [10, 20) are NOT written again where" in of_group
    assert f"has the offset 20 of {sink.topic}-0, where the last run has left it" in of_table
    set_offsets(sink.spec(), {f"{sink.topic}-0": 10})
    sink.run()
    assert rows(sink) == sorted([*range(20), *range(15, 20)])  # Plain inserts: what was asked for.


@pytest.mark.parametrize("policy", ["earliest", "latest", "nearest"])
def test_end_of_a_log_that_is_lost_is_that_of_the_database_too_once_a_policy_has_decided(sink, kafka, produce, policy):
    """Records that came in the place of lost ones had offsets that the database had: they counted as written."""
    produce(sink.topic, numbers(0, 5, 0))
    sink.run()
    # As if five more had been copied, and Kafka had lost them with its only replica.
    sink.target.execute("UPDATE airflow_connect_offsets SET next_offset = 10")
    commit(sink, kafka.bootstrap, 10)
    error = sink.try_run().error
    assert error is not None and error["code"] == "offset.out_of_range"
    report = sink.run(offsets_out_of_range=policy)
    assert not [note for note in report.notes if "ended before its commit" in note]
    produce(sink.topic, numbers(5, 12, 0))
    sink.run()
    again = range(5) if policy == "earliest" else ()
    assert rows(sink) == sorted([*range(12), *again])
