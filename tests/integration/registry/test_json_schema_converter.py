"""JsonSchemaConverter on a real registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter

if TYPE_CHECKING:
    from tests.integration.registry.conftest import Registry

pytestmark = pytest.mark.integration
CONVERTER = JsonSchemaConverter
MakeConverter = Callable[..., JsonSchemaConverter]

ORDER = s.struct(
    ("id", s.INT64),
    ("note", s.OPTIONAL_STRING),
    ("price", s.decimal(2)),
    ("at", s.timestamp()),
    ("tags", s.map_of(s.INT32, s.STRING)),
    name="shop.Order",
)
VALUE = {"id": 1, "note": None, "price": Decimal("1.50"), "at": 1_700_000_000_000, "tags": {5: "x"}}
PERSON = {"type": "object", "title": "Person", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}


def message(schema_id: int, value: Any) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + orjson.dumps(value)


@pytest.mark.parametrize("config", [{}, {"decimal_format": "NUMERIC"}, {"json_fail_invalid_schema": "true"}], ids=str)
def test_value_written_is_registered_and_read_back(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str, config: dict[str, str]
) -> None:
    # With BASE64 a decimal is text where its schema says number: Confluent's validation refuses it, too.
    schema = ORDER if "json_fail_invalid_schema" not in config else s.struct(("id", s.INT64), name="shop.Order")
    value = {f.name: VALUE[f.name] for f in schema.fields}
    data = make_converter(**config).from_connect(unique_name, schema, value)
    assert schema_registry.versions(f"{unique_name}-value") == [1]
    assert make_converter(**config).to_connect(unique_name, data) == SchemaAndValue(replace(schema, version=1), value)


def test_version_of_each_schema_is_the_one_of_its_subject(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    wider = {**PERSON, "properties": {**PERSON["properties"], "city": {"type": "string", "default": "?"}}}  # type: ignore[dict-item]
    ids = [schema_registry.register(f"{unique_name}-value", each, schemaType="JSON") for each in (PERSON, wider)]
    converter = make_converter()
    found = [converter.to_connect(unique_name, message(n, {"id": 1, "name": "x"})) for n in ids]
    assert [(r.schema.version, r.value) for r in found if r.schema] == [
        (1, {"id": 1, "name": "x"}),
        (2, {"id": 1, "name": "x", "city": "?"}),
    ]


def test_references_are_resolved_by_the_registry(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_registry.register(f"{unique_name}-person", PERSON, schemaType="JSON")
    order = {"type": "object", "title": "Order", "properties": {"buyer": {"$ref": "person.json"}}}
    reference = {"name": "person.json", "subject": f"{unique_name}-person", "version": 1}
    schema_id = schema_registry.register(f"{unique_name}-value", order, [reference], schemaType="JSON")
    converter = make_converter()
    found = converter.to_connect(unique_name, message(schema_id, {"buyer": {"id": 1, "name": "x"}}))
    assert found.value == {"buyer": {"id": 1, "name": "x"}}
    assert found.schema is not None and found.schema.fields[0].schema.name == "Person"


def test_validation_names_the_place_and_not_the_value(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_registry.register(f"{unique_name}-person", PERSON, schemaType="JSON")
    order = {"type": "object", "properties": {"buyer": {"$ref": "person.json"}}}
    reference = {"name": "person.json", "subject": f"{unique_name}-person", "version": 1}
    schema_id = schema_registry.register(f"{unique_name}-value", order, [reference], schemaType="JSON")
    data = message(schema_id, {"buyer": {"id": "secret"}})
    with pytest.raises(DataError, match=r"The JSON at \$\.buyer\.id violates the rule type") as caught:
        make_converter(json_fail_invalid_schema="true").to_connect(unique_name, data)
    assert "secret" not in str(caught.value)
    # Without it the value is read as Jackson reads it.
    assert make_converter().to_connect(unique_name, data).value == {"buyer": {"id": 0, "name": None}}


def test_key_is_registered_under_its_own_subject(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    converter = make_converter(is_key=True)
    data = converter.from_connect(unique_name, s.STRING, "k")
    assert converter.to_connect(unique_name, data).value == "k"
    assert schema_registry.versions(f"{unique_name}-key") == [1]


def test_record_name_strategy_takes_the_title(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    converter = make_converter(value_subject_name_strategy="RecordNameStrategy")
    schema = s.struct(("id", s.INT64), name=unique_name)
    data = converter.from_connect("any", schema, {"id": 1})
    assert schema_registry.versions(unique_name) == [1]
    assert converter.to_connect("any", data).value == {"id": 1}


def test_nulls_follow_the_schema(make_converter: MakeConverter, unique_name: str) -> None:
    converter = make_converter()
    assert converter.to_connect(unique_name, None) == SchemaAndValue(None, None)
    assert converter.from_connect(unique_name, None, None) is None
    assert converter.from_connect(unique_name, ORDER, None) is None
    data = converter.from_connect(unique_name, replace(ORDER, optional=True), None)
    assert data is not None and data[5:] == b"null"
    assert converter.to_connect(unique_name, data).value is None


def test_value_without_a_schema_is_refused(make_converter: MakeConverter) -> None:
    with pytest.raises(DataError, match="cannot write a value without a schema"):
        make_converter().from_connect("t", None, {"a": 1})


def test_schema_that_is_not_registered_is_refused_when_it_must_be(
    make_converter: MakeConverter, unique_name: str
) -> None:
    converter = make_converter(auto_register_schemas="false")
    with pytest.raises(SchemaError, match=f"not registered under the subject {unique_name}-value"):
        converter.from_connect(unique_name, ORDER, VALUE)


def test_latest_version_is_written_when_it_fits(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", PERSON, schemaType="JSON")
    converter = make_converter(auto_register_schemas="false", use_latest_version="true")
    schema = s.struct(("id", s.INT64), ("name", s.STRING), name="Person")
    assert converter.from_connect(unique_name, schema, {"id": 1, "name": "x"}) == message(
        schema_id, {"id": 1, "name": "x"}
    )
    with pytest.raises(SchemaError, match="name is STRING there and INT64 in the value"):
        converter.from_connect(unique_name, s.struct(("id", s.INT64), ("name", s.INT64)), {"id": 1, "name": 2})


def test_incompatible_schema_is_refused_by_the_registry(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str
) -> None:
    schema_registry.register(f"{unique_name}-value", PERSON, schemaType="JSON")
    schema_registry.set_compatibility(f"{unique_name}-value", "BACKWARD")
    with pytest.raises(SchemaError, match=f"incompatible with an earlier schema for subject {unique_name}-value"):
        make_converter().from_connect(unique_name, s.struct(("id", s.STRING), name="Person"), {"id": "x"})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "it contains no JSON"),
        (b" ", "it contains no JSON"),
        (b'{"id":1', "serialization error"),
        (b"[1]", "Structs should be encoded as JSON objects, but found ARRAY"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe\xfd", "serialization error"),
    ],
)
def test_broken_message_is_a_sentence(
    make_converter: MakeConverter, schema_registry: Registry, unique_name: str, body: bytes, says: str
) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", PERSON, schemaType="JSON")
    with pytest.raises(DataError, match=says):
        make_converter().to_connect(unique_name, b"\0" + schema_id.to_bytes(4, "big") + body)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes, too few"),
        (b'{"id":1}', "Unknown magic byte! .* JSON text"),
        (b"\0\x7f\xff\xff\xff{}", "no schema with the id 2147483647: .*40403"),
    ],
)
def test_message_of_something_else_is_a_sentence(make_converter: MakeConverter, data: bytes, says: str) -> None:
    with pytest.raises(DataError, match=says):
        make_converter().to_connect("t", data)


def test_avro_schema_is_refused(make_converter: MakeConverter, schema_registry: Registry, unique_name: str) -> None:
    schema_id = schema_registry.register(f"{unique_name}-value", '"string"')
    with pytest.raises(SchemaError, match=f"The schema {schema_id} is of the kind AVRO"):
        make_converter().to_connect(unique_name, message(schema_id, {}))
