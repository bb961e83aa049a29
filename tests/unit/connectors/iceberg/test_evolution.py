"""Tables that change while records are written: what the values need, and what somebody else does."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType, UUIDType

from airflow_connect.api.schema import DECIMAL, Schema, Type, array, map_of, struct
from airflow_connect.connectors.iceberg.open_tables import OpenTable, load_table
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.errors import SchemaError
from tests.unit.connectors.iceberg.lakes import TABLE, Lake, record

INT, LONG, TEXT = Schema(Type.INT32), Schema(Type.INT64), Schema(Type.STRING)
FLOAT, DOUBLE = Schema(Type.FLOAT32), Schema(Type.FLOAT64)
SOME_LONG = Schema(Type.INT64, optional=True)


def decimal(precision: int, scale: int) -> Schema:
    return Schema(
        Type.BYTES, name=DECIMAL, parameters={"scale": str(scale), "connect.decimal.precision": str(precision)}
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def columns(lake: Lake, name: str = TABLE) -> list[str]:
    """As `name: required long`, without ids."""
    return [str(field).partition(": ")[2] for field in lake.table(name).schema().fields]


def refusals(lake: Lake) -> list[tuple[int, str]]:
    return [(offset, getattr(error, "code", "")) for offset, error in lake.refusals.errors]


def test_fields_are_added_everywhere(lake: Lake) -> None:
    small = struct(("x", LONG))
    large = struct(("x", LONG), ("y", struct(("z", LONG))))
    for inner, value in ((small, {"x": 1}), (large, {"x": 2, "y": {"z": 3}})):
        schema = struct(("s", inner), ("l", array(inner)), ("m", map_of(TEXT, inner)))
        lake.put([{"s": value, "l": [value], "m": {"k": value}}], schema)
        assert lake.refusals.errors == []
    old = {"x": 1, "y": None}
    assert sorted(lake.rows(), key=repr) == [
        {"s": old, "l": [old], "m": [("k", old)]},
        {"s": value, "l": [value], "m": [("k", value)]},
    ]
    assert lake.notes == (f"The schema of table {TABLE} was changed, so that the records fit.",)


def test_fields_of_null_structs_and_of_empty_lists_are_added(lake: Lake) -> None:
    small, large = struct(("x", LONG)), struct(("x", LONG), ("y", LONG))

    def schema(inner: Schema) -> Schema:
        some = Schema(Type.STRUCT, optional=True, fields=inner.fields)
        return struct(("s", some), ("l", array(inner)), ("m", map_of(TEXT, some)))

    lake.put([{"s": {"x": 1}, "l": [], "m": {}}], schema(small))
    lake.put([{"s": None, "l": [], "m": {"k": None}}], schema(large))
    assert (lake.refusals.errors, [text.count("y: optional long") for text in columns(lake)]) == ([], [1, 1, 1])
    assert [row["s"] for row in lake.rows()] == [None, {"x": 1, "y": None}]


def test_columns_are_widened_everywhere(lake: Lake) -> None:
    narrow = struct(("a", INT), ("f", FLOAT), ("d", decimal(5, 2)))
    wide = struct(("a", LONG), ("f", DOUBLE), ("d", decimal(9, 2)))
    first = {"a": 1, "f": 0.5, "d": Decimal("1.23")}
    second = {"a": 2**40, "f": 0.1, "d": Decimal("1234567.89")}
    for inner, value in ((narrow, first), (wide, second), (narrow, first)):
        lake.put([{"s": value, "l": [value]}], struct(("s", inner), ("l", array(inner))))
        assert lake.refusals.errors == []
    assert sorted(lake.rows(), key=repr) == sorted([{"s": v, "l": [v]} for v in (first, second, first)], key=repr)


def test_scale_of_a_decimal_never_changes(lake: Lake) -> None:
    lake.put([{"d": Decimal("1.23")}], struct(("d", decimal(9, 2))))
    lake.put([{"d": Decimal("1.2345")}, {"d": Decimal("4.5600")}], struct(("d", decimal(11, 4))))
    assert refusals(lake) == [(0, "iceberg.value")]
    assert columns(lake) == ["d: required decimal(9, 2)"]
    assert sorted(row["d"] for row in lake.rows()) == [Decimal("1.23"), Decimal("4.56")]


def test_types_that_do_not_go_together_refuse_values_and_change_nothing(lake: Lake) -> None:
    lake.put([{"a": 1}], struct(("a", LONG)))
    lake.put([{"a": "x"}, {"a": "5"}], struct(("a", TEXT)))
    assert refusals(lake) == [(0, "iceberg.value")]
    lake.put([{"a": {"x": 1}}], struct(("a", struct(("x", LONG)))))
    assert refusals(lake) == [(0, "iceberg.type")]
    assert (columns(lake), sorted(row["a"] for row in lake.rows())) == (["a: required long"], [1, 5])


def test_required_columns_become_optional(lake: Lake) -> None:
    lake.put([{"a": 1, "b": 1, "c": 1}], struct(("a", LONG), ("b", LONG), ("c", LONG)))
    lake.put([{"a": None, "b": 2}], struct(("a", SOME_LONG), ("b", LONG)))
    assert columns(lake) == ["a: optional long", "b: required long", "c: optional long"]
    assert {"a": None, "b": 2, "c": None} in lake.rows()


def test_columns_that_identify_rows_stay_required(lake: Lake) -> None:
    lake.set(**{"iceberg_tables_default-id-columns": "a"})
    lake.put([{"a": 1}, {"a": None}, {"a": 2}], struct(("a", SOME_LONG), ("b", SOME_LONG)))
    assert (columns(lake), refusals(lake)) == (["a: required long", "b: optional long"], [(1, "iceberg.value")])
    assert [row["a"] for row in lake.rows()] == [1, 2]
    assert lake.table().schema().identifier_field_names() == {"a"}


@pytest.mark.parametrize(("column", "kind"), [("a", DOUBLE), ("l", array(LONG)), ("s.x", SOME_LONG), ("none", LONG)])
def test_columns_that_cannot_identify_rows_are_refused(lake: Lake, column: str, kind: Schema) -> None:
    lake.set(**{"iceberg_tables_default-id-columns": column})
    schema = struct(("a", kind), ("l", array(LONG)), ("s", struct(("x", kind))))
    lake.put(
        [{"a": [] if kind.type is Type.ARRAY else 1, "l": [], "s": {"x": [] if kind.type is Type.ARRAY else 1}}], schema
    )
    assert refusals(lake) == [(0, "iceberg.id_columns")]


def test_column_in_a_struct_can_identify_rows(lake: Lake) -> None:
    lake.set(**{"iceberg_tables_default-id-columns": "s.x"})
    lake.put([{"s": {"x": 1}}], struct(("s", struct(("x", LONG)))))
    lake.put([{"s": {"x": 2, "y": 3}}, {"s": None}], struct(("s", Schema(
        Type.STRUCT, optional=True, fields=struct(("x", LONG), ("y", LONG)).fields
    ))))  # fmt: skip
    assert refusals(lake) == [(1, "iceberg.value")]
    assert lake.rows() == [{"s": {"x": 2, "y": 3}}, {"s": {"x": 1, "y": None}}]


@pytest.mark.parametrize("where", ["{}", "s.{}", "l.element.{}", "m.value.{}"])
def test_names_that_differ_in_case_are_refused_wherever_they_are(lake: Lake, where: str) -> None:
    def schema(*names: str) -> Schema:
        inner = struct(*((name, LONG) for name in names))
        top = {"s.{}": ("s", inner), "l.element.{}": ("l", array(inner)), "m.value.{}": ("m", map_of(TEXT, inner))}
        return struct(top[where]) if where in top else inner

    def value(**members: int) -> Any:
        return {
            "{}": members,
            "s.{}": {"s": members},
            "l.element.{}": {"l": [members]},
            "m.value.{}": {"m": {"k": members}},
        }[where]

    for _ in range(2):  # When the table is created, and when it is changed.
        lake.put([value(id=1, ID=2)], schema("id", "ID"))
        assert refusals(lake) == [(0, "iceberg.column_names")]
        assert where.format("id") in str(lake.refusals.errors[0][1])
        lake.put([value(id=1)], schema("id"))
        assert lake.refusals.errors == []
    assert len(lake.rows()) == 2


def test_without_regard_to_case_both_names_are_one_column_and_two_are_refused(lake: Lake) -> None:
    lake.set(**{"iceberg_tables_schema-case-insensitive": "true"})
    both, upper = struct(("id", LONG), ("ID", LONG)), struct(("ID", SOME_LONG))
    lake.put([{"id": 1, "ID": 2}], both)
    assert refusals(lake) == [(0, "iceberg.column_names")]
    lake.put([{"id": 1}], struct(("id", LONG)))
    lake.put([{"ID": 2}, {"ID": None}], upper)
    assert lake.refusals.errors == []
    lake.put([{"id": 3, "ID": 4}], both)
    assert refusals(lake) == [(0, "iceberg.column_names")]
    lake.put([{"x": 3, "X": 4, "id": 1}], struct(("id", LONG), ("x", LONG), ("X", LONG)))
    assert refusals(lake) == [(0, "iceberg.column_names")]
    assert (columns(lake), sorted(lake.rows(), key=repr)) == (
        ["id: optional long"],
        [{"id": 1}, {"id": 2}, {"id": None}],
    )


def test_names_with_dots_and_blanks(lake: Lake) -> None:
    lake.put([{"a.b": 1, "c d": 2}], struct(("a.b", INT), ("c d", INT)))
    wide = struct(("a.b", SOME_LONG), ("c d", LONG), ("x.y", LONG), ("é ", LONG))
    lake.put([{"a.b": None, "c d": 2**40, "x.y": 3, "é ": 4}], wide)
    assert sorted(lake.rows(), key=repr) == [
        {"a.b": 1, "c d": 2, "x.y": None, "é ": None}, {"a.b": None, "c d": 2**40, "x.y": 3, "é ": 4}
    ]  # fmt: skip


def test_names_that_are_equal_once_joined_are_refused_for_the_record_only(lake: Lake) -> None:
    inner = struct(("p", LONG))
    clash = struct(("s", inner), ("s.p", LONG))
    lake.put([{"s": {"p": 1}, "s.p": 2}], clash)
    assert refusals(lake) == [(0, "iceberg.schema")]
    lake.put([{"s": {"p": 1}}], struct(("s", inner)))
    lake.put([{"s": {"p": 1}, "s.p": 2}] * 3, clash)
    assert refusals(lake) == [(0, "iceberg.schema"), (1, "iceberg.schema"), (2, "iceberg.schema")]
    assert lake.rows() == [{"s": {"p": 1}}]


def test_refused_schema_does_not_end_files(lake: Lake) -> None:
    inner = struct(("p", LONG))
    lake.put([{"s": {"p": 0}}], struct(("s", inner)))
    runner = lake.runner(40, "run-x")
    clash = struct(("s", inner), ("s.p", LONG))
    for offset in range(0, 40, 2):
        runner.put(record(offset, struct(("s", inner)), {"s": {"p": offset}}))
        runner.put(record(offset + 1, clash, {"s": {"p": 1}, "s.p": 2}))
    assert [file.records for file in runner.staged_files()] == [1, 19]
    runner.close()


def test_everything_that_is_created_is_optional_if_asked(lake: Lake) -> None:
    lake.set(**{"iceberg_tables_schema-force-optional": "true"})
    inner = struct(("x", LONG))
    lake.put([{"s": {"x": 1}, "l": [{"x": 1}], "m": {"k": {"x": 1}}}],
             struct(("s", inner), ("l", array(inner)), ("m", map_of(TEXT, inner))))  # fmt: skip
    assert "required" not in " ".join(columns(lake))
    fields = lake.table().schema()._lazy_id_to_field
    assert [field.name for field in fields.values() if field.required] == ["key"]


def test_fields_are_dropped_and_counted_if_tables_do_not_evolve(lake: Lake) -> None:
    lake.put([{"a": 1}], struct(("a", LONG)))
    lake.set(**{"iceberg_tables_evolve-schema-enabled": "false"})
    more = struct(("a", LONG), ("b", LONG), ("c", struct(("d", LONG))))
    lake.put([{"a": 1, "b": 2, "c": {"d": 1}}] * 2, more)
    (note,) = lake.notes
    assert note.startswith(
        f"Table {TABLE} does not have these fields of the records, so they were dropped: b (2 times),"
    )
    assert "c (2 times)" in note
    lake.put([{"a": None}, {"a": 7}], struct(("a", SOME_LONG)))
    assert refusals(lake) == [(0, "iceberg.value")]
    assert [row["a"] for row in lake.rows()] == [7, 1, 1, 1]


def test_columns_without_a_field_are_null_also_structs_with_required_members(lake: Lake) -> None:
    inner = StructType(NestedField(3, "x", LongType(), required=True), NestedField(4, "u", UUIDType(), required=True))
    lake.create(IcebergSchema(
        NestedField(1, "a", LongType(), required=True), NestedField(2, "s", inner, required=False),
        NestedField(5, "l", ListType(6, StructType(NestedField(7, "u", UUIDType(), required=True))), required=False),
        NestedField(8, "m", MapType(9, StringType(), 10, UUIDType(), True), required=False),
    ))  # fmt: skip
    (file,) = lake.put([{"a": 1}, {"a": 2}], struct(("a", LONG)))
    rows = pq.read_table(file.token["path"].removeprefix("file://")).to_pylist()
    assert rows == [{"a": n, "s": None, "l": None, "m": None} for n in (1, 2)]


def opened(lake: Lake) -> OpenTable:
    return OpenTable(load_table(lake.catalog, TABLE), IcebergConfig.from_config(lake.config), "run-x")


def test_two_tasks_change_a_table_at_the_same_time(lake: Lake) -> None:
    lake.put([{"a": 1}], struct(("a", INT)))
    tasks = [opened(lake) for _ in range(3)]
    tasks[0].evolve(struct(("a", LONG), ("b", LONG)))
    tasks[1].evolve(struct(("a", LONG), ("b", LONG), ("c", TEXT)))
    tasks[2].evolve(struct(("a", INT), ("b", TEXT)))  # The other was faster: its values are refused one by one.
    assert columns(lake) == ["a: required long", "b: optional long", "c: optional string"]
    assert tasks[1].fits(struct(("a", LONG), ("b", LONG), ("c", TEXT)))
    with pytest.raises(SchemaError, match="tell apart"):
        tasks[0].evolve(struct(("a", LONG), ("C", TEXT)))


def test_table_that_changes_between_writing_and_commit(lake: Lake) -> None:
    schema = struct(("a", INT), ("b", INT), ("c", INT))
    lake.put([{"a": 1, "b": 1, "c": 1}], schema)
    staged = lake.put([{"a": 2, "b": 2, "c": 2}], schema, publishes=False)
    with lake.table().update_schema() as update:
        update.delete_column("a")
        update.rename_column("b", "renamed")
        update.update_column("c", LongType())
        update.add_column("new", StringType())
    with lake.table().update_spec() as spec:
        spec.add_identity("c")
    lake.publish(staged, "run-2")
    assert lake.rows() == [{"renamed": 2, "c": 2, "new": None}, {"renamed": 1, "c": 1, "new": None}]
    lake.put([{"a": 3, "b": 3, "c": 3}], schema)
    assert lake.refusals.errors == []
    for value in (1, 2, 3):
        assert [row["c"] for row in lake.table().scan(row_filter=f"c = {value}").to_arrow().to_pylist()] == [value]


def test_column_that_partitions_is_dropped_between_writing_and_commit(lake: Lake) -> None:
    lake.set(**{"iceberg_tables_default-partition-by": "a"})
    schema = struct(("a", INT), ("b", INT))
    lake.put([{"a": 1, "b": 1}], schema)
    staged = lake.put([{"a": 2, "b": 2}], schema, publishes=False)
    with lake.table().update_spec() as spec:
        spec.remove_field("a")
    with lake.table().update_schema() as update:
        update.delete_column("a")
    lake.publish(staged, "run-2")
    lake.put([{"a": 3, "b": 3}], schema)
    assert refusals(lake) == [(0, "iceberg.schema")]  # Iceberg keeps the name for the partitions that are there.
    lake.put([{"b": 3}], struct(("b", INT)))
    assert sorted(row["b"] for row in lake.rows()) == [1, 2, 3]
    for value in (1, 2, 3):
        assert [row["b"] for row in lake.table().scan(row_filter=f"b = {value}").to_arrow().to_pylist()] == [value]
