from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json.plain import plain_json
from airflow_connect.errors import ConfigError, DataError
from tests.support.session.ids import shown
from tests.support.session.searching import examples

RSVP = s.struct(
    ("id", s.INT64),
    ("city", s.OPTIONAL_STRING),
    ("price", s.decimal(2, optional=True)),
    ("at", s.timestamp()),
    ("tags", s.array(s.STRING, optional=True)),
    name="rsvp",
)
ROW = {"id": 1, "city": "Köln 😀", "price": Decimal("10.50"), "at": 1700000000123, "tags": ["a", "b"]}


def converter(**config: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({key.replace("_", "."): value for key, value in config.items()}, False)
    return made


def envelope(schema: Any, payload: Any, **format: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}, **format).encode()


def test_round_trip_struct_keeps_schema_and_value() -> None:
    c = converter()
    assert c.to_connect("t", c.from_connect("t", RSVP, ROW)) == (RSVP, ROW)


def test_to_connect_same_schema_text_gives_identical_schema_object() -> None:
    c = converter()
    writer = converter()
    other = s.struct(("id", s.INT64))
    seen = [
        c.to_connect("t", writer.from_connect("t", schema, {**ROW, "id": i} if schema is RSVP else {"id": i})).schema
        for i in range(6)
        for schema in (RSVP, other)
    ]
    assert {id(schema) for schema in seen} == {id(seen[0]), id(seen[1])}
    assert (seen[0], seen[1]) == (RSVP, other)


def test_to_connect_payload_before_schema_gives_identical_schema_object() -> None:
    c = converter()
    first = c.to_connect("t", b'{"schema":{"type":"int32"},"payload":1}')
    second = c.to_connect("t", b' {"payload" : 2, "schema": {"type" : "int32"}}')
    assert second.value == 2
    assert first.schema is second.schema


@pytest.mark.parametrize("size", ["0", "1", "2"])
def test_to_connect_more_schemas_than_the_cache_holds_still_converts(size: str) -> None:
    c = converter(schemas_cache_size=size)
    for round_ in range(3):
        for i in range(40):
            data = envelope({"type": "int32", "name": f"n{i}"}, round_)
            assert c.to_connect("t", data) == (s.Schema(s.Type.INT32, name=f"n{i}"), round_)


@pytest.mark.parametrize(
    "tail",
    [b'1,"more":2}', b"1}}", b"1 1}", b'{"a":1},"b":{}}', b"}", b"1}x", b"1"],
    ids=shown,
)
def test_to_connect_known_schema_with_damaged_rest_is_treated_as_the_first_time(tail: bytes) -> None:
    head = b'{"schema":{"type":"int32"},"payload":'
    fresh, warm = converter(), converter()
    assert warm.to_connect("t", head + b"7}").value == 7

    def outcome(c: JsonConverter) -> Any:
        try:
            return c.to_connect("t", head + tail)
        except DataError as error:
            return error.message

    assert outcome(warm) == outcome(fresh)


def test_to_connect_schema_given_twice_teaches_nothing_wrong() -> None:
    c = converter()
    twice = b'{"schema":{"type":"int32"},"payload":1,"schema":{"type":"string"}}'
    assert c.to_connect("t", twice) == (s.STRING, None)
    assert c.to_connect("t", b'{"schema":{"type":"int32"},"payload":1}') == (s.INT32, 1)
    assert c.to_connect("t", twice) == (s.STRING, None)


leaf_schemas = st.sampled_from(
    ["int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes"]
).map(lambda t: {"type": t, "optional": True})
payloads = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(leaf_schemas, min_size=1, max_size=3).map(
        lambda f: {"type": "struct", "fields": [{**x, "field": "abc"[i]} for i, x in enumerate(f)]}
    )
    | leaf_schemas,
    payloads,
    st.sampled_from([None, (",", ":")]),
)
def test_to_connect_second_time_equals_first_time(schema: Any, payload: Any, separators: Any) -> None:
    data = envelope(schema, payload, separators=separators)
    warm = converter()
    warm.to_connect("t", envelope(schema, None if schema["type"] != "struct" else {}, separators=separators))

    def outcome(c: JsonConverter) -> Any:
        try:
            return repr(c.to_connect("t", data))
        except DataError as error:
            return error.message

    assert outcome(warm) == outcome(converter())


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ("int8", "300", 44),
        ("int16", "-32769", 32767),
        ("int32", "1e10", 1410065408),
        ("int32", "-1.9", -1),
        ("int64", "9223372036854775808", -9223372036854775808),
        ("int64", "1E+999999999", 0),
        ("int64", "true", 0),
        ("double", "1e999", math.inf),
        ("double", "1" + "0" * 400, math.inf),
        ("double", '"1.5"', 0.0),
        ("float", "16777217.0000001", 16777218.0),
        ("float", "-1e39", -math.inf),
        ("boolean", '"true"', False),
        ("string", "5", None),
        ("bytes", "5", None),
        ("bytes", '"AP8=\\n"', b"\x00\xff"),
        ("bytes", '""', b""),
    ],
)
def test_to_connect_payload_of_another_type_follows_java(kind: str, payload: str, value: Any) -> None:
    c = converter()
    data = f'{{"schema":{{"type":"{kind}"}},"payload":{payload}}}'.encode()
    assert (c.to_connect("t", data).value, c.to_connect("t", data).value) == (value, value)


