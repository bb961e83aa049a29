"""Rows of Parquet files from any one on, and how files are divided."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.connectors.restore.options import MILLISECONDS
from airflow_connect.connectors.restore.values.arrow_values import ParquetReader
from tests.support.session.searching import examples


def parquet(*groups: int, **options: Any) -> bytes:
    """A file with so many rows in each row group; `id` counts them."""
    stream, first = io.BytesIO(), 0
    schema = pa.schema([("id", pa.int64()), ("part", pa.struct([("name", pa.string()), ("of", pa.list_(pa.int32()))]))])
    with pq.ParquetWriter(stream, schema, **options) as writer:
        for size in groups:
            ids = list(range(first, first + size))
            parts = [None if n % 7 == 3 else {"name": "ü" * (n % 3), "of": [n, None]} for n in ids]
            writer.write_table(pa.table([ids, parts], schema=schema), row_group_size=max(1, size))
            first += size
    return stream.getvalue()


def ids(data: bytes, start: int, end: int | None) -> list[int]:
    found: list[int] = []
    for values in ParquetReader(io.BytesIO(data), MILLISECONDS, (start, end)):
        assert values.first == start + len(found)
        found += [row["id"] for row in values.values()]
    return found


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, 5, 40]), max_size=12), st.integers(1, 8), st.data())
def test_ranges_hold_every_row_once_however_a_file_is_divided(
    groups: list[int], most: int, data: st.DataObject
) -> None:
    content, size = parquet(*groups), sum(groups)
    cuts = ParquetReader(io.BytesIO(content), MILLISECONDS).cuts(most)
    ranges = list(pairwise([0, *cuts, size]))
    assert len(ranges) <= most and all(start < end for start, end in ranges if size)
    assert [row for start, end in ranges for row in ids(content, start, end)] == list(range(size))
    start = data.draw(st.integers(0, size))
    end = data.draw(st.integers(start, size))
    assert ids(content, start, end) == list(range(start, end))
    assert ids(content, start, None) == list(range(start, size))


def test_row_groups_of_unlike_sizes_are_not_put_together_with_small_ones() -> None:
    reader = ParquetReader(io.BytesIO(parquet(*[10] * 20, 3_000, *[10] * 20)), MILLISECONDS)
    assert reader.cuts(4) == [3_200]  # the large one cannot be divided
    assert ParquetReader(io.BytesIO(parquet(500)), MILLISECONDS).cuts(4) == []
    assert ParquetReader(io.BytesIO(parquet(*[100] * 8)), MILLISECONDS).cuts(4) == [200, 400, 600]


def test_row_before_which_a_file_ends_is_an_error() -> None:
    with pytest.raises(ValueError, match="it has 10 records, and 11 were expected"):
        ids(parquet(10), 11, None)
    assert ids(parquet(10), 10, None) == []


class Counted(io.BytesIO):
    """Counts the bytes that are read."""

    read_bytes = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.read_bytes += len(data)
        return data


def test_large_file_is_not_read_as_a_whole_before_its_first_row() -> None:
    rows = 100_000
    table = pa.table({name: range(20 * rows) for name in ("id", "other", "third")})
    stream = io.BytesIO()
    pq.write_table(table, stream, row_group_size=rows, use_dictionary=False, compression="none")
    size = len(stream.getvalue())
    content = Counted(stream.getvalue())
    found = iter(ParquetReader(content, MILLISECONDS))
    assert len(next(found)) == 20_000
    assert content.read_bytes < 18 << 20 and size > 30 << 20
    last = Counted(stream.getvalue())
    assert sum(map(len, ParquetReader(last, MILLISECONDS, (19 * rows, None)))) == rows
    assert last.read_bytes < size / 10
