"""Schemas for fastavro's writer: defaults of bytes are checked as JSON text and written as bytes."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Field, Schema, Type
from airflow_connect.converters.avro.parsing import parsed_for_writing
from airflow_connect.formats.avro import AvroFormat

FIXED = {"type": "fixed", "name": "F", "size": 2}
INNER = {"type": "record", "name": "I", "fields": [{"name": "b", "type": ["bytes", "null"], "default": "\x80"}]}


def _field(name: str, avro_type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": avro_type, **more}


@pytest.mark.parametrize(
    ("fields", "value", "written"),
    [
        ([_field("v", "bytes", default="\xff")], {}, b"\x02\xff"),
        ([_field("v", FIXED, default="\x01\xfe")], {}, b"\x01\xfe"),
        ([_field("v", FIXED), _field("w", ["F", "null"], default="ab")], {"v": b"xy"}, b"xy\0ab"),
        ([_field("v", INNER), _field("w", "I")], {"v": {}, "w": {}}, b"\0\x02\x80\0\x02\x80"),
        ([_field("v", "string", default="\xff")], {}, b"\x04\xc3\xbf"),
    ],
)
def test_default_of_bytes_is_written_for_a_missing_field(
    fields: list[dict[str, Any]], value: dict[str, Any], written: bytes
) -> None:
    parsed, stream = parsed_for_writing({"type": "record", "name": "R", "fields": fields}), io.BytesIO()
    fastavro.schemaless_writer(stream, parsed, value)
    assert stream.getvalue() == written


def test_default_of_bytes_in_a_schema_that_is_referred_to_is_written() -> None:
    parsed, stream = (
        parsed_for_writing({"type": "record", "name": "R", "fields": [_field("v", "I")]}, [INNER]),
        io.BytesIO(),
    )
    fastavro.schemaless_writer(stream, parsed, {"v": {}})
    assert stream.getvalue() == b"\0\x02\x80"


@pytest.mark.parametrize("optional", [False, True])
def test_avro_format_writes_values_whose_schema_has_defaults_of_bytes(optional: bool) -> None:
    data = Schema(Type.BYTES, optional, default=b"\xff\0")
    money = Schema(Type.BYTES, optional, schemas.DECIMAL, 1, parameters={"scale": "2"}, default=_decimal("1.50"))
    sink = io.BytesIO()
    encoder = AvroFormat().open(sink, Schema(Type.STRUCT, fields=(Field("b", 0, data), Field("d", 1, money))))
    encoder.append([{"b": None, "d": None}, {"b": b"x", "d": _decimal("-1")}])
    encoder.finish()
    found = list(fastavro.reader(io.BytesIO(sink.getvalue())))
    assert found == [{"b": b"\xff\0", "d": _decimal("1.50")}, {"b": b"x", "d": _decimal("-1.00")}]


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)
