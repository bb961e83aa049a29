"""PostgreSQL's binary COPY format from bound columns, without a Python object per value.

Sources: PostgreSQL's documentation of COPY, "Binary Format"; the functions `*_recv` of its types; pg_type.dat.

A row is a count of columns, and for each a length and the value, big endian. Everything of a fixed length that lies
side by side is one block of bytes per row. Arrow joins the blocks and the texts between them row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"

BOOL, BYTEA, INT8, INT2, INT4, TEXT, JSON = 16, 17, 20, 21, 23, 25, 114
FLOAT4, FLOAT8, BPCHAR, VARCHAR, DATE, TIME, TIMESTAMP, TIMESTAMPTZ = 700, 701, 1042, 1043, 1082, 1083, 1114, 1184
NUMERIC, UUID, JSONB = 1700, 2950, 3802
"""Numbers of types in `pg_type`, which are the same in every database."""

_EPOCH_DAYS = 10_957  # 2000-01-01, where PostgreSQL counts from.
_EPOCH_US = _EPOCH_DAYS * 86_400_000_000
_NULL = -1
_NUMERIC_BASE = 10_000
_MOST_SCALE = 16
_NEGATIVE = 0x4000
_EXACT = 1 << 53
"""Integers up to this one are exact as float8."""
_UUID_TEXT = 36
_DASHES = (8, 13, 18, 23)

Fixed = Callable[[Any], Any]
"""A column without nulls to uint8[n, width], or None."""
Variable = Callable[[Any], Any]
"""A column to an Arrow array of binary with the same nulls, or None."""


def copy_rows(columns: Sequence[Any], types: Sequence[int]) -> Any | None:
    """The rows as an Arrow array of binary, without header and trailer.

    Args:
        columns: bound columns of equal length, at least one.
        types: number of the type of each column of the table.

    Returns:
        None if a type or a value is not supported: it must be written as text.
    """
    count = len(columns[0])
    parts = _Parts(count)
    parts.add_fixed(np.broadcast_to(_bytes(np.array([len(columns)], ">i2")), (count, 2)))
    for column, number in zip(columns, types, strict=True):
        if not _add(parts, column, number):
            return None
    return parts.joined()


class _Parts:
    """What each row consists of, from left to right."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._blocks: list[Any] = []
        self._done: list[Any] = []

    def add_fixed(self, block: Any) -> None:
        """`block`: uint8[n, width]."""
        self._blocks.append(block)

    def add_lengths(self, lengths: Any) -> None:
        """`lengths`: int[n], -1 for null."""
        self.add_fixed(_bytes(lengths.astype(">i4")))

    def add_variable(self, values: Any) -> None:
        """`values`: Arrow array of binary; nothing is written for a null."""
        self._close_block()
        self._done.append(values)

    def joined(self) -> Any:
        self._close_block()
        if len(self._done) == 1:
            return self._done[0]
        join: Any = pc.binary_join_element_wise
        return join(*self._done, pa.scalar(b""), null_handling="replace", null_replacement=b"")

    def _close_block(self) -> None:
        if self._blocks:
            self._done.append(_rows_of(np.concatenate(self._blocks, axis=1)))
            self._blocks = []


def _add(parts: _Parts, column: Any, number: int) -> bool:
    kind = _kind(column.type)
    fixed = _FIXED.get((kind, number))
    if fixed is not None:
        return _add_fixed(parts, column, fixed)
    variable = _VARIABLE.get((kind, number))
    values = None if variable is None else variable(column)
    if values is None:
        return False
    lengths = _lengths(values)
    if values.null_count:
        lengths = np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths, _NULL)
    parts.add_lengths(lengths)
    parts.add_variable(values)
    return True


def _add_fixed(parts: _Parts, column: Any, fixed: Fixed) -> bool:
    if not column.null_count:
        values = fixed(column)
        if values is None:
            return False
        parts.add_lengths(np.full(len(column), values.shape[1]))
        parts.add_fixed(values)
        return True
    values = fixed(column.drop_null())
    if values is None:
        return False
    present = column.is_valid().to_numpy(zero_copy_only=False)
    parts.add_lengths(np.where(present, values.shape[1], _NULL))
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(present * values.shape[1], out=offsets[1:])
    parts.add_variable(_binary(offsets, np.ascontiguousarray(values)))
    return True


# --- types ------------------------------------------------------------------------------------------------------------


def _kind(kind: pa.DataType) -> str:
    return "decimal" if pa.types.is_decimal128(kind) else str(kind)


def _integer(name: str) -> Fixed:
    wanted = np.dtype(name)
    limits = np.iinfo(wanted)

    def fixed(column: Any) -> Any:
        numbers = _numpy(column)
        if len(numbers) and (numbers.min() < limits.min or numbers.max() > limits.max):
            return None
        return _bytes(numbers.astype(wanted))

    return fixed


def _floating(name: str) -> Fixed:
    return lambda column: _bytes(_numpy(column).astype(name))


def _integer_as_float(column: Any) -> Any:
    numbers = _numpy(column)
    if len(numbers) and (numbers.min() < -_EXACT or numbers.max() > _EXACT):
        return None
    return _bytes(numbers.astype(">f8"))


def _boolean(column: Any) -> Any:
    return _bytes(_numpy(column).astype(np.uint8))


def _since(epoch: int, name: str) -> Fixed:
    return lambda column: _bytes((_numpy(column.view(_INTEGERS[column.type.bit_width])) - epoch).astype(name))


_INTEGERS = {32: pa.int32(), 64: pa.int64()}


def _integer_as_numeric(column: Any) -> Any:
    return _numeric_digits(_numpy(column).astype(np.int64), 0)


