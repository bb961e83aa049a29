"""What a run of Apache's Iceberg sink finds in a control topic, which is a list here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink_roles import SinkGroup
from airflow_connect.api.sink_state import PlannedRun
from airflow_connect.connectors.java import iceberg_runs
from airflow_connect.connectors.java.group import WRITTEN_BEFORE
from airflow_connect.connectors.java.iceberg import Announced, ControlTopic, Placed, TaskOfControlTopic
from airflow_connect.connectors.java.iceberg_events import (
    COMMIT_COMPLETE,
    COMMIT_TO_TABLE,
    DATA_COMPLETE,
    DATA_WRITTEN,
    ControlEvent,
    Table,
)
from airflow_connect.connectors.java.iceberg_names import (
    check_group,
    interval_s,
    tables_of_each_record,
    timeout_s,
    with_defaults,
)
from airflow_connect.connectors.java.iceberg_runs import ControlRun
from airflow_connect.documents.run import PartitionReport
from airflow_connect.errors import ConfigError, TaskFailedError

GROUP = "connect-x"
A, B = Table("lake.a", "a"), Table("lake.b", "b")
PLACE = TopicPartition("t", 0)
RUN = PlannedRun(ranges=(OffsetRange("t", 0, 10, 20),), partitions=(PLACE,))


@dataclass
class Control(ControlTopic):
    """A control topic with one partition. An event's time is its offset."""

    log: list[ControlEvent] = field(default_factory=list)
    first: int = 0
    position: int | None = None
    identity: str = "id"
    exists: bool = True

    def ranges(self) -> dict[int, OffsetRange]:
        return {0: OffsetRange(self.name, 0, self.first, len(self.log))} if self.exists else {}

    def topic_id(self) -> str:
        return self.identity

    def create(self) -> None:
        self.exists = True

    def committed(self) -> dict[int, int]:
        return {} if self.position is None else {0: self.position}

    def commit(self, positions: Mapping[int, int]) -> None:
        self.position = positions[0]

    def events(self, starts: Mapping[int, int]) -> Iterator[Placed]:
        start = max(self.first, starts.get(0, self.first))
        return (Placed(0, at, at, event) for at, event in enumerate(self.log) if at >= start)


def control(*log: ControlEvent, **more: Any) -> Control:
    return Control({}, "control", GROUP, log=list(log), **more)


def written(table: Table, files: int = 1) -> ControlEvent:
    return ControlEvent(DATA_WRITTEN, GROUP, table, files=files, records=files * 5)


def to_table(table: Table) -> ControlEvent:
    return ControlEvent(COMMIT_TO_TABLE, GROUP, table)


def complete(end: int | None) -> ControlEvent:
    return ControlEvent(DATA_COMPLETE, GROUP, ends={PLACE: end})


DONE = ControlEvent(COMMIT_COMPLETE, GROUP)


def test_task_is_done_when_the_coordinator_is_behind_its_last_announcement() -> None:
    topic = control(written(A), complete(10))
    task = TaskOfControlTopic(topic, {"starts": {"0": 0}, "open": {}})
    assert not task.is_done({PLACE: 10}), "the task has got a record at 10, and announced those before"
    topic.log += [written(A), complete(11)]
    topic.position = 3
    assert not task.is_done({PLACE: 10})
    topic.position = 4
    assert task.is_done({PLACE: 10})
    assert task.is_done({}), "no record came"
    earlier = TaskOfControlTopic(topic, {"starts": {"0": 4}, "open": {"0": 5}})
    assert not earlier.is_done({}), "an earlier run has left something"


def test_first_run_begins_before_what_a_killed_one_has_announced() -> None:
    topic = control(written(A), to_table(A), DONE, written(A), written(B, 2))
    run = ControlRun.planned(topic, RUN)
    assert topic.position == 3
    assert run.for_tasks() == {"starts": {"0": 5}, "open": {"0": 5}}
    assert any("3 files with 15 records" in note for note in run.notes)


