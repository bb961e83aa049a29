"""Avro schemas as Connect schemas: the meaning of Confluent's AvroData."""

from __future__ import annotations

import io
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.parsing import parsed_for_reading, parsed_for_writing
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.errors import DataError, SchemaError

N = "io.confluent.connect.avro"


def _schema(avro_type: Any, version: int | None = None, **settings: bool) -> Schema:
    found = read_schema(avro_type, [], AvroSettings(**settings), version).schema
    assert found is not None
    return found


def _value(avro_type: Any, value: Any, **settings: bool) -> Any:
    """What a value becomes that is written as Avro and read back."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, parsed_for_writing(avro_type), value)
    stream.seek(0)
    plain = fastavro.schemaless_reader(stream, parsed_for_reading(avro_type), None)
    change = read_schema(avro_type, [], AvroSettings(**settings)).change
    return plain if change is None else change(plain)


def _record(*fields: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "namespace": "n", "fields": list(fields), **extra}


@pytest.mark.parametrize(
    ("avro_type", "schema"),
    [
        ("int", s.INT32),
        ("long", s.INT64),
        ("float", s.FLOAT32),
        ("double", s.FLOAT64),
        ("boolean", s.BOOLEAN),
        ("string", s.STRING),
        ("bytes", s.BYTES),
        ({"type": "int", "connect.type": "int8"}, s.INT8),
        ({"type": "int", "connect.type": "int16"}, s.INT16),
        ({"type": "int", "logicalType": "date"}, s.date()),
        ({"type": "int", "logicalType": "time-millis"}, s.time()),
        ({"type": "long", "logicalType": "timestamp-millis"}, s.timestamp()),
        ({"type": "long", "logicalType": "timestamp-micros"}, s.INT64),
        ({"type": "long", "logicalType": "time-micros"}, s.INT64),
        ({"type": "int", "logicalType": "unknown", "connect.type": "int8"}, s.INT32),
        ({"type": "string", "logicalType": "uuid"}, s.STRING),
        (["null", "int"], s.OPTIONAL_INT32),
        (["int", "null"], s.OPTIONAL_INT32),
        (["int"], s.INT32),
        ({"type": "array", "items": ["null", "string"]}, s.array(s.OPTIONAL_STRING)),
        ({"type": "map", "values": "long"}, s.map_of(s.STRING, s.INT64)),
        ({"type": {"type": "long", "logicalType": "timestamp-millis"}}, s.timestamp()),
    ],
)
def test_read_schema_types_are_those_of_avro_data(avro_type: Any, schema: Schema) -> None:
    assert _schema(avro_type) == schema


def test_read_schema_decimal_precision_64_is_not_kept_and_others_are() -> None:
    bytes_of = {"type": "bytes", "logicalType": "decimal", "scale": 2}
    assert _schema({**bytes_of, "precision": 64}) == s.decimal(2)
    assert _schema({**bytes_of, "precision": 9}).parameters == {"scale": "2", "connect.decimal.precision": "9"}
    assert _value({**bytes_of, "precision": 9}, b"\xff\x85") == Decimal("-1.23")


def test_read_schema_decimal_on_fixed_keeps_the_decimal_name_and_the_size() -> None:
    money = {"type": "fixed", "name": "Money", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 1}
    schema = _schema(money)
    assert (schema.name, schema.parameters["connect.fixed.size"]) == (s.DECIMAL, "3")
    assert _value(money, b"\x00\x00\x7b") == Decimal("12.3")


def test_read_schema_fixed_has_name_and_size() -> None:
    schema = _schema({"type": "fixed", "name": "n.Id", "size": 4})
    assert (schema.type, schema.name, dict(schema.parameters)) == (Type.BYTES, "n.Id", {"connect.fixed.size": "4"})


def test_read_schema_enum_is_a_string_with_its_symbols() -> None:
    enum = {"type": "enum", "name": "Color", "namespace": "n", "symbols": ["RED", "BLUE"], "doc": "d", "default": "RED"}
    schema = _schema(enum)
    assert (schema.type, schema.name) == (Type.STRING, "n.Color")
    assert list(schema.parameters.items()) == [
        (f"{N}.enum.doc.Color", "d"),
        (f"{N}.enum.default.Color", "RED"),
        (f"{N}.Enum", "n.Color"),
        (f"{N}.Enum.RED", "RED"),
        (f"{N}.Enum.BLUE", "BLUE"),
    ]
    generalized = _schema(enum, generalized_sum_types=True).parameters
    assert generalized["org.apache.kafka.connect.data.Enum.BLUE"] == "1"


def test_read_schema_record_keeps_docs_as_parameters_and_version_of_the_registry() -> None:
    record = _record({"name": "a", "type": "int", "doc": "of a"}, doc="of R", **{"connect.doc": "own"})
    schema = _schema(record, version=3)
    assert (schema.name, schema.version, schema.doc) == ("n.R", 3, "own")
    assert dict(schema.parameters) == {f"{N}.record.doc": "of R", f"{N}.field.doc.a": "of a"}
    assert _schema({**record, "connect.version": 7}, version=3).version == 7


def test_read_schema_discard_type_doc_default_keeps_the_doc_of_the_field() -> None:
    record = _record({"name": "a", "type": "int", "doc": "of a", "default": 4}, doc="of R")
    schema = _schema(record, discard_type_doc_default=True)
    (field,) = schema.fields
    assert (schema.doc, field.schema.doc, field.schema.default) == ("of R", "of a", 4)
    assert not field.schema.parameters
    assert dict(schema.parameters) == {"connect.record.doc": "of R"}


def test_read_schema_without_meta_data_keeps_name_and_version_only() -> None:
    schema = _schema(
        _record(doc="d", **{"connect.version": 2, "connect.doc": "x", "connect.parameters": {"p": "q"}}),
        connect_meta_data=False,
    )
    assert (schema.name, schema.version, schema.doc, dict(schema.parameters)) == ("n.R", 2, None, {})


def test_read_schema_connect_properties_are_read() -> None:
    avro_type = {
        "type": "string",
        "connect.name": "my.Text",
        "connect.version": 5,
        "connect.doc": "d",
        "connect.default": "x",
        "connect.parameters": {"p": "q"},
        "avro.java.string": "String",
    }
    expected = replace(
        s.STRING,
        name="my.Text",
        version=5,
        doc="d",
        default="x",
        parameters={"p": "q", "avro.java.string": "String"},
    )
    assert _schema(avro_type) == expected


def test_read_schema_record_without_own_name_has_none() -> None:
    record = {"type": "record", "name": "ConnectDefault2", "namespace": N, "fields": [{"name": "a", "type": "int"}]}
    assert _schema(record).name is None


@pytest.mark.parametrize(
    ("avro_type", "given", "default"),
    [
        ("int", 3, 3),
        ("double", 1, 1.0),
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, "\u007b", Decimal("12.3")),
        ({"type": "array", "items": "int"}, [1], [1]),
        ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
        (_record({"name": "x", "type": "int"}, {"name": "y", "type": "int", "default": 2}), {"x": 1}, {"x": 1, "y": 2}),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"),
        (["string", "int"], "x", {"string": "x", "int": None}),
    ],
)
def test_read_schema_field_default_is_a_connect_value(avro_type: Any, given: Any, default: Any) -> None:
    record = {"type": "record", "name": "Outer", "fields": [{"name": "f", "type": avro_type, "default": given}]}
    (field,) = _schema(record).fields
    assert field.schema.default == default
    assert field.schema.parameters[f"{N}.field.default"] == "true"


def test_read_schema_default_of_a_nullable_field_is_dropped_as_confluent_does() -> None:
    (field,) = _schema(_record({"name": "f", "type": ["string", "null"], "default": "x"})).fields
    assert field.schema == s.OPTIONAL_STRING


def test_read_schema_default_of_another_type_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    (field,) = _schema(_record({"name": "f", "type": "int", "default": "x"})).fields
    assert field.schema.default is None
    assert "does not fit its type" in caplog.text


def test_read_schema_union_is_a_struct_with_one_field_for_each_branch() -> None:
    union = ["null", "int", "long", {"type": "record", "name": "a.Rec", "fields": [{"name": "x", "type": "int"}]}]
    schema = _schema(union)
    assert (schema.name, schema.optional) == (f"{N}.Union", True)
    assert [(f.name, f.schema.optional) for f in schema.fields] == [("int", True), ("long", True), ("Rec", True)]
    assert _value(union, ("long", 5)) == {"int": None, "long": 5, "Rec": None}
    assert _value(union, ("a.Rec", {"x": 1})) == {"int": None, "long": None, "Rec": {"x": 1}}
    assert _value(union, None) is None
    assert [f.name for f in _schema(union, enhanced_schema=True).fields] == ["int", "long", "a.Rec"]


def test_read_schema_generalized_union_counts_its_branches() -> None:
    schema = _schema(["null", "int", "string"], generalized_sum_types=True)
    assert schema.name == "connect_union_0"
    assert schema.parameters["org.apache.kafka.connect.data.Union"] == "connect_union_0"
    assert [f.name for f in schema.fields] == ["connect_union_field_1", "connect_union_field_2"]


def test_read_schema_singleton_union_is_flattened_unless_told_otherwise() -> None:
    assert _value(["int"], 5) == 5
    assert [f.name for f in _schema(["int"], flatten_singleton_union=False).fields] == ["int"]
    assert _value(["int"], 5, flatten_singleton_union=False) == {"int": 5}


def test_read_schema_array_of_map_entries_is_a_map() -> None:
    entry = {
        "type": "record",
        "name": "MapEntry",
        "namespace": N,
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}],
    }
    array = {"type": "array", "items": entry}
    assert _schema(array) == s.map_of(s.INT32, s.OPTIONAL_STRING)
    assert _value(array, [{"key": 1, "value": "a"}, {"key": 2, "value": None}]) == {1: "a", 2: None}
    named = {**entry, "name": "Mine", "namespace": "n", "connect.internal.type": "MapEntry"}
    assert _schema({"type": "array", "items": named}).type is Type.MAP


@pytest.mark.parametrize(
    ("bits", "value"), [(8, 128), (8, -129), (8, 300), (16, 32768), (16, -32769), (16, (1 << 31) - 1)]
)
def test_read_change_value_beyond_the_bits_of_its_connect_type_is_an_error(bits: int, value: int) -> None:
    with pytest.raises(DataError, match=f"An Avro int is {value}, beyond the {bits} bits of its type"):
        _value({"type": "int", "connect.type": f"int{bits}"}, value)


def test_read_change_int_beyond_32_bits_is_an_error() -> None:
    change = read_schema("int", [], AvroSettings()).change
    assert change is not None
    with pytest.raises(DataError, match="beyond the 32 bits of its type"):
        change(1 << 40)


@pytest.mark.parametrize(
    ("avro_type", "reason"),
    [
        (_record({"name": "next", "type": ["null", "R"]}), "the type n.R contains itself"),
        ("null", "standalone null schemas"),
        ({"type": "int", "connect.type": "int64"}, "connect.type int64"),
        ({"type": "long", "connect.name": s.DATE}, "needs INT32"),
        ({"type": "bytes", "connect.name": s.DECIMAL}, "scale parameter not found"),
        ({"type": "int", "logicalType": "date", "connect.version": 2}, "mismatched versions"),
        ({"type": "int", "logicalType": "date", "connect.name": "x"}, "mismatched names"),
        ({"type": "int", "connect.parameters": {"a": 1}}, "JSON object of strings"),
        ({"type": "array", "items": "Unknown"}, "is not defined"),
        ({"items": "int"}, "without a type"),
        (["int", {"type": "int", "connect.type": "int8"}], "multiple union schemas"),
    ],
)
def test_read_schema_what_connect_cannot_say_is_an_error(avro_type: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        read_schema(avro_type, [], AvroSettings())


def test_read_schema_type_used_twice_and_by_short_name_is_read_twice() -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int"}]}
    schema = _schema(_record({"name": "a", "type": inner}, {"name": "b", "type": ["null", "In"]}))
    a, b = schema.fields
    assert (a.schema.name, b.schema.name, b.schema.optional) == ("n.In", "n.In", True)
    assert b.schema == replace(a.schema, optional=True)
