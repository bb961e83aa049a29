"""Connect to Avro and back is the identity, for every schema that Avro can carry."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema
from airflow_connect.converters.avro.anything import ANYTHING_SCHEMA, anything_of, read_anything
from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.names import AvroSettings, scrub
from airflow_connect.converters.avro.parsing import parsed_for_reading, parsed_for_writing
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.errors import DataError, SchemaError
from tests.unit.formats.connect_values import schemas, values_of

N = "io.confluent.connect.avro"


def _round_trip(schema: Schema, value: Any, **given_settings: bool) -> tuple[Any, Schema | None, Any]:
    """The Avro schema, and what is read back."""
    mapping = AvroMapping(AvroSettings(**given_settings))
    avro_type = json.loads(json.dumps(mapping.avro_schema(schema)))
    change, stream = mapping.transform(schema), io.BytesIO()
    fastavro.schemaless_writer(stream, parsed_for_writing(avro_type), value if change is None else change(value))
    stream.seek(0)
    plain = fastavro.schemaless_reader(stream, parsed_for_reading(avro_type), None)
    read = read_schema(avro_type, [], mapping.settings)
    return avro_type, read.schema, plain if read.change is None else read.change(plain)


@settings(deadline=None)
@given(st.data())
def test_round_trip_random_schema_and_value_comes_back(data: st.DataObject) -> None:
    schema = data.draw(schemas)
    value = data.draw(values_of(schema))
    _, read, found = _round_trip(schema, value)
    assert read == schema
    assert found == value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (replace(s.STRING, name="n.Text", version=3, doc="d", parameters={"p": "q"}, default="x"), "y"),
        (replace(s.OPTIONAL_INT64, default=4), 5),
        (replace(s.decimal(2), parameters={"scale": "2", "connect.decimal.precision": "9"}), None),
        (replace(s.struct(("a", s.INT8), name="n.R"), doc="d", version=2, parameters={f"{N}.record.doc": "x"}), None),
        (replace(s.BYTES, name="n.Id", parameters={"connect.fixed.size": "2"}), b"ab"),
        (s.struct(("a", replace(s.INT32, default=1)), name="n.R"), {"a": 2}),
    ],
)
def test_round_trip_attributes_of_schemas_come_back(schema: Schema, value: Any) -> None:
    avro_type = AvroMapping(AvroSettings()).avro_schema(schema)
    assert read_schema(avro_type, [], AvroSettings()).schema == schema
    if value is not None:
        assert _round_trip(schema, value)[2] == value


def test_round_trip_enum_is_kept_with_enhanced_support_and_a_string_without() -> None:
    parameters = {f"{N}.Enum": "n.Color", f"{N}.Enum.RED": "RED", f"{N}.Enum.BLUE": "BLUE"}
    enum = Schema(s.Type.STRING, name="n.Color", parameters=parameters)
    avro_type, read, value = _round_trip(enum, "BLUE", enhanced_schema=True)
    assert (avro_type["type"], avro_type["symbols"]) == ("enum", ["RED", "BLUE"])
    assert (read, value) == (enum, "BLUE")
    avro_type, read, value = _round_trip(enum, "BLUE")
    assert (avro_type["type"], read, value) == ("string", enum, "BLUE")


def _union(*members: tuple[str, Schema], optional: bool = False) -> Schema:
    return s.struct(*members, name=f"{N}.Union", optional=optional)


@pytest.mark.parametrize(
    "value", [{"int": 1, "long": None, "In": None}, {"int": None, "long": 2, "In": None}, None,
              {"int": None, "long": None, "In": {"x": "y"}}],
)  # fmt: skip
def test_round_trip_union_keeps_the_branch(value: dict[str, Any] | None) -> None:
    inner = s.struct(("x", s.STRING), name="n.In", optional=True)
    union = _union(("int", s.OPTIONAL_INT32), ("long", s.OPTIONAL_INT64), ("In", inner), optional=True)
    schema = s.struct(("u", union), name="n.R")
    avro_type, read, found = _round_trip(schema, {"u": value})
    kinds = [t if isinstance(t, str) else t["type"] for t in avro_type["fields"][0]["type"]]
    assert kinds == ["null", "int", "long", "record"]
    # The field's null default is one that came from Avro, and AvroData says so.
    flagged = replace(union, parameters={f"{N}.field.default": "true"})
    assert (read, found) == (s.struct(("u", flagged), name="n.R"), {"u": value})


def test_union_with_two_values_is_not_written() -> None:
    schema = s.struct(("u", _union(("int", s.OPTIONAL_INT32), ("long", s.OPTIONAL_INT64))), name="n.R")
    with pytest.raises(DataError, match="several of its fields, int, long"):
        _round_trip(schema, {"u": {"int": 0, "long": 2}})


def test_round_trip_null_is_the_default_unless_told_otherwise() -> None:
    schema = s.struct(("a", replace(s.OPTIONAL_STRING, default="x")), name="R")
    assert _round_trip(schema, {"a": None})[2] == {"a": "x"}
    assert _round_trip(schema, {"a": None}, ignore_default_for_nullables=True)[2] == {"a": None}


def test_avro_schema_two_fields_that_are_scrubbed_to_one_name_are_refused() -> None:
    mapping = AvroMapping(AvroSettings(scrub_invalid_names=True))
    inner = s.struct(("a-b", s.INT32), ("a_b", s.INT32))
    with pytest.raises(SchemaError, match="Two fields of inner would have the name a_b in Avro"):
        mapping.avro_schema(s.struct(("inner", inner)))


def test_avro_schema_invalid_names_are_scrubbed_when_asked() -> None:
    schema = s.struct(("a-b", s.INT32), ("1c", s.INT32), name="my-ns.my type")
    avro_type, _, value = _round_trip(schema, {"a-b": 1, "1c": 2}, scrub_invalid_names=True)
    assert (avro_type["name"], avro_type["namespace"]) == ("my_type", "my_ns")
    assert value == {"a_b": 1, "x1c": 2}
    with pytest.raises(DataError, match="Avro does not allow the name"):
        AvroMapping(AvroSettings()).avro_schema(schema)


@pytest.mark.parametrize(
    ("name", "scrubbed"), [("plain_1", "plain_1"), ("a b", "a_b"), ("a.b", "a_b"), ("1x", "x1x"), ("ä", "_C3_A4")]
)
def test_scrub_is_confluents(name: str, scrubbed: str) -> None:
    assert scrub(name) == scrubbed


def test_avro_schema_default_of_an_avro_field_is_written_to_the_field_only() -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 3}]}
    read = read_schema(record, [], AvroSettings()).schema
    assert read is not None
    written = AvroMapping(AvroSettings()).avro_schema(read)
    assert written["fields"] == [{"name": "a", "type": "int", "default": 3}]


@pytest.mark.parametrize(
    "value", [None, True, b"x", 1.5, 7, "text", [1, None, ["x"]], {"a": 1, "b": {"c": []}}, {1: None}]
)
def test_anything_schemaless_value_comes_back(value: Any) -> None:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, parsed_for_writing(ANYTHING_SCHEMA), anything_of(value))
    data = stream.getvalue()
    assert read_schema(ANYTHING_SCHEMA, [], AvroSettings()) == (None, None)
    assert read_anything(b"before" + data, 6) == (value, 6 + len(data))


def test_anything_deep_nesting_is_an_error_and_no_crash() -> None:
    depth = 20_000
    with pytest.raises(RecursionError):
        read_anything((b"\0" * 7 + b"\x02\x02") * depth + b"\0" * 9 + b"\0\0" * depth, 0)


@given(st.binary(max_size=60))
def test_anything_random_bytes_are_a_value_or_an_error(data: bytes) -> None:
    try:
        _, end = read_anything(data, 0)
    except (EOFError, IndexError, ValueError):
        end = len(data)
    assert 0 < end <= len(data) or not data


def test_anything_unknown_type_is_a_data_error() -> None:
    with pytest.raises(DataError, match="of the type set"):
        anything_of({1, 2})
