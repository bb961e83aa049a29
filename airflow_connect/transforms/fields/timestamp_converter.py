"""TimestampConverter: changes how a point in time is represented.

Every conversion goes by way of milliseconds since 1970-01-01T00:00:00Z, as in Connect by way of java.util.Date. Without
a schema a java.util.Date is a `datetime` in UTC. Source: org.apache.kafka.connect.transforms.TimestampConverter
(Kafka 4.3.1, recorded).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api import schema as schemas
from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Problem
from airflow_connect.api.config.config_def import Type as ConfigType
from airflow_connect.api.config.validators import ValidString
from airflow_connect.api.schema import Schema, Type
from airflow_connect.api.transform import R
from airflow_connect.converters.java_text import MS_PER_DAY, epoch_ms
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.transforms.columnar.structs import struct_columns, struct_members, with_default
from airflow_connect.transforms.shared.fields import SchemaCache, require_fields, struct_like
from airflow_connect.transforms.shared.of_key_or_value import (
    REPLACE_NULL_WITH_DEFAULT,
    OfKey,
    OfKeyOrValue,
    OfValue,
    replace_null_with_default,
)
from airflow_connect.transforms.shared.values import field_value, java_class, require_map, require_struct
from airflow_connect.transforms.simple_date_format import SimpleDateFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import RecordColumns

FIELD = "field"
TARGET_TYPE = "target.type"
FORMAT = "format"
UNIX_PRECISION = "unix.precision"

STRING, UNIX, DATE, TIME, TIMESTAMP = "string", "unix", "Date", "Time", "Timestamp"
UNITS_PER_SECOND = {
    "nanoseconds": 1_000_000_000,
    "microseconds": 1_000_000,
    "milliseconds": 1000,
    "seconds": 1,
}

_PURPOSE = "converting timestamp formats"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LONGEST = (1 << 63) - 1
_SCHEMAS = {
    STRING: (schemas.STRING, schemas.OPTIONAL_STRING),
    UNIX: (schemas.INT64, schemas.OPTIONAL_INT64),
    DATE: (schemas.date(), schemas.date(optional=True)),
    TIME: (schemas.time(), schemas.time(optional=True)),
    TIMESTAMP: (schemas.timestamp(), schemas.timestamp(optional=True)),
}
_LOGICAL = {schemas.DATE: DATE, schemas.TIME: TIME, schemas.TIMESTAMP: TIMESTAMP}


def _check(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    pattern = parsed[FORMAT]
    if not pattern.strip():
        if parsed[TARGET_TYPE] == STRING:
            yield Problem(
                FORMAT,
                "TimestampConverter requires format option to be specified when using string timestamps",
                f"Set {FORMAT} to a pattern such as yyyy-MM-dd'T'HH:mm:ss.SSSXXX.",
            )
        return
    try:
        SimpleDateFormat(pattern)
    except ConfigError as error:
        message = f"TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: {pattern}"
        yield Problem(FORMAT, message, f"{error.message} {error.suggestion}")


class _TimestampConverter(OfKeyOrValue):
    config_def = (
        ConfigDef()
        .define(
            ConfigKey(
                FIELD,
                ConfigType.STRING,
                "",
                "The field containing the timestamp, or empty if the entire value is a timestamp",
                importance=Importance.HIGH,
            ),
            ConfigKey(
                TARGET_TYPE,
                ConfigType.STRING,
                documentation="The desired timestamp representation: string, unix, Date, Time, or Timestamp",
                validator=ValidString(*_SCHEMAS),
                importance=Importance.HIGH,
            ),
            ConfigKey(
                FORMAT,
                ConfigType.STRING,
                "",
                "A SimpleDateFormat-compatible format for the timestamp. Used to generate the output when type=string "
                "or used to parse the input if the input is a string.",
            ),
            ConfigKey(
                UNIX_PRECISION,
                ConfigType.STRING,
                "milliseconds",
                "The desired Unix precision for the timestamp: seconds, milliseconds, microseconds, or nanoseconds. "
                "Used to generate the output when type=unix or used to parse the input if the input is a Long. Note: "
                "This SMT will cause precision loss during conversions from, and to, values with sub-millisecond "
                "components.",
                ValidString(*UNITS_PER_SECOND),
                Importance.LOW,
            ),
            replace_null_with_default(),
        )
        .define_rule((TARGET_TYPE, FORMAT), _check)
    )

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = self.config_def.parse(config)
        self._field: str = parsed[FIELD]
        self._target: str = parsed[TARGET_TYPE]
        self._format = SimpleDateFormat(parsed[FORMAT]) if parsed[FORMAT].strip() else None
        self._units_per_second = UNITS_PER_SECOND[parsed[UNIX_PRECISION]]
        self._replace_null: bool = parsed[REPLACE_NULL_WITH_DEFAULT]
        self._schemas = SchemaCache(self._new_schema)

    def apply(self, record: R) -> R:
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            return self.with_part(record, None, self._convert_schemaless(value))
        if not self._field:
            new_schema = _SCHEMAS[self._target][schema.optional]
            return self.with_part(record, new_schema, self._convert(schema, value))
        struct = None if value is None else require_struct(schema, value, _PURPOSE)
        new_schema = self._schemas(schema)
        return self.with_part(record, new_schema, self._convert_struct(schema, struct))

    def _convert_schemaless(self, value: Any) -> Any:
        if value is None or not self._field:
            return self._convert(None, value)
        old = require_map(None, value, _PURPOSE)
        return old | {self._field: self._convert(None, old.get(self._field))}

    def _convert_struct(self, schema: Schema, struct: dict[str, Any] | None) -> dict[str, Any] | None:
        if struct is None:
            return None
        new = {field.name: field_value(struct, field, self._replace_null) for field in schema.fields}
        if (field := schema.field(self._field)) is not None:
            new[field.name] = self._convert(field.schema, new[field.name])
        return new

    def _new_schema(self, schema: Schema) -> Schema:
        members = [
            (field.name, _SCHEMAS[self._target][field.schema.optional] if field.name == self._field else field.schema)
            for field in require_fields(schema)
        ]
        default = self._convert_struct(schema, schema.default)
        return struct_like(schema, members, optional=schema.optional, default=default)

    def _convert(self, schema: Schema | None, value: Any) -> Any:
        """`value` in the target's representation; None stays None, but the schema must be one of a time all the same.

        Raises:
            DataError: it is not a point in time.
        """
        source = None if schema is None else representation_of(schema)
        if value is None:
            return None
        if source is None:
            source = _representation(value)
        instant_ms = self._instant_ms(source, value)
        if self._target == STRING:
            assert self._format is not None  # configure sees to it
            return self._format.format(instant_ms)
        if self._target == UNIX:
            return _within_long(_quotient(instant_ms * self._units_per_second, 1000))
        days, ms_of_day = divmod(instant_ms, MS_PER_DAY)
        if schema is None:
            kept_ms = {DATE: days * MS_PER_DAY, TIME: ms_of_day, TIMESTAMP: instant_ms}[self._target]
            return _datetime(kept_ms)
        return {DATE: days, TIME: ms_of_day, TIMESTAMP: instant_ms}[self._target]

    def _instant_ms(self, source: str, value: Any) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""
        if source == STRING:
            return self._parsed(value)
        if isinstance(value, datetime.datetime):
            return epoch_ms(value)
        if source == UNIX:
            return _within_long(_quotient(int(value) * 1000, self._units_per_second))
        return int(value) * MS_PER_DAY if source == DATE else int(value)

    def _parsed(self, text: str) -> int:
        if self._format is None:
            raise DataError(
                f"Could not parse timestamp: value ({text}) is text, but no pattern is configured.",
                suggestion=f"Set {FORMAT} to the pattern of the text, such as yyyy-MM-dd'T'HH:mm:ss.SSSXXX.",
            )
        found = self._format.parse(text)
        if found is None:
            raise DataError(
                f"Could not parse timestamp: value ({text}) does not match pattern ({self._format.pattern}).",
                suggestion=f"Set {FORMAT} to the pattern of the text.",
            )
        return found

    def apply_columns(self, batch: RecordColumns) -> RecordColumns | None:
        part = self.columns_of(batch)
        members = struct_members(part)
        if part is None or part.schema is None or members is None or not self._field:
            return None
        new_schema = self._schemas.or_none(part.schema)
        if new_schema is None:
            return None
        columns = []
        for field, member in zip(part.schema.fields, members, strict=True):
            column = with_default(member, field.schema, self._replace_null)
            if column is not None and field.name == self._field:
                column = self._convert_column(field.schema, column)
            if column is None:
                return None
            columns.append(column)
        return self.with_columns(batch, struct_columns(new_schema, columns, len(part)))

    def _convert_column(self, schema: Schema, column: pa.Array[Any]) -> pa.Array[Any] | None:
        from airflow_connect.transforms.columnar.timestamp_texts import instants_of, texts_of
        from airflow_connect.transforms.columnar.timestamps import from_instants, to_instants

        if schema.type is Type.STRING:
            instants = None if self._format is None or schema.name else instants_of(column, self._format)
        else:
            instants = to_instants(schema, column, self._units_per_second)
        if instants is None:
            return None
        if self._target == STRING:
            return None if self._format is None else texts_of(instants, self._format)
        return from_instants(instants, self._target, self._units_per_second)


def representation_of(schema: Schema) -> str:
    """How values of a schema represent a point in time.

    Raises:
        DataError: not at all.
    """
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type in (Type.STRING, Type.INT64):
        return STRING if schema.type is Type.STRING else UNIX
    shown = schema.type.name if schema.name is None else f"{schema.name}:{schema.type.name}"
    raise DataError(
        f"Schema Schema{{{shown}}} does not correspond to a known timestamp type format.",
        suggestion="Name a field that is a Date, a Time, a Timestamp, an INT64 or a STRING.",
    )


def _representation(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return TIMESTAMP
    if isinstance(value, str):
        return STRING
    if isinstance(value, int) and not isinstance(value, bool):
        return UNIX
    raise DataError(
        f"TimestampConverter does not support class {java_class(None, value)} objects as timestamps.",
        suggestion="Name a field that holds a number or text.",
    )


def _quotient(dividend: int, divisor: int) -> int:
    """Rounded towards zero, as Java's TimeUnit does."""
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient


def _within_long(number: int) -> int:
    """The nearest number of 64 bits: TimeUnit saturates."""
    return max(-_LONGEST - 1, min(number, _LONGEST))


def _datetime(instant_ms: int) -> datetime.datetime:
    try:
        return _EPOCH + datetime.timedelta(milliseconds=instant_ms)
    except OverflowError as error:
        raise DataError(
            f"The timestamp {instant_ms} ms since 1970-01-01T00:00:00Z is outside the years 1 to 9999.",
            suggestion=f"Check {UNIX_PRECISION}: the number may count smaller units.",
        ) from error


class TimestampConverter:
    """Convert timestamps between different formats such as Unix epoch, strings, and Connect Date/Timestamp types.

    Applies to individual fields or to the entire value.
    """

    class Key(OfKey, _TimestampConverter):
        """Applies to the key."""

    class Value(OfValue, _TimestampConverter):
        """Applies to the value."""
