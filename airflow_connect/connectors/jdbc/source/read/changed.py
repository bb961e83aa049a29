"""Mode bulk with `bulk.changed.only`: only those ranges of the primary key are sent in which something has changed.

A table is read in the order of its key, and cut into ranges of some `RANGE_ROWS` rows. Of each range the last key, the
number of rows and a hash of all its rows are kept, in an offset of a source partition beside that of the table. It is
written when a table is complete, with the last rows. So a run that dies sends the same changes again, and no change is
ever missed: a range is left out only if its rows are those of which the hash was made, and if no run has sent others
since (`sent_ranges.py`).
"""

from __future__ import annotations

import base64
import math
import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.form import Form
from airflow_connect.connectors.jdbc.source.read.moves import Row
from airflow_connect.connectors.jdbc.source.read.reading import Reading, RowBatch, TableReader
from airflow_connect.connectors.jdbc.source.read.sent_ranges import RANGES, SentRanges
from airflow_connect.connectors.jdbc.source.values.columns import INTEGERS, Column, Kind
from airflow_connect.connectors.jdbc.source.values.mapping import TableMapping
from airflow_connect.connectors.jdbc.source.values.row_text import DIGEST_BYTES, row_text
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import DataError, OffsetError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.jdbc.source.arrow.reader import ColumnBatch

