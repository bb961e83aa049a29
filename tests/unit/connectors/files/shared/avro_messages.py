"""Avro messages of two versions of a schema, and a registry that knows both."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import fastavro
from hypothesis import strategies as st

from airflow_connect.errors import DataError
from airflow_connect.registry.client import SchemaRegistryClient, SchemaText, SubjectVersion

CONVERTER = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://127.0.0.1:9",
}
_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"], "default": None},
    {"name": "ok", "type": "boolean"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    {"name": "ratio", "type": "double"},
    {"name": "small", "type": {"type": "int", "connect.type": "int8"}},
    {
        "name": "price",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
        "default": None,
    },
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}},
    {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}], "default": None},
    {
        "name": "lines",
        "type": {
            "type": "array",
            "items": {
                "type": "record",
                "name": "Line",
                "fields": [
                    {"name": "cost", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                    {"name": "due", "type": {"type": "int", "logicalType": "date"}},
                ],
            },
        },
        "default": [],
    },
    {"name": "sizes", "type": ["null", {"type": "map", "values": ["null", "int"]}], "default": None},
    {
        "name": "inner",
        "type": ["null", {"type": "record", "name": "Inner", "fields": [{"name": "n", "type": "int"}]}],
        "default": None,
    },
]
_MORE = {"name": "note", "type": ["string", "null"], "default": "none"}
SCHEMAS = {
    1: {"type": "record", "name": "Event", "namespace": "test", "fields": _FIELDS},
    2: {"type": "record", "name": "Event", "namespace": "test", "fields": [*_FIELDS, _MORE]},
}
_PARSED = {number: fastavro.parse_schema(_plain) for number, _plain in SCHEMAS.items()}


def message(schema_id: int, value: dict[str, Any]) -> bytes:
    """A value as AvroSerializer writes it."""
    made = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
    made.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(made, _PARSED[schema_id], value)
    return made.getvalue()


_LINES = st.fixed_dictionaries({"cost": st.decimals(-9999, 9999, places=2), "due": st.integers(-9, 30000)})
_VALUES = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "name": st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
        "ok": st.booleans(),
        "at": st.integers(0, 2**42),
        "day": st.none() | st.integers(-1000, 30000),
        "ratio": st.floats(),
        "small": st.integers(-128, 127),
        "price": st.none() | st.decimals(-9999, 9999, places=2),
        "kind": st.sampled_from(["a", "b"]),
        "tags": st.none() | st.lists(st.none() | st.text("xyü", max_size=3), max_size=3),
        "lines": st.lists(_LINES, max_size=3),
        "sizes": st.none()
        | st.dictionaries(st.text('xy\u00fc"', max_size=2), st.none() | st.integers(-9, 9), max_size=3),
        "inner": st.none() | st.fixed_dictionaries({"n": st.integers(-(2**31), 2**31 - 1)}),
    }
)
FIRST = _VALUES.map(lambda value: message(1, value))
SECOND = st.builds(
    lambda value, note: message(2, {**value, "note": note}), _VALUES, st.none() | st.text("xy", max_size=2)
)
BROKEN = st.one_of(
    FIRST.map(lambda data: data[:-1]),
    FIRST.map(lambda data: data + b"\0"),
    FIRST.map(lambda data: b"\x01" + data[1:]),
    FIRST.map(lambda data: b"\0\0\0\0\x09" + data[5:]),
    FIRST.map(lambda data: data[:5] + b"\xff" * 12 + data[6:]),
    st.sampled_from([None, b"", b"\0", b'{"id":1}', b"\0\0\0\0\x01"]),
)


@contextmanager
def known_schemas() -> Iterator[None]:
    """A registry that has `SCHEMAS`, each under its number."""

    def schema(_: SchemaRegistryClient, schema_id: int) -> SchemaText:
        if schema_id not in SCHEMAS:
            raise DataError(f"The schema {schema_id} is not known.", code="registry.schema_not_found")
        return SchemaText("AVRO", json.dumps(SCHEMAS[schema_id]))

    def lookup(_: SchemaRegistryClient, subject: str, text: SchemaText, **__: Any) -> SubjectVersion:
        number = next(n for n, known in SCHEMAS.items() if known == json.loads(text.text))
        return SubjectVersion(subject, number, number, text)

    with patch.object(SchemaRegistryClient, "schema", schema), patch.object(SchemaRegistryClient, "lookup", lookup):
        yield
