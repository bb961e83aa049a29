"""Text of header values, as SimpleHeaderConverter writes and guesses it.

The guess is Connect's, oddities included, because headers written by others rely on it: numbers get the
narrowest type that holds them (`1.0` is an INT8), `12:34:56` is the number 12, dates roll over (30 February
is 1 March), a list of mixed types is a list without element type. Source:
org.apache.kafka.connect.data.Values (KIP-145), recorded against 4.3.1.
"""

from __future__ import annotations

import base64
import datetime
import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from airflow_connect.api.converter import NULL, SchemaAndValue
from airflow_connect.api.schema import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_SCHEMA_DEPTH,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    date,
    decimal,
    map_of,
    time,
    timestamp,
)
from airflow_connect.converters.java_text import (
    MS_PER_DAY,
    calendar_fields,
    decimal_text,
    double_text,
    epoch_day,
    epoch_ms,
    float_text,
)
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import float64_of, integer_text, parse_decimal, to_float32

_BLANKS = "".join(map(chr, range(0x21)))
_DELIMITERS = ':,{}[]"'
_TIME = re.compile(r"[ \t]*(-?\d+):[ \t]*(-?\d+):[ \t]*(-?\d+)\.[ \t]*(-?\d+)Z")
_DATE = re.compile(r"[ \t]*(-?\d+)-[ \t]*(-?\d+)-[ \t]*(-?\d+)")
_INTEGERS = (
    (INT8, 1 << 7),
    (INT16, 1 << 15),
    (INT32, 1 << 31),
    (INT64, 1 << 63),
)
_LITERALS = {"null": None, "true": SchemaAndValue(BOOLEAN, True), "false": SchemaAndValue(BOOLEAN, False)}
_NUMERIC_ORDER = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


# Writing


def header_text(schema: Schema | None, value: Any, embedded: bool = False) -> str:
    """`Values.convertToString`: text in lists and maps is quoted, bytes are base64, dates are ISO 8601, UTC.

    Raises:
        DataError: a value that a header cannot hold.
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if embedded else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _integer_text(schema, value)
    if isinstance(value, float):
        return float_text(value) if schema is not None and schema.type is Type.FLOAT32 else double_text(value)
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        text = base64.b64encode(value).decode("ascii")
        return f'"{text}"' if embedded else text
    if isinstance(value, list | tuple):
        element = schema.value_schema if schema is not None and schema.type is Type.ARRAY else None
        return "[" + ",".join([header_text(element, item, True) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(_entries(schema, value)) + "}"
    if isinstance(value, datetime.datetime):
        return _date_text(epoch_ms(value))
    raise DataError(
        f"Failed to serialize unexpected value type {type(value).__name__}.",
        suggestion="Headers can hold text, numbers, booleans, bytes, lists, maps and structs.",
    )


def _entries(schema: Schema | None, value: dict[Any, Any]) -> Iterable[str]:
    if schema is not None and schema.type is Type.STRUCT:
        for f in schema.fields:
            item = value.get(f.name)
            item = f.schema.default if item is None else item
            yield f"{header_text(None, f.name, True)}:{header_text(f.schema, item, True)}"
        return
    is_map = schema is not None and schema.type is Type.MAP
    keys, values = (schema.key_schema, schema.value_schema) if is_map and schema is not None else (None, None)
    for k, v in value.items():
        yield f"{header_text(keys, k, True)}:{header_text(values, v, True)}"


def _integer_text(schema: Schema | None, value: int) -> str:
    name = schema.name if schema is not None else None
    if name not in (DATE, TIME, TIMESTAMP):
        return integer_text(value)
    return _date_text(value * MS_PER_DAY if name == DATE else value)


def _date_text(instant_ms: int) -> str:
    t = calendar_fields(instant_ms)
    clock = f"{t.hour:02}:{t.minute:02}:{t.second:02}.{t.ms:03}Z"
    # Connect chooses the pattern by the value, not by the schema.
    if instant_ms < MS_PER_DAY:
        return clock
    day = f"{t.year:04}-{t.month:02}-{t.day:02}"
    return day if instant_ms % MS_PER_DAY == 0 else f"{day}T{clock}"


# Guessing


def parse_header_text(text: str) -> SchemaAndValue:
    """`Values.parseString`: the narrowest type that the text can have; otherwise a STRING.

    Raises:
        DataError: lists and maps, or what looks like them, are nested more than `MAX_SCHEMA_DEPTH` times.
    """
    if not text or (text[0].isalpha() and _strip(text) not in _LITERALS):
        return SchemaAndValue(STRING, text)
    if len(text) < 19 and text.isascii() and text.isdigit():
        return _whole(int(text)) or NULL
    return _parse(_Tokens(text), False) or NULL


class _Unparsable(Exception):  # noqa: N818
    """The text is not the list or map that it seemed to be."""


class _Tokens:
    """A text cut at the delimiters `: , { } [ ] "` that no backslash protects."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.level = 0
        self.position = 0
        self._start = 0
        self._peeked: str | None = None
        self.previous: str | None = None

    def mark(self) -> int:
        return self.position - len(self._peeked or "")

    def rewind(self, position: int) -> None:
        self.position, self._peeked, self.previous = position, None, None

    def has_next(self) -> bool:
        return self._peeked is not None or self.position < len(self.text)

    def next(self) -> str:
        token = self._cut() if self._peeked is None else self._peeked
        self._peeked, self.previous = None, token
        return token

    def next_joined(self, count: int) -> str | None:
        """The next `count` tokens as one text; None, without consuming any, if there are fewer."""
        start = self.mark()
        for _ in range(count):
            if not self.has_next():
                self.rewind(start)
                return None
            self.next()
        return self.text[start : self.position]

    def consume(self, expected: str) -> bool:
        """Skip `expected` and blanks before it, if it is next."""
        if self._peeked is None:
            if not self.has_next():
                return False
            self._peeked = self._cut()
        while not _strip(self._peeked) and self.position < len(self.text):
            self._peeked = self._cut()
        if _strip(self._peeked) != expected:
            return False
        self._peeked = None
        return True

    def _cut(self) -> str:
        start, escaped = self.position, False
        for index in range(start, len(self.text)):
            char = self.text[index]
            if char in _DELIMITERS and not escaped:
                self.position = index if start < index else index + 1
                return self.text[start : self.position]
            escaped = char == "\\" and not escaped
        self.position = len(self.text)
        return self.text[start:]


