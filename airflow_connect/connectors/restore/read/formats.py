"""Columns of files in each format, a batch at a time: row groups, blocks and stripes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api.schema import Schema, Type
from airflow_connect.api.whole_record import WHOLE_RECORD
from airflow_connect.connectors.restore.options import (
    AVRO,
    ORC,
    PARQUET,
)
from airflow_connect.connectors.restore.read.avro_blocks import AvroBlocks, field_names
from airflow_connect.connectors.restore.read.records import FIELDS

if TYPE_CHECKING:
    import io

    import pyarrow as pa

ROWS_AT_ONCE = 50_000
_AVRO_ROWS = 5_000


class NoBackupError(Exception):
    """The file is intact, but holds something other than whole records; its arguments are the names of its fields."""


class Columns(Protocol):
    """An open file."""

    def batches(self, position: int) -> Iterator[pa.RecordBatch]:
        """Its records in order. Parts that end before offset `position` may be left out."""

    def oldest(self) -> int | None:
        """The oldest timestamp, as far as it is known without reading much."""


def open_columns(file_format: str, content: io.RawIOBase) -> Columns:
    """Open a file.

    Args:
        file_format: AVRO, PARQUET or ORC.
        content: its bytes.

    Raises:
        NoBackupError: see there.
        Exception: it is damaged.
    """
    opened: Columns = _READERS[file_format](content)
    return opened


class _Parquet:
    def __init__(self, content: Any) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(content, pre_buffer=True)
        _ensure_whole(self._file.schema_arrow)

    def batches(self, position: int) -> Iterator[pa.RecordBatch]:
        last = self._statistics("offset")
        groups = [number for number, one in enumerate(last) if one is None or one.max >= position]
        for group in groups:
            yield from self._file.iter_batches(ROWS_AT_ONCE, [group], use_threads=False)

    def oldest(self) -> int | None:
        found = [one.min for one in self._statistics("timestamp") if one is not None]
        return min(found, default=None)

    def _statistics(self, column: str) -> list[Any]:
        about: Any = self._file.metadata
        number = FIELDS.index(column)
        found = [about.row_group(group).column(number).statistics for group in range(about.num_row_groups)]
        return [one if one is not None and one.has_min_max else None for one in found]


class _Orc:
    def __init__(self, content: Any) -> None:
        import pyarrow.orc as orc

        self._file = orc.ORCFile(content)
        _ensure_whole(self._file.schema)

    def batches(self, position: int) -> Iterator[pa.RecordBatch]:
        for number in range(self._file.nstripes):
            stripe = self._file.read_stripe(number)
            for start in range(0, len(stripe), ROWS_AT_ONCE):
                yield stripe.slice(start, ROWS_AT_ONCE)

    def oldest(self) -> int | None:
        return _oldest_of_first(self.batches(0))


class _Avro:
    def __init__(self, content: io.RawIOBase) -> None:
        import pyarrow as pa

        self._blocks = AvroBlocks(content)
        names = field_names(self._blocks.schema)
        if tuple(names) != FIELDS or self._blocks.schema.get("name") != WHOLE_RECORD.name:
            raise NoBackupError(*names)
        self._schema = pa.schema([(field.name, arrow_type(field.schema)) for field in WHOLE_RECORD.fields])

    def batches(self, position: int) -> Iterator[pa.RecordBatch]:
        rows: list[dict[str, Any]] = []
        for block in self._blocks:
            rows += block
            if len(rows) >= _AVRO_ROWS or sum(map(_size, block)) > 1 << 20:
                yield self._batch(rows)
                rows = []
        if rows:
            yield self._batch(rows)

    def oldest(self) -> int | None:
        return _oldest_of_first(self.batches(0))

    def _batch(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        import pyarrow as pa

        return pa.RecordBatch.from_pylist(rows, schema=self._schema)


_READERS: dict[str, Any] = {PARQUET: _Parquet, AVRO: _Avro, ORC: _Orc}


def _size(row: dict[str, Any]) -> int:
    return len(row["value"] or b"")


def _oldest_of_first(batches: Iterator[pa.RecordBatch]) -> int | None:
    import pyarrow.compute as pc

    first = next(batches, None)
    if first is None:
        return None
    found: Any = pc.min(first.column("timestamp"))
    oldest: int | None = found.as_py()
    return oldest


def arrow_type(schema: Schema) -> Any:
    """The Arrow type of a field of WHOLE_RECORD."""
    import pyarrow as pa

    if schema.type is Type.ARRAY:
        from airflow_connect.kafka.reading.message_headers import HEADERS

        return HEADERS
    kinds = {Type.STRING: pa.string(), Type.INT32: pa.int32(), Type.INT64: pa.int64(), Type.BYTES: pa.binary()}
    return kinds[schema.type]


def _ensure_whole(schema: pa.Schema) -> None:
    """Check the columns of a file.

    Raises:
        NoBackupError: they are not those of a whole record.
    """
    plain = [(field.name, arrow_type(field.schema)) for field in WHOLE_RECORD.fields if field.name != "headers"]
    found = [(field.name, field.type) for field in schema if field.name != "headers"]
    if tuple(schema.names) != FIELDS or found != plain:
        raise NoBackupError(*schema.names)
    headers: Any = schema.field("headers").type
    if not _is_headers(headers):
        raise NoBackupError(*schema.names)


def _is_headers(kind: Any) -> bool:
    import pyarrow as pa

    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    parts = [kind.value_type.field(number) for number in range(kind.value_type.num_fields)]
    return [(part.name, part.type) for part in parts] == [("key", pa.binary()), ("value", pa.binary())]