@pytest.mark.parametrize(
    ("schema", "payload", "message"),
    [
        ({"type": "struct", "fields": [{"field": "a", "type": "string"}]}, {"a": 5}, 'used for required field: "a"'),
        ({"type": "struct", "fields": [{"field": "a", "type": "int8"}]}, {}, "null value for required INT8 field"),
        ({"type": "struct", "fields": [{"field": "a", "type": "int8"}] * 2}, {}, "field name duplication a"),
        ({"type": "map", "keys": {"type": "int8"}, "values": {"type": "int8"}}, [[1]], "expected length 2"),
        ({"type": "map", "keys": {"type": "int8"}, "values": {"type": "int8"}}, [1], "instead of array tuple: NUMBER"),
        ({"type": "map", "keys": {"type": "string"}, "values": None}, {}, "did not specify the value type"),
        ({"type": "map", "values": {"type": "string"}}, {}, "did not specify the key type"),
        ({"type": "array"}, [], "did not specify the element type"),
        ({"type": "struct"}, {}, "argument is not an array"),
        ({"type": "int8", "parameters": {"a": 1}}, 1, "parameters must have string values"),
        ({"type": "int32", "name": s.TIME}, 86400001, "less than 86400000"),
        ({"type": "int64", "name": s.TIMESTAMP}, "x", "should be integral but was STRING"),
        ({"type": "bytes", "name": s.DECIMAL, "parameters": {"scale": "2"}}, "", "there are none"),
        (
            {"type": "map", "keys": {"type": "array", "items": {"type": "int8"}}, "values": {"type": "int8"}},
            [[[1], 2]],
            "cannot be held in memory",
        ),
    ],
)
def test_to_connect_broken_message_is_a_data_error(schema: Any, payload: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        converter().to_connect("t", envelope(schema, payload))


def test_to_connect_null_with_default_is_replaced_only_when_configured() -> None:
    schema = {"type": "struct", "fields": [{"field": "a", "type": "int32", "optional": True, "default": 5}]}
    assert converter().to_connect("t", envelope(schema, {"a": None})).value == {"a": 5}
    kept = converter(replace_null_with_default="false").to_connect("t", envelope(schema, {"a": None}))
    assert kept.value == {"a": None}
    assert kept.schema is not None
    assert kept.schema.fields[0].schema.default == 5


def test_to_connect_schema_content_reads_plain_payloads_with_that_schema() -> None:
    content = '{"type":"struct","fields":[{"field":"id","type":"int64"},{"field":"p","type":"float"}]}'
    c = converter(schema_content=content)
    first = c.to_connect("t", b'{"id":1,"p":1.1}')
    second = c.to_connect("t", b'{"id":9223372036854775808,"p":2}')
    assert first.schema is second.schema
    assert first.value == {"id": 1, "p": 1.100000023841858}
    assert second.value == {"id": -9223372036854775808, "p": 2.0}
    assert c.to_connect("t", None) == (None, None)


def test_to_connect_schema_content_without_schemas_is_not_used() -> None:
    c = converter(schema_content='{"type":"int8"}', schemas_enable="false")
    assert c.to_connect("t", b"300") == (None, 300)


def test_from_connect_schema_content_is_not_used() -> None:
    c = converter(schema_content='{"type":"int8"}')
    assert c.from_connect("t", s.INT16, 300) == b'{"schema":{"type":"int16","optional":false},"payload":300}'


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schemas.enable", "maybe"),
        ("schemas.cache.size", "many"),
        ("schemas.cache.size", "-1"),
        ("decimal.format", "HEX"),
        ("replace.null.with.default", "1"),
        ("schema.content", '{"type":"long"}'),
        ("schema.content", "{"),
    ],
)
def test_configure_value_that_is_not_accepted_names_the_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        JsonConverter().configure({key: value}, False)
    assert caught.value.config_path == key


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (s.INT8, 128, "Invalid type for INT8"),
        (s.INT32, True, "Invalid type for INT32: bool"),
        (s.FLOAT64, 1, "Invalid type for FLOAT64: int"),
        (s.BOOLEAN, 1, "Invalid type for BOOLEAN"),
        (s.STRING, None, "null value for field that is required"),
        (s.array(s.INT8), {1}, "Invalid type for ARRAY"),
        (s.map_of(s.STRING, s.INT8), [], "Invalid type for MAP"),
        (s.map_of(s.INT8, s.INT8), [], "Invalid type for MAP"),
        (RSVP, {**ROW, "x": 1}, "the struct holds 'x'"),
        (RSVP, {"id": 1, "at": 2, "x": 1}, "the struct holds 'x'"),
        (RSVP, {**ROW, "x": 1, 2: 1}, "the struct holds 2, 'x'"),
        (RSVP, [], "Invalid type for STRUCT"),
        (s.decimal(2), Decimal("1.5"), "Schema has scale 2, value has scale 1"),
        (s.decimal(2), 1.5, "expected decimal.Decimal but was float"),
        (s.decimal(2), Decimal("NaN"), "expected decimal.Decimal"),
        (s.time(), "x", "Invalid type for INT32"),
        (None, 2**63, "needs more than 64 bits"),
        (None, object(), "does not have corresponding schema type"),
    ],
)
def test_from_connect_value_that_does_not_fit_is_a_data_error(
    schema: s.Schema | None, value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        converter().from_connect("t", schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (s.FLOAT32, 0.1, "0.1"),
        (s.FLOAT32, 3.4028234663852886e38, "3.4028235E38"),
        (s.FLOAT32, math.inf, '"Infinity"'),
        (s.FLOAT64, 1e-5, "1.0E-5"),
        (s.FLOAT64, 123456789.125, "1.23456789125E8"),
        (s.STRING, "\x00\x1f\x7f\u2028\ud800/", '"\\u0000\\u001F\x7f\u2028\\uD800/"'),
        (s.BYTES, memoryview(b"ab"), '"YWI="'),
        (s.map_of(s.OPTIONAL_STRING, s.INT8), {"null": 1, None: 2}, '{"null":2}'),
        (s.decimal(0), Decimal(-129), '"/38="'),
        (s.decimal(0), Decimal(-128), '"gA=="'),
        (None, {"a": {1: (2, b"x")}}, '{"a":[[1,[2,"eA=="]]]}'),
        (None, "é", '"é"'),
    ],
    ids=shown,
)
def test_from_connect_value_is_spelled_as_jackson_does(schema: s.Schema | None, value: Any, text: str) -> None:
    assert converter(schemas_enable="false").from_connect("t", schema, value) == text.encode()


