"""With which schema a run begins: what the last run kept, else what the last file tells, else none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.connectors.files.shared.publishing.schemas_between_runs import before
from airflow_connect.connectors.files.shared.publishing.state_document import KeptState
from airflow_connect.documents.run import Plan, TaskPlan
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.planning.planner import Positions
from airflow_connect.runtime.driver.sink.run_documents import planned_run

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class Driver:
    """A sink whose files tell schemas."""

    def __init__(self, in_files: Mapping[TopicPartition, str] | None) -> None:
        self.in_files = in_files
        self.asked: list[TopicPartition] = []

    def last_schemas(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, str] | None:
        self.asked = list(partitions)
        return None if self.in_files is None else {tp: self.in_files[tp] for tp in self.asked if tp in self.in_files}


def begun(driver: Any, state: ConnectorState, *starts: int, topic_id: str = "1") -> Mapping[TopicPartition, str]:
    ranges = tuple(OffsetRange("t", number, start, start + 5) for number, start in enumerate(starts))
    run = planned_run(state, Plan("c", "r", 0, (TaskPlan(0, ranges),), {"t": topic_id}), Positions(ranges, {}, ()))
    known = KeptState.from_json(run.kept).without_topics_of(run)
    return before(known.value_schemas, run, driver.last_schemas)


def known(**committed: int) -> ConnectorState:
    offsets = {TopicPartition("t", int(name[1:])): offset for name, offset in committed.items()}
    kept = KeptState(value_schemas={T0: "kept", T1: "kept"}).to_json()
    return ConnectorState("c", "r", CLOSED, 0, offsets, {"t": "1"}, kept=kept)


def test_what_the_last_run_kept_wins_and_files_are_asked_for_the_rest() -> None:
    driver = Driver({T0: "file", T2: "file"})
    assert begun(driver, known(t0=7, t1=7), 7, 7, 0, 0) == {
        T0: "kept",
        T1: "kept",
        T2: "file",
        TopicPartition("t", 3): "null",
    }
    assert driver.asked == [T2, TopicPartition("t", 3)]


def test_a_sink_that_begins_without_schemas_gets_none() -> None:
    assert begun(Driver(None), known(t0=7), 7) == {}


@pytest.mark.parametrize(("start", "topic_id"), [(6, "1"), (7, "2")], ids=["set back", "made anew"])
def test_what_is_read_again_begins_without_a_schema(start: int, topic_id: str) -> None:
    driver = Driver({T0: "file"})
    assert begun(driver, known(t0=7), start, topic_id=topic_id) == {T0: "null"}
    assert driver.asked == []
