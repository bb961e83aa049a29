"""MaskField: puts a null-like value of the same type, or a fixed one, in the place of a field.

Source: org.apache.kafka.connect.transforms.MaskField (Kafka 4.3.1, recorded).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance
from airflow_connect.api.config.config_def import Type as ConfigType
from airflow_connect.api.config.validators import NonEmptyString
from airflow_connect.api.schema import DATE, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.api.transform import R
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import (
    MAX_DECIMAL_DIGITS,
    float32_of,
    float64_of,
    integer_parameter,
    narrowed,
    parse_decimal,
    shown_number,
)
from airflow_connect.transforms.columnar.structs import masked_column, struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.names import Names
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import field_value, java_class, require_map, require_struct

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns

FIELDS = "fields"
REPLACEMENT = "replacement"

_PURPOSE = "mask fields"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_DATES = (DATE, TIME, TIMESTAMP)


class _MaskField(OfKeyOrValue):
    config_def = ConfigDef().define(
        ConfigKey(
            FIELDS,
            ConfigType.LIST,
            documentation="Names of fields to mask.",
            validator=Names(empty_allowed=False),
            importance=Importance.HIGH,
        ),
        ConfigKey(
            REPLACEMENT,
            ConfigType.STRING,
            None,
            "Custom value replacement, that will be applied to all 'fields' values (numeric or non-empty string "
            "values only).",
            validator=NonEmptyString(),
            importance=Importance.LOW,
        ),
        replace_null_with_default(),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = self.config_def.parse(config)
        self._fields: list[str] = parsed[FIELDS]
        self._replacement: str | None = parsed[REPLACEMENT]
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]

    def apply(self, record: R) -> R:
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            old = require_map(None, value, _PURPOSE)
            new = old | {name: self._masked(None, old.get(name)) for name in self._fields}
            return self.with_part(record, None, new)
        struct = require_struct(schema, value, _PURPOSE)
        new = {}
        for field in schema.fields:
            member = field_value(struct, field, self._replace_null)
            new[field.name] = self._masked(field.schema, member) if field.name in self._fields else member
        return self.with_part(record, schema, new)

    def _masked(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None
        return empty_like(schema, value) if self._replacement is None else replaced(schema, value, self._replacement)

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        part = self.columns_of(batch)
        members = struct_members(part)
        if part is None or part.schema is None or members is None:
            return None
        columns = []
        for field, member in zip(part.schema.fields, members, strict=True):
            column = with_default(member, field.schema, self._replace_null)
            if column is not None and field.name in self._fields:
                column = masked_column(column, self._mask_of(field.schema))
            if column is None:
                return None
            columns.append(column)
        return self.with_columns(batch, struct_columns(part.schema, columns, len(part)))

    def _mask_of(self, schema: Schema) -> Any:
        """The masked value for every value of the field; None if it depends on the value or is impossible."""
        example = _EXAMPLES.get(schema.type)
        if example is None:
            return None
        try:
            return self._masked(schema, example)
        except DataError:  # the record form reports it, record by record
            return None


_EXAMPLES: dict[Type, Any] = {
    Type.INT8: 0,
    Type.INT16: 0,
    Type.INT32: 0,
    Type.INT64: 0,
    Type.FLOAT32: 0.0,
    Type.FLOAT64: 0.0,
    Type.BOOLEAN: False,
    Type.STRING: "",
}


def empty_like(schema: Schema | None, value: Any) -> Any:
    """The neutral value of the same type: 0, false, the empty text, list or map, 1970-01-01T00:00:00Z.

    Raises:
        DataError: bytes and structs have none.
    """
    is_struct = schema is not None and schema.type is Type.STRUCT
    if isinstance(value, bool | int | float | str | list) or (isinstance(value, dict) and not is_struct):
        return type(value)()
    if isinstance(value, Decimal):
        return _rescaled(schema, Decimal(0))
    if isinstance(value, datetime.datetime):
        return _EPOCH
    raise DataError(
        f"Cannot mask value of type: class {java_class(schema, value)}.",
        suggestion="Remove the field with ReplaceField and exclude.",
    )


def replaced(schema: Schema | None, value: Any, replacement: str) -> Any:
    """`replacement` in the type of `value`: a number loses what its type cannot hold.

    Raises:
        DataError: `value` is neither number nor text, or the replacement is not a number.
    """
    if isinstance(value, str):
        return replacement
    is_date = schema is not None and schema.name in _DATES
    if isinstance(value, bool) or is_date or not isinstance(value, int | float | Decimal):
        raise DataError(
            f"Cannot mask value of type class {java_class(schema, value)} with custom replacement.",
            suggestion="Mask the field in a separate transformation, without replacement.",
        )
    try:
        number = parse_decimal(replacement)
    except ValueError as error:
        raise DataError(
            f"Unable to convert {shown_number(replacement)} (class java.lang.String) to a number.",
            suggestion="Set replacement to a number, or mask only fields that hold text.",
        ) from error
    if isinstance(value, Decimal):
        return _rescaled(schema, number)
    if isinstance(value, float):
        return float32_of(number) if schema is not None and schema.type is Type.FLOAT32 else float64_of(number)
    return narrowed(number, 64 if schema is None else _BITS[schema.type])


def _rescaled(schema: Schema | None, number: Decimal) -> Decimal:
    """`number` with the schema's scale, without which no converter could write it; as it is when it has more digits."""
    sign, digits, exponent = number.as_tuple()
    if schema is None or not isinstance(exponent, int):
        return number
    missing = exponent + integer_parameter(schema.parameters.get(DECIMAL_SCALE), DECIMAL_SCALE)
    if missing < 0:
        return number
    if number.is_zero():
        return Decimal((0, (0,), exponent - missing))
    if len(digits) + missing > MAX_DECIMAL_DIGITS:
        raise DataError(
            f"The replacement {shown_number(str(number))} would be a Decimal of {len(digits) + missing} digits, at most"
            f" {MAX_DECIMAL_DIGITS} are written.",
            suggestion="Set replacement to a smaller number.",
        )
    return Decimal((sign, (*digits, *[0] * missing), exponent - missing))


class MaskField:
    """Mask specified fields with a valid null value for the field type (0, false, empty string, and so on).

    With `replacement` text and numbers get that value instead.
    """

    class Key(OfKey, _MaskField):
        """Applies to the key."""

    class Value(OfValue, _MaskField):
        """Applies to the value."""
