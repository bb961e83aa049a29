"""Documents have the form that they always had, and one that is damaged is refused with the name of its member."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.api.sink_state import StateAfter
from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.files.shared.publishing.time_progress import (
    PartitionTimes,
    TimeDirectory,
    TimeProgress,
)
from airflow_connect.documents.run import PartitionReport, Plan, RunReport, TaskPlan, TaskReport
from airflow_connect.documents.run_detail import RunDetail
from airflow_connect.documents.run_lag import RunLag
from airflow_connect.documents.run_progress import RunProgress
from airflow_connect.documents.source_run import SourceTaskReport
from airflow_connect.errors import StateError
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.hooks.connect_cluster_watch import Goal
from airflow_connect.runtime.driver_service.contract import RunNews, RunView
from airflow_connect.runtime.spec import RunSpec

KINDS: dict[str, type[JsonDocument]] = {
    kind.__name__: kind
    for kind in (
        OffsetRange, StagedFile, LeftoverPattern, StateAfter, PartitionReport, TaskPlan, TaskReport, SourceTaskReport,
        Plan, RunReport, RunDetail, RunLag, RunProgress, Manifest, ConnectorState, PartitionTimes, TimeDirectory,
        TimeProgress, RunSpec, RunView, RunNews, Goal,
    )
}  # fmt: skip
RECORDED: dict[str, Any] = dict(map(json.loads, Path("tests/data/run_documents.jsonl").read_text().splitlines()))
"""Written by the methods that each class had before there was a codec: every member has a value."""


@pytest.mark.parametrize("name", KINDS)
def test_recorded_document_is_read_and_written_byte_for_byte(name: str) -> None:
    document = KINDS[name].from_json(RECORDED[name])
    assert json.dumps(document.to_json()) == json.dumps(RECORDED[name])
    assert KINDS[name].from_json(document.to_json()) == document
    assert document.to_json() == RECORDED[name]  # lists, where the fields are tuples


def test_every_kind_is_recorded() -> None:
    assert RECORDED.keys() == KINDS.keys()


DAMAGED: list[tuple[str, dict[str, Any], str]] = [
    ("OffsetRange", {"start": "x"}, "Expected `int`, got `str` - at `$.start`"),
    ("StagedFile", {"size_bytes": None}, "Expected `int`, got `null` - at `$.size_bytes`"),
    ("StagedFile", {"color": 1}, "this release does not know its member color"),
    ("TaskReport", {"dead_letters": {}}, "Expected `array`, got `object` - at `$.dead_letters`"),
    ("TaskReport", {"files": [7]}, "A StagedFile cannot be read: it is of type int, not an object"),
    ("TaskReport", {"files": [{"key": "k"}]}, "A StagedFile cannot be read: it has no member end"),
    ("TaskReport", {"partitions": [{"lost": 1}]}, "A PartitionReport cannot be read: it has no member"),
    ("Plan", {"at_latest": [["t"], 3]}, "its member at_latest is not a list of rows"),
    ("Plan", {"at_latest": [["t", 3]]}, "Expected `array` of length 2, got 1"),
    ("RunDetail", {"tasks": [[1, 2]]}, "Expected `array` of length 7, got 2 - at `$.tasks[0]`"),
    ("Manifest", {"also_commit": [["t", 0, "x"]]}, "Expected `int`, got `str` - at `$.also_commit[...]`"),
    ("Manifest", {"partitions": None}, "Expected `array`, got `null` - at `$.partitions`"),
    ("ConnectorState", {"begun": {"t": ["id"]}}, "Expected `array` of length 3, got 1 - at `$.begun[...]`"),
    ("RunView", {"state": "sleeping"}, "Invalid enum value 'sleeping' - at `$.state`"),
    ("RunSpec", {"bound": {}}, "this release does not know its member bound"),
]


@pytest.mark.parametrize(("name", "change", "message"), DAMAGED)
def test_damaged_document_is_refused_with_the_member_and_what_was_expected(
    name: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(StateError) as refused:
        KINDS[name].from_json({**RECORDED[name], **change})
    assert message in refused.value.message
    assert refused.value.suggestion


NEEDED = {
    "Manifest": ["files", "partitions", "also_commit", "dead_letters", "config", "counts", "topic_ids"],
    "ConnectorState": ["committed", "phase", "leftovers", "topic_ids", "bytes_per_record"],
    "TaskReport": ["dead_letters", "files", "failed", "failed_places", "host", "timings_ms"],
    "PartitionReport": ["filtered", "dead_lettered", "left", "stopped_early"],
    "SourceTaskReport": ["offsets", "written", "discarded"],
    "Plan": ["tasks", "topic_ids", "notes"],
    "TaskPlan": ["ranges", "max_bytes", "max_seconds"],
    "StateAfter": ["kept", "complete", "notes"],
    "LeftoverPattern": ["ranges", "probe_prefix"],
}


@pytest.mark.parametrize(("name", "member"), [(name, member) for name, every in NEEDED.items() for member in every])
def test_missing_member_is_named_and_never_taken_as_empty(name: str, member: str) -> None:
    lacking = {key: value for key, value in RECORDED[name].items() if key != member}
    with pytest.raises(StateError, match=f"A {name} cannot be read: it has no member {member}"):
        KINDS[name].from_json(lacking)


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_what_is_no_object_is_refused(data: Any) -> None:
    with pytest.raises(StateError, match=f"it is of type {type(data).__name__}, not an object"):
        TaskPlan.from_json(data)


def test_members_of_a_newer_release_are_dropped_and_numbers_may_be_text() -> None:
    data = MappingProxyType({"topic": "t", "partition": "3", "start": 0, "end": 2**70, "leader": 1})
    assert OffsetRange.from_json(data) == OffsetRange("t", 3, 0, 2**70)


def test_document_inside_another_one_is_read_and_written_in_its_own_form() -> None:
    state = json.loads(json.dumps(RECORDED["ConnectorState"]))
    for pattern in state["leftovers"]:
        del pattern["sweeps"]
    assert {pattern.sweeps for pattern in ConnectorState.from_json(state).leftovers} == {1}
    report = TaskReport(0, 0, (), (StagedFile("k", "t", 0, 0, 1, 1, 5),))
    assert "value_schema" not in report.to_json()["files"][0]


@dataclass(frozen=True, slots=True)
class Filled(JsonDocument):
    LEFT_OUT = frozenset({"places"})

    names: frozenset[str]
    places: dict[TopicPartition, int]
    inner: OffsetRange | None = None


def test_sets_are_sorted_and_mappings_by_tuples_are_rows() -> None:
    filled = Filled(frozenset("ba"), {TopicPartition("t", 1): 5, TopicPartition("s", 0): 4}, OffsetRange("t", 0, 1, 2))
    plain = {
        "names": ["a", "b"],
        "places": [["s", 0, 4], ["t", 1, 5]],
        "inner": {"topic": "t", "partition": 0, "start": 1, "end": 2},
    }
    assert filled.to_json() == plain
    assert Filled.from_json(plain) == filled
    assert Filled(frozenset(), {}).to_json() == {"names": [], "inner": None}


READ_BY_THREADS = """
import sys, threading
from dataclasses import make_dataclass
from airflow_connect.api.json_document import JsonDocument

sys.setswitchinterval(1e-6)
numbers = {f"m{n}": n for n in range(20)}
fields, bases = [(name, int) for name in numbers], (JsonDocument,)
for _ in range(40):
    inner = make_dataclass("Inner", fields, bases=bases)
    outer = make_dataclass("Outer", [*fields, ("inner", inner), ("more", tuple[inner, ...])], bases=bases)
    gate, read = threading.Barrier(8), []

    def work():
        gate.wait()
        read.append(outer.from_json({**numbers, "inner": numbers, "more": [numbers]}).more[0].m7)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [7] * 8, read
print("read")
"""


def test_threads_that_read_a_document_for_the_first_time_do_not_crash() -> None:
    done = subprocess.run([sys.executable, "-c", READ_BY_THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr
