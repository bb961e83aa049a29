"""Offsets of snapshots beside each other."""

from __future__ import annotations

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.connectors.iceberg.audit import RunSnapshot, coverage_of


def snapshot(number: int, *spans: tuple[int, int], topic: str = "t") -> RunSnapshot:
    return RunSnapshot(str(number), f"run {number}", 0, 1, 1, tuple(OffsetRange(topic, 0, *span) for span in spans))


def test_gaps_between_snapshots_and_before_the_committed_offset_are_missing() -> None:
    found = coverage_of((snapshot(1, (5, 10)), snapshot(2, (12, 20))), {TopicPartition("t", 0): 25}, {})

    assert found.spans == (OffsetRange("t", 0, 5, 20),)
    assert found.missing == (OffsetRange("t", 0, 10, 12), OffsetRange("t", 0, 20, 25))
    assert found.twice == ()


def test_offsets_of_two_snapshots_are_named_with_both() -> None:
    found = coverage_of((snapshot(1, (0, 10)), snapshot(2, (10, 20)), snapshot(3, (8, 12))), {}, {})

    assert [(one.offsets.start, one.offsets.end, one.first, one.second) for one in found.twice] == [
        (8, 10, "1", "3"),
        (10, 12, "3", "2"),
    ]
    assert found.missing == ()


def test_snapshot_inside_of_another_does_not_end_it() -> None:
    found = coverage_of((snapshot(1, (0, 10)), snapshot(2, (2, 4)), snapshot(3, (10, 12))), {}, {})

    assert [(one.offsets.start, one.offsets.end) for one in found.twice] == [(2, 4)]
    assert (found.missing, found.spans) == ((), (OffsetRange("t", 0, 0, 12),))


def test_partition_without_a_snapshot_is_missing_from_its_first_offset() -> None:
    tp, other = TopicPartition("t", 0), TopicPartition("u", 0)
    found = coverage_of((snapshot(1, (4, 6)),), {tp: 6, other: 9}, {tp: 0, other: 2})

    assert found.spans == (OffsetRange("t", 0, 4, 6), OffsetRange("u", 0, 2, 2))
    assert found.missing == (OffsetRange("u", 0, 2, 9),)
