"""Records that the server refuses for documents of another partition, or of an earlier topic of the same name."""

from __future__ import annotations

import json

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink_state import CopiedRun, PlannedRun
from airflow_connect.connectors.search.mixed import are_mixed, at_plan, state_after
from airflow_connect.documents.run import PartitionReport
from tests.support.copies.search_sink import SearchSink, search_sink
from tests.support.kafka_data import add_partitions, create_topic, delete_topic

NAMED = "may be of another partition, or of an earlier topic"


def users(partition, names, value):
    return [(partition, name, json.dumps({"v": value})) for name in names]


def sink_of(kafka, opensearch, topic) -> SearchSink:
    sink = search_sink(kafka, opensearch, topic, key_ignore="false")
    sink.config["key.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    return sink


def named(report) -> list[str]:
    return [note for note in report.notes if NAMED in note]


@pytest.mark.integration
@pytest.mark.parametrize("end", ["", "ü"], ids=["in columns", "record by record"])
@pytest.mark.parametrize("reverses", [False, True], ids=["equal offsets", "lower offsets"])
def test_records_of_a_topic_that_was_created_again_do_not_count_as_written(
    kafka, opensearch, make_topic, produce, reverses, end
):
    """Records with the same keys in the same order have the versions of the old documents: 10 of 10 were missing."""
    topic = make_topic()
    sink = sink_of(kafka, opensearch, topic)
    names = [f"k{n}{end}" for n in range(10)]
    produce(topic, users(0, names, "old"))
    assert sink.run().records == 10
    delete_topic(kafka.bootstrap, topic)
    create_topic(kafka.bootstrap, topic)
    produce(topic, users(0, reversed(names) if reverses else names, "new"))

    report = sink.run(offsets_out_of_range="earliest")

    missing = 5 if reverses else 10
    assert [value["v"] for value in sink.documents().values()].count("old") == missing
    assert (report.records, report.filtered) == (10 - missing, missing)
    (note,) = named(report)
    assert note.startswith(f"{missing} records were NOT written to {sink.bucket}, and counted as filtered")
    assert f"{topic}-0@0" in note


@pytest.mark.integration
def test_records_of_a_partition_that_was_added_do_not_count_as_written_in_any_run(
    kafka, opensearch, make_topic, produce
):
    """Their offsets are those of other records; the next runs see no change of the topic any more."""
    topic = make_topic()
    sink = sink_of(kafka, opensearch, topic)
    names = [f"k{n}" for n in range(20)]
    produce(topic, users(0, names, "old"))
    sink.run()
    add_partitions(kafka.bootstrap, topic, 2)
    assert sink.run().status == "empty"  # It is the run that sees the change.
    produce(topic, users(1, names[:10], "new"))
    report = sink.run()
    assert (report.records, report.filtered, len(named(report))) == (0, 10, 1)
    produce(topic, users(1, names[12:], "new"))
    report = sink.run()  # Of the versions 12 to 19, the first six are below the end of the partition.
    assert (report.records, report.filtered, len(named(report))) == (0, 8, 1)
    assert {value["v"] for value in sink.documents().values()} == {"old"}


@pytest.mark.integration
@pytest.mark.parametrize("other", ["k", "ü"], ids=["in columns", "record by record"])
def test_later_request_does_not_overtake_an_earlier_one_of_a_topic_that_has_grown(
    kafka, opensearch, make_topic, produce, other
):
    """A record that a faster request had made old would look like one of another partition."""
    topic = make_topic()
    sink = sink_of(kafka, opensearch, topic)
    produce(topic, users(0, ["a"], 0))
    sink.run()
    add_partitions(kafka.bootstrap, topic, 2)
    produce(topic, [one for n in range(600) for one in users(0, ["a", other], n)])
    report = sink.run(batch_size="7", max_in_flight_requests="5")
    assert (report.records, report.filtered, named(report)) == (1200, 0, [])
    assert sink.documents()["a"] == {"v": 599}


@pytest.mark.integration
def test_topic_that_was_created_again_fills_another_index_as_any_other(kafka, opensearch, make_topic, produce):
    topic = make_topic()
    sink = sink_of(kafka, opensearch, topic)
    produce(topic, users(0, ["a", "b"], "old"))
    sink.run()
    delete_topic(kafka.bootstrap, topic)
    create_topic(kafka.bootstrap, topic)
    produce(topic, users(0, ["a", "b"], "new"))
    sink.target.request("DELETE", f"/{sink.bucket}")
    sink.target.request("PUT", f"/{sink.bucket}", {"settings": {"number_of_replicas": 0}})
    assert sink.run(offsets_out_of_range="earliest").records == 2
    sink.set_offsets({0: 0})
    report = sink.run()  # Records that are written again.
    assert (report.records, report.filtered, named(report)) == (2, 0, [])
    assert {value["v"] for value in sink.documents().values()} == {"new"}


def planned(kept, partitions, gone=()) -> PlannedRun:
    every = tuple(TopicPartition("t", number) for number in range(partitions))
    return PlannedRun(kept=kept, partitions=every, gone=frozenset(gone))


FILLED = {"v": 1, "filled": {"i": ["t"], "other": ["u"]}, "indices": {"i": "id1"}}
ONE = {**FILLED, "partitions": {"t": 1}}


def kept_after(plan: PlannedRun, index: str) -> dict:
    reports = [PartitionReport(OffsetRange("t", 0, 0, 1), 1, 1, 1, 1, details={"indices": {"i": index}})]
    return state_after(CopiedRun(plan, reports=reports), FILLED)


def test_topic_that_has_grown_is_remembered_also_with_another_index():
    assert at_plan(planned(FILLED, 1)).kept == ONE
    assert at_plan(planned(ONE, 1)).kept is None and at_plan(planned(ONE, 1)).for_tasks == {}
    state = at_plan(planned(ONE, 3))
    assert state.kept == {**FILLED, "partitions": {"t": 3}, "grown": ["t"]}
    assert at_plan(planned(state.kept, 3)).kept is None
    assert at_plan(planned(state.kept, 3)).for_tasks == state.for_tasks == {"v": 1, "grown": ["t"]}
    assert kept_after(planned(state.kept, 3), "id2") == {"v": 1, "partitions": {"t": 3}, "grown": ["t"]}
    assert are_mixed(state.for_tasks, "t", "i", ["id2"]) and not are_mixed(state.for_tasks, "u", "other", ["id3"])
    assert at_plan(planned(state.kept, 2, gone=["t"])).for_tasks == {"v": 1, "recreated": {"t": {"i": ["id1"]}}}


def test_topic_that_grows_while_the_connector_does_not_copy_it_is_noticed_later():
    without = at_plan(PlannedRun(kept=ONE, partitions=(TopicPartition("u", 0),)))
    assert without.kept == {**ONE, "partitions": {"t": 1, "u": 1}}
    kept = {"v": 1, "filled": {"other": ["u"]}, "partitions": {"t": 1, "u": 1}}  # filled.py has forgotten it.
    assert at_plan(PlannedRun(kept=kept, partitions=(TopicPartition("u", 0),))).kept is None
    again = at_plan(planned(kept, 2))
    assert again.for_tasks == {"v": 1, "grown": ["t"]} and are_mixed(again.for_tasks, "t", "i", ["id1"])


def test_topic_that_was_created_again_is_remembered_until_its_target_is_another_index():
    state = at_plan(planned(ONE, 1, gone=["t"]))
    assert state.for_tasks == {"v": 1, "recreated": {"t": {"i": ["id1"]}}}
    assert state.kept == {**ONE, "recreated": {"t": {"i": ["id1"]}}}
    assert [are_mixed(state.for_tasks, "t", "i", ids) for ids in (["id1"], [], ["id2"])] == [True, True, False]
    assert kept_after(planned(state.kept, 1), "id1") == {"v": 1, "partitions": {"t": 1}, **state.for_tasks}
    assert kept_after(planned(state.kept, 1), "id2") == {"v": 1, "partitions": {"t": 1}}


def test_document_of_another_class_is_not_read():
    assert at_plan(planned({"v": 2, "filled": {"i": ["t"]}}, 3)).kept is None


@pytest.mark.integration
@pytest.mark.parametrize(("first", "says"), [(0, "has the same version"), (5, "with a higher version was in")])
def test_note_about_repeated_records_names_partitions_as_a_reason(kafka, opensearch, make_topic, produce, first, says):
    """Producers of different clients hash keys in different ways: no run has seen the topic with fewer partitions."""
    topic = make_topic(partitions=2)
    sink = sink_of(kafka, opensearch, topic)
    names = [f"k{n}" for n in range(10)]
    produce(topic, users(0, names, "old"))
    sink.run()
    produce(topic, users(1, [*names[first:], *(f"other{n}" for n in range(10))], "new"))
    report = sink.run()
    assert [value["v"] for value in sink.documents().values()].count("old") == 10
    (note,) = (note for note in report.notes if says in note)
    assert note.startswith(f"{10 - first} records were not written") and f"{topic}-1@0" in note
    assert "records of a key are in several partitions" in note and "missing" in note
