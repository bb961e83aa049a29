"""Cast: changes the type of fields or of the whole key or value.

Source: org.apache.kafka.connect.transforms.Cast (Kafka 4.3.1, recorded).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from airflow_connect.api.columns import RecordColumns
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance
from airflow_connect.api.config.config_def import Type as ConfigType
from airflow_connect.api.config.validators import Lambda
from airflow_connect.api.config.values import InvalidValueError
from airflow_connect.api.schema import DATE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.api.transform import R
from airflow_connect.converters.header_text import header_text
from airflow_connect.converters.java_text import java_string
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import float32_of, float64_of, narrowed, parse_float, parse_integer
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache, require_fields, struct_like
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import field_value, inferred_type, java_class, require_map, require_struct

SPEC = "spec"

_PURPOSE = "cast types"
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64, Type.FLOAT32: 32, Type.FLOAT64: 64}
_TARGETS = (*_BITS, Type.BOOLEAN, Type.STRING)
_SOURCES = (*_TARGETS, Type.BYTES)
_FLOATS = (Type.FLOAT32, Type.FLOAT64)
_MOST_DIGITS = 20
"""Whole digits of a number; one with more does not fit 64 bits."""
_DATES = (DATE, TIME, TIMESTAMP)
_NOT_ZERO = re.compile(r"[^eEpP]*?[1-9]|\s*[+-]?0[xX][^pP]*?[1-9a-fA-F]")
"""The beginning of a number in a text that is not 0: a digit before its exponent."""


def _check_spec(_name: str, value: Sequence[str] | None) -> None:
    if not value:
        raise InvalidValueError("Must specify at least one field to cast.")
    _parse_spec(value)


def _parse_spec(spec: Sequence[str]) -> dict[str | None, Type]:
    """Target type by field; the field None is the whole value."""
    casts: dict[str | None, Type] = {}
    for mapping in spec:
        # As in Java's split, empty parts at the end do not count.
        parts = mapping.rstrip(":").split(":")
        if len(parts) > 2:
            raise InvalidValueError(f"Invalid mapping in casting spec: {mapping}")
        casts[parts[0].strip() if len(parts) == 2 else None] = _target(parts[-1].strip())
    if None in casts and len(spec) > 1:
        raise InvalidValueError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in "
            "their spec"
        )
    return casts


def _target(name: str) -> Type:
    if name.upper() not in Type.__members__:
        raise InvalidValueError(f"Invalid type found in casting spec: {name}")
    target = Type[name.upper()]
    if target not in _TARGETS:
        raise InvalidValueError(
            f"Cast transformation does not support casting to {target.name}; supported types are {_names(_TARGETS)}"
        )
    return target


def _names(types: Sequence[Type]) -> str:
    return f"[{', '.join(kind.name for kind in types)}]"


class _Cast(OfKeyOrValue):
    config_def = ConfigDef().define(
        ConfigKey(
            SPEC,
            ConfigType.LIST,
            documentation="List of fields and the type to cast them to of the form field1:type,field2:type to cast "
            "fields of Maps or Structs. A single type to cast the entire value. Valid types are int8, int16, int32, "
            "int64, float32, float64, boolean, and string. Note that binary fields can only be cast to string.",
            validator=Lambda(_check_spec, "list of colon-delimited pairs, e.g. foo:bar,abc:xyz"),
            importance=Importance.HIGH,
        ),
        replace_null_with_default(),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = self.config_def.parse(config)
        self.unread = Unread()  # of numbers that become others
        self._casts = _parse_spec(parsed[SPEC])
        self._whole = self._casts.get(None)
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]
        self._schemas = SchemaCache(self._new_schema)

    def apply(self, record: R) -> R:
        schema, value = self.schema_of(record), self.value_of(record)
        if value is None:
            return record
        if schema is None:
            return self.with_part(record, None, self._cast_schemaless(value))
        new_schema = self._schemas(schema)
        if self._whole is not None:
            return self.with_part(record, new_schema, self._cast(schema, value, self._whole))
        struct = require_struct(schema, value, _PURPOSE)
        new_value = {}
        for field in schema.fields:
            old = field_value(struct, field, self._replace_null)
            target = self._casts.get(field.name)
            new_value[field.name] = old if target is None else self._cast(field.schema, old, target, field.name)
        return self.with_part(record, new_schema, new_value)

    def _cast_schemaless(self, value: Any) -> Any:
        if self._whole is not None:
            return self._cast(None, value, self._whole)
        old = require_map(None, value, _PURPOSE)
        casts = ((name, target) for name, target in self._casts.items() if name is not None)
        return old | {name: self._cast(None, old.get(name), target, name) for name, target in casts}

    def _cast(self, schema: Schema | None, value: Any, target: Type, path: str = "") -> Any:
        new = cast_value(schema, value, target)
        # Almost always equal; else it may have lost a fraction, which is what casting to an integer means.
        if new != value and target in _BITS and _is_another(value, new, target):
            self.unread.add_changed(path)
        return new

    def _new_schema(self, schema: Schema) -> Schema:
        default = schema.default
        if self._whole is not None:
            cast_default = cast_value(schema, default, self._whole)
            return Schema(
                self._whole,
                schema.optional,
                schema.name,
                schema.version,
                schema.doc,
                schema.parameters,
                cast_default,
            )
        members = [(field.name, self._new_field(field.name, field.schema)) for field in require_fields(schema)]
        if default is not None:
            default = default | {
                field.name: cast_value(field.schema, default.get(field.name), self._casts[field.name])
                for field in schema.fields
                if field.name in self._casts
            }
        return struct_like(schema, members, optional=schema.optional, default=default)

    def _new_field(self, name: str, schema: Schema) -> Schema:
        target = self._casts.get(name)
        if target is None:
            return schema
        return Schema(target, schema.optional, default=cast_value(schema, schema.default, target))

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        from airflow_connect.transforms.columnar.casts import cast_column

        part = self.columns_of(batch)
        members = struct_members(part)
        if part is None or part.schema is None or members is None or self._whole is not None:
            return None
        new_schema = self._schemas.or_none(part.schema)
        if new_schema is None:
            return None
        new = []
        for field, member in zip(part.schema.fields, members, strict=True):
            column = with_default(member, field.schema, self._replace_null)
            target = self._casts.get(field.name)
            if column is not None and target is not None:
                column = cast_column(field.schema, column, target)
            if column is None:
                return None
            new.append(column)
        return self.with_columns(batch, struct_columns(new_schema, new, len(part)))


def cast_value(schema: Schema | None, value: Any, target: Type) -> Any:
    """`value` as the type `target`; None stays None.

    Raises:
        DataError: there is no such cast, or the text is not a number of that type.
    """
    if value is None:
        return None
    source = inferred_type(value) if schema is None else schema.type
    if source is None:
        raise DataError(
            f"Cast transformation was passed a value of type class {java_class(schema, value)} which is not "
            "supported by Connect's data API.",
            suggestion="Cast values that have a schema.",
        )
    if source not in _SOURCES:
        raise DataError(
            f"Cast transformation does not support casting from {source.name}; supported types are {_names(_SOURCES)}.",
            suggestion="Remove the field from spec, or flatten it first.",
        )
    try:
        return _cast(schema, value, target)
    except ValueError as error:
        raise DataError(
            f"Value ({java_string(schema, value)}) was out of range for requested data type.",
            suggestion=f"Cast to a type other than {target.value}, or skip such records with a predicate.",
        ) from error


def _cast(schema: Schema | None, value: Any, target: Type) -> Any:
    if target is Type.STRING:
        is_date = schema is not None and schema.name in _DATES and not isinstance(value, str)
        return header_text(schema, value) if is_date else java_string(schema, value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise DataError(
            f"Unexpected type in Cast transformation: class {java_class(schema, value)}.",
            suggestion="Binary fields can only be cast to string.",
        )
    if target is Type.BOOLEAN:
        return value.lower() == "true" if isinstance(value, str) else narrowed(value, 64) != 0
    bits = _BITS[target]
    if target in (Type.FLOAT32, Type.FLOAT64):
        if isinstance(value, str):
            return parse_float(value, bits)
        return float32_of(value) if bits == 32 else float64_of(value)
    return parse_integer(value, bits) if isinstance(value, str) else narrowed(value, bits)


def _is_another(value: Any, new: Any, target: Type) -> bool:
    """Whether a number does not fit its new type: not for a fraction that is cut, nor for digits that are rounded.

    A floating-point number that is too large is infinite, and one that is too small is 0. Texts of whole numbers that
    do not fit are refused.
    """
    if isinstance(value, str) and target in _FLOATS:
        return (math.isinf(new) and "Infinity" not in value) or (not new and _NOT_ZERO.match(value) is not None)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    if not math.isfinite(value):
        return target not in _FLOATS
    if target in _FLOATS:
        return not math.isfinite(new) or (not new and bool(value))
    is_long = isinstance(value, Decimal) and value.adjusted() > _MOST_DIGITS  # Its digits need not be written out.
    return is_long or math.trunc(value) != new


class Cast:
    """Cast fields or the entire key or value to a specific type, e.g. to force an integer field to a smaller width.

    Cast from integers, floats, boolean and string to any other type, and cast binary to string (base64 encoded).
    """

    class Key(OfKey, _Cast):
        """Applies to the key."""

    class Value(OfValue, _Cast):
        """Applies to the value."""