def _strip(text: str) -> str:
    # String.trim(): everything up to U+0020.
    return text.strip(_BLANKS)


def _parse(tokens: _Tokens, embedded: bool) -> SchemaAndValue | None:
    """One value; None is null."""
    if not tokens.has_next():
        return None
    if embedded and tokens.consume('"'):
        return _quoted(tokens)
    for literal, result in _LITERALS.items():
        start = tokens.mark()
        if tokens.consume(literal) and (embedded or not tokens.has_next()):
            return result
        tokens.rewind(start)
    start = tokens.mark()
    try:
        if tokens.consume("["):
            return _nested(tokens, _list)
        if tokens.consume("{"):
            return _nested(tokens, _mapping)
    except _Unparsable:
        tokens.rewind(start)
    return _scalar(tokens, embedded)


def _nested(tokens: _Tokens, parse: Callable[[_Tokens], SchemaAndValue]) -> SchemaAndValue:
    if tokens.level == MAX_SCHEMA_DEPTH:
        raise DataError(
            f"Text of {len(tokens.text)} characters contains lists and maps that are nested more than"
            f" {MAX_SCHEMA_DEPTH} times.",
            suggestion="Pass headers through with ByteArrayConverter, or write fewer levels.",
        )
    tokens.level += 1
    try:
        return parse(tokens)
    finally:
        tokens.level -= 1


def _quoted(tokens: _Tokens) -> SchemaAndValue:
    parts: list[str] = []
    while tokens.has_next() and not tokens.consume('"'):
        parts.append(tokens.next())
    content = "".join(parts)
    parsed = parse_header_text(content)
    if parsed.schema is not None and parsed.schema.name in (TIME, TIMESTAMP, DATE):
        return parsed
    return SchemaAndValue(STRING, content)


def _list(tokens: _Tokens) -> SchemaAndValue:
    items: list[Any] = []
    common: Schema | None = None
    while tokens.has_next():
        if tokens.consume("]"):
            if common is None:
                return SchemaAndValue(Schema(Type.ARRAY), items)
            return SchemaAndValue(array(common), [_aligned(common, item) for item in items])
        if tokens.consume(","):
            raise _Unparsable
        element = _parse(tokens, True)
        common = _common(common, element)
        items.append(element.value if element is not None else None)
        position = tokens.mark()
        if tokens.consume("]"):
            tokens.rewind(position)
        elif not tokens.consume(","):
            raise _Unparsable
    raise _Unparsable


def _mapping(tokens: _Tokens) -> SchemaAndValue:
    entries: dict[Any, Any] = {}
    keys: Schema | None = None
    values: Schema | None = None
    while tokens.has_next():
        if tokens.consume("}"):
            return _map_of(keys, values, entries)
        if tokens.consume(","):
            raise _Unparsable
        key = _parse(tokens, True)
        if key is None or key.value is None or not tokens.consume(":") or isinstance(key.value, dict | list):
            raise _Unparsable
        value = _parse(tokens, True)
        entries[key.value] = value.value if value is not None else None
        tokens.consume(",")
        keys, values = _common(keys, key), _common(values, value)
    raise _Unparsable


