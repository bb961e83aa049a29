"""A failover to a copy of the database that knows of the last run, but lacks what it wrote last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.integration.connectors.jdbc.sink.test_set_back import all_tables, back_up, numbers, restore, rows
from tests.support.copies.jdbc_sink import JdbcSink, jdbc_sink
from tests.support.kafka_data import produce_transaction
from tests.support.steps import Crashed, HookedEngine, Steps

pytestmark = pytest.mark.integration

WRITTEN_BEFORE = [*numbers(0, 10, 0), *numbers(100, 110, 1)]
LOST = [*numbers(10, 20, 0), *numbers(110, 113, 1)]


@pytest.fixture(params=["postgresql", "mariadb"])
def sink(request: pytest.FixtureRequest, kafka, make_topic) -> JdbcSink:
    topic = make_topic(partitions=2)
    return jdbc_sink(kafka, request.getfixturevalue(f"{request.param}_database"), topic)


def with_copy(sink: JdbcSink, *, after: Callable[[], None] = lambda: None) -> JdbcSink:
    """Runs whose database is copied when the run has claimed it, before a task begins."""
    return replace(sink, engine=HookedEngine(before=lambda: back_up(sink), after=after), events=[])


def was_set_back(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "was set back since" in note]


@pytest.mark.parametrize("moment", ["before the audit", "after the run", "audited", "manifest.written", "committed"])
def test_records_that_a_copy_lacks_are_written_by_the_next_run(sink, produce, monkeypatch, moment):
    produce(sink.topic, WRITTEN_BEFORE)
    sink.run()
    produce(sink.topic, LOST)
    if moment == "before the audit":
        with_copy(sink, after=lambda: restore(sink)).run()
    elif moment == "after the run":
        with_copy(sink).run()
        restore(sink)
    else:
        Steps(monkeypatch).crash(moment)
        with pytest.raises(Crashed):
            with_copy(sink).run()
        restore(sink)
    produce(sink.topic, numbers(20, 25, 0))

    report = sink.run()

    assert rows(sink) == [*range(25), *range(100, 113)]
    # A run that was killed before its manifest has committed nothing: then the records are simply copied.
    assert len(was_set_back(report.notes)) == (0 if moment == "audited" else 2), report.notes
    produce(sink.topic, numbers(25, 26, 0))
    assert was_set_back(sink.run().notes) == []


def test_offsets_that_stay_behind_those_of_kafka_are_no_earlier_state(sink, kafka, produce):
    """Markers of transactions and records that a transformation drops do not move the offset in the table."""
    config = {
        "transforms": "drop", "transforms_drop_type": "org.apache.kafka.connect.transforms.Filter",
        "transforms_drop_predicate": "empty", "predicates": "empty",
        "predicates_empty_type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }  # fmt: skip
    for first in range(0, 30, 10):
        produce_transaction(kafka.bootstrap, sink.topic, [*numbers(first, first + 10, 0), (0, None, None)], "commit")
        assert was_set_back(sink.run(**config).notes) == []
    assert rows(sink) == list(range(30))


def test_partition_of_which_the_database_has_no_offset_any_more_is_named(sink, produce):
    """Also if the run that finds it fails: its tasks insert an offset, and the next run found nothing wrong."""
    produce(sink.topic, WRITTEN_BEFORE)
    sink.run()
    sink.target.execute(*(f"DELETE FROM {table}" for table in all_tables(sink)))
    produce(sink.topic, [*numbers(10, 12, 0), (0, None, '{"n": null}')])
    assert sink.try_run().error is not None
    report = sink.run(errors_tolerance="all")
    idle, note = (note for note in sorted(report.notes, reverse=True) if "no offset" in note)
    assert f"has found no offset of {sink.topic}-0 in the offsets table, although" in note
    assert "its records up to 10: " in note and "That run began at offset 10." in note
    assert idle.startswith(f"The offsets table has no offset of {sink.topic}-1, although earlier runs have written its")
    assert rows(sink) == [10, 11]
    sink.target.execute(*(f"DELETE FROM {table}" for table in all_tables(sink)))
    produce(sink.topic, numbers(12, 13, 0))
    (note,) = (note for note in sink.run().notes if "no offset" in note)  # The other partition was named before.
    assert f"had no offset of {sink.topic}-0, although earlier runs have written its records up to 13" in note
    produce(sink.topic, numbers(13, 14, 0))
    assert not [note for note in sink.run().notes if "no offset" in note]
    assert rows(sink) == [12, 13]


def test_partition_that_is_newer_than_a_restored_database_is_named_although_it_has_no_new_records(sink, produce):
    produce(sink.topic, numbers(0, 10, 0))
    sink.run()
    back_up(sink)
    produce(sink.topic, LOST)
    sink.run()
    restore(sink)
    produce(sink.topic, numbers(20, 25, 0))
    report = sink.run()
    assert len(was_set_back(report.notes)) == 1
    (note,) = (note for note in report.notes if "no offset" in note)
    assert f"no offset of {sink.topic}-1, although earlier runs have written its records up to 3: " in note
