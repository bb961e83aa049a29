"""Records of a topic and of a backup side by side: which is which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.groups import matching
from airflow_connect.connectors.restore.groups.matching import Matching
from airflow_connect.connectors.restore.read.records import Records
from airflow_connect.errors import DataError
from airflow_connect.kafka.reading.message_headers import HEADERS

TP = TopicPartition("restored", 0)
Row = tuple[int, bytes | None]


def records(rows: Sequence[Row]) -> Records:
    """Offset and value; the key is the value's first byte."""
    values = [value for _, value in rows]
    columns: dict[str, Any] = {
        "key": pa.array([None if value is None else value[:1] for value in values], pa.large_binary()),
        "value": pa.array(values, pa.large_binary()),
        "headers": pa.array([[] if value is None else [{"key": b"h", "value": value}] for value in values], HEADERS),
        "timestamp": pa.array([1 for _ in rows], pa.int64()),
    }
    return Records(np.array([offset for offset, _ in rows], dtype=np.int64), columns)


def pieces(rows: Sequence[Row], sizes: Sequence[int]) -> Iterator[Records]:
    """The rows in pieces of these sizes, over and over; some may be empty."""
    start, turn = 0, 0
    while start < len(rows):
        size = sizes[turn % len(sizes)]
        yield records(rows[start : start + size])
        start, turn = start + size, turn + 1


@st.composite
def restored(draw: st.DrawFn) -> tuple[list[Row], list[Row], list[int]]:
    """A backup, what a topic still has of it under other offsets, and which records these are. All values differ."""
    count = draw(st.integers(1, 30))
    offsets = np.cumsum(draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))).tolist()
    backup = [(offset, b"%d" % n) for n, offset in enumerate(offsets)]
    kept = sorted(draw(st.sets(st.integers(0, count - 1))))
    new = np.cumsum(draw(st.lists(st.integers(1, 3), min_size=len(kept), max_size=len(kept)))).tolist()
    return backup, [(int(new[n]), backup[index][1]) for n, index in enumerate(kept)], kept


SIZES = st.lists(st.integers(0, 7), min_size=1, max_size=3).filter(any)


@given(example=restored(), sizes=SIZES, others=SIZES, data=st.data())
def test_offset_becomes_that_of_its_record_or_of_the_next_one(
    example: tuple[list[Row], list[Row], list[int]], sizes: list[int], others: list[int], data: st.DataObject
) -> None:
    backup, topic, kept = example
    wanted = data.draw(st.lists(st.integers(0, backup[-1][0] + 2), max_size=6))
    found = Matching(TP, compares_times=True)
    expected = {}
    for offset in wanted:
        later = [n for n, index in enumerate(kept) if backup[index][0] >= offset]
        expected[offset] = topic[later[0]][0] if later else None
    assert found.translated(wanted, pieces(backup, sizes), pieces(topic, others)) == expected


def test_whole_topic_is_compared_if_an_offset_is_after_it() -> None:
    found = Matching(TP, compares_times=True)
    backup, topic = [(5, b"a"), (7, b"b"), (9, b"c")], [(0, b"a"), (2, b"c")]
    assert found.translated([10], iter([records(backup)]), iter([records(topic)])) == {10: None}
    assert (found.after, found.passed_over) == (3, 1)


def test_record_that_the_backup_does_not_have_is_named() -> None:
    found = Matching(TP, compares_times=True)
    backup, topic = [(5, b"a"), (7, b"b")], [(0, b"a"), (1, b"foreign"), (2, b"b")]
    with pytest.raises(DataError, match="restored-0@1 is not in the backup") as caught:
        found.translated([9], iter([records(backup)]), iter([records(topic)]))
    assert caught.value.code == "restore.foreign_record"


def test_other_timestamps_count_only_if_the_restore_has_kept_them() -> None:
    original, copy = records([(3, b"a")]), records([(0, b"a")])
    copy.columns["timestamp"] = pa.array([2], pa.int64())
    assert Matching(TP, compares_times=False).translated([3], iter([original]), iter([copy])) == {3: 0}
    with pytest.raises(DataError):
        Matching(TP, compares_times=True).translated([3], iter([original]), iter([copy]))


def test_long_equal_runs_are_compared_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "AT_ONCE", 4)
    rows = [(n, b"%d" % n) for n in range(10)]
    shifted = [(n + 100, value) for n, value in rows if n != 6]
    found = Matching(TP, compares_times=True).translated([6, 9], iter([records(rows)]), iter([records(shifted)]))
    assert found == {6: 107, 9: 109}
