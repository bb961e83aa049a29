"""Schemas that a sink goes on with: what a commit makes of them, and their form in documents."""

from __future__ import annotations

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.documents.run import PartitionReport
from airflow_connect.exactly_once.commit import state_after
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.exactly_once.value_schemas import after

T0, T1, T2, U0 = (TopicPartition(topic, number) for topic, number in (("t", 0), ("t", 1), ("t", 2), ("u", 0)))


def report(tp: TopicPartition, schema: str = "", written: int = 1, start: int = 0) -> PartitionReport:
    end = start + 5
    return PartitionReport(OffsetRange(tp.topic, tp.partition, start, end), end, end, 5, written, value_schema=schema)


def test_the_last_file_of_a_run_tells_the_schema_and_what_was_known_stays() -> None:
    known = {T0: "old", T1: "old", T2: "old"}
    reports = [report(T0, "new"), report(T1, written=0)]
    assert after(known, {T0: "old", T1: "begun"}, reports) == {T0: "new", T1: "begun", T2: "old"}


def test_a_run_that_wrote_without_telling_the_schema_leaves_it_unknown() -> None:
    assert after({T0: "old", T1: "old"}, {}, [report(T0)]) == {T1: "old"}


def test_of_two_ranges_of_a_partition_the_later_one_counts() -> None:
    assert after({}, {}, [report(T0, "late", start=5), report(T0, "early")]) == {T0: "late"}


def test_a_commit_keeps_what_its_manifest_says() -> None:
    state = ConnectorState("c", "r1", CLOSED, 0, topic_ids={"t": "1", "u": "2"}, value_schemas={T1: "old", U0: "gone"})
    reports = (report(T0, "new"),)
    manifest = Manifest("c", "r2", 1, (), reports, topic_ids={"t": "1", "u": "3"}, schemas_before={T0: "before"})
    assert state_after(manifest, state).value_schemas == {T0: "new", T1: "old"}


def test_documents_hold_each_schema_once_and_come_back() -> None:
    schemas = {T1: "a", T0: "a", U0: "null"}
    state = ConnectorState("c", "r", CLOSED, 0, value_schemas=schemas)
    manifest = Manifest("c", "r", 0, (), (report(T0, "x"),), schemas_before=schemas)
    expected = [["a", [["t", 0], ["t", 1]]], ["null", [["u", 0]]]]
    assert state.to_json()["value_schemas"] == manifest.to_json()["schemas_before"] == expected
    assert ConnectorState.from_json(state.to_json()) == state
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_documents_without_schemas_do_not_mention_them() -> None:
    state, manifest = ConnectorState("c", "r", CLOSED, 0), Manifest("c", "r", 0, (), (report(T0),))
    assert "value_schemas" not in state.to_json()
    assert "schema" not in str(manifest.to_json())
    assert ConnectorState.from_json(state.to_json()).value_schemas == {}
    assert Manifest.from_json(manifest.to_json()).schemas_before == {}
