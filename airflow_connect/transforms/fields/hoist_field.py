"""HoistField: wraps the whole key or value into a field. KIP-66; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.schema import Schema, struct
from airflow_connect.api.transform import R
from airflow_connect.errors import DataError
from airflow_connect.transforms.shared.fields import SchemaCache
from airflow_connect.transforms.shared.of_key_or_value import OfKey, OfKeyOrValue, OfValue

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

FIELD = "field"


class _HoistField(OfKeyOrValue):
    """Makes a struct (with a schema) or a map with one field out of anything, null included."""

    config_def = ConfigDef().define(
        ConfigKey(
            FIELD, Type.STRING,
            documentation="Name of the single field that will be created in the resulting struct or map.",
            importance=Importance.MEDIUM,
        )
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the name."""
        self._field: str = self.config_def.parse(config)[FIELD]
        self._hoisted = SchemaCache(self._make_schema)

    def apply(self, record: R) -> R | None:
        """The record with a wrapped key or value.

        Raises:
            DataError: a null whose schema does not allow one; a field may not hold it. A name that is empty.
        """
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            return self.with_part(record, None, {self._field: value})
        hoisted = self._hoisted(schema)
        if value is None and not schema.optional and schema.default is None:
            raise DataError(
                f'Invalid value: null used for required field: "{self._field}", schema type: {schema.type.name}.',
                suggestion="Skip records without a value with the predicate RecordIsTombstone.",
            )
        return self.with_part(record, hoisted, {self._field: value})

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """A struct of one column."""
        part = self.columns_of(batch)
        if not self._field or part is None or part.schema is None or part.values.null_count:
            return None
        import pyarrow as pa

        wrapped = pa.StructArray.from_arrays([part.values], names=[self._field])
        return self.with_columns(batch, ValueColumns(self._hoisted(part.schema), wrapped))

    def _make_schema(self, schema: Schema) -> Schema:
        if not self._field:
            raise DataError(
                "fieldName cannot be null.",
                suggestion=f"Set {FIELD} to a name: a struct has no field without one.",
                config_path=FIELD,
            )
        return struct((self._field, schema))


class HoistField:
    """Wrap the whole key or value into a struct (with a schema) or map of one field."""

    class Key(OfKey, _HoistField):
        """Of the record's key."""

    class Value(OfValue, _HoistField):
        """Of the record's value."""
