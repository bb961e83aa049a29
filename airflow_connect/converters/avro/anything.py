"""Schemaless values in Avro: the record `Anything`, which holds any value by type.

Source: io.confluent.connect.avro.AvroData.ANYTHING_SCHEMA.
"""

from __future__ import annotations

from typing import Any

from airflow_connect.api.errors import DataError
from airflow_connect.converters.avro.names import ANYTHING, MAP_ENTRY, NAMESPACE


def _optional(name: str, avro_type: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", avro_type], "default": None}


ANYTHING_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": ANYTHING.rpartition(".")[2],
    "namespace": NAMESPACE,
    "fields": [
        *(_optional(name, name) for name in ("boolean", "bytes", "double", "float", "int", "long", "string")),
        _optional("array", {"type": "array", "items": "Anything"}),
        _optional(
            "map",
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": MAP_ENTRY,
                    "fields": [{"name": "key", "type": "Anything"}, {"name": "value", "type": "Anything"}],
                },
            },
        ),
    ],
}


def anything_of(value: Any) -> dict[str, Any]:
    """A schemaless value as a value of `ANYTHING_SCHEMA`; integers are longs, as those of JSON are in Connect.

    Raises:
        DataError: a type that Connect does not have without a schema.
    """
    if value is None:
        return {}
    if isinstance(value, list | tuple):
        return {"array": [anything_of(item) for item in value]}
    if isinstance(value, dict):
        return {"map": [{"key": anything_of(key), "value": anything_of(item)} for key, item in value.items()]}
    for kind, name in ((bool, "boolean"), (bytes, "bytes"), (float, "double"), (int, "long"), (str, "string")):
        if isinstance(value, kind):
            return {name: value}
    raise DataError(
        f"A schemaless value of the type {type(value).__name__} has no form in Avro.",
        code="data.mismatch",
        suggestion="Give the record a schema, or convert the value to text or a number.",
    )
