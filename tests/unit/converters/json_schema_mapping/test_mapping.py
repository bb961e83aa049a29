"""JSON Schema documents to Connect schemas and back, rule by rule."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import (
    BOOLEAN,
    BYTES,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from airflow_connect.converters.json_schema_mapping import names
from airflow_connect.converters.json_schema_mapping.from_connect import schema_from_connect
from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
from airflow_connect.converters.json_schema_mapping.references import References
from airflow_connect.converters.json_schema_mapping.to_connect import schema_to_connect
from airflow_connect.errors import SchemaError

GENERAL = JsonSchemaOptions(generalized_sum_types=True)


def read(document: Any, options: JsonSchemaOptions = JsonSchemaOptions(), **others: Any) -> Schema:  # noqa: B008
    texts = {name.replace("_json", ".json"): json.dumps(other) for name, other in others.items()}
    return schema_to_connect(References(json.dumps(document), texts), options)


def one_of(*members: Schema) -> Schema:
    return struct(
        *((f"{names.ONE_OF}.field.{n}", replace(m, optional=True)) for n, m in enumerate(members)), name=names.ONE_OF
    )


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"type": "boolean"}, BOOLEAN),
        ({"type": "integer"}, INT64),
        ({"type": "number"}, FLOAT64),
        ({"type": "integer", "connect.type": "int8"}, INT8),
        ({"type": "integer", "connect.type": "int16"}, INT16),
        ({"type": "integer", "connect.type": "int32"}, INT32),
        ({"type": "number", "connect.type": "float32"}, FLOAT32),
        ({"type": "string"}, STRING),
        ({"type": "string", "connect.type": "bytes"}, BYTES),
        ({"type": "string", "format": "date-time"}, STRING),
        ({"minLength": 3}, STRING),
        ({"type": "array", "items": {"type": "string"}}, array(STRING)),
        ({"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}}, map_of(STRING, INT64)),
        (
            {
                "type": "array",
                "connect.type": "map",
                "items": {"type": "object", "properties": {"key": {"type": "integer"}, "value": {"type": "string"}}},
            },
            map_of(INT64, STRING),
        ),
        (
            {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
            struct(("b", STRING), ("a", INT64)),
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, struct()),
        ({"properties": {"a": {"type": "integer"}}}, struct(("a", INT64))),
        ({"type": ["string", "null"]}, OPTIONAL_STRING),
        ({"oneOf": [{"type": "null"}, {"type": "string"}]}, OPTIONAL_STRING),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, OPTIONAL_INT64),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, one_of(INT64, STRING)),
        (
            {"oneOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]},
            replace(one_of(INT64, STRING), optional=True),
        ),
        ({"type": ["integer", "string"]}, one_of(INT64, STRING)),
        ({"type": "string", "const": "x"}, STRING),
        ({"type": "integer", "enum": [1, 2]}, INT64),
        ({"allOf": [{"type": "integer"}, {"format": "int32"}]}, INT64),
        ({"allOf": [{"$ref": "#/definitions/a"}], "definitions": {"a": {"type": "boolean"}}}, BOOLEAN),
    ],
    ids=str,
)
def test_document_read_is_the_connect_schema(document: Any, expected: Schema) -> None:
    assert read(document) == expected


def test_attributes_of_a_node_are_those_of_the_schema() -> None:
    document = {
        "type": "object",
        "title": "com.acme.Order",
        "description": "An order.",
        "connect.version": 3,
        "connect.parameters": {"k": "v"},
        "properties": {
            "second": {"type": "string", "connect.index": 1, "default": "none"},
            "first": {
                "type": "number",
                "title": DECIMAL,
                "connect.type": "bytes",
                "connect.version": 1,
                "connect.parameters": {"scale": "2"},
                "connect.index": 0,
            },
        },
    }
    schema = read(document)
    assert (schema.name, schema.doc, schema.version, schema.parameters) == (
        "com.acme.Order",
        "An order.",
        3,
        {"k": "v"},
    )
    assert [f.name for f in schema.fields] == ["first", "second"]
    assert schema.fields[0].schema == decimal(2)
    assert schema.fields[1].schema == replace(STRING, default="none")


def test_version_of_the_subject_counts_without_one_in_the_document() -> None:
    assert schema_to_connect(References('{"type":"string"}', {}), JsonSchemaOptions(), 7).version == 7
    text = '{"type":"string","connect.version":2}'
    assert schema_to_connect(References(text, {}), JsonSchemaOptions(), 7).version == 2


def test_enum_keeps_its_symbols_as_parameters() -> None:
    document = {"enum": ["A", None, 5, True], "title": "Color"}
    schema = read(document)
    assert schema.name == "Color"
    assert list(schema.parameters.items()) == [
        (names.ENUM, ""),
        *((f"{names.ENUM}.{text}", text) for text in ("A", "<NULL>", "5", "true")),
    ]
    general = read(document, GENERAL)
    assert general.parameters == {
        names.GENERAL_ENUM: "",
        **{f"{names.GENERAL_ENUM}.{t}": str(n) for n, t in enumerate(("A", "<NULL>", "5", "true"))},
    }


def test_generalized_unions_are_numbered() -> None:
    union = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
    schema = read({"type": "object", "properties": {"a": union, "b": union}}, GENERAL)
    assert [f.schema.name for f in schema.fields] == ["connect_union_0", "connect_union_1"]
    assert [f.name for f in schema.fields[0].schema.fields] == ["connect_union_field_0", "connect_union_field_1"]
    assert schema.fields[1].schema.parameters == {names.GENERAL_UNION: "connect_union_1"}


def test_nonrequired_properties_are_optional_where_asked_for() -> None:
    document = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    assert read(document) == struct(("a", STRING), ("b", STRING))
    assert read(document, JsonSchemaOptions(optional_for_nonrequired=True)) == struct(
        ("a", STRING), ("b", OPTIONAL_STRING)
    )


def test_all_of_joins_the_properties() -> None:
    document = {
        "allOf": [{"$ref": "#/$defs/base"}, {"type": "object", "properties": {"b": {"type": "string"}}}],
        "$defs": {"base": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}},
    }
    options = JsonSchemaOptions(optional_for_nonrequired=True)
    assert read(document, options) == struct(("a", INT64), ("b", OPTIONAL_STRING))


def test_references_lead_into_other_documents() -> None:
    person = {"type": "object", "title": "Person", "properties": {"name": {"$ref": "types.json#/definitions/name"}}}
    types = {"definitions": {"name": {"$ref": "#text"}, "text": {"$id": "#text", "type": "string"}}}
    document = {"type": "object", "properties": {"who": {"$ref": "person.json"}, "also": {"$ref": "person.json"}}}
    who = struct(("name", STRING), name="Person")
    assert read(document, person_json=person, types_json=types) == struct(("who", who), ("also", who))


def test_references_are_relative_to_the_id_of_their_document() -> None:
    document = {
        "$id": "http://acme.com/schemas/order.json",
        "type": "object",
        "properties": {"a": {"$ref": "money.json"}},
    }
    money = {"$id": "http://acme.com/schemas/money.json", "type": "integer"}
    assert read(document, anything_json=money) == struct(("a", INT64))


def test_anchors_are_found() -> None:
    document = {"$defs": {"x": {"$anchor": "money", "type": "integer"}}, "type": "array", "items": {"$ref": "#money"}}
    assert read(document) == array(INT64)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "without a type"),
        (True, "bool"),
        ({"type": "null"}, "of type null"),
        ({"type": "array"}, "did not specify the items type"),
        ({"not": {"type": "string"}}, "without a type"),
        ({"$ref": "other.json"}, "refers to other.json"),
        ({"$ref": "#/definitions/none"}, "#/definitions/none"),
        ({"$ref": "#"}, "is recursive"),
        ({"type": "object", "properties": {"child": {"oneOf": [{"type": "null"}, {"$ref": "#"}]}}}, "is recursive"),
        ({"type": "integer", "connect.type": "int128"}, "int128"),
        ({"type": "object", "properties": 5}, "wrong type"),
    ],
    ids=str,
)
def test_document_without_a_connect_schema_is_refused(document: Any, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(document)
    assert said in caught.value.message


def test_recursion_below_the_root_is_refused() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/definitions/node"}}}
    with pytest.raises(SchemaError, match="is recursive"):
        read({"type": "object", "properties": {"head": {"$ref": "#/definitions/node"}}, "definitions": {"node": node}})


def test_written_document_has_confluents_words() -> None:
    schema = struct(
        ("id", INT64),
        ("name", OPTIONAL_STRING),
        ("price", decimal(2)),
        ("tags", map_of(INT32, STRING)),
        ("raw", BYTES),
        name="com.acme.Order",
        version=2,
    )
    assert json.loads(schema_from_connect(schema, JsonSchemaOptions(additional_properties=False))) == {
        "type": "object",
        "title": "com.acme.Order",
        "connect.version": 2,
        "additionalProperties": False,
        "properties": {
            "id": {"type": "integer", "connect.type": "int64", "connect.index": 0},
            "name": {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 1},
            "price": {
                "type": "number",
                "title": DECIMAL,
                "connect.type": "bytes",
                "connect.version": 1,
                "connect.parameters": {"scale": "2"},
                "connect.index": 2,
            },
            "tags": {
                "type": "array",
                "connect.type": "map",
                "connect.index": 3,
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "integer", "connect.type": "int32", "connect.index": 0},
                        "value": {"type": "string", "connect.index": 1},
                    },
                },
            },
            "raw": {"type": "string", "connect.type": "bytes", "connect.index": 4},
        },
    }


def test_written_document_without_properties_says_that_it_is_json_schema() -> None:
    for schema in (STRING, replace(struct(("a", INT64)), optional=True)):
        document = json.loads(schema_from_connect(schema, JsonSchemaOptions()))
        assert document["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_enum_written_has_its_symbols() -> None:
    for options in (JsonSchemaOptions(), GENERAL):
        schema = read({"enum": ["A", None], "title": "Color"}, options)
        assert json.loads(schema_from_connect(schema, options))["enum"] == ["A", None]


FIELD_NAMES = ("a", "", "\u00e9 \u20ac", '"x"')
PLAIN = (INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES)
SCALARS = st.sampled_from([*PLAIN, decimal(3), date(), time(), timestamp()])
SCALARS_WITH_ATTRIBUTES = st.builds(
    lambda schema, optional, doc, version: replace(
        schema, optional=optional, doc=doc, version=version or schema.version
    ),
    SCALARS,
    st.booleans(),
    st.none() | st.text(max_size=5),
    st.none() | st.integers(1, 9),
)


def nested(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    fields = st.lists(inner, max_size=4).map(lambda schemas: list(zip(FIELD_NAMES, schemas, strict=False)))
    return st.one_of(
        st.builds(lambda e, o: array(e, optional=o), inner, st.booleans()),
        st.builds(
            lambda k, v, o: map_of(replace(k, doc=None, version=None), v, optional=o),
            st.sampled_from([STRING, INT32, OPTIONAL_STRING]),
            inner,
            st.booleans(),
        ),
        st.builds(lambda f, o, n: struct(*f, optional=o, name=n), fields, st.booleans(), st.none() | st.just("a.B")),
        st.builds(
            lambda a, b, o: replace(one_of(replace(a, optional=True), replace(b, optional=True)), optional=o),
            inner,
            inner,
            st.booleans(),
        ),
    )


SCHEMAS = st.recursive(SCALARS_WITH_ATTRIBUTES, nested, max_leaves=8)


@settings(deadline=None)
@given(SCHEMAS)
def test_schema_written_and_read_is_the_same(schema: Schema) -> None:
    text = schema_from_connect(schema, JsonSchemaOptions())
    assert schema_to_connect(References(text, {}), JsonSchemaOptions()) == schema
