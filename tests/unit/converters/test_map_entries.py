"""Lists of entries that are read as maps: a key that occurs twice would lose a value without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import message_factory

from airflow_connect.api import schema as s
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json_schema_mapping.values import value_reader
from airflow_connect.converters.protobuf.files import message_at, open_schema
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.reading import message_reader
from airflow_connect.converters.protobuf.to_connect import schema_to_connect
from airflow_connect.errors import DataError

HEADERS = """syntax = "proto3"; message M { repeated HeaderEntry headers = 1; }
message HeaderEntry { string key = 1; int64 value = 2; }"""
MAP_ENTRY = {
    "type": "record",
    "name": "io.confluent.connect.avro.MapEntry",
    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "long"}],
}


def _protobuf(pairs: list[tuple[str, int]]) -> Any:
    message = message_at(open_schema(HEADERS, {}), [0])
    filled = message_factory.GetMessageClass(message)(headers=[{"key": k, "value": v} for k, v in pairs])
    return message_reader(message, schema_to_connect(message, ProtobufOptions()), ProtobufOptions())(filled)["headers"]


def _avro(pairs: list[tuple[str, int]]) -> Any:
    change = read_schema({"type": "array", "items": MAP_ENTRY}, [], AvroSettings(), 1).change
    assert change is not None
    return change([{"key": k, "value": v} for k, v in pairs])


def _json_schema(pairs: list[tuple[str, int]]) -> Any:
    schema = s.map_of(s.OPTIONAL_STRING, s.INT64)
    return value_reader(schema)([{"key": k, "value": v} for k, v in pairs])


def _json(pairs: list[tuple[str, int]]) -> Any:
    converter = JsonConverter()
    converter.configure({}, False)
    kind = {"type": "map", "keys": {"type": "bytes"}, "values": {"type": "int64"}}
    data = json.dumps({"schema": kind, "payload": [["YQ==" if k == "a" else "Yg==", v] for k, v in pairs]})
    return {k.decode(): v for k, v in converter.to_connect("t", data.encode()).value.items()}


@pytest.mark.parametrize("read", [_protobuf, _avro, _json_schema, _json])
def test_key_that_occurs_twice_is_an_error(read: Any) -> None:
    assert read([("b", 1), ("a", 2)]) == {"b": 1, "a": 2}
    with pytest.raises(DataError, match=r"The 3 entries of .* have only 2 different keys") as refused:
        read([("a", 1), ("b", 2), ("a", 3)])
    assert refused.value.code == "data.map_key_twice"
