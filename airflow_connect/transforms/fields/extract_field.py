"""ExtractField: one field in the place of the whole key or value. KIP-66, KIP-821; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.transform import R
from airflow_connect.errors import DataError
from airflow_connect.transforms.columnar.structs import struct_members, with_default
from airflow_connect.transforms.shared.fields import FieldPath, field_syntax_version
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import require_map, require_struct

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

FIELD = "field"
_PURPOSE = "field extraction"


class _ExtractField(OfKeyOrValue):
    """Pulls a field out of a struct or map; null stays null."""

    config_def = ConfigDef().define(
        ConfigKey(FIELD, Type.STRING, documentation="Field name to extract.", importance=Importance.MEDIUM),
        field_syntax_version(),
        replace_null_with_default(),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        """Read the path.

        Raises:
            ConfigError: a backtick of the path has no partner.
        """
        parsed = self.config_def.parse(config)
        self._path = FieldPath.from_config(parsed, FIELD)
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]

    def apply(self, record: R) -> R | None:
        """The record with the field as its key or value.

        Raises:
            DataError: the part is neither struct nor map nor null, or its schema has no such field.
        """
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            found = None if value is None else self._path.value_from_map(require_map(None, value, _PURPOSE))
            return self.with_part(record, None, found)
        if value is not None:
            require_struct(schema, value, _PURPOSE)
        field = self._path.field_from(schema)
        if field is None:
            raise DataError(
                f"Unknown field: {self._path.text}.",
                suggestion=f"There are the fields {', '.join(schema.fields_by_name)}; correct {FIELD}.",
                config_path=FIELD,
            )
        return self.with_part(record, field.schema, self._path.value_from_struct(schema, value, self._replace_null))

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The field's column. Not vectorizable: a default inside a nested struct that is needed."""
        import pyarrow.compute as pc

        part = self.columns_of(batch)
        if struct_members(part) is None or part is None or part.schema is None:
            return None
        schema, column = part.schema, part.values
        for depth, step in enumerate(self._path.steps):
            field = schema.field(step)
            if field is None:
                return None
            column = pc.struct_field(column, [field.index])
            if depth and self._replace_null and field.schema.default is not None and column.null_count:
                return None
            filled = with_default(column, field.schema, self._replace_null)
            if filled is None:
                return None
            schema, column = field.schema, filled
        return self.with_columns(batch, ValueColumns(schema, column))


class ExtractField:
    """Take one field and put it in the place of the whole key or value; null stays null."""

    class Key(OfKey, _ExtractField):
        """Of the record's key."""

    class Value(OfValue, _ExtractField):
        """Of the record's value."""