def test_first_run_begins_at_the_end_if_nothing_is_open() -> None:
    topic = control(written(A), to_table(A), DONE)
    assert ControlRun.planned(topic, RUN).for_tasks() == {"starts": {"0": 3}, "open": {}}
    assert topic.position == 3


def test_missing_topic_is_created_only_if_there_is_something_to_copy() -> None:
    topic = control(exists=False)
    assert ControlRun.planned(topic, PlannedRun()).for_tasks() == {"starts": {}, "open": {}}
    assert not topic.exists
    ControlRun.planned(topic, RUN)
    assert topic.exists


def test_files_that_no_commit_follows_are_left_out() -> None:
    topic = control(position=0)
    run = ControlRun.planned(topic, RUN)
    topic.log += [written(A), written(B, 2), to_table(A), DONE]
    topic.position = 4
    with pytest.raises(TaskFailedError, match="2 files with 10 records of this run") as caught:
        run.verify()
    assert caught.value.code == "java.left_out"
    assert "2 files of lake.b (uuid b)" in caught.value.message


def test_files_that_no_coordinator_has_read_of_are_no_end() -> None:
    topic = control(position=0)
    run = ControlRun.planned(topic, RUN)
    topic.log += [written(A)]
    with pytest.raises(TaskFailedError, match="1 file with 5 records") as caught:
        run.verify()
    assert caught.value.code == "java.ends_too_early"


def test_files_of_an_earlier_run_may_be_in_their_table_already() -> None:
    topic = control(written(A), position=0)
    run = ControlRun.planned(topic, RUN)
    topic.log += [written(B), to_table(B), DONE]
    topic.position = 4
    (note,) = run.verify()
    assert "1 file of lake.a (uuid a)" in note


@pytest.mark.parametrize("more", [{"identity": "another"}, {"position": 9}])
def test_topic_that_was_made_again_is_refused(more: dict[str, Any]) -> None:
    kept = {"topic": "control", "topic_id": "id", "ends": {"0": 9}, "offsets": {"t-0": 10}}
    run = PlannedRun(kept=kept, ranges=RUN.ranges, partitions=RUN.partitions)
    with pytest.raises(TaskFailedError, match="was deleted and created again") as caught:
        ControlRun.planned(control(DONE, **{"position": 0, **more}), run)
    assert caught.value.code == "java.control_offsets"


@pytest.mark.parametrize(("end", "now", "is_refused"), [(3, 10, False), (1, 10, False), (1, 12, True)])
def test_deleted_events_matter_if_offsets_have_moved_since_the_last_run(
    monkeypatch: pytest.MonkeyPatch, end: int, now: int, is_refused: bool
) -> None:
    topic = control(DONE, DONE, DONE, DONE, first=3, position=1)
    topic.__dict__["admin"] = None
    monkeypatch.setattr(iceberg_runs.consumer_group, "read_committed_offsets", lambda *_: {PLACE: now})
    kept = {"topic": "control", "topic_id": "id", "ends": {"0": end}, "offsets": {"t-0": 10}}
    run = PlannedRun(kept=kept, ranges=RUN.ranges, partitions=RUN.partitions)
    if not is_refused:
        ControlRun.planned(topic, run)
        assert topic.position == 3
        return
    with pytest.raises(TaskFailedError, match="t-0 from 10 to 12") as caught:
        ControlRun.planned(topic, run)
    assert caught.value.code == "java.control_offsets"


def test_deleted_events_are_named_if_nothing_is_known_of_earlier_runs() -> None:
    topic = control(DONE, DONE, first=2, position=1)
    assert any("control-0 before 2" in note for note in ControlRun.planned(topic, RUN).notes)


def test_configuration_gets_what_the_file_of_a_worker_has() -> None:
    group = SinkGroup(GROUP, java={"bootstrap.servers": "b:9092", "sasl.mechanism": "PLAIN", "group.id": "no"})
    added = with_defaults({"name": "x"}, group)
    assert added == {
        "name": "x",
        "iceberg.control.commit.interval-ms": "30000",
        "iceberg.kafka.bootstrap.servers": "b:9092",
        "iceberg.kafka.sasl.mechanism": "PLAIN",
        "iceberg.kafka.session.timeout.ms": "20000",
    }
    own = {"name": "y", "iceberg.kafka.bootstrap.servers": "c:1", "iceberg.control.commit.interval-ms": "5"}
    assert with_defaults(own, group) == {**own, "iceberg.connect.group-id": GROUP}