def _map_of(keys: Schema | None, values: Schema | None, entries: dict[Any, Any]) -> SchemaAndValue:
    if keys is None:
        return SchemaAndValue(Schema(Type.MAP), entries)
    if values is None:
        schema = Schema(Type.MAP, key_schema=keys)
        return SchemaAndValue(schema, {_aligned(keys, k): v for k, v in entries.items()})
    return SchemaAndValue(map_of(keys, values), {_aligned(keys, k): _aligned(values, v) for k, v in entries.items()})


def _common(previous: Schema | None, latest: SchemaAndValue | None) -> Schema | None:
    """The schema for both; None when there is none, and then the next element starts afresh."""
    if latest is None:
        return previous
    schema = latest.schema
    if previous is None or schema is None:
        return schema
    if previous.type is not schema.type:
        if previous.type not in _NUMERIC_ORDER or schema.type not in _NUMERIC_ORDER:
            return None
        return max(previous, schema, key=lambda s: _NUMERIC_ORDER.index(s.type))
    if previous.optional == schema.optional:
        return previous if previous.optional else schema
    return previous if previous == schema else None


def _aligned(schema: Schema, value: Any) -> Any:
    """The value as one of `schema`'s type; what cannot be converted makes the whole text a STRING."""
    if value is None:
        raise _Unparsable
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return _aligned_float(schema, value)
    if schema.type is Type.STRING:
        return value if isinstance(value, str) else header_text(None, value)
    fits = {Type.ARRAY: list, Type.MAP: dict, Type.BOOLEAN: bool, Type.BYTES: Decimal}.get(schema.type, int)
    if not isinstance(value, fits) or (fits is int and isinstance(value, bool)):
        raise _Unparsable
    return value


def _aligned_float(schema: Schema, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _Unparsable
    return to_float32(float64_of(value)) if schema.type is Type.FLOAT32 else float64_of(value)


def _scalar(tokens: _Tokens, embedded: bool) -> SchemaAndValue:
    token = tokens.next()
    stripped = _strip(token)
    if not stripped:
        return SchemaAndValue(STRING, token)
    first_is_digit = stripped[0].isdecimal() and stripped[0] <= "\uffff"
    if first_is_digit:
        # A time or a timestamp is cut into five tokens by its colons.
        position = tokens.mark()
        rest = tokens.next_joined(4)
        parsed = _temporal(stripped + rest) if rest is not None else None
        if parsed is not None:
            return parsed
        tokens.rewind(position)
        parsed = _temporal(stripped)
        if parsed is not None:
            return parsed
    if first_is_digit or stripped[0] in "+-":
        number = _number(stripped)
        if number is not None:
            return number
    if embedded:
        raise _Unparsable
    return SchemaAndValue(STRING, tokens.text)


def _whole(number: int) -> SchemaAndValue | None:
    for schema, limit in _INTEGERS:
        if -limit <= number < limit:
            return SchemaAndValue(schema, number)
    return None


def _number(text: str) -> SchemaAndValue | None:
    try:
        number = parse_decimal(text)
    except ValueError:
        return None
    scale = -int(number.as_tuple().exponent)
    if number.is_zero() or (number.adjusted() < 19 and number == number.to_integral_value()):
        narrowest = _whole(0 if number.is_zero() else int(number))
        if narrowest is not None:
            return narrowest
    if scale != 0:
        single, double = to_float32(number), float(number)
        if math.isfinite(single):
            return SchemaAndValue(FLOAT32, single)
        if math.isfinite(double):
            return SchemaAndValue(FLOAT64, double)
    return SchemaAndValue(decimal(scale), number)


def _temporal(text: str) -> SchemaAndValue | None:
    """Dates, times and timestamps by their exact length, fields as lenient as in SimpleDateFormat."""
    text = text.replace("\\:", ":")
    if len(text) == len("HH:mm:ss.SSSZ"):
        clock = _TIME.match(text)
        return None if clock is None else SchemaAndValue(time(), _clock_ms(clock))
    if len(text) == len("yyyy-MM-dd"):
        day = _DATE.match(text)
        return None if day is None else SchemaAndValue(date(), _day(day))
    if len(text) == len("yyyy-MM-ddTHH:mm:ss.SSSZ"):
        day = _DATE.match(text)
        if day is not None and text[day.end() : day.end() + 1] == "T":
            clock = _TIME.match(text, day.end() + 1)
            if clock is not None:
                return SchemaAndValue(timestamp(), _day(day) * MS_PER_DAY + _clock_ms(clock))
    return None


def _day(match: re.Match[str]) -> int:
    return epoch_day(int(match[1]), int(match[2]), int(match[3]))


def _clock_ms(match: re.Match[str]) -> int:
    hours, minutes, seconds, ms = (int(part) for part in match.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms
