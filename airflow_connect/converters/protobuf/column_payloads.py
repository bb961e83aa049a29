"""What follows the tag of a field in columns: numbers, texts, and the messages for Connect's logical types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import FieldDescriptor
from numpy.typing import NDArray

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.column_pieces import Pieces, Present, rows, varint_bytes
from airflow_connect.converters.decimal_columns import LONGEST_DECIMAL_BYTES, is_shortest
from airflow_connect.converters.java_text import MS_PER_DAY
from airflow_connect.converters.protobuf.reading import FIRST_SECOND, LAST_SECOND, NS_PER_MS
from airflow_connect.converters.scan import NotPlainError
from airflow_connect.java.numbers import integer_parameter

VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_FIRST_GREGORIAN_DAY = -141_427
"""15 October 1582, the first day of the Gregorian calendar in java.util.GregorianCalendar."""
_LAST_DAY = 2_932_896
"""31 December 9999."""
_DAYS_TO_1970 = "datetime64[D]"


class Payload(NamedTuple):
    """How a column is written.

    Attributes:
        write: values, pieces and the rows to write.
        is_zero: bool[n], which values a field without presence leaves out; those of nulls do not matter. None: none.
    """

    write: Callable[[Any, Pieces, Present], None]
    is_zero: Callable[[Any], NDArray[np.bool_]] | None


class Scalar(NamedTuple):
    """A type of Protobuf.

    Attributes:
        wire_type: of its tag.
        payload: of its values.
    """

    wire_type: int
    payload: Payload

    def of_kind(self, kind: Any) -> Payload:
        """The payload of columns of one Arrow type; others are not vectorizable."""
        write, is_zero = self.payload

        def write_kind(values: Any, pieces: Pieces, present: Present) -> None:
            _check_kind(values, kind)
            write(values, pieces, present)

        def is_zero_of_kind(values: Any) -> NDArray[np.bool_]:
            _check_kind(values, kind)
            assert is_zero is not None
            return is_zero(values)

        return Payload(write_kind, is_zero_of_kind)


def _check_kind(values: Any, kind: Any) -> None:
    if values.type != kind:
        raise NotPlainError


def numbers_of(values: Any) -> NDArray[Any]:
    """The numbers of a column, 0 for null."""
    filled = values.fill_null(False if pa.types.is_boolean(values.type) else 0) if values.null_count else values
    found: NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return found


def _unsigned(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Numbers as Protobuf writes them: negative ones in two's complement of 64 bits."""
    return numbers.astype(np.int64).view(np.uint64)


def _integers(values: Any, pieces: Pieces, present: Present) -> None:
    pieces.varints(_unsigned(numbers_of(values)), present)


def _booleans(values: Any, pieces: Pieces, present: Present) -> None:
    pieces.add(numbers_of(values).astype(np.uint8)[:, np.newaxis], rows(present))


def _floats(values: Any, pieces: Pieces, present: Present) -> None:
    numbers = np.ascontiguousarray(numbers_of(values))
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    pieces.add(little.view(np.uint8).reshape(pieces.count, numbers.dtype.itemsize), rows(present))


def _texts(values: Any, pieces: Pieces, present: Present) -> None:
    data = values.cast(pa.binary())
    if present is not None:
        data = pc.if_else(pa.array(present), data, pa.scalar(None, pa.binary()))
    pieces.varints(_unsigned(numbers_of(pc.binary_length(data))), present)
    pieces.column(data)


