"""Tables with a sort order: rows of a file are in it, and the file says so."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform, Transform, TruncateTransform
from pyiceberg.types import DoubleType, FloatType, LongType, NestedField, StringType, StructType

from airflow_connect.api.schema import Schema, Type, struct
from tests.unit.connectors.iceberg.lakes import Lake

FIRST, LAST = NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST
UP, DOWN = SortDirection.ASC, SortDirection.DESC
COLUMNS = IcebergSchema(
    NestedField(1, "n", LongType(), required=False),
    NestedField(2, "t", StringType(), required=False),
    NestedField(3, "d", DoubleType(), required=False),
    NestedField(4, "f", FloatType(), required=False),
    NestedField(5, "s", StructType(NestedField(6, "x", LongType(), required=False)), required=False),
)
LONG, TEXT = Schema(Type.INT64, optional=True), Schema(Type.STRING, optional=True)
DOUBLE, FLOAT = Schema(Type.FLOAT64, optional=True), Schema(Type.FLOAT32, optional=True)
INNER = Schema(Type.STRUCT, optional=True, fields=struct(("x", LONG)).fields)
VALUES = struct(("n", LONG), ("t", TEXT), ("d", DOUBLE), ("f", FLOAT), ("s", INNER))
NUMBERS = [3, None, -1, 2**62, 0, None, 3]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def by(source: int, direction: SortDirection, nulls: NullOrder, transform: Transform[Any, Any] | None = None) -> Any:
    return SortField(source, transform or IdentityTransform(), direction, nulls)


def stored(lake: Lake, order: list[Any], rows: list[dict[str, Any]], **properties: str) -> list[dict[str, Any]]:
    """What the only file holds, in its order."""
    lake.create(COLUMNS, sort_order=SortOrder(*order), properties={"format-version": "2", **properties})
    whole: dict[str, Any] = dict.fromkeys(("n", "t", "d", "f", "s"))
    lake.put([whole | row for row in rows], VALUES)
    assert lake.refusals.errors == []
    (path,) = lake.root.rglob("*.parquet")
    return pq.read_table(path).to_pylist()


def order_ids(lake: Lake) -> list[int | None]:
    return list(lake.table().inspect.files()["sort_order_id"].to_pylist())


@pytest.mark.parametrize(
    ("direction", "nulls", "wanted"),
    [
        (UP, FIRST, [None, None, -1, 0, 3, 3, 2**62]),
        (UP, LAST, [-1, 0, 3, 3, 2**62, None, None]),
        (DOWN, FIRST, [None, None, 2**62, 3, 3, 0, -1]),
        (DOWN, LAST, [2**62, 3, 3, 0, -1, None, None]),
    ],
)
def test_rows_are_in_the_order_of_the_table(
    lake: Lake, direction: SortDirection, nulls: NullOrder, wanted: list[int | None]
) -> None:
    found = stored(lake, [by(1, direction, nulls)], [{"n": n, "t": str(row)} for row, n in enumerate(NUMBERS)])

    assert [row["n"] for row in found] == wanted
    assert [row["t"] for row in found if row["n"] == 3] == ["0", "6"], "equal rows keep their order"
    assert order_ids(lake) == [1]


@pytest.mark.parametrize(("column", "source"), [("d", 3), ("f", 4)])
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_floats_are_in_the_order_of_the_specification(
    lake: Lake, column: str, source: int, direction: SortDirection
) -> None:
    given = [math.nan, 0.0, -0.0, math.inf, -1.5, -math.inf, 2.0, -math.nan]
    found = stored(lake, [by(source, direction, LAST)], [{column: value} for value in given])
    texts = [str(row[column]) for row in found]

    wanted = ["-inf", "-1.5", "-0.0", "0.0", "2.0", "inf", "nan", "nan"]
    assert texts == (wanted if direction == UP else wanted[::-1])


def test_order_of_several_columns_transforms_and_members_of_structs(lake: Lake) -> None:
    order = [by(2, DOWN, FIRST, TruncateTransform(1)), by(6, UP, LAST), by(1, UP, FIRST, BucketTransform(4))]
    rows = [{"t": text, "s": inner} for text in ("ab", None, "b", "a") for inner in ({"x": 2}, None, {"x": 1})]
    found = stored(lake, order, rows)

    assert [(row["t"], row["s"] and row["s"]["x"]) for row in found] == [
        (None, 1), (None, 2), (None, None), ("b", 1), ("b", 2), ("b", None),
        ("ab", 1), ("a", 1), ("ab", 2), ("a", 2), ("ab", None), ("a", None),
    ]  # fmt: skip
    assert order_ids(lake) == [1]


def test_file_of_several_row_groups_does_not_say_that_it_is_sorted(lake: Lake) -> None:
    numbers = [n * 7 % 3000 for n in range(3000)]
    small = {"write.parquet.row-group-size-bytes": "4000"}
    found = stored(lake, [by(1, UP, FIRST)], [{"n": n, "t": "x" * 100} for n in numbers], **small)
    (path,) = lake.root.rglob("*.parquet")
    file = pq.ParquetFile(path)
    groups: list[list[Any]] = [file.read_row_group(number)["n"].to_pylist() for number in range(file.num_row_groups)]

    assert (len(groups) > 1, all(group == sorted(group) for group in groups)) == (True, True)
    assert sorted(row["n"] for row in found) == sorted(numbers)
    assert order_ids(lake) == [None]


def test_table_without_an_order_has_files_that_say_nothing(lake: Lake) -> None:
    assert [row["n"] for row in stored(lake, [], [{"n": n} for n in (2, 1, 3)])] == [2, 1, 3]
    assert order_ids(lake) == [None]
