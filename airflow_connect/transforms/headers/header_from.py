"""HeaderFrom: copies or moves fields of the key or value into headers. KIP-145; messages as in Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Problem, Type
from airflow_connect.api.config.validators import Lambda, ValidString
from airflow_connect.api.config.values import invalid
from airflow_connect.api.record import Header
from airflow_connect.api.schema import Schema
from airflow_connect.api.schema import Type as Kind
from airflow_connect.api.transform import R
from airflow_connect.errors import DataError
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache, struct_like
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import field_value, require_map, require_struct

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

FIELDS, HEADERS, OPERATION = "fields", "headers", "operation"
MOVE, COPY = "move", "copy"
_PLAIN = (Kind.STRING, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.BOOLEAN)
"""Types whose text as a header is that of Arrow."""


def _check_not_empty(name: str, value: Any) -> None:
    """Source: Connect's NonEmptyListValidator."""
    if not value:
        raise invalid(name, "[]", "Empty list")


def _as_many_headers_as_fields(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if len(parsed[FIELDS]) != len(parsed[HEADERS]):
        yield Problem(
            FIELDS,
            f"'{FIELDS}' config must have the same number of elements as '{HEADERS}' config.",
            f"Give each of the {len(parsed[FIELDS])} fields one name in {HEADERS}.",
        )


class _HeaderFrom(OfKeyOrValue):
    """Adds one header per field, after the record's existing ones."""

    config_def = (
        ConfigDef()
        .define(
            ConfigKey(
                FIELDS, Type.LIST,
                documentation="Field names in the record whose values are to be copied or moved to headers.",
                validator=Lambda(_check_not_empty, "non-empty list"), importance=Importance.HIGH,
            ),
            ConfigKey(
                HEADERS, Type.LIST,
                documentation="Header names, in the same order as the field names in fields.",
                validator=Lambda(_check_not_empty, "non-empty list"), importance=Importance.HIGH,
            ),
            ConfigKey(
                OPERATION, Type.STRING,
                documentation="`move`: the fields are taken out of the key or value; `copy`: they stay.",
                validator=ValidString(MOVE, COPY), importance=Importance.HIGH,
            ),
            replace_null_with_default(),
        )
        .define_rule((FIELDS, HEADERS), _as_many_headers_as_fields)
    )  # fmt: skip

    columns_of_sinks_only: ClassVar[bool] = True
    columns_have_headers: ClassVar[bool] = True

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the names."""
        parsed = self.config_def.parse(config)
        self._headers: list[tuple[str, str]] = list(zip(parsed[FIELDS], parsed[HEADERS], strict=True))
        self._moved = frozenset(parsed[FIELDS]) if parsed[OPERATION] == MOVE else frozenset()
        self._purpose = f"header {parsed[OPERATION]}"
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]
        self._left = SchemaCache(self._make_schema)

    def apply(self, record: R) -> R | None:
        """The record with more headers and, after a move, fewer fields.

        Raises:
            DataError: the part is neither struct nor map, or its schema lacks a field.
        """
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            found = require_map(None, value, self._purpose)
            headers = tuple(Header(name, None, found.get(field)) for field, name in self._headers)
            left = {name: member for name, member in found.items() if name not in self._moved}
            return self.with_part(record, None, left).changed(headers=(*record.headers, *headers))
        fields = require_struct(schema, value, self._purpose)
        headers = tuple(self._header(schema, fields, field, name) for field, name in self._headers)
        changed = record.changed(headers=(*record.headers, *headers))
        if not self._moved:
            return changed
        rest = [field for field in schema.fields if field.name not in self._moved]
        members = {field.name: field_value(fields, field, self._replace_null) for field in rest}
        return self.with_part(changed, self._left(schema), members)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        """The batch without the fields that are moved and, if the sink needs headers, with new ones.

        Not vectorizable: a source, a field that does not exist, a default that is needed in a field that stays, and a
        header of another type than text, whole number or boolean.
        """
        part = self.columns_of(batch)
        members = struct_members(part) if batch.is_from_kafka else None
        if part is None or part.schema is None or members is None:
            return None
        schema = part.schema
        if any(schema.field(name) is None for name, _ in self._headers):
            return None
        if batch.headers is not None:
            found = self._with_headers(batch, schema, members)
            if found is None:
                return None
            batch = found
        if not self._moved:
            return batch
        kept = [
            with_default(members[field.index], field.schema, self._replace_null)
            for field in schema.fields
            if field.name not in self._moved
        ]
        columns = [column for column in kept if column is not None]
        if len(columns) < len(kept):
            return None
        return self.with_columns(batch, struct_columns(self._left(schema), columns, len(batch)))

    def _with_headers(self, batch: RecordColumns, schema: Schema, members: Sequence[Any]) -> RecordColumns | None:
        """The batch with headers of the fields; None: not vectorizable."""
        from airflow_connect.converters.header_columns import as_texts, with_headers

        texts = []
        for name, _ in self._headers:
            field = schema.fields_by_name[name]
            column = with_default(members[field.index], field.schema, self._replace_null)
            if column is None or field.schema.name is not None or field.schema.type not in _PLAIN:
                return None
            texts.append(as_texts(column))
        return batch.changed(headers=with_headers(batch.headers, [header for _, header in self._headers], texts))

    def _header(self, schema: Schema, fields: dict[str, Any], name: str, header: str) -> Header:
        field = schema.field(name)
        if field is None:
            raise DataError(
                f"Unknown field: {name}.",
                suggestion=f"There are the fields {', '.join(schema.fields_by_name)}; correct {FIELDS}.",
                config_path=FIELDS,
            )
        return Header(header, field.schema, field_value(fields, field, self._replace_null))

    def _make_schema(self, schema: Schema) -> Schema:
        return struct_like(schema, [(f.name, f.schema) for f in schema.fields if f.name not in self._moved])


class HeaderFrom:
    """Copy or move fields of the key or value into headers, after the record's existing ones."""

    class Key(OfKey, _HeaderFrom):
        """Of the record's key."""

    class Value(OfValue, _HeaderFrom):
        """Of the record's value."""
