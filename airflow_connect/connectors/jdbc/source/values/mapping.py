"""Columns of a result -> a Connect schema, and the values of its rows -> values of that schema.

Source: io.confluent.connect.jdbc.dialect.GenericDatabaseDialect.addFieldToSchema and the dialects of PostgreSQL, MySQL
and SQLite, and io.confluent.connect.jdbc.source.{NumericMapping,TimestampGranularity}.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema, Type
from airflow_connect.connectors.jdbc.source.settings.names import LOGICAL
from airflow_connect.connectors.jdbc.source.values.arrow_types import arrow_type
from airflow_connect.connectors.jdbc.source.values.columns import INTEGERS, Column, Kind
from airflow_connect.connectors.jdbc.source.values.local_times import DAY_US, LocalTimes, days_of, micros_of
from airflow_connect.connectors.jdbc.source.values.out_of_range import (
    Beyond,
    Fitting,
    OutOfRangeError,
    UnfitError,
    double_of,
    guarded,
)
from airflow_connect.connectors.jdbc.source.values.sqlite_values import (
    as_strftime,
    check_digits,
    sqlite_boolean,
    sqlite_bytes,
    sqlite_date,
    sqlite_digits,
    sqlite_double,
    sqlite_moment,
    sqlite_text,
)
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.java.numbers import to_float32, unscaled_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Convert = Callable[[Any], Any]

PRECISION = "connect.decimal.precision"
"""Confluent's schema parameter with the number of digits of a Decimal."""

_DIGITS_OF_DOUBLE = 15
"""Decimal digits that a double always keeps (IEEE 754)."""
_MOST_INTEGER_DIGITS = 18
_LAST_MS = 86_399_999
"""The last millisecond of a day."""
_EXACT = Context(prec=2000, traps=[Inexact])
_ROUNDING = Context(prec=2000, rounding=ROUND_HALF_UP)
_NOISE = Decimal("1e-14")
"""How far a sum of binary fractions may be from decimal digits, as a part of it: 0.1 + 0.2 is 0.30000000000000004."""
_ALLOWED = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """How one column becomes a field.

    Attributes:
        index: of the column in a row.
        column: the column.
        schema: of the field.
        convert: the driver's value, not null -> the field's; None: unchanged.
    """

    index: int
    column: Column
    schema: Schema
    convert: Convert | None


