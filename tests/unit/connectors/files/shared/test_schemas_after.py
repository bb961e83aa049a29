"""The schemas with which the next run of a sink begins: what a commit makes of them, and their form in documents."""

from __future__ import annotations

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.connectors.files.shared.publishing.schemas_between_runs import after
from airflow_connect.connectors.files.shared.publishing.state_document import KeptState, TaskState, details_of
from airflow_connect.documents.run import PartitionReport

T0, T1, T2, U0 = (TopicPartition(topic, number) for topic, number in (("t", 0), ("t", 1), ("t", 2), ("u", 0)))


def report(tp: TopicPartition, schema: str = "", written: int = 1, start: int = 0) -> PartitionReport:
    planned = OffsetRange(tp.topic, tp.partition, start, start + 5)
    return PartitionReport(planned, planned.end, planned.end, 5, written, details=details_of(None, schema))


def test_the_last_file_of_a_run_tells_the_schema_and_what_was_known_stays() -> None:
    known = {T0: "old", T1: "old", T2: "old"}
    reports = [report(T0, "new"), report(T1, written=0)]
    assert after(known, {T0: "old", T1: "begun"}, reports) == {T0: "new", T1: "begun", T2: "old"}


def test_a_run_that_wrote_without_telling_the_schema_leaves_it_unknown() -> None:
    assert after({T0: "old", T1: "old"}, {}, [report(T0)]) == {T1: "old"}


def test_of_two_ranges_of_a_partition_the_later_one_counts() -> None:
    assert after({}, {}, [report(T0, "late", start=5), report(T0, "early")]) == {T0: "late"}


def test_documents_hold_each_schema_once_and_come_back() -> None:
    schemas = {T1: "a", T0: "a", U0: "null"}
    kept, told = KeptState(value_schemas=schemas), TaskState(schemas_before=schemas)
    expected = [["a", [["t", 0], ["t", 1]]], ["null", [["u", 0]]]]
    assert kept.to_json()["value_schemas"] == told.to_json()["schemas_before"] == expected
    assert KeptState.from_json(kept.to_json()) == kept
    assert TaskState.from_json(told.to_json()) == told


def test_documents_of_sinks_that_keep_nothing_are_empty() -> None:
    assert KeptState().to_json() == TaskState().to_json() == details_of(None, "") == {}
