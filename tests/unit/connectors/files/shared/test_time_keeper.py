"""Watermarks, boundaries and directories of a topic through several runs, without servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.files.shared.publishing import time_keeper
from airflow_connect.connectors.files.shared.publishing.time_keeper import StorageTimeKeeper
from airflow_connect.connectors.files.shared.publishing.time_progress import (
    CopiedPartition,
    CopiedTimes,
    PartitionTimes,
    TimeProgress,
    TimeStep,
)
from airflow_connect.connectors.files.shared.publishing.topic_names import TopicName
from airflow_connect.connectors.files.shared.settings.complete_keys import CompleteConfig
from airflow_connect.layout.names.object_names import NameSettings, ended_key, object_key, under_renamed_topic
from airflow_connect.layout.partitioners import TimeBasedPartitioner
from airflow_connect.layout.time_grid import TimeGrid
from airflow_connect.layout.timestamp_extractors import RecordTimestampExtractor

HOUR_MS = 3_600_000
T13 = 1_772_629_200_000  # 2026-03-04T13:00:00Z
NOW_MS = T13 + 100 * HOUR_MS
NAMES = NameSettings()
GRID = TimeGrid(
    TimeBasedPartitioner.from_texts(HOUR_MS, "'hour'=YYYY-MM-dd-HH", "en", "UTC", RecordTimestampExtractor())
)


def keeper(
    idle_ms: int = -1, names: NameSettings = NAMES, clock: bool = False, **final: list[TopicName]
) -> StorageTimeKeeper:
    config = CompleteConfig({}, CompleteConfig.config_def().defaults() | {CompleteConfig.idle_ms.name: idle_ms})
    return StorageTimeKeeper(config, GRID, names, follows_clock=clock, final_topics=final)


def copied(
    topic: str,
    partition: int,
    times: dict[str, int],
    *,
    names: NameSettings = NAMES,
    **more: Any,
) -> tuple[CopiedPartition, list[StagedFile]]:
    """Report and files of a partition: one record in each directory of `times`, which are minutes after 13:00."""
    by_directory = {directory: T13 + minute * 60_000 for directory, minute in times.items()}
    found = PartitionTimes(max(by_directory.values(), default=None), None, 0, by_directory)
    report = CopiedPartition(TopicPartition(topic, partition), replace(found, **more))
    files = []
    for start, directory in enumerate(by_directory):
        key = object_key(directory, topic, partition, start, ".json", names)
        key = ended_key(key, start + 1, ".json", names) if names.hold_end else key
        files.append(StagedFile(key, topic, partition, start, start + 1, 1, 10))
    return report, files


def step(
    time: StorageTimeKeeper,
    before: TimeProgress,
    *parts: Any,
    at_end: tuple[Any, ...] = (),
    extra: tuple[Any, ...] = (),
) -> TimeStep:
    """A run over these partitions, and over `extra` ones that have nothing to copy."""
    every = tuple(sorted({*(report.partition for report, _ in parts), *extra}))
    reports = tuple(report for report, _ in parts)
    files = tuple(file for _, some in parts for file in some)
    return time.advance(before, CopiedTimes(NOW_MS, every, frozenset(at_end), reports, files))


def name(hour: int) -> str:
    return f"hour=2026-03-04-{hour:02d}"


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        NameSettings(directory_delimiter="_", file_delimiter="_"),
        NameSettings(topics_dir="", pad_width=0),
        NameSettings(hold_end=True),
    ],
    ids=["usual", "same-delimiters", "bare", "with-ends"],
)
def test_key_of_a_directory_follows_the_grammar_of_names(names: NameSettings) -> None:
    found = step(keeper(names=names), TimeProgress(), copied("t_1", 0, {name(13): 1, name(14): 60}, names=names))
    (complete,) = found.complete
    key = object_key(name(13), "t_1", 0, 0, "", names)
    assert key.startswith(complete.directory + names.directory_delimiter + "t_1")
    assert (complete.topic, complete.records, complete.files, complete.size_bytes) == ("t_1", 1, 1, 10)


def test_directories_with_a_schema_in_front_are_each_complete_and_with_it_behind_their_parent_is() -> None:
    times = {f"schema_name=a/{name(13)}": 1, f"schema_name=b/{name(13)}": 2, f"schema_name=a/{name(14)}": 60}
    in_front = step(keeper(), TimeProgress(), copied("t", 0, times))
    times = {f"{name(13)}/schema_name=a": 1, f"{name(13)}/schema_name=b": 2, f"{name(14)}/schema_name=a": 60}
    behind = step(keeper(), TimeProgress(), copied("t", 0, times))
    assert [d.directory for d in in_front.complete] == [
        f"topics/t/schema_name=a/{name(13)}",
        f"topics/t/schema_name=b/{name(13)}",
    ]
    assert [(d.directory, d.records) for d in behind.complete] == [(f"topics/t/{name(13)}", 2)]


def test_directory_of_null_values_is_never_complete() -> None:
    found = step(keeper(), TimeProgress(), copied("t", 0, {"tombstone": 1, name(14): 60}))
    assert found.complete == ()
    assert [d.directory for d in found.progress.open_directories] == [f"topics/t/{name(14)}"]


def test_renamed_directories_lie_below_the_new_topic() -> None:
    times = {under_renamed_topic("u", name(13)): 1, under_renamed_topic("u", name(14)): 60}
    found = step(keeper(t=[TopicName(("u",))]), TimeProgress(), copied("t", 0, times))
    assert [(d.topic, d.directory, d.origin) for d in found.complete] == [("u", f"topics/u/{name(13)}", "t")]


@pytest.mark.parametrize(
    ("other", "together"),
    [
        (TopicName(("all",)), True),
        (TopicName(("b",)), False),
        (TopicName(("a", None)), True),
        (TopicName(("b", None)), False),
    ],
    ids=["same", "different", "may-be-the-same", "cannot-be"],
)
def test_topics_that_can_meet_wait_for_each_other(other: TopicName, together: bool) -> None:
    time = keeper(s=[TopicName(("all",))], t=[other])
    found = step(time, TimeProgress(), copied("s", 0, {name(14): 60}), copied("t", 0, {name(13): 1}))
    expected = T13 + 60_000 if together else T13 + HOUR_MS
    assert found.progress.boundaries == {"s": expected, "t": T13 + 60_000}


def test_new_topic_of_a_group_takes_over_what_was_announced() -> None:
    time = keeper(s=[TopicName(("all",))], t=[TopicName(("all",))])
    before = TimeProgress(boundaries={"s": T13 + HOUR_MS})
    assert time.late_before(before, ["s", "t"]) == {"s": T13 + HOUR_MS, "t": T13 + HOUR_MS}
    assert time.late_before(TimeProgress(), ["s", "t"]) == {}


def test_boundary_never_goes_back() -> None:
    before = TimeProgress({TopicPartition("t", 0): T13}, {"t": T13 + 5 * HOUR_MS})
    found = step(keeper(), before.without([TopicPartition("t", 0)]), copied("t", 0, {name(13): 1}, late=1))
    assert found.progress.boundaries == {"t": T13 + 5 * HOUR_MS}
    assert (found.complete, found.progress.open_directories) == ((), ())


def test_partition_of_which_nothing_is_known_stops_the_boundary() -> None:
    found = step(keeper(), TimeProgress(), copied("t", 0, {name(14): 60}), extra=(TopicPartition("t", 1),))
    assert found.progress.boundaries == {}


@pytest.mark.parametrize(("idle_ms", "boundary"), [(-1, None), (0, NOW_MS), (HOUR_MS, NOW_MS - HOUR_MS)])
def test_idle_partition_counts_as_far_as_the_clock_less_its_time(idle_ms: int, boundary: int | None) -> None:
    time, tp = keeper(idle_ms), TopicPartition("t", 0)
    found = step(time, TimeProgress(), at_end=(tp,), extra=(tp,))
    assert found.progress.boundaries.get("t") == boundary
    assert step(time, TimeProgress(), extra=(tp,)).progress.boundaries == {}


def test_records_that_are_left_hold_the_boundary_before_them() -> None:
    report, files = copied("t", 0, {name(14): 100}, left_from_ms=T13 + 30 * 60_000)
    left = (replace(report, leaves_records=True), files)
    time = keeper(idle_ms=0)
    found = step(time, TimeProgress(), left, at_end=(TopicPartition("t", 0),))
    assert found.progress.boundaries == {"t": T13 + 30 * 60_000}


def test_run_clock_is_the_time_of_all_that_is_still_to_come() -> None:
    found = step(keeper(clock=True), TimeProgress(), extra=(TopicPartition("t", 0), TopicPartition("t", 1)))
    assert found.progress.boundaries == {"t": NOW_MS}


def test_directories_far_in_the_future_are_forgotten_beyond_a_limit() -> None:
    times = {name(hour): (hour - 13) * 60 for hour in range(13, 20)}
    with patch.object(time_keeper, "MOST_OPEN", 2):
        found = step(keeper(), TimeProgress(), copied("t", 0, times), extra=(TopicPartition("t", 1),))
    assert [d.directory for d in found.progress.open_directories] == [f"topics/t/{name(13)}", f"topics/t/{name(14)}"]
    assert name(14) in found.notes[0]


def test_progress_survives_its_way_through_json() -> None:
    found = step(keeper(), TimeProgress(), copied("t", 0, {name(13): 1, name(14): 60})).progress
    assert TimeProgress.from_json(found.to_json()) == found
