"""A run that dies between its manifest and its commit has no report: the next one says what it had found."""

from __future__ import annotations

import pytest

from tests.support.copies.jdbc_sink import jdbc_sink
from tests.support.kafka_data import add_partitions
from tests.support.steps import Crashed, Steps

pytestmark = pytest.mark.integration


def test_notes_of_a_run_that_died_before_its_commit_are_in_the_report_of_the_next_one(
    kafka, postgresql_database, make_topic, produce, monkeypatch
):
    """Its counts were in the manifest, and its notes in no report at all."""
    topic = make_topic(partitions=1)
    sink = jdbc_sink(kafka, postgresql_database, topic, insert_mode="update", pk_mode="record_value", pk_fields="n")
    produce(topic, [(0, None, '{"n": 1, "pad": "x"}')])
    sink.run()
    add_partitions(kafka.bootstrap, topic, 2)
    produce(topic, [(1, None, '{"n": 2, "pad": "x"}')])
    Steps(monkeypatch).crash("manifest.written")
    with pytest.raises(Crashed):
        sink.run()

    notes = [note for note in sink.run().notes if note.startswith("Of run ")]

    assert all(", which ended before its commit: " in note for note in notes)
    assert len([note for note in notes if f"Topic {topic} has 2 partitions, and had 1" in note]) == 1  # of the plan
    assert len([note for note in notes if "1 record" in note and "no row" in note]) == 1  # of a task
    assert not any("writes while it copies" in note for note in notes)  # of the configuration
    assert [note for note in sink.run().notes if note.startswith("Of run ")] == []
