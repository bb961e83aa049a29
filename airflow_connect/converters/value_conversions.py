"""`Values.convertTo...` of Connect: a value of any type as one of another, for connectors and header values.

Numbers are cut as Java casts them (300 is the byte 44, 2.7 the long 2), text is parsed as a header is. Source:
org.apache.kafka.connect.data.Values (KIP-145), recorded against 4.3.1.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

from airflow_connect.api.errors import DataError
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.header_text import header_text, parse_header_text
from airflow_connect.converters.java_text import java_string, to_float32

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_LONG_LIMIT = 1 << 63


def convert_value(target: Type, schema: Schema | None, value: Any) -> Any:
    """The value as one of type `target`; None stays None.

    Args:
        target: a number, BOOLEAN, STRING, ARRAY or MAP.
        schema: of the value; None when it is schemaless.

    Raises:
        DataError: the value has no meaning as that type.
    """
    if value is None:
        return None
    if target is Type.STRING:
        return header_text(schema, value)
    if target in _BITS:
        return _cut(_as_long(schema, value), _BITS[target])
    if target is Type.BOOLEAN:
        return _as_boolean(schema, value)
    if target in (Type.FLOAT32, Type.FLOAT64):
        number = _as_double(schema, value)
        return to_float32(number) if target is Type.FLOAT32 else float(number)
    wanted: type = list if target is Type.ARRAY else dict
    if isinstance(value, wanted) and (schema is None or schema.type is not Type.STRUCT):
        return value
    if isinstance(value, str):
        parsed_schema, parsed = parse_header_text(value)
        if isinstance(parsed, wanted):
            return parsed
        schema, value = parsed_schema, parsed
    raise _not_convertible(schema, value, f"Schema{{{target.name}}}")


def _as_boolean(schema: Schema | None, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        parsed = parse_header_text(value).value
        if isinstance(parsed, bool):
            return parsed
    return _as_long(schema, value) != 0


def _as_long(schema: Schema | None, value: Any) -> int:
    """Java's `longValue()`: doubles are cut towards zero and held at the ends, decimals and whole numbers wrap."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _cut(value, 64)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return int(max(-_LONG_LIMIT, min(_LONG_LIMIT - 1, math.trunc(max(-1e30, min(1e30, value))))))
    return _cut(math.trunc(_as_decimal(schema, value)), 64)


def _as_double(schema: Schema | None, value: Any) -> float | Decimal:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return float(value)
    return _as_decimal(schema, value)


def _as_decimal(schema: Schema | None, value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str):
        try:
            number = Decimal(value)
        except InvalidOperation:
            number = Decimal("NaN")
        # Python's Decimal also reads blanks, underscores, NaN and Infinity; Java's BigDecimal does not.
        if number.is_finite() and value == value.strip() and "_" not in value:
            return number
    raise _not_convertible(schema, value, "a number")


def _cut(number: int, bits: int) -> int:
    """The lowest `bits` as a signed number, as a Java cast leaves them."""
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def _not_convertible(schema: Schema | None, value: Any, target: str) -> DataError:
    text = java_string(schema, value)
    return DataError(
        f"Unable to convert {text} ({type(value).__name__}) to {target}.",
        suggestion="Send a value of that type, or text that reads as one.",
    )
