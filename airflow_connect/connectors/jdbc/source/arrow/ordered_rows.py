"""The rows that `read/changed.py` compares, of a table of PostgreSQL in Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.arrow.reader import ArrowReader, ColumnBatch
from airflow_connect.connectors.jdbc.source.offsets.positions import Position

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.jdbc.source.arrow.texts import RowTexts
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.connectors.jdbc.source.values.columns import Column
    from airflow_connect.databases.arrow_stream import ArrowStream
    from airflow_connect.databases.identifiers import TableId


class ArrowRows:
    """`OrderedRows`; what `Piece.between` returns is a slice of an Arrow batch."""

    in_columns = True

    def __init__(self, reading: Reading, table: TableId, key: Column, stream: ArrowStream) -> None:
        """Does not read yet; for the arguments see `ArrowReader`."""
        order = reading.database.quoting.text(key.name)
        self._reader = ArrowReader(reading, table, Position(), stream, order=order)
        self._key = key

    @property
    def schema(self) -> Schema:
        """See `OrderedRows`."""
        return self._reader.mapping.schema

    def close(self) -> None:
        """See `OrderedRows`."""
        self._reader.close()

    def next(self, count: int) -> _ArrowPiece | None:
        """See `OrderedRows`."""
        rows = self._reader.next_rows(count)
        if rows is None:
            return None
        return _ArrowPiece(rows, self._reader.driver_values(rows, self._key.name), self._reader.texts(rows))

    def size(self, rows: Any) -> int:
        """See `OrderedRows`."""
        return int(rows.num_rows)

    def batch(self, rows: Any, start: int, end: int) -> ColumnBatch:
        """See `OrderedRows`."""
        return self._reader.batch_of(rows.slice(start, end - start))


@dataclass(frozen=True, slots=True)
class _ArrowPiece:
    rows: pa.RecordBatch
    keys: Sequence[Any]
    made: RowTexts

    def texts(self, start: int, end: int) -> memoryview:
        return self.made.between(start, end)

    def between(self, start: int, end: int) -> Any:
        return self.rows.slice(start, end - start)
