"""ProtobufConverter on a real registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import message_factory

from airflow_connect.api import schema as s
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.converters.protobuf import names
from airflow_connect.converters.protobuf.files import open_schema
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter

if TYPE_CHECKING:
    from tests.integration.registry.conftest import Registry

pytestmark = pytest.mark.integration
CONVERTER = ProtobufConverter
MakeConverter = Callable[..., ProtobufConverter]

ORDER = s.struct(
    ("id", s.INT64),
    ("small", s.INT8),
    ("price", s.decimal(2)),
    ("day", s.date()),
    ("clock", s.time()),
    ("at", s.timestamp()),
    ("tags", s.map_of(s.STRING, s.INT32)),
    ("lines", s.array(s.struct(("qty", s.INT32), name="shop.Line"))),
    name="shop.Order",
)
VALUE = {
    "id": 1,
    "small": -5,
    "price": Decimal("1.50"),
    "day": 19_782,
    "clock": 1,
    "at": 1_700_000_000_000,
    "tags": {"a": 1},
    "lines": [{"qty": 2}, {"qty": 0}],
}
JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
PEOPLE = """syntax = "proto3"; package shop;
message First { message Inner { string x = 1; } message Other { int32 n = 1; } }
message Person { int64 id = 1; string name = 2; }"""


def payload(text: str, name: str, content: dict[str, Any], **others: str) -> bytes:
    """The bytes of a message of the type `name`."""
    message = open_schema(text, {key.replace("_proto", ".proto"): other for key, other in others.items()})
    data: bytes = message_factory.GetMessageClass(message.pool.FindMessageTypeByName(name))(
        **content
    ).SerializeToString()
    return data


def prefixed(schema_id: int, indexes: bytes, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + indexes + data


def test_value_written_is_registered_and_read_back(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    data = make_converter().from_connect(unique_name, ORDER, VALUE)
    assert schema_registry.versions(f"{unique_name}-value") == [1]
    found = make_converter(enhanced_protobuf_schema_support="true").to_connect(unique_name, data)
    assert found.value == VALUE
    assert found.schema is not None
    assert (found.schema.name, found.schema.version) == ("shop.Order", 1)
    assert [(f.name, f.schema.type, f.schema.name) for f in found.schema.fields[:6]] == [
        (f.name, f.schema.type, f.schema.name) for f in ORDER.fields[:6]
    ]


def test_schema_read_and_written_again_is_the_same(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    converter = make_converter(enhanced_protobuf_schema_support="true")
    data = converter.from_connect(unique_name, ORDER, VALUE)
    found = converter.to_connect(unique_name, data)
    again = converter.from_connect(unique_name, found.schema, found.value)
    assert again is not None and data is not None
    assert converter.to_connect(unique_name, again).value == VALUE


@pytest.mark.parametrize(
    ("schema", "value"),
    [(s.INT32, -7), (s.STRING, "x"), (s.BYTES, b"\0x"), (s.BOOLEAN, True), (s.FLOAT64, 0.5)],
    ids=str,
)
def test_value_that_is_no_struct_is_a_wrapper(
    make_converter: MakeConverter, unique_name: str, schema: s.Schema, value: Any
) -> None:
    converter = make_converter(is_key=True)
    data = converter.from_connect(unique_name, schema, value)
    assert converter.to_connect(unique_name, data) == SchemaAndValue(replace(schema, version=1), value)


def test_indexes_choose_the_message_type(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", PEOPLE, schemaType="PROTOBUF")
    converter = make_converter()
    messages = {
        b"\0": ("shop.First", {}, {}),
        b"\x02\0": ("shop.First", {}, {}),
        b"\x02\x02": ("shop.Person", {"id": 1, "name": "x"}, {"id": 1, "name": "x"}),
        b"\x04\0\0": ("shop.First.Inner", {"x": "y"}, {"x": "y"}),
        b"\x04\0\x02": ("shop.First.Other", {"n": 5}, {"n": 5}),
    }
    for indexes, (name, content, expected) in messages.items():
        found = converter.to_connect(unique_name, prefixed(schema_id, indexes, payload(PEOPLE, name, content)))
        assert found.value == expected
        assert found.schema is not None and found.schema.name == name.rpartition(".")[2]


@pytest.mark.parametrize(
    ("tail", "says", "kind"),
    [
        (b"", "ends within the list of message indexes", "data.truncated"),
        (b"\x04\0", "ends within the list of message indexes", "data.truncated"),
        (b"\xff\xff\xff\xff\xff\xff", "ends within the list of message indexes", "data.truncated"),
        (b"\x03\0\0", "ends within the list of message indexes", "data.truncated"),
        (b"\x02\x04", r"The message indexes \[2\] do not lead to a message type", "data.message_indexes"),
        (b"\x04\0\x08", r"The message indexes \[0, 4\] do not lead to a message type", "data.message_indexes"),
        (b"\x02\x02\x08\x01\x12\x7fx", r"not a valid shop\.Person of the Protobuf schema", "data.truncated"),
        (b"\x02\x02\x12\x01\xff", r"not a valid shop\.Person of the Protobuf schema", "data.truncated"),
    ],
)
def test_broken_message_is_a_sentence(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str, tail: bytes, says: str, kind: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", PEOPLE, schemaType="PROTOBUF")
    with pytest.raises(DataError, match=says) as caught:
        make_converter().to_connect(unique_name, prefixed(schema_id, tail, b""))
    assert caught.value.code == kind


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\0\0\0", "3 bytes, too few"),
        (b'{"id":1}', "Unknown magic byte! .* JSON text"),
        (b"\0\x7f\xff\xff\xff\0", "no schema with the id 2147483647: .*40403"),
    ],
)
def test_message_of_something_else_is_a_sentence(make_converter: MakeConverter, data: bytes, says: str) -> None:
    with pytest.raises(DataError, match=says):
        make_converter().to_connect("t", data)


def test_references_and_known_files_are_imported(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    money = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
    schema_registry.register(f"{unique_name}-money", money, schemaType="PROTOBUF")
    text = """syntax = "proto3"; package shop; import "money.proto"; import "google/protobuf/timestamp.proto";
        message Sale { Money total = 1; google.protobuf.Timestamp at = 2; }"""
    reference = {"name": "money.proto", "subject": f"{unique_name}-money", "version": 1}
    schema_id = schema_registry.register(f"{unique_name}-value", text, [reference], schemaType="PROTOBUF")
    data = payload(text, "shop.Sale", {"total": {"units": 5}, "at": {"seconds": 1}}, money_proto=money)
    found = make_converter().to_connect(unique_name, prefixed(schema_id, b"\0", data))
    assert found.value == {"total": {"units": 5}, "at": 1000}


def test_fields_that_the_schema_does_not_have_are_refused_by_strict_types(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    text = """syntax = "proto2"; enum Color { RED = 0; }
        message Line { repeated Color c = 1; } message O { optional Line l = 1; }"""
    schema_id = schema_registry.register(f"{unique_name}-value", text, schemaType="PROTOBUF")
    strict = make_converter(strict_types="true")
    newer_enum, newer_field = b"\x0a\x04\x08\x00\x08\x07", b"\x0a\x04\x08\x00\x10\x07"
    for data in (newer_enum, newer_field):
        with pytest.raises(DataError, match="type O has 2 bytes in fields, or enum numbers") as refused:
            strict.to_connect(unique_name, prefixed(schema_id, b"\x02\x02", data))
        assert refused.value.code == "data.unknown_fields"
        found = make_converter().to_connect(unique_name, prefixed(schema_id, b"\x02\x02", data))
        assert found.value == {"l": {"c": ["RED"]}}
    found = strict.to_connect(unique_name, prefixed(schema_id, b"\x02\x02", b"\x0a\x02\x08\x00"))
    assert found.value == {"l": {"c": ["RED"]}}


def test_version_of_each_schema_is_the_one_of_its_subject(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    texts = [
        f'syntax = "proto3"; message Order {{ int64 id = 1; {more} }}' for more in ("", "optional string city = 2;")
    ]
    ids = [schema_registry.register(f"{unique_name}-value", text, schemaType="PROTOBUF") for text in texts]
    converter = make_converter()
    data = payload(texts[0], "Order", {"id": 1})
    found = [converter.to_connect(unique_name, prefixed(n, b"\0", data)) for n in ids]
    assert [(r.schema.version, r.value) for r in found if r.schema] == [(1, {"id": 1}), (2, {"id": 1, "city": None})]


def test_latest_version_is_written_by_field_names(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    text = 'syntax = "proto3"; package shop; message Other { } message Order { string name = 7; int64 id = 9; }'
    schema_id = schema_registry.register(f"{unique_name}-value", text, schemaType="PROTOBUF")
    converter = make_converter(auto_register_schemas="false", use_latest_version="true")
    schema = s.struct(("id", s.INT64), ("name", s.STRING), name="shop.Order")
    data = converter.from_connect(unique_name, schema, {"id": 1, "name": "x"})
    assert data == prefixed(schema_id, b"\x02\x02", payload(text, "shop.Order", {"id": 1, "name": "x"}))
    with pytest.raises(SchemaError, match="id is INT64 there and STRING in the value"):
        converter.from_connect(unique_name, s.struct(("id", s.STRING), name="shop.Order"), {"id": "1"})
    with pytest.raises(SchemaError, match=r"it has no message type shop\.Person"):
        converter.from_connect(unique_name, s.struct(("id", s.STRING), name="shop.Person"), {"id": "1"})


def test_incompatible_schema_is_refused_by_the_registry(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema = s.struct(("id", s.INT64), name="shop.Order")
    make_converter().from_connect(unique_name, schema, {"id": 1})
    schema_registry.set_compatibility(f"{unique_name}-value", "BACKWARD")
    changed = s.struct(("id", s.STRING), name="shop.Order")
    with pytest.raises(SchemaError, match=f"incompatible with an earlier schema for subject {unique_name}-value"):
        make_converter().from_connect(unique_name, changed, {"id": "x"})


def test_enums_and_oneofs_are_registered(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    symbols = {names.ENUM: "Color", f"{names.ENUM}.RED": "0", f"{names.ENUM}.BLUE": "5"}
    union = s.struct(("a", s.INT32), ("b", s.STRING), name=f"{names.UNION_PREFIX}choice", optional=True)
    color = s.Schema(s.Type.STRING, name="Color", parameters=symbols)
    schema = s.struct(("choice_0", union), ("color", color), name="M")
    value = {"choice_0": {"a": None, "b": "x"}, "color": "BLUE"}
    converter = make_converter()
    assert converter.to_connect(unique_name, converter.from_connect(unique_name, schema, value)).value == value


def test_record_name_strategy_takes_the_full_name(make_converter: MakeConverter, schema_registry: Registry) -> None:
    converter = make_converter(value_subject_name_strategy="RecordNameStrategy")
    data = converter.from_connect("any", s.struct(("id", s.INT64), name="by.record.Name"), {"id": 1})
    assert schema_registry.versions("by.record.Name") == [1]
    assert converter.to_connect("any", data).value == {"id": 1}


def test_nulls_are_tombstones(make_converter: MakeConverter, unique_name: str) -> None:
    converter = make_converter()
    assert converter.to_connect(unique_name, None) == SchemaAndValue(None, None)
    assert converter.from_connect(unique_name, None, None) is None
    assert converter.from_connect(unique_name, ORDER, None) is None
    with pytest.raises(DataError, match="cannot write a value without a schema"):
        converter.from_connect(unique_name, None, {"a": 1})


def test_json_schema_is_refused(make_converter: MakeConverter, schema_registry: Registry, unique_name: str) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", JSON_SCHEMA, schemaType="JSON")
    with pytest.raises(SchemaError, match=f"The schema {schema_id} is of the kind JSON"):
        make_converter().to_connect(unique_name, prefixed(schema_id, b"\0", b""))
