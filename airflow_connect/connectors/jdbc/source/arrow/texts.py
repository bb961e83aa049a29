"""The texts by which rows are recognised (`values/row_text.py`), of rows of PostgreSQL in Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from airflow_connect.connectors.jdbc.source.arrow import literals
from airflow_connect.connectors.jdbc.source.arrow.text_columns import text_column
from airflow_connect.connectors.jdbc.source.values.columns import Column
from airflow_connect.connectors.jdbc.source.values.row_text import DIGEST_BYTES, row_text
from airflow_connect.converters.column_pieces import with_texts_merged

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MOST_BYTES = 256 << 20
"""Size of a batch from which on its texts, which may be four times as long, might not fit into an array of Arrow."""
_ROWS_AT_ONCE = 20_000


class RowTexts:
    """The texts of consecutive rows."""

    def __init__(self, data: Any, ends: Any) -> None:
        """`data`: all of them, one after the other; `ends`: where each begins, and where the last ends, int64[n+1]."""
        self._data, self._ends = memoryview(data), ends

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._ends) - 1

    def between(self, start: int, end: int) -> memoryview:
        """The texts of the rows [start, end), one after the other."""
        return self._data[self._ends[start] : self._ends[end]]


class TextMaker:
    """Makes the texts of the rows of one table.

    Attributes:
        extra: what must be selected after the fields: columns, and expressions with `{0}` for their quoted names.
    """

    def __init__(self, columns: Sequence[Column], fields: Sequence[Column], connection: Connection) -> None:
        """Choose how.

        Args:
            columns: all of the table, in the order of a row.
            fields: those that are selected as `fields.py` says, in this order.
            connection: through psycopg, whose loaders are used.
        """
        from psycopg.adapt import Transformer

        driver: Any = connection.connection.driver_connection
        self._transformer = Transformer(driver)
        places = {column.name: place for place, column in enumerate(fields)}
        self.extra: list[tuple[Column, str]] = []
        self._columns = []
        for column in columns:
            made = text_column(column, column.name in places, self._loader(column))
            extra = len(fields) + len(self.extra) if made.expression else -1
            if made.expression:
                self.extra.append((column, made.expression))
            self._columns.append((made, places.get(column.name, -1), extra))

    def texts(self, batch: pa.RecordBatch) -> RowTexts:
        """The texts of a batch with the fields and `extra`."""
        if batch.nbytes > _MOST_BYTES:
            columns = [made.values(_taken(batch, place), _taken(batch, extra)) for made, place, extra in self._columns]
            rows = [row_text(row) for row in zip(*columns, strict=True)]
            return RowTexts(b"".join(rows), np.cumsum([0, *(len(row) for row in rows)]))
        parts: list[Any] = ["("]
        for number, (made, place, extra) in enumerate(self._columns):
            parts += [", "] if number else []
            parts += made.parts(_taken(batch, place), _taken(batch, extra))
        parts.append(",)" if len(self._columns) == 1 else ")")
        found = literals.joined(with_texts_merged(parts))
        _, ends, data = found.buffers()
        return RowTexts(data or b"", np.frombuffer(ends, np.int32)[: len(found) + 1].astype(np.int64))

    def digests(self, batch: pa.RecordBatch, places: Any) -> list[bytes]:
        """The hashes of some rows of a batch, as the look-back has them."""
        found: list[bytes] = []
        for start in range(0, len(places), _ROWS_AT_ONCE):
            texts = self.texts(batch.take(pa.array(places[start : start + _ROWS_AT_ONCE])))
            found += [blake2b(texts.between(n, n + 1), digest_size=DIGEST_BYTES).digest() for n in range(len(texts))]
        return found

    def _loader(self, column: Column) -> Callable[[str], Any]:
        from psycopg.pq import Format

        load = self._transformer.get_loader(column.oid, Format.TEXT).load
        return lambda text: load(text.encode())


def _taken(batch: pa.RecordBatch, place: int) -> Any:
    return None if place < 0 else batch.column(place)
