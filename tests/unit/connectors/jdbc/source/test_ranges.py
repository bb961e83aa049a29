"""Ranges of an interrupted load, as offsets keep them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.connectors.jdbc.source.connector import JdbcSourceConnector
from airflow_connect.connectors.jdbc.source.offsets.positions import Position, partition_of
from airflow_connect.connectors.jdbc.source.offsets.ranges import BULK_LASTS_MS, Load, Reconciled, TableRange
from airflow_connect.errors import OffsetError
from tests.support.session.searching import examples, settings

TABLE, BY, LARGEST = "shop.public.orders", "incrementing:id", 30


def at(number: int) -> Position:
    return Position(incrementing=number)


def offset_of(part: TableRange, sent: int | None, is_done: bool) -> dict[str, Any]:
    offset = {} if sent is None else {"incrementing": sent}
    return dict(part.done(offset)) if is_done else offset


@settings(max_examples=examples(200))
@given(st.data())
def test_interrupted_runs_together_send_each_row_once(data: st.DataObject) -> None:
    """Runs of several tasks, each of which ends somewhere; in the end the offset is that of one task."""
    rows = sorted(data.draw(st.sets(st.integers(0, LARGEST), min_size=1)))
    cuts = sorted(data.draw(st.sets(st.sampled_from(rows), max_size=4)))
    parts, kept, sent = TableRange(TABLE, BY, None, None).divided([at(cut) for cut in cuts]), {}, []
    for _ in range(4):
        for part in parts:
            after = -1 if part.after is None else part.after.incrementing
            upto = LARGEST if part.upto is None else part.upto.incrementing
            assert after is not None and upto is not None
            inside = [row for row in rows if after < row <= upto]
            count = data.draw(st.integers(0, len(inside)))
            is_done = count == len(inside) and data.draw(st.booleans())
            sent += inside[:count]
            if count or is_done:
                offset = offset_of(part, inside[count - 1] if count else None, is_done)
                kept[str(part.partition)] = (part.partition, offset)
        parts = Load(TABLE, BY, kept.values(), 0).gaps() if kept else parts
    assert sent == list(dict.fromkeys(sent))
    for part in parts:
        after = -1 if part.after is None else part.after.incrementing
        upto = LARGEST if part.upto is None else part.upto.incrementing
        assert after is not None and upto is not None
        inside = [row for row in rows if after < row <= upto]
        sent += inside
        kept[str(part.partition)] = (part.partition, offset_of(part, max(inside, default=None), True))
    assert sorted(sent) == rows
    done = Reconciled(kept.values(), lambda table, by: True, 0)
    assert done.offsets == {TABLE: {"incrementing": rows[-1]}} and done.loads == {}
    deleted = [partition for partition, offset in done.changes if offset is None]
    assert sorted(map(str, deleted)) == sorted(kept)


def test_complete_load_without_rows_leaves_no_offset() -> None:
    part = TableRange(TABLE, BY, None, None)
    found = Reconciled([(part.partition, part.done({}))], lambda table, by: True, 0)
    assert found.changes == [(part.partition, None)]


@pytest.mark.parametrize(("age_ms", "restarted"), [(BULK_LASTS_MS, []), (BULK_LASTS_MS + 1, [TABLE])])
def test_bulk_load_is_continued_for_a_day(age_ms: int, restarted: list[str]) -> None:
    part = TableRange(TABLE, "bulk:id", None, at(7), began_ms=5)
    kept = [(part.partition, part.done({"bulk_run": "r", "began_ms": 5}))]
    found = Reconciled(kept, lambda table, by: True, 5 + age_ms)
    assert found.restarted == restarted and bool(found.changes) == bool(restarted)
    if not restarted:
        assert found.loads[TABLE].gaps() == [TableRange(TABLE, "bulk:id", at(7), None, began_ms=5)]


def test_last_bulk_run_says_nothing_about_the_present_one() -> None:
    part = TableRange(TABLE, "bulk:id", None, at(7), began_ms=5)
    kept = [(part.partition, part.done({"bulk_run": "r2"})),
            (partition_of(TABLE), {"bulk_run": "r1", "bulk_done": True})]  # fmt: skip
    assert Reconciled(kept, lambda table, by: True, 5).loads.keys() == {TABLE}


def test_range_comes_back_from_the_configuration_of_a_task() -> None:
    part = TableRange(TABLE, BY, Position(-5, 1_767_268_800_123_456), Position(2**70, 1_767_268_800_123_457), 3)
    assert TableRange.from_json(part.to_json()) == part


@pytest.mark.parametrize("after", ["7", "[1]", '["a", 1]', "[true, 1]", 7, "{}", "[1.5, 2]"])
def test_damaged_range_is_refused(after: Any) -> None:
    partition = {**partition_of(TABLE), "by": BY, "after": after}
    with pytest.raises(OffsetError, match="is not a position"):
        Load(TABLE, BY, [(partition, {"incrementing": 1})], 0)
    connector = JdbcSourceConnector()
    with pytest.raises(OffsetError, match="is not a position"):
        connector.alter_offsets({}, {tuple(sorted(partition.items())): {"incrementing": 1}})
    assert connector.alter_offsets({}, {tuple(sorted(partition.items())): None})