def _is_zero(values: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = numbers_of(values) == 0
    return found


def _has_no_bits(values: Any) -> NDArray[np.bool_]:
    """Whether a float is zero, but not negative zero."""
    numbers = np.ascontiguousarray(numbers_of(values))
    found: NDArray[np.bool_] = numbers.view(f"u{numbers.dtype.itemsize}") == 0
    return found


def _is_empty(values: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = numbers_of(pc.binary_length(values)) == 0
    return found


PAYLOADS: dict[int, Scalar] = {
    FieldDescriptor.TYPE_INT32: Scalar(VARINT, Payload(_integers, _is_zero)),
    FieldDescriptor.TYPE_INT64: Scalar(VARINT, Payload(_integers, _is_zero)),
    FieldDescriptor.TYPE_BOOL: Scalar(VARINT, Payload(_booleans, _is_zero)),
    FieldDescriptor.TYPE_FLOAT: Scalar(_FIXED32, Payload(_floats, _has_no_bits)),
    FieldDescriptor.TYPE_DOUBLE: Scalar(_FIXED64, Payload(_floats, _has_no_bits)),
    FieldDescriptor.TYPE_STRING: Scalar(_LENGTH_DELIMITED, Payload(_texts, _is_empty)),
    FieldDescriptor.TYPE_BYTES: Scalar(_LENGTH_DELIMITED, Payload(_texts, _is_empty)),
}


# Messages of numbers: Date, TimeOfDay, Timestamp.


def _whole(values: Any, kind: Any, present: Present, first: int, last: int) -> NDArray[np.int64]:
    """Numbers of a column of one type; those to write are between `first` and `last`, the others are 0."""
    _check_kind(values, kind)
    numbers = numbers_of(values).astype(np.int64)
    if present is not None:
        numbers = np.where(present, numbers, 0)
    if len(numbers) and (int(numbers.min()) < first or int(numbers.max()) > last):
        raise NotPlainError
    return numbers


def _write_numbers(pieces: Pieces, present: Present, numbers: list[NDArray[np.int64]]) -> None:
    """A message with fields 1, 2, ... without presence, shorter than 128 bytes, behind its length."""
    parts = []
    length: NDArray[np.int64] = np.zeros(pieces.count, np.int64)
    for number, column in enumerate(numbers, 1):
        data, used = varint_bytes(_unsigned(column))
        is_there = column != 0 if present is None else (column != 0) & present
        tag = np.full((pieces.count, 1), number << 3, np.uint8)
        used = np.concatenate([is_there[:, np.newaxis], used & is_there[:, np.newaxis]], axis=1)
        parts.append((np.concatenate([tag, data], axis=1), used))
        length += np.count_nonzero(used, axis=1)
    pieces.add(length.astype(np.uint8)[:, np.newaxis], rows(present))
    for data, used in parts:
        pieces.add(data, used)


def _dates(values: Any, pieces: Pieces, present: Present) -> None:
    days = _whole(values, pa.int32(), present, _FIRST_GREGORIAN_DAY, _LAST_DAY).astype(_DAYS_TO_1970)
    months = days.astype("datetime64[M]")
    years = months.astype("datetime64[Y]")
    day = (days - months).astype(np.int64) + 1
    month = (months - years).astype(np.int64) + 1
    _write_numbers(pieces, present, [years.astype(np.int64) + 1970, month, day])


def _times(values: Any, pieces: Pieces, present: Present) -> None:
    # The end of the day is its beginning, as Java's calendar has it.
    ms = _whole(values, pa.int32(), present, 0, MS_PER_DAY) % MS_PER_DAY
    seconds = ms // 1000
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60, ms % 1000 * NS_PER_MS]
    _write_numbers(pieces, present, parts)


def _timestamps(values: Any, pieces: Pieces, present: Present) -> None:
    ms = _whole(values, pa.int64(), present, FIRST_SECOND * 1000, LAST_SECOND * 1000 + 999)
    _write_numbers(pieces, present, [ms // 1000, ms % 1000 * NS_PER_MS])


# Decimals: value, precision and scale.


def _decimals(schema: Schema) -> Payload:
    scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE))

    def write(values: Any, pieces: Pieces, present: Present) -> None:
        _check_kind(values, pa.binary())
        data = values if present is None else pc.if_else(pa.array(present), values, pa.scalar(None, pa.binary()))
        lengths = numbers_of(pc.binary_length(data))
        if int(np.max(lengths, initial=0)) > LONGEST_DECIMAL_BYTES or not is_shortest(data):
            raise NotPlainError
        inner = Pieces(pieces.count)
        inner.constant(b"\x0a", present)
        inner.varints(_unsigned(lengths), present)
        inner.column(data)
        inner.constant(b"\x10", present)
        inner.varints(_precisions(data), present)
        if scale:
            inner.constant(b"\x18", present)
            inner.varints(np.full(pieces.count, scale % (1 << 64), np.uint64), present)
        joined = inner.joined()
        pieces.varints(_unsigned(numbers_of(pc.binary_length(joined))), present)
        pieces.column(joined)

    return Payload(write, None)


def _precisions(data: Any) -> NDArray[np.uint64]:
    """Decimal digits of each number; 1 for null. A number that is there many times is counted once."""
    encoded = data.dictionary_encode()
    digits = [len(str(abs(int.from_bytes(number, "big", signed=True)))) for number in encoded.dictionary.to_pylist()]
    counts = pa.array(digits, pa.uint64()).take(encoded.indices)
    found: NDArray[np.uint64] = counts.fill_null(1).to_numpy()
    return found


def _always(write: Callable[[Any, Pieces, Present], None], kind: Type) -> Callable[[Schema], Payload]:
    def of(schema: Schema) -> Payload:
        if schema.type is not kind:
            raise NotPlainError
        return Payload(write, None)

    return of


LOGICAL_PAYLOADS: dict[str | None, Callable[[Schema], Payload]] = {
    DECIMAL: _decimals,
    DATE: _always(_dates, Type.INT32),
    TIME: _always(_times, Type.INT32),
    TIMESTAMP: _always(_timestamps, Type.INT64),
}
