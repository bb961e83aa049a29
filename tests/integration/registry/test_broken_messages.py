"""Whatever bytes follow a schema number: a value, or an error of the record; never another exception."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_connect.errors import DataError
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter
from tests.support.session.searching import examples

if TYPE_CHECKING:
    from tests.integration.registry.conftest import Registry

pytestmark = pytest.mark.integration

EVERYTHING = """syntax = "SYNTAX"; import "google/protobuf/timestamp.proto"; import "google/type/date.proto";
import "google/type/timeofday.proto"; import "confluent/type/decimal.proto";
message M { LABEL int32 a = 1; LABEL string b = 2; repeated string c = 3; map<string, int64> d = 4; LABEL Inner e = 5;
  LABEL google.protobuf.Timestamp f = 6; LABEL google.type.Date g = 7; LABEL google.type.TimeOfDay h = 8;
  LABEL confluent.type.Decimal i = 9; LABEL Kind j = 10; oneof k { string l = 11; Inner m = 12; } repeated Kind n = 13;
  message Inner { LABEL double x = 1; LABEL uint64 y = 2; } enum Kind { NONE = 0; SOME = 1; } }"""
PROTO3 = EVERYTHING.replace("SYNTAX", "proto3").replace("LABEL", "")
PROTO2 = EVERYTHING.replace("SYNTAX", "proto2").replace("LABEL", "optional")
DECIMAL = {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
           "connect.parameters": {"scale": "2"}}  # fmt: skip
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "connect.type": "int32"},
        "b": {"type": "string"},
        "c": {"type": "array", "items": {"type": "string"}},
        "d": {"type": "object", "connect.type": "map", "additionalProperties": {"type": "number"}},
        "e": {"type": "integer", "title": "org.apache.kafka.connect.data.Date", "connect.type": "int32"},
        "f": DECIMAL,
        "g": {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "object", "properties": {"x": DECIMAL}}]},
        "h": {"type": "string", "connect.type": "bytes"},
    },
}
# Tags of all fields with all wire types and lengths: more of it gets past the first byte than of random bytes.
NUMBERS = st.integers(1, 14)
TEXTS = st.sampled_from([b"", b"x", b"a\xff", b"\x08\x05", b"\x18\x1f\x10\x0d", b"\x10\xff\xff\xff\xff\x7f"])
PIECES = st.one_of(
    st.builds(lambda n, text: bytes([n << 3 | 2, len(text)]) + text, NUMBERS, TEXTS),
    st.builds(lambda n, size: bytes([n << 3]) + b"\xff" * size + b"\x01", NUMBERS, st.integers(0, 10)),
    st.builds(lambda n, wire: bytes([n << 3 | wire]), NUMBERS, st.integers(0, 7)),
    st.binary(max_size=4),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdefghx"), inner, max_size=8),
    max_leaves=12,
)


def _converter(kind: type, registry: Registry) -> Any:
    converter = kind()
    converter.configure({"schema.registry.url": registry.url})
    return converter


@pytest.mark.parametrize("text", [PROTO3, PROTO2], ids=["proto3", "proto2"])
def test_any_bytes_as_protobuf_are_a_value_or_a_data_error(
    schema_registry: Registry, unique_name: str, text: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", text, schemaType="PROTOBUF")
    converter = _converter(ProtobufConverter, schema_registry)
    outcomes = set()

    @example(b"")
    @example(b"\x08")
    @example(b"\x42\x02\x08\x63")  # TimeOfDay: 99 o'clock
    @settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(PIECES, max_size=6).map(b"".join))
    def check(data: bytes) -> None:
        try:
            converter.to_connect(unique_name, b"\0" + schema_id.to_bytes(4, "big") + b"\0" + data)
            outcomes.add("value")
        except DataError as error:
            outcomes.add(error.code)

    check()
    assert {"value", "data.truncated", "data.invalid"} <= outcomes


def test_any_json_is_a_value_or_a_data_error(schema_registry: Registry, unique_name: str) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", JSON_SCHEMA, schemaType="JSON")
    converters = [_converter(JsonSchemaConverter, schema_registry) for _ in range(2)]
    converters[1].configure({"schema.registry.url": schema_registry.url, "json.fail.invalid.schema": "true"})
    outcomes = set()

    @example(b"{}")
    @example(b"{")
    @example(b'{"a":"x"}')
    @settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
    @given(VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=12))
    def check(data: bytes) -> None:
        for converter in converters:
            try:
                converter.to_connect(unique_name, b"\0" + schema_id.to_bytes(4, "big") + data)
                outcomes.add("value")
            except DataError as error:
                outcomes.add(error.code)

    check()
    assert {"value", "data.invalid", "data.json_schema"} <= outcomes
