"""SetSchemaMetadata: gives a schema another name, version or both.

Source: org.apache.kafka.connect.transforms.SetSchemaMetadata (Kafka 4.3.1, recorded).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Problem
from airflow_connect.api.config.config_def import Type as ConfigType
from airflow_connect.api.schema import Schema
from airflow_connect.api.transform import R
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache, require_fields
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import field_value, require_schema

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

SCHEMA_NAME = "schema.name"
SCHEMA_VERSION = "schema.version"

_PURPOSE = "updating schema metadata"


def _require_one(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[SCHEMA_NAME] is None and parsed[SCHEMA_VERSION] is None:
        yield Problem(
            SCHEMA_NAME,
            "Neither schema name nor version configured",
            f"Set {SCHEMA_NAME}, {SCHEMA_VERSION} or both.",
        )


class _SetSchemaMetadata(OfKeyOrValue):
    config_def = (
        ConfigDef()
        .define(
            ConfigKey(SCHEMA_NAME, ConfigType.STRING, None, "Schema name to set.", importance=Importance.HIGH),
            ConfigKey(SCHEMA_VERSION, ConfigType.INT, None, "Schema version to set.", importance=Importance.HIGH),
            replace_null_with_default(),
        )
        .define_rule((SCHEMA_NAME, SCHEMA_VERSION), _require_one)
    )

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = self.config_def.parse(config)
        self._name: str | None = parsed[SCHEMA_NAME]
        self._version: int | None = parsed[SCHEMA_VERSION]
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]
        self._schemas = SchemaCache(self._new_schema)

    def apply(self, record: R) -> R:
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None and value is None:
            return record
        schema = require_schema(schema, _PURPOSE)
        new_schema = self._schemas(schema)
        if value is not None:
            value = {field.name: field_value(value, field, self._replace_null) for field in schema.fields}
        return self.with_part(record, new_schema, value)

    def _new_schema(self, schema: Schema) -> Schema:
        # Connect asks every schema for its fields, so that it can only rename structs.
        require_fields(schema)
        name = schema.name if self._name is None else self._name
        version = schema.version if self._version is None else self._version
        return replace(schema, name=name, version=version)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        part = self.columns_of(batch)
        members = struct_members(part)
        if part is None or part.schema is None or members is None:
            return None
        columns = [
            with_default(column, field.schema, self._replace_null)
            for field, column in zip(part.schema.fields, members, strict=True)
        ]
        plain = [column for column in columns if column is not None]
        if len(plain) < len(columns):
            return None
        return self.with_columns(batch, struct_columns(self._schemas(part.schema), plain, len(part)))


class SetSchemaMetadata:
    """Set the schema name, version or both on the record's key or value schema."""

    class Key(OfKey, _SetSchemaMetadata):
        """Applies to the key."""

    class Value(OfValue, _SetSchemaMetadata):
        """Applies to the value."""
