"""Rows of a multi-row INSERT of MySQL and MariaDB from bound columns, without a Python object per value.

Sources: pymysql.converters, whose literals these are; MariaDB's documentation of string literals.

LOAD DATA LOCAL is not used: with LOCAL the server takes rows that it refuses for warnings, cuts values off and drops
duplicates, and it may ask the client for any file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LONGEST_SCALE = 6
"""Arrow writes smaller decimals with an exponent, which MySQL reads as a float."""
_ESCAPES = ((b"\\", b"\\\\"), (b"\0", b"\\0"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\x1a", b"\\Z"), (b'"', b'\\"'))
Literal = Callable[[Any, bool], Any]
"""A column, and whether a backslash escapes, to an Arrow array of binary with the same nulls; or None."""
_join: Any = pc.binary_join_element_wise
_replace: Any = pc.replace_substring


def insert_rows(columns: Sequence[Any], *, backslash_escapes: bool) -> Any | None:
    """The rows as an Arrow array of binary, `(1,'a'),` each; None if a value must be written on its own.

    Args:
        columns: bound columns of equal length, at least one.
        backslash_escapes: False in the SQL mode NO_BACKSLASH_ESCAPES.
    """
    literals = []
    for column in columns:
        literal = _LITERALS.get(_kind(column.type))
        values = None if literal is None else literal(column, backslash_escapes)
        if values is None:
            return None
        literals.append(values)
    comma = pa.scalar(b",")
    joined = _join(*literals, comma, null_handling="replace", null_replacement=b"NULL")
    return _join(pa.scalar(b"("), joined, pa.scalar(b"),"), pa.scalar(b""))


def statements_of(rows: Any, most_rows: int, most_bytes: int) -> Iterator[memoryview]:
    """Runs of rows for one statement each, without the last comma.

    Args:
        rows: of `insert_rows`.
        most_rows: of a statement.
        most_bytes: of the rows of a statement; a single row may be longer.
    """
    offsets = np.frombuffer(rows.buffers()[1], np.int32)[rows.offset : rows.offset + len(rows) + 1]
    data = memoryview(rows.buffers()[2])
    start = 0
    while start < len(rows):
        fitting = int(np.searchsorted(offsets, int(offsets[start]) + most_bytes, side="right")) - 1
        stop = max(start + 1, min(fitting, start + most_rows, len(rows)))
        yield data[int(offsets[start]) : int(offsets[stop]) - 1]
        start = stop


# --- literals ---------------------------------------------------------------------------------------------------------


def _kind(kind: pa.DataType) -> str:
    return "decimal" if pa.types.is_decimal128(kind) else str(kind)


def _plain(column: Any, _backslash_escapes: bool) -> Any:
    return column.cast(pa.string()).cast(pa.binary())


def _decimal(column: Any, backslash_escapes: bool) -> Any:
    return _plain(column, backslash_escapes) if 0 <= column.type.scale <= _LONGEST_SCALE else None


def _float(column: Any, _backslash_escapes: bool) -> Any:
    """With an exponent: without one, it would be a decimal number."""
    column = column.cast(pa.float64())
    if not np.isfinite(column.drop_null().to_numpy(zero_copy_only=False)).all():
        return None
    texts = column.cast(pa.string())
    exponents = pc.if_else(pc.match_substring(texts, "e"), "", "e0")
    return _join(texts, exponents, pa.scalar("")).cast(pa.binary())


def _quoted(column: Any, _backslash_escapes: bool) -> Any:
    quote = pa.scalar(b"'")
    return _join(quote, column.cast(pa.string()).cast(pa.binary()), quote, pa.scalar(b""))


def _time(column: Any, backslash_escapes: bool) -> Any:
    """Without a fraction of zero, as PyMySQL writes it: a column of texts shows the difference."""
    return _quoted(pc.replace_substring_regex(column.cast(pa.string()), r"\.000000$", ""), backslash_escapes)


def _text(column: Any, backslash_escapes: bool) -> Any:
    quote = pa.scalar(b"'")
    return _join(quote, _escaped(column.cast(pa.binary()), backslash_escapes), quote, pa.scalar(b""))


def _bytes(column: Any, backslash_escapes: bool) -> Any:
    return _join(pa.scalar(b"_binary'"), _escaped(column, backslash_escapes), pa.scalar(b"'"), pa.scalar(b""))


def _escaped(column: Any, backslash_escapes: bool) -> Any:
    quote = (b"'", b"\\'") if backslash_escapes else (b"'", b"''")
    data = _data(column)
    for found, written in (*_ESCAPES, quote) if backslash_escapes else (quote,):
        if found in data:
            column = _replace(column, pattern=found, replacement=written)
    return column


def _data(column: Any) -> bytes:
    """Every byte of the values, or more."""
    buffer = column.buffers()[2]
    return b"" if buffer is None else buffer.to_pybytes()


_LITERALS: dict[str, Literal] = {
    "int8": _plain,
    "int16": _plain,
    "int32": _plain,
    "int64": _plain,
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "string": _text,
    "binary": _bytes,
    "date32[day]": _quoted,
    "time64[us]": _time,
    "timestamp[us]": _time,
}
