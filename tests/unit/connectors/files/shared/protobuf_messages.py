"""Protobuf messages of two versions of a schema, and a registry that knows both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from google.protobuf import message_factory
from hypothesis import strategies as st

from airflow_connect.converters.protobuf.files import message_at, open_schema
from airflow_connect.errors import DataError
from airflow_connect.registry.client import PROTOBUF, SchemaRegistryClient, SchemaText, SubjectVersion

CONVERTER = {
    "value.converter": "io.confluent.connect.protobuf.ProtobufConverter",
    "value.converter.schema.registry.url": "http://127.0.0.1:9",
}
_HEAD = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/type/date.proto";
import "confluent/type/decimal.proto"; import "confluent/meta.proto"; import "google/protobuf/wrappers.proto";"""
_BODY = """int64 id = 1; optional string name = 2; bool ok = 3; google.protobuf.Timestamp at = 4;
google.type.Date day = 5; double ratio = 6; repeated string tags = 7; Inner inner = 8; repeated Line lines = 9;
int32 small = 10 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int8"}]}]; Kind kind = 11;
confluent.type.Decimal price = 12 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];
google.protobuf.StringValue wrapped = 13; oneof one { string text = 15; int32 number = 16; }
message Inner { int32 n = 1; bytes data = 2; } message Line { int32 n = 1; bytes data = 2; }
enum Kind { A = 0; B = 1; }"""
SCHEMAS = {
    1: f"{_HEAD} message Event {{ {_BODY} }}",
    2: f"{_HEAD} message Event {{ {_BODY} map<string, int32> sizes = 14; }}",
}
_TYPES = {number: message_factory.GetMessageClass(message_at(open_schema(t, {}), [0])) for number, t in SCHEMAS.items()}


def message(schema_id: int, value: dict[str, Any]) -> bytes:
    """A value as Confluent's serializer writes it."""
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0" + _TYPES[schema_id](**value).SerializeToString()


_INNER = st.fixed_dictionaries({}, optional={"n": st.integers(-5, 2**31 - 1), "data": st.binary(max_size=3)})
_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)


def _values(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """`more`: fields that are in every value."""
    return st.fixed_dictionaries(
        {"id": st.integers(-(2**63), 2**63 - 1), "ok": st.booleans(), **more},
        optional={
            "name": _TEXTS,
            "at": st.fixed_dictionaries({"seconds": st.integers(0, 2**32)}),
            "day": st.fixed_dictionaries(
                {"year": st.just(2024), "month": st.integers(1, 12), "day": st.integers(1, 28)}
            ),
            "ratio": st.floats(),
            "tags": st.lists(_TEXTS, max_size=3),
            "inner": _INNER,
            "lines": st.lists(_INNER, max_size=3),
            "small": st.integers(-128, 127),
            "kind": st.sampled_from([0, 1]),
            "price": st.fixed_dictionaries(
                {"value": st.sampled_from([b"\x01", b"\xff\x00", b""]), "scale": st.just(2)}
            ),
            "wrapped": st.fixed_dictionaries({"value": _TEXTS}),
        },
    )


FIRST = st.one_of(_values(), _values(text=_TEXTS), _values(number=st.integers(0, 9))).map(lambda v: message(1, v))
SECOND = _values(sizes=st.dictionaries(_TEXTS, st.integers(0, 9), max_size=3)).map(lambda value: message(2, value))
BROKEN = st.one_of(
    FIRST.map(lambda data: data[:-1]),
    FIRST.map(lambda data: data + b"\xf8\x01\x01"),  # an unknown field
    FIRST.map(lambda data: b"\x01" + data[1:]),
    FIRST.map(lambda data: b"\0\0\0\0\x09" + data[5:]),
    FIRST.map(lambda data: data[:5] + b"\x02\x02" + data[6:]),
    st.builds(lambda left, right: left + right[6:], FIRST, FIRST),  # parsers merge both
    st.sampled_from([None, b"", b"\0", b'{"id":1}', b"\0\0\0\0\x01", b"\0\0\0\0\x01\0\x08"]),
)


@contextmanager
def known_schemas() -> Iterator[None]:
    """A registry that has `SCHEMAS`, each under its number."""

    def schema(_: SchemaRegistryClient, schema_id: int) -> SchemaText:
        if schema_id not in SCHEMAS:
            raise DataError(f"The schema {schema_id} is not known.", code="registry.schema_not_found")
        return SchemaText(PROTOBUF, SCHEMAS[schema_id])

    def lookup(_: SchemaRegistryClient, subject: str, text: SchemaText, **__: Any) -> SubjectVersion:
        number = next(n for n, known in SCHEMAS.items() if known == text.text)
        return SubjectVersion(subject, number, number, text)

    with patch.object(SchemaRegistryClient, "schema", schema), patch.object(SchemaRegistryClient, "lookup", lookup):
        yield
