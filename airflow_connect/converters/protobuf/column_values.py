"""Values of Protobuf fields, read at many positions at once: scalars, enums, and messages that are one Connect value.

The reference is `reading.py`. A value that it reads in another way, or refuses, is a NotPlainError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import FieldDescriptor
from numpy.typing import NDArray

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.decimal_columns import LONGEST_DECIMAL_BYTES, is_shortest
from airflow_connect.converters.protobuf.reading import FIRST_SECOND, LAST_SECOND, NS_PER_MS
from airflow_connect.converters.scan import NotPlainError, Scan, slices, texts
from airflow_connect.java.numbers import integer_parameter

Reader = Callable[[Scan], Any]
"""Reads one value at each position of a scan and moves the positions past it: an Arrow array of that length.

It raises NotPlainError if one of the values is not vectorizable.
"""

VARINT, WORD_64, LENGTH, WORD_32 = 0, 1, 2, 5
"""Wire types."""
_FD = FieldDescriptor
_NS_PER_S = 1_000_000_000
_YEARS = (1583, 9999)
"""Of dates: Java's calendar has leap years of another kind before them."""
_QUIET = np.uint32(1 << 22)
_LARGEST_INT64 = np.uint64(2**63 - 1)
_SHORT = {Type.INT8: np.int8, Type.INT16: np.int16}


class FieldReader(NamedTuple):
    """How values of a field are read.

    Attributes:
        wire_type: of a single value.
        read: values after the tag.
    """

    wire_type: int
    read: Reader


def scalar_reader(field: Any, schema: Schema) -> FieldReader:
    """A reader for values of a field (a FieldDescriptor) that are not messages."""
    if field.type == _FD.TYPE_STRING:
        return FieldReader(LENGTH, lambda scan: texts(scan, *scan.lengths(is_zigzag=False)))
    if field.type == _FD.TYPE_BYTES:
        return FieldReader(LENGTH, lambda scan: slices(scan, *scan.lengths(is_zigzag=False)))
    if field.enum_type is not None:
        return FieldReader(VARINT, _enum(field.enum_type, is_number=schema.type is Type.INT32))
    if field.type in _FIXED:
        size, convert = _FIXED[field.type]
        numbers: Callable[[Scan], Any] = lambda scan: convert(scan.words(size))  # noqa: E731
        wire_type = WORD_32 if size == 4 else WORD_64
    else:
        decode = _VARINTS[field.type]
        numbers = lambda scan: decode(scan.unsigned())  # noqa: E731
        wire_type = VARINT
    if schema.type in _SHORT:
        return FieldReader(wire_type, _short(numbers, _SHORT[schema.type]))
    return FieldReader(wire_type, lambda scan: pa.array(numbers(scan)))


def _int32(values: NDArray[np.uint64]) -> NDArray[np.int32]:
    """The low 32 bits, as parsers take them."""
    return values.astype(np.uint32).view(np.int32)


def _sint32(values: NDArray[np.uint64]) -> NDArray[np.int32]:
    low = values.astype(np.uint32)
    return ((low >> np.uint32(1)) ^ (np.uint32(0) - (low & np.uint32(1)))).view(np.int32)


