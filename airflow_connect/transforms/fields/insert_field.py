"""InsertField: adds fields with the record's coordinates or with a fixed text.

Source: org.apache.kafka.connect.transforms.InsertField (Kafka 4.3.1, recorded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api import schema as schemas
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Problem
from airflow_connect.api.config.config_def import Type as ConfigType
from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE, ConnectRecord
from airflow_connect.api.schema import Schema
from airflow_connect.api.transform import R
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache, struct_like
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import field_value, require_map, require_sink_record, require_struct

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import RecordColumns

TOPIC_FIELD = "topic.field"
PARTITION_FIELD = "partition.field"
OFFSET_FIELD = "offset.field"
TIMESTAMP_FIELD = "timestamp.field"
STATIC_FIELD = "static.field"
STATIC_VALUE = "static.value"

_PURPOSE = "field insertion"
_FIELD_KEYS = (TOPIC_FIELD, PARTITION_FIELD, OFFSET_FIELD, TIMESTAMP_FIELD, STATIC_FIELD)
_OPTIONALITY = " Suffix with ! to make this a required field, or ? to keep it optional (the default)."
_SCHEMAS = {
    TOPIC_FIELD: (schemas.STRING, schemas.OPTIONAL_STRING),
    PARTITION_FIELD: (schemas.INT32, schemas.OPTIONAL_INT32),
    OFFSET_FIELD: (schemas.INT64, schemas.OPTIONAL_INT64),
    TIMESTAMP_FIELD: (schemas.timestamp(), schemas.timestamp(optional=True)),
    STATIC_FIELD: (schemas.STRING, schemas.OPTIONAL_STRING),
}


class _Insertion(NamedTuple):
    """A field to insert; `key` says what goes in."""

    key: str
    name: str
    schema: Schema


def _insertion(key: str, text: str) -> _Insertion:
    required, optional = _SCHEMAS[key]
    if text.endswith(("?", "!")):
        return _Insertion(key, text[:-1], required if text.endswith("!") else optional)
    return _Insertion(key, text, optional)


def _check(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if all(parsed[key] is None for key in _FIELD_KEYS):
        yield Problem(TOPIC_FIELD, "No field insertion configured", f"Set one of {', '.join(_FIELD_KEYS)}.")
    elif parsed[STATIC_FIELD] is not None and parsed[STATIC_VALUE] is None:
        field = _insertion(STATIC_FIELD, parsed[STATIC_FIELD]).name
        message = f"Invalid value null for configuration {STATIC_VALUE}: No value specified for static field: {field}"
        yield Problem(STATIC_VALUE, message, f"Set {STATIC_VALUE} to the text that the field is to hold.")


def _field_key(name: str, documentation: str) -> ConfigKey:
    return ConfigKey(name, ConfigType.STRING, None, documentation + _OPTIONALITY, importance=Importance.MEDIUM)


class _InsertField(OfKeyOrValue):
    config_def = (
        ConfigDef()
        .define(
            _field_key(TOPIC_FIELD, "Field name for Kafka topic."),
            _field_key(PARTITION_FIELD, "Field name for Kafka partition."),
            _field_key(OFFSET_FIELD, "Field name for Kafka offset - only applicable to sink connectors."),
            _field_key(TIMESTAMP_FIELD, "Field name for record timestamp."),
            _field_key(STATIC_FIELD, "Field name for static data field."),
            ConfigKey(STATIC_VALUE, ConfigType.STRING, None, "Static field value, if field name configured."),
            replace_null_with_default(),
        )
        .define_rule((*_FIELD_KEYS, STATIC_VALUE), _check)
    )

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = self.config_def.parse(config)
        self._insertions = [_insertion(key, parsed[key]) for key in _FIELD_KEYS if parsed[key] is not None]
        self._static_value: str = parsed[STATIC_VALUE]
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]
        self._schemas = SchemaCache(self._new_schema)

    def apply(self, record: R) -> R:
        schema, value = self.schema_of(record), self.value_of(record)
        if value is None:
            return record
        if schema is None:
            old = require_map(None, value, _PURPOSE)
            found = {insertion.name: self._value(insertion.key, record) for insertion in self._insertions}
            return self.with_part(record, None, old | {name: new for name, new in found.items() if new is not None})
        struct = require_struct(schema, value, _PURPOSE)
        new_schema = self._schemas(schema)
        new_value = {field.name: field_value(struct, field, self._replace_null) for field in schema.fields}
        for insertion in self._insertions:
            new_value[insertion.name] = self._value(insertion.key, record)
        return self.with_part(record, new_schema, new_value)

    def _value(self, key: str, record: ConnectRecord) -> Any:
        if key == TOPIC_FIELD:
            return record.topic
        if key == PARTITION_FIELD:
            return record.partition
        if key == OFFSET_FIELD:
            return require_sink_record(record, _PURPOSE).offset
        return record.timestamp if key == TIMESTAMP_FIELD else self._static_value

    def _new_schema(self, schema: Schema) -> Schema:
        members = [(field.name, field.schema) for field in schema.fields]
        return struct_like(schema, members + [(insertion.name, insertion.schema) for insertion in self._insertions])

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        part = self.columns_of(batch)
        members = struct_members(part)
        if part is None or part.schema is None or members is None:
            return None
        new_schema = self._schemas.or_none(part.schema)
        if new_schema is None:
            return None
        columns = []
        for field, member in zip(part.schema.fields, members, strict=True):
            column = with_default(member, field.schema, self._replace_null)
            if column is None:
                return None
            columns.append(column)
        for insertion in self._insertions:
            if insertion.key == OFFSET_FIELD and not batch.is_from_kafka:
                return None  # records of a source have no offset: `apply` says so
            columns.append(_COLUMNS[insertion.key](batch, self._static_value))
        return self.with_columns(batch, struct_columns(new_schema, columns, len(part)))


def _repeated(value: Any, arrow_type: str, count: int) -> pa.Array[Any]:
    import pyarrow as pa

    repeated: pa.Array[Any] = pa.repeat(pa.scalar(value, getattr(pa, arrow_type)()), count)
    return repeated


def _timestamps(batch: RecordColumns) -> pa.Array[Any]:
    import pyarrow as pa

    if batch.timestamp_type == TIMESTAMP_NOT_AVAILABLE:
        return pa.nulls(len(batch), pa.int64())
    return pa.array(batch.timestamps)


def _partitions(batch: RecordColumns) -> pa.Array[Any]:
    return _repeated(batch.original_partition if batch.is_from_kafka else None, "int32", len(batch))


def _offsets(batch: RecordColumns) -> pa.Array[Any]:
    import pyarrow as pa

    return pa.array(batch.offsets)


_COLUMNS: dict[str, Callable[[RecordColumns, str], pa.Array[Any]]] = {
    TOPIC_FIELD: lambda batch, _static: _repeated(batch.topic, "string", len(batch)),
    PARTITION_FIELD: lambda batch, _static: _partitions(batch),
    OFFSET_FIELD: lambda batch, _static: _offsets(batch),
    TIMESTAMP_FIELD: lambda batch, _static: _timestamps(batch),
    STATIC_FIELD: lambda batch, static: _repeated(static, "string", len(batch)),
}


class InsertField:
    """Insert fields using attributes from the record metadata or a configured static value."""

    class Key(OfKey, _InsertField):
        """Applies to the key."""

    class Value(OfValue, _InsertField):
        """Applies to the value."""
