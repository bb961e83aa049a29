"""JSON that is not of the type in its schema, or does not fit: refused with `strict.types=true`.

Kafka Connect reads such JSON through Jackson's accessors, which turn it into another value without an error: text for a
number is 0, a number for text is null, 3.7 for an integer is 3, and integers beyond their bits wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from airflow_connect.api.schema import DECIMAL, Schema, Type
from airflow_connect.converters.json.text import NUMBERS, InexactNumberError
from airflow_connect.converters.unread import Unread, joined
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import to_float32

STRICT_TYPES = "strict.types"

_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_FRACTIONS = (Type.FLOAT32, Type.FLOAT64)
_PYTHON_TYPES = {Type.BOOLEAN: bool, Type.STRING: str, Type.BYTES: str, Type.ARRAY: list}
_SHOWN = {dict: "an object", list: "an array", str: "text", bool: "a boolean"}


def strict_reader(schema: Schema, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`read` for a node that is not null, preceded by a check of its type.

    The reader raises InexactNumberError where it needs exact numbers, as `read` itself does.
    """
    bits, kind = _BITS.get(schema.type), _PYTHON_TYPES.get(schema.type)
    if schema.name == DECIMAL:
        return read  # It refuses all but numbers and base64, and keeps every digit.
    if bits is not None:
        return _checked(lambda node: _integer_problem(node, bits), schema, read)
    if schema.type in _FRACTIONS:
        is_single = schema.type is Type.FLOAT32
        return _checked(lambda node: _fraction_problem(node, is_single=is_single), schema, read)
    if kind is not None:
        return _checked(lambda node: "" if type(node) is kind else _shown(node), schema, read)
    return read  # Structs and maps are checked by their own readers.


def refuse_changed_numbers(node: Any) -> None:
    """Fail if a number of a schemaless document would become another one.

    Raises:
        DataError: an integer beyond 64 bits, or a number beyond a double.
    """
    if type(node) is dict:
        for item in node.values():
            refuse_changed_numbers(item)
    elif type(node) is list:
        for item in node:
            refuse_changed_numbers(item)
    elif type(node) is int:
        _refuse(_integer_problem(node, 64), "INT64")
    elif type(node) is Decimal:
        _refuse(_fraction_problem(node, is_single=False), "FLOAT64")


def name_changed_numbers(node: Any, unread: Unread, path: str = "") -> None:
    """Name the numbers of a schemaless document that `refuse_changed_numbers` would refuse."""
    if type(node) is dict:
        for name, item in node.items():
            name_changed_numbers(item, unread, joined(path, name))
    elif type(node) is list:
        for item in node:
            name_changed_numbers(item, unread, path)
    elif (type(node) is int and _integer_problem(node, 64)) or (
        type(node) is Decimal and _fraction_problem(node, is_single=False)
    ):
        unread.add_changed(path)


def _checked(problem: Callable[[Any], str], schema: Schema, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def checked(node: Any) -> Any:
        found = problem(node)
        if found:
            _refuse(found, schema.type.name)
        return read(node)

    return checked


def _refuse(problem: str, wanted: str) -> None:
    if problem:
        raise DataError(
            f"The JSON value is {problem}, but the type is {wanted}.",
            code="data.json_type",
            suggestion=f"Correct the producer or the schema. Without {STRICT_TYPES}=true the value is read as Kafka"
            " Connect reads it, which changes it.",
        )


def _integer_problem(node: Any, bits: int) -> str:
    if type(node) is float:
        if node.is_integer():
            raise InexactNumberError("the digits of a whole number may be lost")
        return "a number with a fraction"
    if type(node) not in (int, Decimal):
        return _shown(node)
    # Beyond these exponents a number is surely too large, or surely has a fraction; the digits need not be written out.
    if type(node) is Decimal and (node.adjusted() > 20 or node != node.to_integral_value()):
        return "a number with a fraction" if node.adjusted() <= 20 else "a number out of range"
    limit = 1 << (bits - 1)
    return "" if -limit <= node < limit else "a number out of range"


def _fraction_problem(node: Any, *, is_single: bool) -> str:
    if type(node) not in NUMBERS:
        return _shown(node)
    try:
        found = to_float32(node if type(node) is Decimal else float(node)) if is_single else float(node)
    except OverflowError:
        return "a number out of range"
    return "" if math.isfinite(found) else "a number out of range"


def _shown(node: Any) -> str:
    return _SHOWN.get(type(node), "a number")
