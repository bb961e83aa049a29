"""Values beside a JSON Schema: read, written, round trips."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from airflow_connect.converters.json.reader import ReadOptions
from airflow_connect.converters.json.text import MISSING, parse_exact
from airflow_connect.converters.json_schema_mapping import names
from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
from airflow_connect.converters.json_schema_mapping.references import References
from airflow_connect.converters.json_schema_mapping.to_connect import schema_to_connect
from airflow_connect.converters.json_schema_mapping.values import value_reader, value_writer
from airflow_connect.errors import DataError

UNION = struct(
    *(
        (f"{names.ONE_OF}.field.{n}", replace(member, optional=True))
        for n, member in enumerate((INT64, STRING, struct(("a", INT64)), struct(("a", INT64), ("b", INT64))))
    ),
    name=names.ONE_OF,
)


def held(index: int, value: Any) -> dict[str, Any]:
    return {**dict.fromkeys(UNION.fields_by_name), f"{names.ONE_OF}.field.{index}": value}


def write(schema: Schema, value: Any, **options: Any) -> str | None:
    return value_writer(schema, JsonSchemaOptions(**options))(value)


@pytest.mark.parametrize(
    ("schema", "node", "expected"),
    [
        (FLOAT64, 1, 1.0),
        (map_of(STRING, INT64), {"a": 1}, {"a": 1}),
        (map_of(INT32, STRING), [{"key": 1, "value": "x"}], {1: "x"}),
        (map_of(OPTIONAL_STRING, STRING), [{"key": None, "value": "x"}], {None: "x"}),
        (struct(("a", INT64), ("b", STRING)), {"a": 1, "z": 5}, {"a": 1, "b": None}),
        (struct(("a", replace(INT64, default=7))), {}, {"a": 7}),
        (struct(("a", replace(INT64, default=7))), {"a": None}, {"a": 7}),
        (decimal(2), Decimal("1.50"), Decimal("1.50")),
        (decimal(2), "AJY=", Decimal("1.50")),
        (BYTES, "AQI=", b"\x01\x02"),
        (UNION, 5, held(0, 5)),
        (UNION, "x", held(1, "x")),
        (UNION, {"a": 1}, held(2, {"a": 1})),
        (UNION, {"a": 1, "b": 2}, held(3, {"a": 1, "b": 2})),
        (INT64, MISSING, None),
    ],
)
def test_json_read_is_the_value(schema: Schema, node: Any, expected: Any) -> None:
    assert value_reader(schema)(node) == expected


@pytest.mark.parametrize(
    ("schema", "node", "said"),
    [
        (INT64, None, "null value for required INT64"),
        (struct(("a", INT64)), [1], "Structs should be encoded as JSON objects, but found ARRAY"),
        (map_of(STRING, INT64), [1], "JSON objects, but found ARRAY"),
        (map_of(INT32, INT64), {"a": 1}, "array of objects, but found OBJECT"),
        (map_of(INT32, INT64), [[1, 2]], "instead of object: ARRAY"),
        (map_of(INT32, INT64), [{"key": 1}], "expected length 2 but found 1"),
        (UNION, True, "Did not find matching oneof field"),
        (decimal(2), "no base64!", "Decimal"),
        (date(), "2020-01-01", "Date"),
    ],
)
def test_json_that_does_not_fit_is_refused(schema: Schema, node: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        value_reader(schema)(node)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (struct(("a", INT64), ("b", STRING)), {"a": 1}, '{"a":1}'),
        (struct(("a", OPTIONAL_STRING)), {"a": None}, '{"a":null}'),
        (struct(("a", replace(STRING, default="d"))), {"a": None}, '{"a":"d"}'),
        (map_of(STRING, FLOAT64), {"k": 1e10}, '{"k":1.0E10}'),
        (map_of(INT32, STRING), {1: "x"}, '[{"key":1,"value":"x"}]'),
        (array(OPTIONAL_STRING), [None, "x"], '[null,"x"]'),
        (UNION, held(1, "x"), '"x"'),
        (replace(UNION, optional=True), held(1, None), "null"),
        (replace(STRING, optional=True), None, "null"),
        (STRING, None, None),
        (decimal(2), Decimal("1.50"), '"AJY="'),
    ],
)
def test_value_written_is_the_json(schema: Schema, value: Any, text: str | None) -> None:
    assert write(schema, value) == text


def test_options_change_what_is_written() -> None:
    assert write(decimal(2), Decimal("1.50"), numeric_decimals=True) == "1.50"
    optional = replace(STRING, optional=True, default="d")
    assert write(optional, None) == '"d"'
    assert write(optional, None, ignore_default_for_nullables=True) == "null"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8, 200),
        (INT64, "1"),
        (array(INT64), 5),
        (map_of(STRING, INT64), [1]),
        (map_of(STRING, INT64), {None: 1}),
        (struct(("a", INT64)), {"b": 1}),
        (struct(("a", INT64)), [1]),
    ],
)
def test_value_that_does_not_fit_its_schema_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        write(schema, value)


VALUES: dict[Schema, st.SearchStrategy[Any]] = {
    INT8: st.integers(-128, 127),
    INT16: st.integers(-(1 << 15), (1 << 15) - 1),
    INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    FLOAT32: st.floats(width=32, allow_nan=False, allow_infinity=False),
    FLOAT64: st.floats(allow_nan=False, allow_infinity=False),
    BOOLEAN: st.booleans(),
    STRING: st.text(st.characters(codec="utf-8"), max_size=6),
    BYTES: st.binary(max_size=6),
    decimal(3): st.integers(-(10**30), 10**30).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -3))),
    date(): st.integers(-(1 << 31), (1 << 31) - 1),
    time(): st.integers(0, 86_399_999),
    timestamp(): st.integers(-(1 << 63), (1 << 63) - 1),
}
SCALARS = st.integers(0, len(VALUES) - 1).map(list(VALUES).__getitem__)
MAP_KEYS = st.integers(0, 2).map([STRING, INT32, OPTIONAL_STRING].__getitem__)
FIELD_NAMES = ("a", "", "\u00e9 \u20ac", '"x"')
SCHEMAS = st.recursive(
    st.builds(lambda schema, optional: replace(schema, optional=optional), SCALARS, st.booleans()),
    lambda inner: st.one_of(
        st.builds(lambda e, o: array(e, optional=o), inner, st.booleans()),
        st.builds(map_of, MAP_KEYS, inner),
        st.lists(inner, max_size=4).map(lambda schemas: struct(*zip(FIELD_NAMES, schemas, strict=False))),
    ),
    max_leaves=8,
)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    # Without this shell hypothesis writes all of the strategy into its report, and warns that it is too long.
    return draw(SCHEMAS)


def value_of(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.type is Type.ARRAY and schema.value_schema:
        made = st.lists(value_of(schema.value_schema), max_size=3)
    elif schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        made = st.dictionaries(value_of(schema.key_schema), value_of(schema.value_schema), max_size=3)
    elif schema.type is Type.STRUCT:
        made = st.fixed_dictionaries({f.name: value_of(f.schema) for f in schema.fields})
    else:
        made = VALUES[replace(schema, optional=False)]
    return st.none() | made if schema.optional else made


@settings(deadline=None)
@given(st.data(), st.booleans())
def test_value_written_and_read_is_the_same(data: st.DataObject, numeric: bool) -> None:
    schema = data.draw(schemas())
    value = data.draw(value_of(schema))
    text = write(schema, value, numeric_decimals=numeric)
    assert text is not None
    assert value_reader(schema)(parse_exact(text.encode())) == value


def test_numbers_that_are_not_finite_are_written_as_text_as_jackson_does() -> None:
    assert [write(FLOAT64, number) for number in (math.nan, math.inf)] == ['"NaN"', '"Infinity"']


@pytest.mark.parametrize("generalized", [False, True])
@pytest.mark.parametrize("is_optional", [False, True])
def test_value_of_an_enum_that_is_not_text_is_an_error(generalized: bool, is_optional: bool) -> None:
    options = JsonSchemaOptions(generalized_sum_types=generalized)
    schema = schema_to_connect(References('{"enum": ["A", 1, true, null, [2]], "default": "A"}', {}), options)
    read = value_reader(replace(schema, optional=is_optional, default=None))
    assert read("A") == "A"
    for node, kind in ((1, "NUMBER"), (1.5, "NUMBER"), (True, "BOOLEAN"), ([2], "ARRAY"), ({}, "OBJECT")):
        with pytest.raises(DataError, match=f"The value of an enum is {kind}"):
            read(node)


@pytest.mark.parametrize(
    ("first", "second", "node"),
    [
        ({"properties": {"n": {"type": "integer"}}}, {"properties": {"n": {"type": "string"}}}, {"n": "text"}),
        ({"items": {"type": "integer"}}, {"items": {"type": "string"}}, ["text"]),
        ({"type": "integer", "connect.type": "int8"}, {"type": "integer"}, 300),
        # More names are in the first one, but not their types.
        (
            {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
            {"properties": {"a": {"type": "string"}}},
            {"a": "text"},
        ),
        (
            {"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}},
            {"properties": {"a": {"type": "string"}}},
            {"a": "text"},
        ),
        ({"enum": ["x"]}, {"enum": ["y"]}, "y"),
        ({"enum": ["x"]}, {"type": "string"}, "free"),
    ],
)
def test_union_takes_the_type_that_changes_nothing(first: Any, second: Any, node: Any) -> None:
    schema = schema_to_connect(References(json.dumps({"oneOf": [first, second]}), {}), JsonSchemaOptions())
    one, other = (f"{names.ONE_OF}.field.{n}" for n in range(2))
    assert value_reader(schema)(node) == {one: None, other: node}


def test_union_takes_a_type_that_lacks_a_member_before_one_that_changes_others() -> None:
    more = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}}
    fewer = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    schema = schema_to_connect(References(json.dumps({"oneOf": [more, fewer]}), {}), JsonSchemaOptions())
    found = value_reader(schema)({"a": "x", "b": "y", "c": 1})
    assert found == {f"{names.ONE_OF}.field.0": None, f"{names.ONE_OF}.field.1": {"a": "x", "b": "y"}}


def test_union_with_two_values_is_not_written() -> None:
    one, other = (f"{names.ONE_OF}.field.{n}" for n in range(2))
    assert write(UNION, held(0, 5)) == "5"
    with pytest.raises(DataError, match="several of its fields"):
        write(UNION, {one: 5, other: "x"})


def test_union_without_a_type_that_fits_reads_as_confluent() -> None:
    kinds = [{"properties": {"n": {"type": "integer"}}}, {"properties": {"n": {"type": "boolean"}}}]
    schema = schema_to_connect(References(json.dumps({"oneOf": kinds}), {}), JsonSchemaOptions())
    assert value_reader(schema)({"n": "text"})[f"{names.ONE_OF}.field.0"] == {"n": 0}
    with pytest.raises(DataError, match="is text, but the type is INT64"):
        value_reader(schema, ReadOptions(is_strict=True))({"n": "text"})