def _decimal(column: Any) -> Any:
    if not 0 <= column.type.scale <= _MOST_SCALE:
        return None
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[0::2], words[1::2]
    if (high != low >> 63).any():
        return None  # More than 64 bits.
    return _numeric_digits(low, column.type.scale)


def _numeric_digits(unscaled: Any, scale: int) -> Any:
    """`numeric_recv`: digits to the base 10,000; it removes zeros at either end."""
    if len(unscaled) and unscaled.min() == np.iinfo(np.int64).min:
        return None  # It has no absolute value.
    absolute = np.abs(unscaled)
    whole, rest = np.divmod(absolute, 10**scale)
    behind = -(-scale // 4)
    rest = rest * 10 ** (behind * 4 - scale)
    digits = np.empty((len(unscaled), 4 + 5 + behind), ">i2")
    digits[:, 0] = 5 + behind
    digits[:, 1] = 4  # Weight of the first digit: 10,000 ** 4.
    digits[:, 2] = np.where(unscaled < 0, _NEGATIVE, 0)
    digits[:, 3] = scale
    for place in range(8, 3, -1):
        whole, digits[:, place] = np.divmod(whole, _NUMERIC_BASE)
    for place in range(8 + behind, 8, -1):
        rest, digits[:, place] = np.divmod(rest, _NUMERIC_BASE)
    return _bytes(digits)


_HEXADECIMAL = np.full(256, 255, np.uint8)
for _digits in ("0123456789abcdef", "0123456789ABCDEF"):
    _HEXADECIMAL[np.frombuffer(_digits.encode(), np.uint8)] = range(16)


def _uuid(column: Any) -> Any:
    """Texts of the usual form only."""
    if not len(column):
        return np.empty((0, 16), np.uint8)
    lengths = _lengths(column)
    if (lengths != _UUID_TEXT).any():
        return None
    offsets, data = _bounds(column)
    texts = data[offsets[0] : offsets[-1]].reshape(len(column), _UUID_TEXT)
    if (texts[:, _DASHES] != ord("-")).any():
        return None
    halves = _HEXADECIMAL[np.delete(texts, _DASHES, axis=1)]
    return None if (halves > 15).any() else np.ascontiguousarray(halves[:, 0::2] << 4 | halves[:, 1::2])


def _text(column: Any) -> Any:
    return column.cast(pa.binary())


def _number_as_text(column: Any) -> Any:
    return column.cast(pa.string()).cast(pa.binary())


def _jsonb(column: Any) -> Any:
    """With the version of the format in front."""
    join: Any = pc.binary_join_element_wise
    return join(pa.scalar(b"\1"), column.cast(pa.binary()), pa.scalar(b""))


_WHOLE = ("int8", "int16", "int32", "int64")
_FIXED: dict[tuple[str, int], Fixed] = {
    **{(kind, INT2): _integer(">i2") for kind in _WHOLE},
    **{(kind, INT4): _integer(">i4") for kind in _WHOLE},
    **{(kind, INT8): _integer(">i8") for kind in _WHOLE},
    **{(kind, FLOAT8): _integer_as_float for kind in _WHOLE},
    **{(kind, NUMERIC): _integer_as_numeric for kind in _WHOLE},
    ("float", FLOAT4): _floating(">f4"),
    ("float", FLOAT8): _floating(">f8"),
    ("double", FLOAT8): _floating(">f8"),
    ("bool", BOOL): _boolean,
    ("decimal", NUMERIC): _decimal,
    ("date32[day]", DATE): _since(_EPOCH_DAYS, ">i4"),
    ("time64[us]", TIME): _since(0, ">i8"),
    ("timestamp[us]", TIMESTAMP): _since(_EPOCH_US, ">i8"),
    # Points in time, in UTC, whatever the zone of the session is.
    ("timestamp[us]", TIMESTAMPTZ): _since(_EPOCH_US, ">i8"),
    ("string", UUID): _uuid,
}
_VARIABLE: dict[tuple[str, int], Variable] = {
    **{("string", number): _text for number in (TEXT, VARCHAR, BPCHAR, JSON)},
    **{(kind, number): _number_as_text for kind in _WHOLE for number in (TEXT, VARCHAR)},
    ("string", JSONB): _jsonb,
    ("binary", BYTEA): _text,
}


# --- bytes ------------------------------------------------------------------------------------------------------------


def _numpy(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)


def _bytes(numbers: Any) -> Any:
    """uint8[n, width] of numbers [n] or [n, m]."""
    numbers = np.ascontiguousarray(numbers)
    width = numbers.dtype.itemsize * (numbers.shape[1] if numbers.ndim > 1 else 1)
    return numbers.view(np.uint8).reshape(len(numbers), width)


def _rows_of(block: Any) -> Any:
    """An Arrow array with a value for each row of uint8[n, width]."""
    count, width = block.shape
    return _binary(np.arange(count + 1, dtype=np.int32) * np.int32(width), np.ascontiguousarray(block))


def _binary(offsets: Any, data: Any) -> Any:
    made: Any = pa.Array.from_buffers
    return made(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _bounds(column: Any) -> tuple[Any, Any]:
    buffers = column.buffers()
    offsets = np.frombuffer(buffers[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return offsets, np.frombuffer(buffers[2] or b"", np.uint8)


def _lengths(column: Any) -> Any:
    return np.diff(_bounds(column)[0])


def data_of(rows: Any, start: int, stop: int) -> memoryview:
    """The bytes of rows `[start, stop)`."""
    offsets, _ = _bounds(rows)
    return memoryview(rows.buffers()[2])[int(offsets[start]) : int(offsets[stop])]