def test_group_of_another_name_is_refused() -> None:
    check_group({"iceberg.connect.group-id": GROUP}, GROUP)
    with pytest.raises(ConfigError, match="another") as caught:
        check_group({"iceberg.connect.group-id": "another"}, GROUP)
    assert (caught.value.code, caught.value.config_path) == ("java.group_id", "iceberg.connect.group-id")


def test_within_a_partition_no_clock_decides_what_was_committed() -> None:
    """The coordinator's machine is an hour behind that of the task."""
    announced, commit = Placed(0, 1, 3_600_000, written(A)), Placed(0, 2, 0, to_table(A))
    found = Announced((announced,), {A: {0: commit}}, {0: Placed(0, 3, 0, DONE)})

    assert (found.left_out(), found.incomplete()) == ((), ())
    before = Announced((announced,), {A: {0: Placed(0, 0, 7_200_000, to_table(A))}})
    assert (before.left_out(), before.incomplete()) == ((announced,), (announced,))
    elsewhere = Announced((announced,), {A: {1: Placed(1, 0, 3_600_001, to_table(A))}})
    assert elsewhere.left_out() == ()


@pytest.mark.parametrize(
    ("read", "key"),
    [(interval_s, "iceberg.control.commit.interval-ms"), (timeout_s, "iceberg.control.commit.timeout-ms")],
)
def test_times_that_are_no_numbers_are_named(read: Any, key: str) -> None:
    assert (read({}), read({key: "1500"})) == (30.0, 1.5)
    with pytest.raises(ConfigError, match=f"{key}=5 min is not a number of milliseconds"):
        read({key: "5 min"})


def counted(count: int, tables: int | None, **details: Any) -> tuple[str, ...]:
    """What a run says that has passed so many records to the plugin, and has found files with 15."""
    topic = control(written(A, 7), position=1)
    run = ControlRun.planned(topic, RUN)
    topic.log += [written(A), written(B, 2), to_table(A), to_table(B), DONE]
    topic.position = len(topic.log)
    run.verify()
    part = PartitionReport(OffsetRange("t", 0, 10, 20), 20, 20, count, count, details=details)
    return run.counted([part], tables)


def test_records_that_are_in_no_file_are_counted() -> None:
    assert counted(15, 1) == ()
    (said,) = counted(16, 1)
    assert said.startswith("1 record of the 16 that the plugin got is in no table: its files have 15 rows. It leaves")
    (said,) = counted(9, 2)
    assert said.startswith(
        "2 records of the 9 that the plugin got are in no table: its files have 15 rows in 2 tables."
    )
    (said,) = counted(20, None)
    assert said.startswith("At least 5 records of the 20 that the plugin got are in no table")
    assert counted(10, None) == (), "a record may go to several tables"


def test_more_rows_than_records_are_told() -> None:
    (said,) = counted(14, 1)
    assert said.startswith("The files of the plugin have 15 rows, but it got only 14 records")


def test_records_are_not_counted_if_some_were_written_before() -> None:
    (said,) = counted(3, 1, **{WRITTEN_BEFORE: 15})
    assert "was not counted: of t-0, some were written before" in said


@pytest.mark.parametrize(
    ("config", "tables"),
    [
        ({"iceberg.tables": "lake.a"}, 1),
        ({"iceberg.tables": "lake.a, lake.b"}, 2),
        ({"iceberg.tables": "lake.a", "iceberg.tables.route-field": "to"}, 1),
        ({"iceberg.tables": "lake.a,lake.b", "iceberg.tables.route-field": "to"}, None),
        ({"iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "to"}, 1),
    ],
)
def test_number_of_tables_that_a_record_goes_to(config: dict[str, str], tables: int | None) -> None:
    assert tables_of_each_record(config) == tables
