"""`Values.convertTo...` of Connect: a value of any type as one of another, for connectors and header values.

Numbers are cut as Java casts them (300 is the byte 44, 2.7 the long 2), text is parsed as a header is. Source:
org.apache.kafka.connect.data.Values (KIP-145), recorded against 4.3.1.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.header_text import header_text, parse_header_text
from airflow_connect.converters.java_text import java_string
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import float32_of, float64_of, narrowed, parse_decimal, shown_number, wrapped

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def convert_value(target: Type, schema: Schema | None, value: Any) -> Any:
    """The value as one of type `target`; None stays None, but is no ARRAY and no MAP.

    Args:
        target: a number, BOOLEAN, STRING, ARRAY or MAP.
        schema: of the value; None when it is schemaless.

    Raises:
        DataError: the value has no meaning as that type.
    """
    if value is None and target not in (Type.ARRAY, Type.MAP):
        return None
    if target is Type.STRING:
        return header_text(schema, value)
    if target in _BITS:
        return wrapped(_as_long(schema, value), _BITS[target])
    if target is Type.BOOLEAN:
        return _as_boolean(schema, value)
    if target in (Type.FLOAT32, Type.FLOAT64):
        number = _as_double(schema, value)
        return float32_of(number) if target is Type.FLOAT32 else float64_of(number)
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
    if isinstance(value, int | float) and not isinstance(value, bool):
        return narrowed(value, 64)
    return narrowed(_as_decimal(schema, value), 64)


def _as_double(schema: Schema | None, value: Any) -> int | float | Decimal:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _as_decimal(schema, value)


def _as_decimal(schema: Schema | None, value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str):
        try:
            return parse_decimal(value)
        except ValueError as error:
            raise _not_convertible(schema, value, "a number") from error
    raise _not_convertible(schema, value, "a number")


def _not_convertible(schema: Schema | None, value: Any, target: str) -> DataError:
    text = shown_number(java_string(schema, value))
    return DataError(
        f"Unable to convert {text} ({type(value).__name__}) to {target}.",
        suggestion="Send a value of that type, or text that reads as one.",
    )
