"""Maps of Arrow columns, taken apart and put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_connect.api import schema as s
from airflow_connect.converters.map_columns import entries_of, has_key_twice, map_column


def _column(mask: list[bool] | None = None) -> Any:
    made: Any = pa.MapArray
    keys, values = pa.array(["a", "b", "c", "d"]), pa.array([1, 2, None, 4])
    return made.from_arrays([0, 1, 3, 3, 4], keys, values, mask=None if mask is None else pa.array(mask))


def _parts(column: Any) -> tuple[list[Any], ...]:
    offsets, keys, values = entries_of(column)
    return offsets.to_pylist(), keys.to_pylist(), values.to_pylist()


def test_entries_are_those_of_the_maps() -> None:
    assert _parts(_column()) == ([0, 1, 3, 3, 4], ["a", "b", "c", "d"], [1, 2, None, 4])


def test_a_slice_has_its_own_entries_and_offsets_from_0() -> None:
    assert _parts(_column().slice(1, 2)) == ([0, 2, 2], ["b", "c"], [2, None])
    assert _parts(_column().slice(3)) == ([0, 1], ["d"], [4])
    assert _parts(_column().slice(2, 0)) == ([0], [], [])


def test_a_null_has_no_entries_although_the_column_holds_some_at_its_place() -> None:
    column = _column([False, True, False, False])
    assert column.to_pylist()[1] is None
    assert _parts(column) == ([0, 1, 1, 1, 2], ["a", "d"], [1, 4])
    assert _parts(column.slice(1)) == ([0, 0, 0, 1], ["d"], [4])


def test_maps_are_put_together_from_their_entries() -> None:
    offsets, keys, values = entries_of(_column())
    made = map_column(offsets, keys, values, s.map_of(s.STRING, s.OPTIONAL_INT64))
    assert made.to_pylist() == _column().to_pylist()
    made.validate(full=True)


@pytest.mark.parametrize(
    ("counts", "keys", "expected"),
    [
        ([], [], False),
        ([0, 0], [], False),
        ([1, 1], ["a", "a"], False),
        ([2, 1], ["a", "b", "b"], False),
        ([2, 2], ["a", "b", "b", "a"], False),
        ([1, 2], ["b", "a", "a"], True),
        ([0, 3, 1], ["a", "b", "a", "c"], True),
        ([3], [1, 2, 1], True),
        ([2, 2], [True, False, False, True], False),
    ],
)
def test_a_key_twice_is_one_of_the_same_map(counts: list[int], keys: list[Any], expected: bool) -> None:
    column = pa.array(keys, None if keys else pa.string())
    assert has_key_twice(np.array(counts, np.int64), column) is expected
