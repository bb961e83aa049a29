"""Flatten: makes one level of nested structs or maps, joining their names.

Source: org.apache.kafka.connect.transforms.Flatten (Kafka 4.3.1, recorded).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey
from airflow_connect.api.config.config_def import Type as ConfigType
from airflow_connect.api.schema import Schema, Type
from airflow_connect.api.transform import R
from airflow_connect.errors import DataError
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache, require_fields, struct_like
from airflow_connect.transforms.shared.of_key_or_value import OfKey, OfKeyOrValue, OfValue
from airflow_connect.transforms.shared.values import field_value, inferred_type, java_class, require_map, require_struct

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import RecordColumns

DELIMITER = "delimiter"

_PURPOSE = "flattening"
_NAME_CHARACTERS = 16_000_000
"""Limit for all names of a flat record together: a long name is repeated before each of its members."""


def _twice(name: str) -> DataError:
    return DataError(
        f"Two members of the flattened record would have the name {name}, and one of them would be lost.",
        code="data.field_twice",
        suggestion="Rename or exclude one of them before, with ReplaceField, or choose another delimiter.",
    )


def _too_large() -> DataError:
    return DataError(
        f"The names of the flattened record would have more than {_NAME_CHARACTERS} characters in all.",
        suggestion="Remove the nested part first, with ReplaceField and exclude.",
    )


class _Flatten(OfKeyOrValue):
    config_def = ConfigDef().define(
        ConfigKey(
            DELIMITER,
            ConfigType.STRING,
            ".",
            "Delimiter to insert between field names from the input record when generating field names for the output "
            "record.",
        ),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        self._delimiter: str = self.config_def.parse(config)[DELIMITER]
        self._schemas = SchemaCache(self._new_schema)

    def apply(self, record: R) -> R:
        schema, value = self.schema_of(record), self.value_of(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            room = _NAME_CHARACTERS
            for name, member in self._entries(require_map(None, value, _PURPOSE), ""):
                room -= len(name)
                if room < 0:
                    raise _too_large()
                if name in flat:
                    raise _twice(name)
                flat[name] = member
            return self.with_part(record, None, flat)
        struct = require_struct(schema, value, _PURPOSE)
        new_schema = self._schemas(schema)
        new_value: dict[str, Any] = {field.name: None for field in new_schema.fields}
        new_value.update(self._members(schema, struct, ""))
        return self.with_part(record, new_schema, new_value)

    def _name(self, prefix: str, name: Any) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else str(name)

    def _entries(self, entries: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for key, value in entries.items():
            name = self._name(prefix, key)
            if isinstance(value, dict):
                yield from self._entries(value, name)
            elif value is None or inferred_type(value) is not None:
                yield name, value
            else:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(None, value)} which is not "
                    "supported by Connect's data API.",
                    suggestion="Flatten records that have a schema.",
                )

    def _members(self, schema: Schema, struct: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        """Names and values of the flat struct, without those inside a null struct."""
        for field in schema.fields:
            name = self._name(prefix, field.name)
            if field.schema.type is not Type.STRUCT:
                yield name, field_value(struct, field, replace_null=True)
            elif (inner := struct.get(field.name)) is not None:
                yield from self._members(field.schema, inner, name)

    def _new_schema(self, schema: Schema) -> Schema:
        self._room = _NAME_CHARACTERS
        return struct_like(schema, self._fields(schema, "", schema.optional, schema.default))

    def _fields(
        self, schema: Schema, prefix: str, is_optional: bool, outer_default: Mapping[str, Any] | None
    ) -> Iterator[tuple[str, Schema]]:
        """Names and schemas of the flat struct; members of an optional struct are optional."""
        for field in require_fields(schema):
            name = self._name(prefix, field.name)
            self._room -= len(name)
            if self._room < 0:
                raise _too_large()
            inner = field.schema
            default = inner.default
            if default is None and outer_default is not None:
                default = outer_default.get(field.name)
            if inner.type is Type.MAP:
                raise DataError(
                    f"Flatten transformation does not support {inner.type.name} for record with schemas (for field "
                    f"{name}).",
                    suggestion="Remove the field first, with ReplaceField and exclude.",
                )
            if inner.type is Type.STRUCT:
                yield from self._fields(inner, name, is_optional or inner.optional, default)
            else:
                yield name, replace(inner, optional=is_optional or inner.optional, default=default)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        part = self.columns_of(batch)
        members = struct_members(part)
        if part is None or part.schema is None or members is None:
            return None
        new_schema = self._schemas.or_none(part.schema)
        if new_schema is None:
            return None
        columns = list(_leaves(part.schema, members))
        flat = [column for column in columns if column is not None]
        if len(flat) < len(columns):
            return None
        return self.with_columns(batch, struct_columns(new_schema, flat, len(part)))


def _leaves(schema: Schema, members: list[pa.Array[Any]]) -> Iterator[pa.Array[Any] | None]:
    """Columns of the flat struct; None if records must be processed one by one."""
    for field, column in zip(schema.fields, members, strict=True):
        if field.schema.type is not Type.STRUCT:
            yield with_default(column, field.schema, replace_null=True)
            continue
        structs: Any = column
        # A null struct leaves its members null, even those with a default.
        is_vectorizable = not column.null_count or not _has_default(field.schema)
        yield from _leaves(field.schema, structs.flatten()) if is_vectorizable else (None,)


def _has_default(schema: Schema) -> bool:
    return any(field.schema.default is not None or _has_default(field.schema) for field in schema.fields)


class Flatten:
    """Flatten a nested data structure, generating names for each field by concatenating the field names at each level.

    A configurable delimiter stands between the names. Applies to a Struct when a schema is present, or to a Map when
    there is none. Array fields and their contents are not modified.
    """

    class Key(OfKey, _Flatten):
        """Applies to the key."""

    class Value(OfValue, _Flatten):
        """Applies to the value."""
