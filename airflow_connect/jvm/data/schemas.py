"""Schemas as JSON, with all that Connect knows of them.

`helper/src/org/airflowconnect/host/SchemaJson.java` is the other side.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from airflow_connect.api.schema import MAX_SCHEMA_DEPTH, Field, Schema, Type
from airflow_connect.errors import DataError
from airflow_connect.jvm.data.values import decode, encode, from_tree, to_tree


def schema_json(schema: Schema) -> dict[str, Any]:
    """What the host gets.

    Raises:
        DataError: a default that does not fit the schema.
    """
    json: dict[str, Any] = {"type": schema.type.name}
    if schema.optional:
        json["optional"] = True
    given = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    json |= {member: value for member, value in given.items() if value is not None}
    if schema.parameters:
        json["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        json["default"] = base64.b64encode(encode(to_tree(schema, schema.default))).decode()
    if schema.key_schema is not None:
        json["keys"] = schema_json(schema.key_schema)
    if schema.value_schema is not None:
        json["values"] = schema_json(schema.value_schema)
    if schema.type is Type.STRUCT:
        json["fields"] = [[field.name, schema_json(field.schema)] for field in schema.fields]
    return json


def schema_of(json: Mapping[str, Any], level: int = 1) -> Schema:
    """The schema that the host has described.

    Raises:
        DataError: more than `MAX_SCHEMA_DEPTH` levels.
    """
    if level > MAX_SCHEMA_DEPTH:
        raise DataError(
            f"A schema has more than {MAX_SCHEMA_DEPTH} levels.", suggestion="Flatten the values in a transformation."
        )
    keys, values = json.get("keys"), json.get("values")
    plain = Schema(
        Type[json["type"]],
        optional=bool(json.get("optional")),
        name=json.get("name"),
        version=json.get("version"),
        doc=json.get("doc"),
        parameters=MappingProxyType(json.get("parameters", {})),
        fields=tuple(
            Field(name, index, schema_of(member, level + 1))
            for index, (name, member) in enumerate(json.get("fields", ()))
        ),
        key_schema=None if keys is None else schema_of(keys, level + 1),
        value_schema=None if values is None else schema_of(values, level + 1),
    )
    if "default" not in json:
        return plain
    return replace(plain, default=from_tree(plain, decode(base64.b64decode(json["default"]))))
