"""Connect schemas as JSON: the `schema` member of JsonConverter's envelope, read and written.

Source: org.apache.kafka.connect.json.JsonConverter.asConnectSchema and asJsonSchema (KIP-26).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Protocol

from airflow_connect.api.schema import MAX_SCHEMA_DEPTH, Field, Schema, Type
from airflow_connect.converters.json.text import string_text
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import wrapped

_TYPES = {t.value: t for t in Type}


class DefaultReader(Protocol):
    """Reads the JSON of a default value by the schema that it belongs to."""

    def __call__(self, schema: Schema, node: Any) -> Any:
        """The default as a Connect value."""


class DefaultWriter(Protocol):
    """Writes a default value as JSON text."""

    def __call__(self, schema: Schema, value: Any) -> str:
        """The JSON text of the default."""


def schema_from_json(node: Any, read_default: DefaultReader) -> Schema | None:
    """The schema that a parsed JSON schema describes; JSON null is None, schemaless.

    Attributes of the wrong JSON type (a version that is text, a name that is a number) are ignored, as
    Connect does.

    Args:
        node: parsed with exact numbers (`json_text.parse_exact`).
        read_default: turns the `default` member into a Connect value.

    Raises:
        DataError: it is not a valid schema.
    """
    return _schema(node, read_default, 1)


def _schema(node: Any, read_default: DefaultReader, level: int) -> Schema | None:
    if node is None:
        return None
    if level > MAX_SCHEMA_DEPTH:
        raise _broken(f"The schema is nested more than {MAX_SCHEMA_DEPTH} levels")
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        raise _broken("Schema must contain 'type' field")
    schema_type = _TYPES.get(kind)
    if schema_type is None:
        raise _broken(f"Unknown schema type: {kind}")
    schema = Schema(
        schema_type,
        optional=node.get("optional") is True,
        name=_text(node, "name"),
        version=_version(node),
        doc=_text(node, "doc"),
        parameters=_parameters(node),
        **_members(schema_type, node, read_default, level + 1),
    )
    if "default" in node:
        schema = replace(schema, default=read_default(schema, node["default"]))
    return schema


def _members(schema_type: Type, node: dict[str, Any], read_default: DefaultReader, level: int) -> dict[str, Any]:
    """Constructor arguments for the parts of an ARRAY, a MAP or a STRUCT."""
    if schema_type is Type.ARRAY:
        if node.get("items") is None:
            raise _broken("Array schema did not specify the element type")
        return {"value_schema": _schema(node["items"], read_default, level)}
    if schema_type is Type.MAP:
        if node.get("keys") is None:
            raise _broken("Map schema did not specify the key type")
        if node.get("values") is None:
            raise _broken("Map schema did not specify the value type")
        return {
            "key_schema": _schema(node["keys"], read_default, level),
            "value_schema": _schema(node["values"], read_default, level),
        }
    if schema_type is Type.STRUCT:
        return {"fields": _fields(node, read_default, level)}
    return {}


def _fields(node: dict[str, Any], read_default: DefaultReader, level: int) -> tuple[Field, ...]:
    members = node.get("fields")
    if not isinstance(members, list):
        raise _broken('Struct schema\'s "fields" argument is not an array')
    fields: dict[str, Field] = {}
    for member in members:
        name = member.get("field") if isinstance(member, dict) else None
        if not isinstance(name, str):
            raise _broken("Struct schema's field name not specified properly")
        if name in fields:
            raise _broken(f"Cannot create field because of field name duplication {name}")
        schema = _schema(member, read_default, level)
        assert schema is not None
        fields[name] = Field(name, len(fields), schema)
    return tuple(fields.values())


def _text(node: dict[str, Any], key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def _version(node: dict[str, Any]) -> int | None:
    value = node.get("version")
    return wrapped(value, 32) if type(value) is int else None


def _parameters(node: dict[str, Any]) -> dict[str, str]:
    value = node.get("parameters")
    if not isinstance(value, dict):
        return {}
    if not all(isinstance(v, str) for v in value.values()):
        raise _broken("Schema parameters must have string values")
    return dict(value)


def _broken(reason: str) -> DataError:
    return DataError(
        f"{reason}.",
        code="data.schema",
        suggestion='The "schema" of a message must be a Connect schema, such as {"type":"string"}.',
    )


def schema_to_json(schema: Schema | None, write_default: DefaultWriter, field_name: str | None = None) -> str:
    """JSON text of a schema, members in JsonConverter's order: type, parts, attributes, default, field."""
    if schema is None:
        return "null"
    parts = [f'"type":"{schema.type.value}"']
    if schema.type is Type.ARRAY:
        parts.append(f'"items":{schema_to_json(schema.value_schema, write_default)}')
    elif schema.type is Type.MAP:
        parts.append(f'"keys":{schema_to_json(schema.key_schema, write_default)}')
        parts.append(f'"values":{schema_to_json(schema.value_schema, write_default)}')
    elif schema.type is Type.STRUCT:
        members = [schema_to_json(f.schema, write_default, f.name) for f in schema.fields]
        parts.append(f'"fields":[{",".join(members)}]')
    parts.append(f'"optional":{json.dumps(schema.optional)}')
    if schema.name is not None:
        parts.append(f'"name":{string_text(schema.name)}')
    if schema.version is not None:
        parts.append(f'"version":{schema.version}')
    if schema.doc is not None:
        parts.append(f'"doc":{string_text(schema.doc)}')
    if schema.parameters:
        pairs = [f"{string_text(k)}:{string_text(v)}" for k, v in schema.parameters.items()]
        parts.append(f'"parameters":{{{",".join(pairs)}}}')
    if schema.default is not None:
        parts.append(f'"default":{write_default(schema, schema.default)}')
    if field_name is not None:
        parts.append(f'"field":{string_text(field_name)}')
    return "{" + ",".join(parts) + "}"
