"""Numbers that Java's Avro decoder refuses are errors, in both forms; fastavro alone would read wrong values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.converters.avro.anything import ANYTHING_SCHEMA
from airflow_connect.errors import DataError
from airflow_connect.registry.converters.avro_converter import AvroConverter
from tests.unit.converters.avro.avro_schemas import encoded
from tests.unit.registry.registry_double import RegistryDouble

START = b"\0\0\0\0\x07"
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
LEAST = encoded("long", [-(1 << 63)])[0]
LONG_ZERO = b"\x80" * 10 + b"\0"
CASES: dict[str, tuple[Any, bytes, str]] = {
    "enum of -1": (ENUM, b"\x01", "symbol of an enum is -1. It must be 0 to 2"),
    "enum of 3": (ENUM, b"\x06", "symbol of an enum is 3"),
    "enum of -1 in an array": ({"type": "array", "items": ENUM}, b"\x02\x01\0", "symbol of an enum is -1"),
    "optional of -1": (["null", "int"], b"\x01\x02", "branch of a union is -1. It must be 0 to 1"),
    "union of -1": (["null", "int", "string"], b"\x01\x02a", "branch of a union is -1"),
    "union of -3": (["string", "int", "long"], b"\x05\x02a", "branch of a union is -3"),
    "boolean of 2": ("boolean", b"\x02", "a boolean is 2. It must be 0 or 1"),
    "boolean of 255 in a map": ({"type": "map", "values": "boolean"}, b"\x02\x02a\xff\0", "a boolean is 255"),
    "long of 11 bytes": ("long", b"\x80" * 10 + b"\x02", "longer than the 64 bits"),
    "long of 70 bits": ("long", b"\xff" * 9 + b"\x7f", "longer than the 64 bits"),
    "int of 6 bytes": ("int", b"\x80" * 5 + b"\0", "longer than the 32 bits"),
    "int of 35 bits": ("int", b"\xff" * 4 + b"\x7f", "longer than the 32 bits"),
    "int8 of 9 bits": ({"type": "int", "connect.type": "int8"}, b"\xd8\x04", "An Avro int is 300, beyond the 8 bits"),
    "int16 of 17 bits": ({"type": "int", "connect.type": "int16"}, b"\x80\x80\x04", "is 32768, beyond the 16 bits"),
    "enum of 6 bytes": (ENUM, b"\x80" * 5 + b"\0", "longer than the 32 bits"),
    "length of 11 bytes": ("string", LONG_ZERO, "longer than the 64 bits"),
    "negative length": ("string", b"\x01abc", "length of a string or of bytes is -1"),
    "negative length of bytes": ("bytes", b"\x01", "length of a string or of bytes is -1"),
    "negative length of a key": ({"type": "map", "values": "int"}, b"\x02\x01\x02\0", "is -1"),
    "least count of an array": (
        {"type": "array", "items": "int"},
        LEAST + b"\x02\0",
        "a block has -9223372036854775808",
    ),
    "least count of a map": ({"type": "map", "values": "int"}, LEAST + b"\x02\0", "a block has -9223372036854775808"),
    "count of 11 bytes": ({"type": "array", "items": "int"}, LONG_ZERO, "longer than the 64 bits"),
    "schemaless boolean of 2": (ANYTHING_SCHEMA, b"\x02\x02" + b"\0" * 8, "a boolean is 2"),
    "schemaless least count": (
        ANYTHING_SCHEMA,
        b"\0" * 7 + b"\x02" + LEAST + b"\x02\0\0",
        "a block has",
    ),
}
WHOLE: dict[str, tuple[Any, bytes, Any]] = {
    "padded long": ("long", b"\x82\x80\x80\0", 1),
    "padded int of 5 bytes": ("int", b"\x82\x80\x80\x80\0", 1),
    "least long": ("long", LEAST, -(1 << 63)),
    "least int": ("int", encoded("int", [-(1 << 31)])[0], -(1 << 31)),
    "block with its size": ({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\0", [1, 2]),
    "two blocks": ({"type": "array", "items": "int"}, b"\x02\x02\x02\x04\0", [1, 2]),
    "padded branch": (["null", "int"], b"\x82\0\x06", 3),
}


def _converted(avro_type: Any, data: bytes) -> tuple[Any, Any]:
    """The value of a message on the record path, or its error, and the columns that hold it."""
    answer = {"subject": "t-value", "version": 1, "id": 7, "schema": json.dumps(avro_type)}
    with RegistryDouble((200, answer)) as registry:
        converter = AvroConverter()
        converter.configure({"schema.registry.url": registry.url})
        columns = converter.to_columns("t", pa.array([START + data]))
        try:
            return converter.to_connect("t", START + data).value, columns
        except DataError as error:
            return error, columns


@pytest.mark.parametrize("case", CASES)
def test_to_connect_number_that_java_refuses_is_an_error(case: str) -> None:
    avro_type, data, message = CASES[case]
    found, columns = _converted(avro_type, data)
    assert isinstance(found, DataError)
    assert found.code == "data.avro"
    assert message in str(found)
    assert columns is None


@pytest.mark.parametrize("case", WHOLE)
def test_to_connect_unusual_but_valid_number_is_read(case: str) -> None:
    avro_type, data, value = WHOLE[case]
    found, columns = _converted(avro_type, data)
    assert found == value
    assert columns is None or columns[0].values.to_pylist() == [value]
