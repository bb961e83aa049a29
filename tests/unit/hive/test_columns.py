"""A Connect schema as columns, by format, and how a table's columns follow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_connect.api import schema as connect
from airflow_connect.api.schema import Schema, Type, array, map_of, struct
from airflow_connect.errors import SchemaError
from airflow_connect.hive.columns import Column, ColumnRules, FileKind, columns_of
from airflow_connect.hive.evolution import evolved
from airflow_connect.hive.types import parse_type

EVERYTHING = struct(
    ("i8", connect.INT8),
    ("i16", connect.INT16),
    ("i32", connect.INT32),
    ("i64", connect.INT64),
    ("f32", connect.FLOAT32),
    ("f64", connect.FLOAT64),
    ("b", connect.BOOLEAN),
    ("s", connect.OPTIONAL_STRING),
    ("raw", connect.BYTES),
    ("dec", connect.decimal(4)),
    ("day", connect.date()),
    ("clock", connect.time()),
    ("at", connect.timestamp(optional=True)),
    ("list", array(connect.date())),
    ("texts", map_of(connect.STRING, connect.decimal(0))),
    ("numbers", map_of(connect.INT32, connect.STRING)),
    ("inner", struct(("x", connect.INT8), ("y", connect.timestamp()))),
)
COMMON = {"i32": "int", "i64": "bigint", "f32": "float", "f64": "double", "b": "boolean", "s": "string"}
TYPED = {
    **COMMON,
    "i8": "tinyint",
    "i16": "smallint",
    "raw": "binary",
    "dec": "decimal(38,4)",
    "day": "date",
    "clock": "int",
    "at": "timestamp",
    "list": "array<date>",
    "texts": "map<string,decimal(38,0)>",
    "numbers": "array<struct<key:int,value:string>>",
    "inner": "struct<x:tinyint,y:timestamp>",
}
JSON = {
    **TYPED,
    "raw": "string",
    "dec": "string",
    "day": "int",
    "at": "bigint",
    "list": "array<int>",
    "texts": "map<string,string>",
    "numbers": "array<array<string>>",
    "inner": "struct<x:tinyint,y:bigint>",
}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (ColumnRules(FileKind.PARQUET), TYPED),
        (ColumnRules(FileKind.ORC), {**TYPED, "clock": "timestamp", "numbers": "map<int,string>"}),
        (ColumnRules(FileKind.AVRO), {**TYPED, "i8": "int", "i16": "int", "inner": "struct<x:int,y:timestamp>"}),
        (ColumnRules(FileKind.JSON), JSON),
        (
            ColumnRules(FileKind.JSON, numeric_decimals=True),
            {**JSON, "dec": "decimal(38,4)", "texts": "map<string,decimal(38,0)>"},
        ),
    ],
    ids=lambda value: value.kind.name if isinstance(value, ColumnRules) else "",
)
def test_every_type_has_a_column_type_in_the_order_of_fields(rules, expected):
    columns = columns_of(EVERYTHING, rules)
    assert [column.name for column in columns] == [field.name for field in EVERYTHING.fields]
    assert {column.name: str(column.type) for column in columns} == expected


def test_maps_with_optional_text_keys_follow_the_key_of_the_configuration():
    schema = struct(("m", map_of(connect.OPTIONAL_STRING, connect.INT32)))
    (as_list,) = columns_of(schema, ColumnRules(FileKind.PARQUET))
    (as_map,) = columns_of(schema, ColumnRules(FileKind.PARQUET, allow_optional_map_keys=True))
    assert [str(as_list.type), str(as_map.type)] == ["array<struct<key:string,value:int>>", "map<string,int>"]


def test_documentation_of_a_field_is_the_comment():
    (column,) = columns_of(struct(("a", replace(connect.INT32, doc="how many"))), ColumnRules(FileKind.ORC))
    assert column.comment == "how many"


@pytest.mark.parametrize("kind", [FileKind.JSON, FileKind.TEXT])
def test_lines_without_schema_are_one_column(kind):
    assert [(c.name, str(c.type)) for c in columns_of(None, ColumnRules(kind))] == [("value", "string")]


def test_partition_columns_are_left_out_whatever_their_case():
    schema = struct(("City", connect.STRING), ("id", connect.INT32))
    assert [c.name for c in columns_of(schema, ColumnRules(FileKind.PARQUET), without=("city",))] == ["id"]


@pytest.mark.parametrize(
    ("schema", "without", "says"),
    [
        (connect.STRING, (), "cannot become rows"),
        (struct(("a", connect.INT32), ("A", connect.INT32)), (), "differ only in case"),
        (struct(("a", connect.INT32)), ("a",), "no column is left"),
        (struct(("a", Schema(Type.BYTES, name=connect.DECIMAL, parameters={"scale": "40"}))), (), "40 decimal places"),
    ],
)
def test_schema_without_a_table_is_refused_with_a_sentence(schema, without, says):
    with pytest.raises(SchemaError, match=says) as refused:
        columns_of(schema, ColumnRules(FileKind.PARQUET), without)
    assert refused.value.suggestion


def _columns(**types: str) -> list[Column]:
    return [Column(name, parse_type(kind)) for name, kind in types.items()]


def test_new_columns_come_last_and_old_ones_stay():
    after = evolved(_columns(a="int", gone="string"), _columns(new="date", A="bigint"), "db.t")
    assert [(c.name, str(c.type)) for c in after] == [("a", "bigint"), ("gone", "string"), ("new", "date")]


def test_older_schema_changes_nothing():
    table = tuple(_columns(a="bigint", b="struct<x:int,y:int>"))
    assert evolved(table, _columns(b="struct<x:int>", a="int"), "db.t") == table


def test_types_that_exclude_each_other_are_named_with_table_and_column():
    with pytest.raises(
        SchemaError, match=r"column a of the Hive table db\.t has the type int.*now have string"
    ) as refused:
        evolved(_columns(a="int"), _columns(a="string"), "db.t")
    assert refused.value.code == "hive.schema_conflict"
