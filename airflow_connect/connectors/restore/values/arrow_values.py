"""Columns of Parquet and ORC files as Connect values: the inverse of `airflow_connect.formats.columnar.arrow_schema`.

Files that other programs have written may have more types; those that Connect does not have become the next wider one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from airflow_connect.api.schema import (
    DATE,
    DECIMAL,
    DECIMAL_SCALE,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
)
from airflow_connect.connectors.restore.options import (
    INTEGERS,
    MILLISECONDS,
)
from airflow_connect.connectors.restore.read.records import FIELDS
from airflow_connect.connectors.restore.values.batches import (
    Values,
    WholeRecordsError,
)

ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE = 16 << 20
"""Of row groups that are read together, unpacked; a larger one is read alone."""
_SIMPLE: tuple[tuple[Any, Type, Any], ...] = (
    (pa.types.is_boolean, Type.BOOLEAN, pa.bool_()),
    (pa.types.is_int8, Type.INT8, pa.int8()),
    (pa.types.is_int16, Type.INT16, pa.int16()),
    (pa.types.is_uint8, Type.INT16, pa.int16()),
    (pa.types.is_int32, Type.INT32, pa.int32()),
    (pa.types.is_uint16, Type.INT32, pa.int32()),
    (pa.types.is_int64, Type.INT64, pa.int64()),
    (pa.types.is_uint32, Type.INT64, pa.int64()),
    (pa.types.is_float16, Type.FLOAT32, pa.float32()),
    (pa.types.is_float32, Type.FLOAT32, pa.float32()),
    (pa.types.is_float64, Type.FLOAT64, pa.float64()),
    (pa.types.is_string, Type.STRING, pa.string()),
    (pa.types.is_large_string, Type.STRING, pa.string()),
    (pa.types.is_string_view, Type.STRING, pa.string()),
    (pa.types.is_binary, Type.BYTES, pa.binary()),
    (pa.types.is_large_binary, Type.BYTES, pa.binary()),
    (pa.types.is_binary_view, Type.BYTES, pa.binary()),
    (pa.types.is_fixed_size_binary, Type.BYTES, pa.binary()),
    (pa.types.is_null, Type.STRING, pa.string()),
)


class ParquetReader:
    """Reads a Parquet file, a few row groups at a time.

    Attributes:
        size: how many rows it has.
    """

    def __init__(self, content: Any, timestamps: str, rows: tuple[int, int | None] = (0, None)) -> None:
        """Read the footer.

        Args:
            content: the file.
            timestamps: MILLISECONDS or INTEGERS.
            rows: that are wanted, `[start, end)`; end None: of the file.

        Raises:
            ValueError: it has fewer rows, or a column that Connect does not have.
        """
        self._file = pq.ParquetFile(content, pre_buffer=True)
        self._types = _Types(self._file.schema_arrow, timestamps)
        self._coarse = None
        if any(self._file.schema.column(n).physical_type == "INT96" for n in range(self._file.metadata.num_columns)):
            self._file, self._timestamps = pq.ParquetFile(content), timestamps  # two readers must not read ahead
            self._coarse = pq.ParquetFile(content, coerce_int96_timestamp_unit="us")
        self.size: int = self._file.metadata.num_rows
        self._groups = _row_groups(self._file.metadata)
        if (counted := sum(rows_of_group for rows_of_group, _ in self._groups)) != self.size:
            raise ValueError(f"its row groups have {counted} rows, and its footer says {self.size}")
        self._start, self._end = rows[0], self.size if rows[1] is None else rows[1]
        if max(self._start, self._end) > self.size:
            raise ValueError(f"it has {self.size} records, and {max(self._start, self._end)} were expected")

    def __iter__(self) -> Iterator[Values]:
        """See `Reader`; the first value is the first that is wanted."""
        for groups, first, size in self._spans():
            index = first
            for batch in self._batches(groups):
                start, end = max(self._start - index, 0), min(self._end - index, len(batch))
                if start < end:
                    yield self._types.values(index + start, batch.slice(start, end - start))
                index += len(batch)
            if index != first + size:
                raise ValueError(f"row groups {groups} have {index - first} rows, and the footer says {size}")

    def cuts(self, most: int) -> list[int]:
        """The rows at which the file can be divided into so many ranges of about the same size, or fewer."""
        total, read, row, goal = sum(size for _, size in self._groups), 0, 0, 1
        found = [0]
        for rows, size in self._groups:
            read, row = read + size, row + rows
            # The end of a row group that is nearest to the goal, if the next one is as large as this one.
            if goal < most and (2 * read + size) * most >= 2 * goal * total and found[-1] < row < self.size:
                found.append(row)
                goal = max(goal, read * most // total) + 1
        return found[1:]

    def _spans(self) -> Iterator[tuple[list[int], int, int]]:
        """Row groups that are read together, their first row, and how many they have.

        What is read ahead stays in memory until all of them are read, so they must not be the whole file.
        """
        groups: list[int] = []
        first = count = size = 0
        for number, (rows, size_of_group) in enumerate(self._groups):
            if groups and size + size_of_group > BYTES_AT_ONCE:
                yield groups, first, count
                groups, first, count, size = [], first + count, 0, 0
            if first + count >= self._end:
                break
            if first + count + rows <= self._start:
                first += rows
                continue
            groups.append(number)
            count, size = count + rows, size + size_of_group
        if groups:
            yield groups, first, count

    def _batches(self, groups: list[int]) -> Iterator[pa.RecordBatch]:
        found = self._file.iter_batches(ROWS_AT_ONCE, groups, use_threads=False)
        if self._coarse is None:
            return found
        return map(self._with_all_times, found, self._coarse.iter_batches(ROWS_AT_ONCE, groups, use_threads=False))

    def _with_all_times(self, fine: pa.RecordBatch, coarse: pa.RecordBatch) -> pa.RecordBatch:
        """The batch in whose unit every time fits. INT96 counts days, and Arrow its nanoseconds wrong after 2262.

        Args:
            fine: in nanoseconds.
            coarse: the same rows in microseconds.
        """
        times = [
            (name, one, other)
            for name, one, other in zip(fine.schema.names, fine.columns, coarse.columns, strict=True)
            if one.type != other.type
        ]
        too_far = [name for name, one, other in times if not _fits(other, one.type)]
        if not too_far:
            return fine
        if self._timestamps == INTEGERS:
            raise ValueError(f"its column {too_far[0]} has a time that INT64 cannot count in nanoseconds")
        for name, one, other in times:
            if not other.cast(one.type, safe=False).equals(one):
                raise ValueError(f"its column {name} has nanoseconds, in a file with times outside of 1677 to 2262")
        return coarse


def _row_groups(about: Any) -> list[tuple[int, int]]:
    """Rows of each row group, and its bytes before compression: those after it are only known column by column."""
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    return [(group.num_rows, max(1, group.total_byte_size)) for group in groups]


def _fits(times: pa.Array[Any], kind: Any) -> bool:
    try:
        times.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


class OrcReader:
    """Reads an ORC file, a stripe at a time."""

    def __init__(self, content: Any) -> None:
        """Read the footer. ORC has no milliseconds, so its timestamps are always read as such."""
        self._file = orc.ORCFile(content)
        self._types = _Types(self._file.schema, MILLISECONDS)

    def __iter__(self) -> Iterator[Values]:
        """See `Reader`."""
        index = 0
        for number in range(self._file.nstripes):
            stripe = self._file.read_stripe(number)
            for start in range(0, len(stripe), ROWS_AT_ONCE):
                batch: Any = stripe.slice(start, ROWS_AT_ONCE)
                yield self._types.values(index, batch)
                index += len(batch)


class _Part(NamedTuple):
    """How a column is read.

    Attributes:
        schema: of its values.
        units: its Arrow type with Connect's units; the cast to it fails if a value would lose digits.
        plain: its type in the representation of `airflow_connect.api.columns`, but for Decimals.
        needs_rows: whether that representation must be made value by value.
    """

    schema: Schema
    units: Any
    plain: Any
    needs_rows: bool = False


class _Types:
    """The schema of a file, and how its columns become values."""

    def __init__(self, columns: pa.Schema, timestamps: str) -> None:
        if tuple(columns.names) == FIELDS:
            raise WholeRecordsError
        self._timestamps = timestamps
        part = self._struct(list(columns), "", optional=False)
        self.schema, self._units, self._plain, self._needs_rows = part

    def values(self, index: int, batch: pa.RecordBatch) -> Values:
        """The rows of a batch."""
        batch.validate(full=True)  # a text that is no UTF-8 would only fail where values become objects
        struct: Any = batch.to_struct_array()
        struct = struct.cast(self._units).cast(self._plain)
        if self._needs_rows:
            return Values(index, self.schema, struct.to_pylist(maps_as_pydicts="strict"))
        return Values(index, self.schema, None, struct)

    def _struct(self, fields: list[Any], path: str, *, optional: bool) -> _Part:
        if len({one.name for one in fields}) < len(fields):
            raise ValueError(
                f"two columns of {path or 'the file'} have the same name: {', '.join(one.name for one in fields)}"
            )
        parts = [self._of(one.type, f"{path}.{one.name}".lstrip("."), optional=one.nullable) for one in fields]
        members = tuple(
            Field(one.name, n, part.schema) for n, (one, part) in enumerate(zip(fields, parts, strict=True))
        )
        units, plain = (
            pa.struct([pa.field(one.name, kind, one.nullable) for one, kind in zip(fields, kinds, strict=True)])
            for kinds in ([part.units for part in parts], [part.plain for part in parts])
        )
        needs_rows = any(part.needs_rows for part in parts)
        return _Part(Schema(Type.STRUCT, optional=optional, fields=members), units, plain, needs_rows)

    def _of(self, kind: Any, path: str, *, optional: bool) -> _Part:
        if pa.types.is_dictionary(kind):
            return self._of(kind.value_type, path, optional=optional)
        if pa.types.is_struct(kind):
            return self._struct([kind.field(n) for n in range(kind.num_fields)], path, optional=optional)
        if pa.types.is_map(kind):
            return self._map(kind, path, optional=optional)
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return self._list(kind, path, optional=optional)
        return self._of_time(kind, optional=optional) or self._of_simple(kind, path, optional=optional)

    def _list(self, kind: Any, path: str, *, optional: bool) -> _Part:
        nullable = kind.value_field.nullable
        item = self._of(kind.value_type, f"{path}[]", optional=nullable)
        units, plain = (pa.list_(pa.field(kind.value_field.name, of, nullable)) for of in (item.units, item.plain))
        schema = Schema(Type.ARRAY, optional=optional, value_schema=item.schema)
        return _Part(schema, units, plain, item.needs_rows)

    def _map(self, kind: Any, path: str, *, optional: bool) -> _Part:
        nullable = kind.item_field.nullable
        key = self._of(kind.key_type, f"{path}{{}}", optional=False)
        item = self._of(kind.item_type, f"{path}{{}}", optional=nullable)
        units, plain = (
            pa.map_(of_key, pa.field("value", of_item, nullable))
            for of_key, of_item in ((key.units, item.units), (key.plain, item.plain))
        )
        schema = Schema(Type.MAP, optional=optional, key_schema=key.schema, value_schema=item.schema)
        return _Part(schema, units, plain, needs_rows=True)

    def _of_time(self, kind: Any, *, optional: bool) -> _Part | None:
        if pa.types.is_date(kind):
            return _Part(Schema(Type.INT32, optional=optional, name=DATE, version=1), pa.date32(), pa.int32())
        if not (pa.types.is_time(kind) or pa.types.is_timestamp(kind)):
            return None
        if kind.unit in ("us", "ns") and self._timestamps == INTEGERS:
            return _Part(Schema(Type.INT64, optional=optional), kind, pa.int64())
        if pa.types.is_time(kind):
            return _Part(Schema(Type.INT32, optional=optional, name=TIME, version=1), pa.time32("ms"), pa.int32())
        schema = Schema(Type.INT64, optional=optional, name=TIMESTAMP, version=1)
        return _Part(schema, pa.timestamp("ms", kind.tz), pa.int64())

    def _of_simple(self, kind: Any, path: str, *, optional: bool) -> _Part:
        if pa.types.is_decimal(kind) or pa.types.is_uint64(kind):
            decimal: Any = pa.decimal128(20, 0) if pa.types.is_uint64(kind) else kind
            parameters = {DECIMAL_SCALE: str(decimal.scale), "connect.decimal.precision": str(decimal.precision)}
            schema = Schema(Type.BYTES, optional=optional, name=DECIMAL, version=1, parameters=parameters)
            return _Part(schema, decimal, decimal, needs_rows=True)
        for is_kind, connect, plain in _SIMPLE:
            if is_kind(kind):
                # A column without a type holds nothing but nulls.
                return _Part(Schema(connect, optional=optional or pa.types.is_null(kind)), plain, plain)
        raise ValueError(f"its column {path} has the type {kind}, which Connect does not have")