class TableMapping:
    """How rows become values of one schema.

    Attributes:
        fields: of the schema, in its order.
        schema: a STRUCT, named after the table.
        left_out: columns whose type has no counterpart.
    """

    def __init__(
        self, fields: Sequence[FieldMapping], name: str, where: str, left_out: Sequence[Column], fitting: Fitting
    ) -> None:
        """`where`: the table, for messages; `fitting`: what becomes of values that do not fit."""
        self.fields = fields
        self._fitting = fitting
        self._fitted: Counter[str] = Counter()
        self._where = where
        self.left_out = left_out
        self.schema = schemas.struct(*((field.column.name, field.schema) for field in fields), name=name or None)

    @property
    def inexact(self) -> list[Column]:
        """The columns of exact numbers that may have more digits than their FLOAT64 keeps."""
        doubles = [f.column for f in self.fields if f.column.kind is Kind.NUMERIC and f.schema.type is Type.FLOAT64]
        return [column for column in doubles if not 0 < column.precision <= _DIGITS_OF_DOUBLE]

    def values(self, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """Rows as values of the schema.

        Raises:
            DataError: a value does not fit; the message names its column.
        """
        self._fitted.clear()
        columns = [self._converted(field, [row[field.index] for row in rows]) for field in self.fields]
        self._count()
        names = [field.column.name for field in self.fields]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def arrow(self, rows: Sequence[Sequence[Any]]) -> pa.Array[Any]:
        """Rows as an Arrow struct array, in the representation of airflow_connect.api.columns.

        Raises:
            DataError: as `values`.
        """
        self._fitted.clear()
        by_column = list(zip(*rows, strict=True))
        return self.struct([self.field_array(field, by_column[field.index]) for field in self.fields])

    def field_array(self, field: FieldMapping, values: Sequence[Any]) -> pa.Array[Any]:
        """A column of the driver's values as the Arrow array of its field.

        Raises:
            DataError: as `values`.
        """
        import pyarrow as pa

        values = self._converted(field, values)
        if field.schema.name == schemas.DECIMAL:
            values = [None if value is None else _decimal_bytes(value) for value in values]
        try:
            return pa.array(values, arrow_type(field.schema))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
            raise self._misfit(field, f"{type(error).__name__}") from None

    def struct(self, arrays: Sequence[Any]) -> pa.Array[Any]:
        """The arrays of all fields as one."""
        import pyarrow as pa

        self._count()
        struct = pa.struct([pa.field(f.column.name, a.type) for f, a in zip(self.fields, arrays, strict=True)])
        return pa.StructArray.from_arrays(list(arrays), fields=list(struct))

    def _converted(self, field: FieldMapping, values: Sequence[Any]) -> Sequence[Any]:
        convert = field.convert
        try:
            if convert is not None:
                values = self._each(field, convert, values)
            if not field.schema.optional and None in values:
                raise UnfitError("there is a null, although the column was declared NOT NULL")
        except DataError as error:
            raise self._misfit(field, error.message.rstrip(".")) from None
        except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
            # Python's own messages repeat the value.
            reason = str(error) if isinstance(error, UnfitError) else "it has another form than values of this type"
            raise self._misfit(field, reason) from None
        return values

    def _each(self, field: FieldMapping, convert: Convert, values: Sequence[Any]) -> Sequence[Any]:
        try:
            return [None if value is None else convert(value) for value in values]
        except OutOfRangeError:
            return [None if value is None else self._fit(field, convert, value) for value in values]

    def _fit(self, field: FieldMapping, convert: Convert, value: Any) -> Any:
        try:
            return convert(value)
        except OutOfRangeError as error:
            found, how = self._fitting.fitted(error)
            if found is None and not field.schema.optional:
                raise UnfitError(f"{error}, and null is not possible: the column was declared NOT NULL") from None
            column = f"the column {field.column.name} ({field.column.type_name}) of {self._where}"
            self._fitted[f"Values out of range in {column} that were {how}:"] += 1
            return found

    def _count(self) -> None:
        """Report what was changed in rows that will be sent: a batch that fails comes again, row by row."""
        for sentence, number in self._fitted.items():
            self._fitting.count(sentence, number)
        self._fitted.clear()

    def _misfit(self, field: FieldMapping, reason: str) -> DataError:
        return DataError(
            f"A value in the column {field.column.name} ({field.column.type_name}) of {self._where} cannot be written"
            f" as {field.schema.name or field.schema.type.value}: {reason[:300]}.",
            code="database.value",
            suggestion="Correct the row, set values.out.of.range if the value is out of range, or select the column"
            " with another type in a query.",
        )


@dataclass(frozen=True, slots=True)
class Choices:
    """What the configuration says about values.

    Attributes:
        numeric_mapping: `numeric.mapping`.
        granularity: `timestamp.granularity`.
        times: for times without a zone.
        fitting: what becomes of values that do not fit.
    """

    numeric_mapping: str
    granularity: str
    times: LocalTimes
    fitting: Fitting


def table_mapping(columns: Sequence[Column], database: str, name: str, choices: Choices) -> TableMapping:
    """The mapping of a table, or of a query's result.

    Args:
        columns: of the result.
        database: `postgresql`, `mysql` or `sqlite`.
        name: of the schema: the table's, unqualified; "" for a query.
        choices: of the configuration.

    Raises:
        ConfigError: two columns have the same name, or none has a known type.
    """
    where = f"the table {name}" if name else "the query"
    doubled = sorted({c.name for c in columns if sum(o.name == c.name for o in columns) > 1})
    if doubled:
        raise ConfigError(
            f"Cannot create field because of field name duplication {doubled[0]}: {where} has several columns of that"
            " name.",
            code="database.column",
            suggestion="Give each column of the query a name of its own (AS).",
            config_path="query",
        )
    maker = _Maker(database, choices)
    fields, left_out = [], []
    for index, column in enumerate(columns):
        made = maker.field(column)
        if made is None:
            left_out.append(column)
        else:
            schema, convert = made
            if database == "sqlite":
                convert = sqlite_double if schema.type is Type.FLOAT64 else convert
            elif convert is not None:
                convert = guarded(convert, column.kind)
            fields.append(FieldMapping(index, column, replace(schema, optional=column.optional), convert))
    if not fields:
        raise ConfigError(
            f"No column of {where} has a type that can be copied.",
            code="database.column",
            suggestion="Select the columns with other types in a query.",
        )
    return TableMapping(fields, name, where, left_out, choices.fitting)


class _Maker:
    """Chooses schema and conversion of columns."""

    def __init__(self, database: str, choices: Choices) -> None:
        self._database = database
        self._is_sqlite = database == "sqlite"
        self._numeric_mapping = choices.numeric_mapping
        self._granularity = choices.granularity
        self._times = times = choices.times
        self._parsed_time = sqlite_moment(times) if self._is_sqlite else None

    def field(self, column: Column) -> tuple[Schema, Convert | None] | None:
        """Schema, not optional, and conversion; None if there is no counterpart."""
        kind = column.kind
        if kind in INTEGERS:
            schema = _INTEGER_SCHEMAS[kind]
            # Only here a column can hold more than its type says: SQLite has no ranges, and BIGINT UNSIGNED is INT64.
            return schema, _checked_integer(schema) if self._is_sqlite or kind is Kind.INT64 else None
        if kind in (Kind.DECIMAL, Kind.NUMERIC):
            return self._number(column)
        if kind in (Kind.BIT_TEXT, Kind.BIT_BYTES):
            return _bits(column)
        if kind in (Kind.TIMESTAMP, Kind.INSTANT):
            return self._timestamp(column)
        return self._plain(column)

    def _plain(self, column: Column) -> tuple[Schema, Convert | None] | None:
        kind, sqlite = column.kind, self._is_sqlite
        simple: dict[Kind, tuple[Schema, Convert | None]] = {
            Kind.BOOLEAN: (schemas.BOOLEAN, sqlite_boolean if sqlite else None),
            Kind.FLOAT32: (schemas.FLOAT32, to_float32),  # psycopg has the nearest double of its text
            Kind.FLOAT64: (schemas.FLOAT64, float),
            Kind.STRING: (schemas.STRING, sqlite_text if sqlite else None),
            Kind.BYTES: (schemas.BYTES, sqlite_bytes if sqlite else bytes),
            Kind.DATE: (schemas.date(), sqlite_date(self._times) if sqlite else days_of),
            Kind.YEAR: (schemas.date(), _short_year if column.precision == 2 else _year),
            Kind.TIME: (schemas.time(), _sqlite_time if sqlite else _time_ms),
        }
        return simple.get(kind)

    def _number(self, column: Column) -> tuple[Schema, Convert | None]:
        scale = column.scale or 0
        if column.kind is Kind.NUMERIC:
            digits = column.precision - min(scale, 0)
            mapping, fits = self._numeric_mapping, column.precision > 0 and digits <= _MOST_INTEGER_DIGITS
            if mapping == "best_fit_eager_double" and (scale > 0 or column.scale is None):
                return schemas.FLOAT64, double_of
            if mapping == "precision_only" and scale == 0 and fits:
                return _whole_number(digits)
            if mapping in ("best_fit", "best_fit_eager_double") and fits:
                return (schemas.FLOAT64, float) if scale > 0 else _whole_number(digits)
        schema = schemas.decimal(scale)
        if column.precision:
            parameters = {**schema.parameters, PRECISION: str(column.precision)}
            schema = replace(schema, parameters=MappingProxyType(parameters))
        return schema, _decimal(scale, rounds=self._is_sqlite)

    def _timestamp(self, column: Column) -> tuple[Schema, Convert]:
        instant = self._parsed_time or instant_of(self._database, column.kind, self._times)
        times, granularity = self._times, self._granularity
        if granularity == LOGICAL:
            return schemas.timestamp(), lambda value: instant(value) // 1000
        unit, _, form = granularity.partition("_")
        factor, digits = (1, 6) if unit == "micros" else (1000, 9)
        if form == "long":
            whole = _checked_integer(schemas.INT64)
            return schemas.INT64, lambda value: whole(instant(value) * factor)
        if form == "string":
            return schemas.STRING, lambda value: str(instant(value) * factor)

        def iso(value: Any) -> str:
            try:
                local = times.local(instant(value))
            except OverflowError:
                raise OutOfRangeError("in UTC it is not a date of the years 1 to 9999") from None
            return local.strftime("%Y-%m-%dT%H:%M:%S.%f").rjust(26, "0") + "0" * (digits - 6)

        return schemas.STRING, iso


_INTEGER_SCHEMAS = {
    Kind.INT8: schemas.INT8,
    Kind.INT16: schemas.INT16,
    Kind.INT32: schemas.INT32,
    Kind.INT64: schemas.INT64,
}


def _fitting_integer(precision: int) -> Schema:
    """Confluent's choice: up to 2 digits INT8, 4 INT16, 9 INT32, else INT64."""
    for digits, schema in ((2, schemas.INT8), (4, schemas.INT16), (9, schemas.INT32)):
        if precision <= digits:
            return schema
    return schemas.INT64


def _checked_integer(schema: Schema) -> Convert:
    limit = 1 << _ALLOWED[schema.type] - 1

    def convert(value: Any) -> int:
        if not isinstance(value, int | float | Decimal):  # SQLite has texts in any column
            raise UnfitError("it is not a number")
        if not math.isfinite(value):
            raise OutOfRangeError("it is not a finite number")
        number = int(value)
        if number != value:
            raise UnfitError(f"it is not a whole number of {_ALLOWED[schema.type]} bits")
        if not -limit <= number < limit:
            nearest = limit - 1 if number > 0 else -limit
            raise OutOfRangeError(f"it is not a whole number of {_ALLOWED[schema.type]} bits", nearest)
        return number

    return convert


def _whole_number(digits: int) -> tuple[Schema, Convert]:
    schema = _fitting_integer(digits)
    return schema, _checked_integer(schema)


def _year(year: int) -> int:
    if not year:
        raise OutOfRangeError("it is the year 0000, which no calendar has", days_of(date.min))
    return days_of(date(year, 1, 1))


def _short_year(year: int) -> int:
    """MariaDB: the years 70 to 99 of a YEAR(2) are 1970 to 1999, the others 2000 to 2069."""
    return _year(year + (1900 if year >= 70 else 2000))


def _decimal(scale: int, *, rounds: bool) -> Convert:
    """`rounds`: whether digits are cut that a binary fraction has only because it is none of decimal digits."""
    unit = Decimal(1).scaleb(-scale)

    def convert(value: Any) -> Decimal:
        try:
            number = value if isinstance(value, Decimal) else Decimal(sqlite_digits(value))
        except InvalidOperation:
            raise UnfitError("it is not a number") from None
        if number.is_finite() and number.as_tuple().exponent == -scale:
            return number
        if not number.is_finite():
            raise OutOfRangeError("it is not a finite number")
        if rounds and isinstance(value, float):
            check_digits(value, number)
            near = number.quantize(unit, context=_ROUNDING)
            if abs(near - number) <= abs(number) * _NOISE:
                return near
        try:
            return number.quantize(unit, context=_EXACT)
        except Inexact:
            raise UnfitError(
                f"it has more than {scale} digits after the point; declare precision and scale of the column, or set"
                " numeric.mapping=best_fit_eager_double"
            ) from None

    return convert


def _decimal_bytes(value: Decimal) -> bytes:
    sign, digits, _ = value.as_tuple()
    return unscaled_bytes(int(Decimal((sign, digits, 0))))


def _bits(column: Column) -> tuple[Schema, Convert | None]:
    is_text = column.kind is Kind.BIT_TEXT
    if is_text and column.precision == 1:
        return schemas.BOOLEAN, lambda value: value == "1"
    if 0 < column.precision <= 8:

        def narrow(value: Any) -> int:
            number = int(value, 2) if is_text else int.from_bytes(value, "big")
            return number - 256 if number > 127 else number

        return schemas.INT8, narrow
    return schemas.BYTES, (lambda value: value.encode("ascii")) if is_text else bytes


def _time_ms(value: Any) -> int:
    """Milliseconds since midnight of a `time`, or of MySQL's duration; a time with a zone counts in UTC."""
    if isinstance(value, Beyond):
        raise OutOfRangeError("it is not a time of a day", _LAST_MS if value.is_above else 0)
    if isinstance(value, timedelta):
        micros = micros_of(value)
        if not 0 <= micros < DAY_US:
            raise OutOfRangeError("it is not a time of a day", _LAST_MS if micros > 0 else 0)
        return micros // 1000
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    if value.tzinfo is not None:
        micros = (micros - micros_of(value.utcoffset())) % DAY_US
    return int(micros // 1000)


def _sqlite_time(value: Any) -> int:
    """Of a text, or of milliseconds since midnight."""
    if not isinstance(value, int):
        return _time_ms(time.fromisoformat(str(value)))
    if not 0 <= value <= _LAST_MS:
        raise OutOfRangeError("it is not a time of a day", _LAST_MS if value > 0 else 0)
    return value


def moment_of(database: str, kind: Kind, times: LocalTimes) -> Callable[[Any], int]:
    """The conversion of a timestamp column's value, not null, to microseconds since the epoch, for comparisons."""
    if database == "sqlite":
        parse = sqlite_moment(times)
        return lambda value: as_strftime(parse(value))
    if kind is Kind.DATE:
        return lambda value: times.instant_us(datetime(value.year, value.month, value.day))  # noqa: DTZ001
    return instant_of(database, kind, times)


def instant_of(database: str, kind: Kind, times: LocalTimes) -> Callable[[Any], int]:
    """The conversion of a driver's date and time to microseconds since the epoch."""
    if kind is Kind.INSTANT and database == "mysql":
        # The session's zone is UTC (databases/dialects/mysql.py), and the driver leaves the zone out.
        return lambda value: times.instant_us(value.replace(tzinfo=UTC))
    return times.instant_us


def names_of(columns: Iterable[Column]) -> str:
    """Names and types, for a message."""
    return ", ".join(f"{column.name} ({column.type_name or 'unknown'})" for column in columns)
