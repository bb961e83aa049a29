"""Values without a schema: the type of each field, and what has none."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_connect.api.schema import Schema, Type, array, struct
from airflow_connect.connectors.iceberg.inferred import MOST_LEVELS, inferred_schema, known_part
from airflow_connect.connectors.iceberg.types import iceberg_fields
from airflow_connect.errors import DataError
from tests.unit.connectors.iceberg.lakes import TABLE, Lake


def types(*values: Any) -> list[str]:
    """As `name: optional long`."""
    return [str(field).partition(": ")[2] for field in iceberg_fields(inferred_schema(values), all_optional=True)]


def test_types_of_fields() -> None:
    value = {"b": True, "i": 1, "f": 1.5, "t": "x", "y": b"x", "l": [1, 2.5, None], "o": {"p": [{"q": 1}, {"r": "x"}]}}
    assert types(value, {}) == [
        "b: optional boolean", "i: optional long", "f: optional double", "t: optional string", "y: optional binary",
        "l: optional list<double>",
        "o: optional struct<9: p: optional list<struct<11: q: optional long, 12: r: optional string>>>",
    ]  # fmt: skip


def test_fields_are_required_if_every_value_has_them() -> None:
    schema = inferred_schema([{"a": 1, "b": 1, "c": None}, {"a": 2, "b": None, "c": 1}, {"a": 3, "c": 1}])
    assert [(field.name, field.schema.optional) for field in schema.fields] == [("a", False), ("b", True), ("c", True)]


@pytest.mark.parametrize("value", [5, "x", [1], True, b"x"])
def test_value_that_is_no_object_is_refused(value: Any) -> None:
    with pytest.raises(DataError) as caught:
        inferred_schema([{"a": 1}, value])
    assert caught.value.code == "data.not_struct"


@pytest.mark.parametrize(
    "values",
    [[1, "x"], [True, 1], [1.5, "x"], [{"a": 1}, 1], [[1], 1], [[1], {"a": 1}], [["x", 1]], [2**63], [-(2**63) - 1]],
)  # fmt: skip
def test_types_that_have_nothing_in_common_are_refused_with_the_field(values: list[Any]) -> None:
    with pytest.raises(DataError, match=r"field s\.v") as caught:
        inferred_schema([{"s": {"v": value}} for value in values])
    assert caught.value.code == "iceberg.inferred"


def test_what_has_no_type_has_no_column() -> None:
    value = {"a": None, "l": [], "o": {}, "n": [[], None], "p": {"q": {}, "r": [{}]}}
    assert known_part(inferred_schema([value])) is None
    assert known_part(inferred_schema([{}])) is None
    assert types({**value, "x": 1}) == ["x: optional long"]
    typed = struct(("a", Schema(Type.INT64)))
    assert known_part(typed) == typed


def files_rows(lake: Lake) -> list[Any]:
    """Every row in the order of its `n`; not by pyiceberg, which reads null lists and maps as empty ones."""
    paths = [task.file.file_path.removeprefix("file://") for task in lake.table().scan().plan_files()]
    return sorted((row for path in paths for row in pq.read_table(path).to_pylist()), key=lambda row: str(row["n"]))


EMPTY = [
    {"n": 1, "l": [], "s": {}, "o": [{}, None]},
    {"n": 2, "l": None, "s": None, "o": None},
    {"n": 3, "l": [None, None], "s": {"a": None}, "o": [None, None]},
    {"n": 4},
    {"n": 5, "l": [7], "s": {"a": 1}, "o": [{"b": 1}, {}]},
]
READ = [
    {"n": 1, "l": [], "s": {"a": None}, "o": [{"b": None}, None]},
    {"n": 2, "l": None, "s": None, "o": None},
    {"n": 3, "l": [None, None], "s": {"a": None}, "o": [None, None]},
    {"n": 4, "l": None, "s": None, "o": None},
    {"n": 5, "l": [7], "s": {"a": 1}, "o": [{"b": 1}, {"b": None}]},
]


def test_empty_values_are_the_same_alone_and_beside_others(tmp_path: Path) -> None:
    first = {"n": 0, "l": [1], "s": {"a": 1}, "o": [{"b": 1}]}
    for number, groups in enumerate([[EMPTY], [[value] for value in EMPTY], [EMPTY[:2], EMPTY[2:]]]):
        lake = Lake(tmp_path / str(number))
        for group in ([first], *groups):
            lake.put(group)
            assert lake.refusals.errors == []
        assert files_rows(lake) == [first, *READ]


def test_object_of_nulls_is_a_row_of_nulls_once_there_is_a_table(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.put([{"n": None}])
    assert [error.code for _, error in lake.refusals.errors] == ["data.empty_struct"]  # type: ignore[attr-defined]
    for group in ([{"n": 1}], [{"n": None}], [{}], [{}, {}], [{}, {"n": 2}]):
        lake.put(group)
        assert lake.refusals.errors == []
    assert [row["n"] for row in files_rows(lake)] == [1, 2, *[None] * 5]


def test_empty_values_without_a_column_are_counted(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.put([{"n": 1, "l": [], "s": {}, "x": None}, {"n": 2, "l": []}])
    (note,) = [note for note in lake.notes if "dropped" in note]
    assert note == (
        f"Table {TABLE} does not have these fields of the records, so they were dropped: l (2 times), s (2 times)."
        " They were empty: a column is added for the first value that has a type."
    )
    assert files_rows(lake) == [{"n": 1}, {"n": 2}]


def test_empty_list_in_a_column_of_another_kind_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.put([{"n": 1, "t": "x", "l": [{"a": 1}]}])
    lake.put([{"n": 2, "t": []}, {"n": 3, "t": {}}, {"n": 4, "l": [[]]}, {"n": 5, "l": {}}, {"n": 6, "t": "y"}])
    assert [offset for offset, _ in lake.refusals.errors] == [0, 1, 2, 3]
    assert [row["n"] for row in files_rows(lake)] == [1, 6]


def test_numbers_that_have_no_exact_double_are_refused_beside_doubles(tmp_path: Path) -> None:
    for number, order in enumerate(itertools.permutations([{"n": 1.5}, {"n": 2}, {"n": 2**53 + 1}])):
        lake = Lake(tmp_path / str(number))
        lake.put([{"n": 0.5}])
        lake.put(order)
        assert [order[offset] for offset, _ in lake.refusals.errors] == [{"n": 2**53 + 1}]
        assert [row["n"] for row in files_rows(lake)] == [0.5, 1.5, 2.0]


@pytest.mark.parametrize("kind", ["objects", "lists", "mixed"])
def test_value_with_too_many_levels_is_refused_and_the_table_stays_readable(tmp_path: Path, kind: str) -> None:
    def nested(levels: int) -> Any:
        found: Any = 1
        for level in range(levels - 1):
            found = [found] if kind == "lists" or (kind == "mixed" and level % 2) else {"a": found}
        return {"n": 1, "deep": found}

    lake = Lake(tmp_path)
    lake.put([nested(MOST_LEVELS), nested(MOST_LEVELS + 1), nested(200)])
    assert [(offset, error.code) for offset, error in lake.refusals.errors] == [  # type: ignore[attr-defined]
        (1, "iceberg.too_deep"), (2, "iceberg.too_deep")
    ]  # fmt: skip
    assert files_rows(lake) == [nested(MOST_LEVELS)]
    deep = lake.table().schema()
    schema = Schema(Type.INT64)
    for _ in range(MOST_LEVELS):
        schema = array(schema) if kind == "lists" else struct(("a", schema))
    lake.put([{"n": 1, "deep": None}], struct(("n", Schema(Type.INT64)), ("deep", schema)))
    assert [error.code for _, error in lake.refusals.errors] == ["iceberg.too_deep"]  # type: ignore[attr-defined]
    assert lake.table().schema() == deep


def test_names_that_no_column_can_have_are_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.put([{"n": 1}])
    lake.put([{"n": 2, "\ud800": 1}, {"n": 3, 5: 1}, {"n": 4, "s": {"\udfff": 1}}, {"n": 5}])
    assert [(offset, error.code) for offset, error in lake.refusals.errors] == [  # type: ignore[attr-defined]
        (0, "iceberg.schema"), (1, "iceberg.inferred"), (2, "iceberg.schema")
    ]  # fmt: skip
    assert files_rows(lake) == [{"n": 1}, {"n": 5}]