HASHES = "hashes"
RANGE_ROWS = 10_000
"""Rows of a new range. A range that grows to twice as many is cut, so that memory is bounded."""
MOST_RANGES = 15_000
"""Ranges of a table that are kept: their offset is below the 1 MB of a record. Rows after them are always sent."""
_MOST_DIGITS = 18
_LIMIT = 1 << 63
_SHOWN = 5
_ENTRY = struct.Struct(">qI16s")


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of keys: those after the range before it, up to `last`.

    Attributes:
        last: the largest key.
        rows: how many there are.
        digest: BLAKE2b of them, 16 bytes.
    """

    last: int
    rows: int
    digest: bytes


def ranges_partition(partition: SourcePartition) -> SourcePartition:
    """The source partition with the ranges of the table whose partition this is."""
    return {**partition, RANGES: HASHES}


def ranges_of(offset: SourceOffset | None, where: str) -> list[KeyRange]:
    """The ranges in a committed offset.

    Raises:
        OffsetError: it is damaged.
    """
    text = (offset or {}).get(HASHES, "")
    try:
        return [KeyRange(*entry) for entry in _ENTRY.iter_unpack(base64.b64decode(text, validate=True))]
    except (TypeError, ValueError, struct.error):
        raise OffsetError(
            f"The offset of {where} has ranges for bulk.changed.only that are damaged.",
            code="offset.refused",
            suggestion="Delete the offset, so that the next run sends the whole table.",
        ) from None


def ranges_offset(ranges: Sequence[KeyRange], form: Form) -> SourceOffset:
    """The offset with these ranges; those beyond `MOST_RANGES` are left out."""
    packed = b"".join(_ENTRY.pack(one.last, one.rows, one.digest) for one in ranges[:MOST_RANGES])
    return {HASHES: base64.b64encode(packed).decode("ascii"), **form.offset()}


def range_key(columns: Sequence[Column]) -> Column | None:
    """The primary key, if it is one column with whole numbers of at most 64 bits."""
    keys = [column for column in columns if column.key_position]
    if len(keys) != 1:
        return None
    (key,) = keys
    is_whole = key.kind in (Kind.DECIMAL, Kind.NUMERIC) and not key.scale and 0 < key.precision <= _MOST_DIGITS
    return key if key.kind in INTEGERS or is_whole else None


class Piece(Protocol):
    """Consecutive rows of a table."""

    @property
    def keys(self) -> Sequence[Any]:
        """Their values of the primary key, ascending, as the driver or Arrow has them."""

    def texts(self, start: int, end: int) -> bytes | memoryview:
        """The texts (`values/row_text.py`) of the rows [start, end), one after the other."""

    def between(self, start: int, end: int) -> Any:
        """The rows [start, end)."""


class OrderedRows(Protocol):
    """The rows of a table in the order of its primary key.

    Attributes:
        in_columns: whether they arrive as columns.
    """

    in_columns: bool

    @property
    def schema(self) -> Schema:
        """What they are sent with; after the first of them."""

    def close(self) -> None:
        """End the statement."""

    def next(self, count: int) -> Piece | None:
        """The next rows, at most `count`; None at the end."""

    def size(self, rows: Any) -> int:
        """How many rows `Piece.between` has returned."""

    def batch(self, rows: Any, start: int, end: int) -> RowBatch | ColumnBatch:
        """The rows [start, end) of what `Piece.between` has returned, as they are sent."""


class DriverRows:
    """`OrderedRows` as the driver returns them."""

    in_columns = False

    def __init__(self, reading: Reading, table: TableId, key: Column) -> None:
        """Does not read yet."""
        self._reader = TableReader(reading, table, Position(), order=reading.database.quoting.text(key.name))
        self._key = key
        self._mapping: TableMapping | None = None

    @property
    def schema(self) -> Schema:
        """See `OrderedRows`."""
        assert self._mapping is not None
        return self._mapping.schema

    def close(self) -> None:
        """See `OrderedRows`."""
        self._reader.close()

    def next(self, count: int) -> Piece | None:
        """See `OrderedRows`."""
        batch = self._reader.next(count)
        if batch is None:
            return None
        self._mapping = batch.mapping
        place = next(f.index for f in batch.mapping.fields if f.column.name == self._key.name)
        return _DriverPiece(batch.rows, [row[place] for row in batch.rows])

    def size(self, rows: Any) -> int:
        """See `OrderedRows`."""
        return len(rows)

    def batch(self, rows: Any, start: int, end: int) -> RowBatch:
        """See `OrderedRows`."""
        assert self._mapping is not None
        return RowBatch(rows[start:end], self._mapping, Position(), Position())


@dataclass(frozen=True, slots=True)
class _DriverPiece:
    rows: Sequence[Row]
    keys: Sequence[Any]

    def texts(self, start: int, end: int) -> bytes:
        return b"".join(row_text(row) for row in self.rows[start:end])

    def between(self, start: int, end: int) -> Any:
        return self.rows[start:end]


@dataclass(slots=True)
class _Open:
    """The range that is being read.

    Attributes:
        before: the kept range that it continues, or None.
        place: of the kept range whose rows it has; None: it has rows after all of them.
        upper: its largest possible key; None: there is no limit.
        digest: of the schema and its rows.
        rows: so far, in pieces.
        count: how many.
        last: the largest key so far.
    """

    before: KeyRange | None
    place: int | None
    upper: int | None
    digest: Any = None
    rows: list[Any] = field(default_factory=list)
    count: int = 0
    last: int = 0

    @property
    def limit(self) -> int:
        """How many rows it may have."""
        return RANGE_ROWS if self.upper is None else 2 * RANGE_ROWS

    def add(self, piece: Piece, start: int, end: int, last: int, schema: Schema) -> None:
        """Add the rows [start, end) of a piece, at least one; `last`: the key of the last one."""
        if self.digest is None:
            self.digest = blake2b(repr(schema).encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES)
        self.digest.update(piece.texts(start, end))
        self.rows.append(piece.between(start, end))
        self.count += end - start
        self.last = last


class ChangedReader:
    """Streams those rows of a table that are in a range with a change."""

    forgotten = 0
    """There is no look-back here."""

    def __init__(
        self,
        reading: Reading,
        table: TableId,
        key: Column,
        known: Sequence[KeyRange],
        rows: OrderedRows,
        marks: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Does not read yet.

        Args:
            reading: connected.
            table: what is read.
            key: as `range_key` found it.
            known: ranges of the last complete run.
            rows: of the table.
            marks: ranges that were sent since, by runs that were not complete.
        """
        self._reading, self._key, self._table = reading, key, table
        self._rows = rows
        self._known = list(known)
        self.sent = SentRanges([one.last for one in known], marks)
        self._next_known = 0
        self._open = self._taken_known()
        self._ready: deque[Any] = deque()
        self._returned = 0  # rows of the first of them
        self._ended = False
        self._deleted: list[tuple[int, KeyRange]] = []
        self.ranges: list[KeyRange] = []
        """Ranges of this run, complete at the end."""

    @property
    def in_columns(self) -> bool:
        """Whether rows arrive as columns."""
        return self._rows.in_columns

    def close(self) -> None:
        """End the statement."""
        self._rows.close()

    def next(self, count: int) -> RowBatch | ColumnBatch | None:
        """The next rows of a changed range; None at the end. Rows without a change are read, but not returned.

        An empty batch comes before rows of a range that is marked now: the mark must be committed first.
        """
        while not self._ready and not self._ended:
            piece = self._rows.next(count)
            if piece is not None:
                self._sort(piece)
                continue
            self._ended = True
            self._close_range()
            while self._open.before is not None:
                self._close_range()
        if not self._ready:
            return None
        if self.sent.is_changed:
            return self._rows.batch(self._ready[0], 0, 0)
        rows, start = self._ready[0], self._returned
        end = min(start + count, self._rows.size(rows))
        self._returned = end
        if end == self._rows.size(rows):
            self._ready.popleft()
            self._returned = 0
        return self._rows.batch(rows, start, end)

    def note_results(self) -> None:
        """Tell the report what is not sent."""
        name, key = self._table.full_name, self._key.name
        if self._deleted:
            count = sum(missing for missing, _ in self._deleted)
            places = ", ".join(f"up to {one.last}" for _, one in self._deleted[:_SHOWN])
            more = " and others" if len(self._deleted) > _SHOWN else ""
            rows = "1 row" if count == 1 else f"{count} rows"
            self._reading.note(
                f"At least {rows} of the table {name} were deleted since the last run, in its ranges of {key}"
                f" {places}{more}. Deletions are not sent."
            )
        if len(self.ranges) > MOST_RANGES:
            self._reading.note(
                f"The table {name} has more than {MOST_RANGES} ranges, for which there is no place in an offset: rows"
                f" with {key} above {self.ranges[MOST_RANGES - 1].last} are sent by each run."
            )

    def _sort(self, piece: Piece) -> None:
        """Divide rows among ranges."""
        keys = [self._whole(key) for key in piece.keys]
        start = 0
        while start < len(keys):
            found = self._open
            if found.upper is not None and keys[start] > found.upper:
                self._close_range()
            elif found.count == found.limit:
                # What follows is another range with the same upper bound.
                self._open = _Open(None, found.place, found.upper)
                self._add(found, None)
            else:
                end = len(keys) if found.upper is None else bisect_right(keys, found.upper, start)
                end = min(end, start + found.limit - found.count)
                found.add(piece, start, end, keys[end - 1], self._rows.schema)
                start = end

    def _whole(self, value: Any) -> int:
        if type(value) is int and -_LIMIT <= value < _LIMIT:
            return value
        is_whole = isinstance(value, int | float | Decimal) and math.isfinite(value) and int(value) == value
        if not is_whole or not -_LIMIT <= value < _LIMIT:
            raise DataError(
                f"The primary key {self._key.name} of the table {self._table.full_name} has a value that is not a whole"
                " number of 64 bits, which bulk.changed.only needs.",
                code="database.value",
                suggestion="Correct the row, or remove bulk.changed.only.",
            )
        return int(value)

    def _close_range(self) -> None:
        """All rows of the range were read."""
        done, self._open = self._open, self._taken_known()
        if done.before is not None and done.count < done.before.rows:
            self._deleted.append((done.before.rows - done.count, done.before))
        self._add(done, done.before)

    def _add(self, done: _Open, before: KeyRange | None) -> None:
        """Keep a range, and send its rows unless they are those of the range `before`."""
        if not done.count:
            return
        # The upper bound stays although its row is deleted: the next range keeps its rows.
        last = done.last if before is None else max(done.last, before.last)
        found = KeyRange(last, done.count, done.digest.digest())
        self.ranges.append(found)
        if found == before and not (done.place is not None and self.sent.was_sent(done.place)):
            return
        if done.place is not None:
            self.sent.mark(done.place)
        self._ready += done.rows

    def _taken_known(self) -> _Open:
        """The next kept range. The last one, while it is small, takes the rows after it, too."""
        if self._next_known == len(self._known):
            return _Open(None, None, None)
        place = self._next_known
        known = self._known[place]
        self._next_known += 1
        is_open = self._next_known == len(self._known) and known.rows < RANGE_ROWS
        return _Open(known, place, None if is_open else known.last)
