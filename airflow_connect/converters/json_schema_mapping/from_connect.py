"""Connect schemas as JSON Schema documents.

Source: io.confluent.connect.json.JsonSchemaData.fromConnectSchema (8.1). The document has the same meaning; its
keywords may be in another order, which matters to a registry that does not normalize.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from airflow_connect.api.schema import DECIMAL, Schema, Type
from airflow_connect.converters.json_schema_mapping import names
from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
from airflow_connect.converters.json_schema_mapping.values import value_writer
from airflow_connect.errors import SchemaError

_DRAFT = "http://json-schema.org/draft-07/schema#"
_NUMBERS = {
    Type.INT8: ("integer", "int8"),
    Type.INT16: ("integer", "int16"),
    Type.INT32: ("integer", "int32"),
    Type.INT64: ("integer", "int64"),
    Type.FLOAT32: ("number", "float32"),
    Type.FLOAT64: ("number", "float64"),
}


def schema_from_connect(schema: Schema, options: JsonSchemaOptions) -> str:
    """The text of the JSON Schema that describes values of `schema`."""
    document = _document(schema, options, None)
    if "properties" not in document:
        # Apicurio Registry recognises JSON Schema by its properties, or else by this keyword.
        document = {"$schema": _DRAFT, **document}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _document(schema: Schema, options: JsonSchemaOptions, index: int | None) -> dict[str, Any]:
    """`index`: position of a property or of a member of a sum type."""
    if names.is_union(schema):
        made = _union(schema, options)
    else:
        made = _described(schema, options)
        if schema.optional:
            made = {"oneOf": [{"type": "null"}, made]}
    if index is not None:
        made[names.CONNECT_INDEX] = index
    return made


def _union(schema: Schema, options: JsonSchemaOptions) -> dict[str, Any]:
    null = [{"type": "null"}] if schema.optional else []
    members = [_document(replace(f.schema, optional=False), options, f.index) for f in schema.fields]
    return {"oneOf": [*null, *members]}


def _described(schema: Schema, options: JsonSchemaOptions) -> dict[str, Any]:
    made = _plain(schema, options)
    if schema.name is not None:
        made["title"] = schema.name
    if schema.doc is not None:
        made["description"] = schema.doc
    if schema.default is not None:
        text = value_writer(schema, options)(schema.default)
        made["default"] = None if text is None else json.loads(text)
    if schema.version is not None:
        made[names.CONNECT_VERSION] = schema.version
    parameters = {k: v for k, v in schema.parameters.items() if not k.startswith(names.NAMESPACE)}
    if parameters:
        made[names.CONNECT_PARAMETERS] = parameters
    return made


def _plain(schema: Schema, options: JsonSchemaOptions) -> dict[str, Any]:
    if schema.type in _NUMBERS:
        kind, connect_type = _NUMBERS[schema.type]
        return {"type": kind, names.CONNECT_TYPE: connect_type}
    if schema.type is Type.BOOLEAN:
        return {"type": "boolean"}
    if schema.type is Type.STRING:
        symbols = _symbols(schema)
        return {"type": "string"} if symbols is None else {"enum": symbols}
    if schema.type is Type.BYTES:
        return {"type": "number" if schema.name == DECIMAL else "string", names.CONNECT_TYPE: "bytes"}
    if schema.type is Type.ARRAY:
        return {"type": "array", "items": _document(_inner(schema.value_schema), options, None)}
    if schema.type is Type.MAP:
        return _map(schema, options)
    properties = {f.name: _document(f.schema, options, f.index) for f in schema.fields}
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if not options.additional_properties:
        made["additionalProperties"] = False
    return made


def _map(schema: Schema, options: JsonSchemaOptions) -> dict[str, Any]:
    key, value = _inner(schema.key_schema), _inner(schema.value_schema)
    if names.has_object_form(schema):
        return {
            "type": "object",
            "additionalProperties": _document(value, options, None),
            names.CONNECT_TYPE: "map",
        }
    entry = {names.KEY: _document(key, options, 0), names.VALUE: _document(value, options, 1)}
    return {"type": "array", "items": {"type": "object", "properties": entry}, names.CONNECT_TYPE: "map"}


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaError(
            "A list or a map without a schema for its members cannot be described in JSON Schema.",
            suggestion="Add a schema for the elements, keys or values.",
        )
    return schema


def _symbols(schema: Schema) -> list[str | None] | None:
    """What an enum may be; None for other text."""
    for word in (names.GENERAL_ENUM, names.ENUM):
        if word in schema.parameters:
            found = [name.removeprefix(f"{word}.") for name in schema.parameters if name.startswith(f"{word}.")]
            return [None if symbol == names.ENUM_NULL else symbol for symbol in found]
    return None
