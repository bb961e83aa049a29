"""Which columns a record has: primary key first, then the fields of the value.

Source: io.confluent.connect.jdbc.sink.metadata.FieldsMetadata, with its messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import (
    INT32,
    INT64,
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Schema,
    Type,
    struct,
)
from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.errors import SchemaError

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.config import MappingConfig

_PRIMITIVE = frozenset(set(Type) - {Type.ARRAY, Type.MAP, Type.STRUCT})
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")

Get = Callable[["SinkRecord"], Any]
GetColumn = Callable[["RecordColumns"], Any]


@dataclass(frozen=True, slots=True)
class SinkField:
    """A column of a record.

    Attributes:
        name: of the field, and of the column unless the table spells it differently.
        schema: of the value.
        is_key: whether it is part of the primary key.
        get: takes the value from a record.
        column: takes the values from records in columns, as an Arrow array, or None if they are not there.
    """

    name: str
    schema: Schema
    is_key: bool
    get: Get
    column: GetColumn | None = None

    @property
    def is_optional(self) -> bool:
        """Whether the column may be null; those of a primary key may not."""
        return not self.is_key and self.schema.optional

    @property
    def has_default(self) -> bool:
        """Whether the schema has a default."""
        return self.schema.default is not None


def fields_of(
    table: str, mapping: MappingConfig, key_schema: Schema | None, value_schema: Schema | None
) -> tuple[SinkField, ...]:
    """The columns of records with these schemas: first those of the primary key, then the others.

    Args:
        table: for messages.
        mapping: the configuration.
        key_schema: schema of the key, or None.
        value_schema: schema of the value; None for a record without value.

    Raises:
        SchemaError: the schemas do not have what `pk.mode` needs, or have no field at all, or one that cannot be a
            column.
    """
    found: dict[str, SinkField] = {}
    for field in _KEY_FIELDS[mapping.pk_mode](table, mapping, key_schema, value_schema):
        found[field.name] = field
    for field in _value_fields(mapping, value_schema):
        if field.name not in found and (not mapping.whitelist or field.name in mapping.whitelist):
            found[field.name] = field
    if not found:
        raise SchemaError(
            f"No fields found using key and value schemas for table: {table}.",
            code="jdbc.no_fields",
            suggestion=f"Check {Keys.pk_mode}, {Keys.pk_fields} and {Keys.whitelist}.",
        )
    if unwritable := next(filter(_UNWRITABLE.search, found), None):
        raise SchemaError(
            f"The field {unwritable!r} of records for the table {table} has a character in its name that no name of a"
            " column has: a zero byte, or half of a surrogate pair.",
            code="database.name",
            suggestion=f"Rename it with the transformation ReplaceField, or leave it out with {Keys.whitelist}.",
        )
    return tuple(found.values())


def unused_key_fields(mapping: MappingConfig, key_schema: Schema | None) -> tuple[str, ...]:
    """The fields of a key that are not in the primary key: keys that differ only in them are one row."""
    if mapping.pk_mode != keys.RECORD_KEY or key_schema is None or key_schema.type is not Type.STRUCT:
        return ()
    return tuple(f.name for f in key_schema.fields if mapping.pk_fields and f.name not in mapping.pk_fields)


def _value_fields(mapping: MappingConfig, schema: Schema | None) -> list[SinkField]:
    if schema is None:
        return []
    if schema.type is Type.STRUCT:
        return [
            SinkField(f.name, f.schema, False, _from_value(f.name), _column_of(_values, f.name)) for f in schema.fields
        ]
    if schema.type is Type.STRING:
        return [SinkField(mapping.string_column, schema, False, lambda record: record.value, _values)]
    return []


def _no_key(
    table: str, mapping: MappingConfig, key_schema: Schema | None, value_schema: Schema | None
) -> list[SinkField]:
    return []


def _kafka_key(
    table: str, mapping: MappingConfig, key_schema: Schema | None, value_schema: Schema | None
) -> list[SinkField]:
    # Kafka's own coordinates, as KIP-793 gives them, so that a renamed topic does not merge two records.
    topic, partition, offset = mapping.pk_fields
    return [
        SinkField(topic, STRING, True, lambda record: record.original_topic, _topics),
        SinkField(partition, INT32, True, lambda record: record.original_partition, _partitions),
        SinkField(offset, INT64, True, lambda record: record.offset, _offsets),
    ]


def _record_key(
    table: str, mapping: MappingConfig, key_schema: Schema | None, value_schema: Schema | None
) -> list[SinkField]:
    if key_schema is None:
        raise _wrong(f"PK mode for table '{table}' is {keys.RECORD_KEY}, but record key schema is missing")
    if key_schema.type in _PRIMITIVE:
        if len(mapping.pk_fields) != 1:
            raise _wrong(
                "Need exactly one PK column defined since the key schema for records is a primitive type, "
                f"defined columns are: [{', '.join(mapping.pk_fields)}]"
            )
        return [SinkField(mapping.pk_fields[0], key_schema, True, lambda record: record.key, _keys)]
    if key_schema.type is not Type.STRUCT:
        raise _wrong(f"Key schema must be primitive type or Struct, but is of type: {key_schema.type.name}")
    return _chosen(table, mapping, key_schema, ("key", _from_key, _keys))


def _record_value(
    table: str, mapping: MappingConfig, key_schema: Schema | None, value_schema: Schema | None
) -> list[SinkField]:
    if value_schema is None or value_schema.type is not Type.STRUCT:
        raise _wrong(f"PK mode for table '{table}' is {keys.RECORD_VALUE}, but record value schema is missing")
    return _chosen(table, mapping, value_schema, ("value", _from_value, _values))


def _chosen(
    table: str, mapping: MappingConfig, schema: Schema, origin: tuple[str, Callable[[str], Get], GetColumn]
) -> list[SinkField]:
    side, get, columns = origin
    names = mapping.pk_fields or tuple(f.name for f in schema.fields)
    for name in names:
        if name not in schema.fields_by_name:
            raise _wrong(
                f"PK mode for table '{table}' is {mapping.pk_mode} with configured PK fields "
                f"[{', '.join(mapping.pk_fields)}], but record {side} schema does not contain field: {name}"
            )
    by_name = schema.fields_by_name
    return [SinkField(name, by_name[name].schema, True, get(name), _column_of(columns, name)) for name in names]


_KEY_FIELDS = {
    keys.NONE: _no_key,
    keys.KAFKA: _kafka_key,
    keys.RECORD_KEY: _record_key,
    keys.RECORD_VALUE: _record_value,
}


def _from_value(name: str) -> Get:
    return lambda record: record.value.get(name)


def _from_key(name: str) -> Get:
    return lambda record: record.key.get(name)


def _values(columns: RecordColumns) -> Any:
    return columns.value.values


def _keys(columns: RecordColumns) -> Any:
    return None if columns.key is None else columns.key.values


def _column_of(structs: GetColumn, name: str) -> GetColumn:
    """The column of a field of structs."""

    def column(columns: RecordColumns) -> Any:
        found = structs(columns)
        return None if found is None or found.null_count else found.field(name)

    return column


def _topics(columns: RecordColumns) -> Any:
    import pyarrow as pa

    return pa.repeat(columns.original_topic, len(columns))


def _partitions(columns: RecordColumns) -> Any:
    import pyarrow as pa

    return pa.repeat(pa.scalar(columns.original_partition, pa.int32()), len(columns))


def _offsets(columns: RecordColumns) -> Any:
    import pyarrow as pa

    return pa.array(columns.offsets)


def _wrong(message: str) -> SchemaError:
    return SchemaError(
        f"{message}.",
        code="jdbc.primary_key",
        suggestion=f"Check {Keys.pk_mode}, {Keys.pk_fields} and the converters.",
        config_path=Keys.pk_fields.name,
    )


UNKNOWN = Schema(Type.STRING, optional=True, doc="null without a schema")
"""Of a null in an object without schema: its type is unknown, so it is written only if the table has the column."""


def inferred_schema(value: Mapping[Any, Any], side: str = "value") -> Schema:
    """The schema of an object without one, from its values; every field is optional.

    Raises:
        SchemaError: a field is an object or an array, for which there is no column type.
    """
    kinds = tuple((field, type(item)) for field, item in value.items())
    found = _inferred(kinds)
    if isinstance(found, Schema):
        return found
    raise SchemaError(
        f"The field {found} of the {side} is {_described(value[found])}, for which there is no column type.",
        code="jdbc.nested",
        suggestion="Use the transformation Flatten, or ReplaceField to drop it.",
    )


@lru_cache(maxsize=4096)
def _inferred(kinds: tuple[tuple[Any, type], ...]) -> Schema | Any:
    """The schema, or the name of the first field that cannot have a column."""
    for field, kind in kinds:
        if kind not in _INFERRED:
            return field
    return struct(*((str(field), _INFERRED[kind]) for field, kind in kinds))


_INFERRED: dict[type, Schema] = {
    bool: OPTIONAL_BOOLEAN,
    int: OPTIONAL_INT64,
    float: OPTIONAL_FLOAT64,
    str: OPTIONAL_STRING,
    bytes: OPTIONAL_BYTES,
    type(None): UNKNOWN,
}


def _described(item: Any) -> str:
    return "an array" if isinstance(item, list) else "an object" if isinstance(item, dict) else type(item).__name__
