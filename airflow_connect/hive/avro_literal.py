"""`avro.schema.literal` of a table: the schema with which Hive's AvroSerDe reads both old and new files.

AvroSerDe takes the columns from this schema, not from the metastore. A field that a file lacks needs a default in this
schema, so every field has one: its own, or null. Source: Apache Hive, "AvroSerDe"; Avro specification 1.12, "Schema
Resolution".
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from airflow_connect.api.schema import DECIMAL, Field, Schema, Type
from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.errors import SchemaError
from airflow_connect.hive.columns import MAX_PRECISION, PRECISION_PARAMETER

AVRO_LITERAL = "avro.schema.literal"
_WIDER = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def avro_literal(
    schema: Schema, known: str, *, without: Collection[str] = (), allow_optional_map_keys: bool = False
) -> str:
    """The literal of a table that reads values of `schema` and everything that its previous literal could read.

    Args:
        schema: a STRUCT.
        known: the previous literal, or "".
        without: names of partition columns, which the literal must not contain.
        allow_optional_map_keys: `allow.optional.map.keys`.

    Raises:
        SchemaError: `known` cannot be read, or Avro cannot express both schemas as one.
    """
    settings = AvroSettings(allow_optional_map_keys=allow_optional_map_keys)
    left_out = {name.lower() for name in without}
    fields = [(f.name, f.schema) for f in schema.fields if f.name.lower() not in left_out]
    wanted = replace(schema, fields=_fields(fields))
    if known:
        wanted = _together(_read(known, settings), wanted)
    return json.dumps(AvroMapping(settings).avro_schema(replace(_lenient(wanted), optional=False)))


def _read(literal: str, settings: AvroSettings) -> Schema:
    try:
        found = read_schema(json.loads(literal), (), settings).schema
    except (ValueError, KeyError, TypeError, AttributeError, SchemaError) as error:
        raise _unreadable(f"{type(error).__name__}: {error}.") from error
    if found is None or found.type is not Type.STRUCT:
        raise _unreadable("It is not a record.")
    return found


def _unreadable(reason: str) -> SchemaError:
    return SchemaError(
        f"The table property {AVRO_LITERAL} cannot be read: {reason}",
        code="hive.avro_literal",
        suggestion="Correct it, or remove it with ALTER TABLE ... UNSET TBLPROPERTIES; the next run writes it again.",
    )


def _together(old: Schema, new: Schema) -> Schema:
    """A schema that reads values of both. For incompatible types it has the newer one; `evolution` refuses them."""
    if old.type is not new.type:
        if old.type in _WIDER and new.type in _WIDER:
            wider = max(old, new, key=lambda schema: _WIDER.index(schema.type))
            return replace(wider, optional=old.optional or new.optional)
        return new
    optional = old.optional or new.optional
    if new.type is Type.STRUCT:
        newer = {f.name.lower(): f.schema for f in new.fields}
        older = {f.name.lower() for f in old.fields}
        fields = [
            (f.name, _together(f.schema, newer[f.name.lower()]) if f.name.lower() in newer else f.schema)
            for f in old.fields
        ]
        fields += [(f.name, f.schema) for f in new.fields if f.name.lower() not in older]
        return replace(new, optional=optional, fields=_fields(fields), name=old.name)
    if new.value_schema and old.value_schema:
        return replace(new, optional=optional, value_schema=_together(old.value_schema, new.value_schema))
    return replace(new, optional=optional)


def _lenient(schema: Schema) -> Schema:
    """The same schema with a default for every field, and no more digits than Hive supports."""
    if schema.name == DECIMAL:
        given = schema.parameters.get(PRECISION_PARAMETER)
        precision = min(int(given), MAX_PRECISION) if given else MAX_PRECISION
        return replace(schema, parameters={**schema.parameters, PRECISION_PARAMETER: str(precision)})
    if schema.type is Type.STRUCT:
        fields = [(f.name, _with_default(_lenient(f.schema))) for f in schema.fields]
        return replace(schema, fields=_fields(fields))
    if schema.value_schema:
        return replace(schema, value_schema=_lenient(schema.value_schema))
    return schema


def _with_default(schema: Schema) -> Schema:
    return schema if schema.optional or schema.default is not None else replace(schema, optional=True)


def _fields(pairs: list[tuple[str, Schema]]) -> tuple[Field, ...]:
    return tuple(Field(name, index, schema) for index, (name, schema) in enumerate(pairs))