def _sint64(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    return ((values >> np.uint64(1)) ^ (np.uint64(0) - (values & np.uint64(1)))).view(np.int64)


def _int64(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    return values.view(np.int64)


def _uint64(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Those below 2^63: a larger one becomes negative, and its record is named."""
    if len(values) and np.max(values) > _LARGEST_INT64:
        raise NotPlainError
    return values.view(np.int64)


def _uint32(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    return values.astype(np.uint32).astype(np.int64)


def _float(values: NDArray[np.uint64]) -> NDArray[np.float32]:
    bits = values.astype(np.uint32)
    is_nan = np.isnan(bits.view(np.float32))
    # A float of Python has 64 bits: on the way there, a signalling NaN becomes a quiet one.
    return np.where(is_nan, bits | _QUIET, bits).view(np.float32)


_VARINTS: Mapping[int, Callable[[NDArray[np.uint64]], Any]] = {
    _FD.TYPE_INT32: _int32,
    _FD.TYPE_SINT32: _sint32,
    _FD.TYPE_UINT32: _uint32,
    _FD.TYPE_INT64: _int64,
    _FD.TYPE_SINT64: _sint64,
    _FD.TYPE_UINT64: _uint64,
    _FD.TYPE_BOOL: lambda values: values != 0,
}
_FIXED: Mapping[int, tuple[int, Callable[[NDArray[np.uint64]], Any]]] = {
    _FD.TYPE_FLOAT: (4, _float),
    _FD.TYPE_DOUBLE: (8, lambda values: values.view(np.float64)),
    _FD.TYPE_FIXED32: (4, _uint32),
    _FD.TYPE_SFIXED32: (4, _int32),
    _FD.TYPE_FIXED64: (8, _uint64),
    _FD.TYPE_SFIXED64: (8, _int64),
}


def _short(numbers: Callable[[Scan], Any], kind: Any) -> Reader:
    limits = np.iinfo(kind)

    def read(scan: Scan) -> Any:
        values = numbers(scan)
        if len(values) and (np.min(values) < limits.min or np.max(values) > limits.max):
            raise NotPlainError
        return pa.array(values.astype(kind))

    return read


def _enum(enum: Any, *, is_number: bool) -> Reader:
    symbols: dict[int, str] = {}
    for value in enum.values:
        symbols.setdefault(value.number, value.name)
    numbers = np.array(sorted(symbols), np.int32)
    names: Any = pa.array([symbols[number] for number in numbers.tolist()], pa.string())

    def read(scan: Scan) -> Any:
        found = _int32(scan.unsigned())
        at = np.minimum(np.searchsorted(numbers, found), len(numbers) - 1)
        if (numbers[at] != found).any():
            raise NotPlainError
        return pa.array(found) if is_number else names.take(pa.array(at))

    return read


LOGICAL_FIELDS: Mapping[str | None, Mapping[str, int]] = {
    TIMESTAMP: {"seconds": _FD.TYPE_INT64, "nanos": _FD.TYPE_INT32},
    DATE: dict.fromkeys(("year", "month", "day"), _FD.TYPE_INT32),
    TIME: dict.fromkeys(("hours", "minutes", "seconds", "nanos"), _FD.TYPE_INT32),
    DECIMAL: {"value": _FD.TYPE_BYTES, "precision": _FD.TYPE_UINT32, "scale": _FD.TYPE_INT32},
}
"""Fields of the messages that become a logical type, with their types."""
PART_SCHEMAS = {
    _FD.TYPE_INT32: Schema(Type.INT32),
    _FD.TYPE_INT64: Schema(Type.INT64),
    _FD.TYPE_UINT32: Schema(Type.INT64),
    _FD.TYPE_BYTES: Schema(Type.BYTES),
}


def logical_values(schema: Schema, parts: Mapping[str, Any]) -> Any:
    """A column of a logical type from the fields of its message, none of which is null."""
    if schema.name == DECIMAL:
        return _decimals(parts["value"], parts["scale"], schema)
    numbers = {name: part.to_numpy().astype(np.int64) for name, part in parts.items()}
    if schema.name == DATE:
        return _dates(numbers["year"], numbers["month"], numbers["day"])
    nanos = numbers["nanos"]
    _check(nanos, 0, _NS_PER_S - 1)
    seconds = numbers["seconds"]
    if schema.name == TIMESTAMP:
        _check(seconds, FIRST_SECOND, LAST_SECOND)
        return pa.array(seconds * 1000 + nanos // NS_PER_MS)
    for name, last in (("hours", 23), ("minutes", 59), ("seconds", 59)):
        _check(numbers[name], 0, last)
    of_day = (numbers["hours"] * 60 + numbers["minutes"]) * 60 + seconds
    return pa.array((of_day * 1000 + nanos // NS_PER_MS).astype(np.int32))


def _check(values: NDArray[np.int64], least: int, most: int) -> None:
    if len(values) and (np.min(values) < least or np.max(values) > most):
        raise NotPlainError


def _dates(years: NDArray[np.int64], months: NDArray[np.int64], days: NDArray[np.int64]) -> Any:
    _check(years, *_YEARS)
    _check(months, 1, 12)
    of_month = ((years - 1970) * 12 + months - 1).astype("datetime64[M]")
    first, following = (m.astype("datetime64[D]").astype(np.int64) for m in (of_month, of_month + 1))
    if ((days < 1) | (days > following - first)).any():
        raise NotPlainError
    return pa.array((first + days - 1).astype(np.int32))


def _decimals(values: Any, scales: Any, schema: Schema) -> Any:
    scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE), DECIMAL_SCALE)
    _check(scales.to_numpy().astype(np.int64), scale, scale)
    lengths: Any = pc.binary_length(values)
    # A message without bytes is the number zero.
    is_empty: Any = lengths.to_numpy() == 0
    found: Any = pc.if_else(pa.array(is_empty), b"\0", values)
    longest: Any = pc.max(lengths)
    if (longest.as_py() or 0) > LONGEST_DECIMAL_BYTES or not is_shortest(found):
        raise NotPlainError
    return found
