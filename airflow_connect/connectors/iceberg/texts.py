"""Values as text for columns of strings, as the original writes them: numbers as Java does, the rest as JSON.

Source: org.apache.iceberg.connect.data.RecordConverter.convertString; JsonConverter without schemas for structs, where
decimals are their unscaled bytes in base64, and times are numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_connect.converters.java_text import decimal_text, double_text, float_text
from airflow_connect.converters.json.text import string_text
from airflow_connect.converters.json.writer import schemaless_text
from airflow_connect.java.numbers import unscaled, unscaled_bytes

Text = Callable[[Any], str]
"""A value that is not null, as Arrow's `as_py` gives it, to its text."""


def text_writer(kind: pa.DataType) -> Text | None:
    """What writes values of a type as text; None: the original has no text for it."""
    kinds = pa.types
    if kinds.is_float32(kind):
        return float_text
    if kinds.is_float64(kind):
        return double_text
    if kinds.is_decimal(kind):
        return decimal_text
    if kinds.is_struct(kind):
        return _struct_writer(kind)
    return _jackson_writer(kind) if kinds.is_list(kind) or kinds.is_map(kind) else None


def texts(array: Any, write: Text) -> Any:
    """The texts of an array; nulls stay."""
    wanted = _with_numbers(array.type)
    plain = array if wanted == array.type else array.cast(wanted)
    return pa.array([None if value is None else write(value) for value in plain.to_pylist()], pa.string())


def _with_numbers(kind: Any) -> Any:
    kinds = pa.types
    if kinds.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    if kinds.is_map(kind):
        return pa.map_(_with_numbers(kind.key_type), kind.item_field.with_type(_with_numbers(kind.item_type)))
    if kinds.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    # Of values: days, and milliseconds.
    if kinds.is_temporal(kind):
        return pa.int64() if kind.bit_width == 64 else pa.int32()
    return kind


def _jackson_writer(kind: Any) -> Text | None:
    """Lists and maps as Jackson writes Java's: keys are texts, decimals numbers.

    None for structs, bytes and dates, of which it writes what their classes have inside.
    """
    kinds = pa.types
    if kinds.is_map(kind):
        key, item = _key_writer(kind.key_type), _jackson_writer(kind.item_type)
        if key is None or item is None:
            return None
        key_text, item_text = key, _or_null(item)
        return lambda pairs: "{" + ",".join([f"{string_text(key_text(k))}:{item_text(v)}" for k, v in pairs]) + "}"
    if kinds.is_list(kind):
        element = _jackson_writer(kind.value_type)
        return None if element is None else _list_writer(element)
    if kinds.is_decimal(kind):
        return decimal_text
    is_opaque = kinds.is_struct(kind) or kinds.is_binary(kind) or kinds.is_temporal(kind)
    return None if is_opaque else _json_writer(kind)


def _key_writer(kind: Any) -> Text | None:
    kinds = pa.types
    return str if kinds.is_string(kind) or kinds.is_integer(kind) else None


def _list_writer(element: Text) -> Text:
    text = _or_null(element)
    return lambda values: "[" + ",".join([text(value) for value in values]) + "]"


def _json_writer(kind: Any) -> Text:
    kinds = pa.types
    if kinds.is_struct(kind):
        return _struct_writer(kind)
    if kinds.is_map(kind):
        return _map_writer(kind)
    if kinds.is_list(kind):
        return _list_writer(_json_writer(kind.value_type))
    if kinds.is_float32(kind):
        return lambda value: _finite(float_text(value))
    if kinds.is_decimal(kind):
        scale = kind.scale
        return lambda value: schemaless_text(_bytes_of(value, scale))
    return schemaless_text


def _struct_writer(kind: Any) -> Text:
    members = [(field.name, string_text(field.name) + ":", _or_null(_json_writer(field.type))) for field in kind]

    def write(value: dict[str, Any]) -> str:
        return "{" + ",".join([prefix + member(value[name]) for name, prefix, member in members]) + "}"

    return write


def _map_writer(kind: Any) -> Text:
    """In structs: an object if keys are texts, else a list of pairs, as JsonConverter writes maps."""
    key, item = _json_writer(kind.key_type), _or_null(_json_writer(kind.item_type))
    if pa.types.is_string(kind.key_type):
        return lambda pairs: "{" + ",".join([f"{string_text(k)}:{item(v)}" for k, v in pairs]) + "}"
    return lambda pairs: "[" + ",".join([f"[{key(k)},{item(v)}]" for k, v in pairs]) + "]"


def _or_null(write: Text) -> Text:
    return lambda value: "null" if value is None else write(value)


def _finite(text: str) -> str:
    return text if text[-1].isdigit() else f'"{text}"'


def _bytes_of(value: Decimal, scale: int) -> bytes:
    number, own = unscaled(value)
    return unscaled_bytes(number * 10 ** (scale - own))