def test_from_connect_numeric_decimal_keeps_all_digits() -> None:
    number = Decimal("123456789012345678901234567890.12345678")
    c = converter(decimal_format="NUMERIC")
    data = c.from_connect("t", s.decimal(8), number)
    assert data is not None
    assert data.endswith(b'"payload":123456789012345678901234567890.12345678}')
    assert repr(c.to_connect("t", data).value) == repr(number)
    assert repr(c.to_connect("t", data).value) == repr(number)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_round_trip_base64_decimal_is_exact(number: Decimal) -> None:
    c = converter()
    value = c.to_connect("t", c.from_connect("t", s.decimal(3), number)).value
    assert (value, value.as_tuple().exponent) == (number, -3)


def test_schemaless_value_nested_too_deeply_is_a_data_error() -> None:
    deep = b"[" * 5000 + b"18446744073709551616" + b"]" * 5000
    with pytest.raises(DataError, match="nested too deeply"):
        plain_json(deep)
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(DataError, match="nested too deeply"):
        converter().from_connect("t", None, value)


def test_headers_convert_as_values_do() -> None:
    c = converter()
    data = c.from_connect_header("t", "h", s.INT8, 1)
    assert data == c.from_connect("t", s.INT8, 1)
    assert c.to_connect_header("t", "h", data) == (s.INT8, 1)
