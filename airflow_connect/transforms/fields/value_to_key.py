"""ValueToKey: makes the key of fields of the value. KIP-66; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.schema import Schema, struct
from airflow_connect.api.transform import R, Transformation
from airflow_connect.errors import DataError
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache
from airflow_connect.transforms.shared.names import Names
from airflow_connect.transforms.shared.of_key_or_value import REPLACE_NULL_WITH_DEFAULT, replace_null_with_default
from airflow_connect.transforms.shared.values import field_value, require_map, require_struct

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

FIELDS = "fields"
_PURPOSE = "copying fields from value to key"


class ValueToKey(Transformation):
    """Replace the key by a struct or map of some of the value's fields."""

    config_def = ConfigDef().define(
        ConfigKey(
            FIELDS, Type.LIST, documentation="Field names on the record value to extract as the record key.",
            validator=Names(empty_allowed=False), importance=Importance.HIGH,
        ),
        replace_null_with_default(),
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the names."""
        parsed = self.config_def.parse(config)
        self._fields = list(dict.fromkeys(parsed[FIELDS]))
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]
        self._key_schema = SchemaCache(self._make_key_schema)

    def apply(self, record: R) -> R | None:
        """The record with a new key; the value stays as it is.

        Raises:
            DataError: the value has no fields, or with a schema not these.
        """
        if record.value_schema is None:
            found = require_map(None, record.value, _PURPOSE)
            return record.changed(key_schema=None, key={name: found.get(name) for name in self._fields})
        value = require_struct(record.value_schema, record.value, _PURPOSE)
        schema, members = self._key_schema(record.value_schema), record.value_schema.fields_by_name
        key = {name: field_value(value, members[name], self._replace_null) for name in self._fields}
        return record.changed(key_schema=schema, key=key)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The columns of the fields as the key. Not vectorizable: no schema, a field that does not exist."""
        members, schema = struct_members(batch.value), batch.value.schema
        key_schema = None if members is None or schema is None else self._key_schema.or_none(schema)
        if members is None or schema is None or key_schema is None:
            return None
        columns = []
        for name in self._fields:
            field = schema.fields_by_name[name]
            column = with_default(members[field.index], field.schema, self._replace_null)
            if column is None:
                return None
            columns.append(column)
        return batch.changed(key=struct_columns(key_schema, columns, len(batch)))

    def _make_key_schema(self, schema: Schema) -> Schema:
        members = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                raise DataError(
                    f"Field does not exist: {name}.",
                    suggestion=f"The value has the fields {', '.join(schema.fields_by_name)}; correct {FIELDS}.",
                    config_path=FIELDS,
                )
            members.append((name, field.schema))
        return struct(*members)
