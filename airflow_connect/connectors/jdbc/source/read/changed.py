"""Mode bulk with `bulk.changed.only`: only those ranges of the primary key are sent in which something has changed.

A table is read in the order of its key, and cut into ranges of some `RANGE_ROWS` rows. Of each range the last key, the
number of rows and a hash of all its rows are kept, in an offset of a source partition beside that of the table. It is
written when a table is complete, with the last rows. So a run that dies sends the same changes again, and no change is
ever missed: a range is left out only if its rows are those of which the hash was made.
"""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.identities import hashed
from airflow_connect.connectors.jdbc.source.read.moves import Row
from airflow_connect.connectors.jdbc.source.read.reading import Reading, RowBatch, TableReader
from airflow_connect.connectors.jdbc.source.values.columns import INTEGERS, Column, Kind
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import DataError, OffsetError

RANGES, HASHES, FORM = "ranges", "hashes", "form"
RANGE_ROWS = 10_000
"""Rows of a new range. A range that grows to twice as many is cut, so that memory is bounded."""
MOST_RANGES = 15_000
"""Ranges of a table that are kept: their offset is below the 1 MB of a record. Rows after them are always sent."""
_MOST_DIGITS = 18
_FORMING = ("topic.prefix", "db.timezone", "values.out.of.range", "transforms", "key.converter", "value.converter")
_FORMING_GROUPS = ("transforms.", "predicates.")
"""What decides where a row is sent, and as what, besides the columns of the table: those are part of the hashes."""
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


def ranges_offset(ranges: Sequence[KeyRange], form: str) -> SourceOffset:
    """The offset with these ranges; those beyond `MOST_RANGES` are left out. `form`: of `form_of`."""
    packed = b"".join(_ENTRY.pack(one.last, one.rows, one.digest) for one in ranges[:MOST_RANGES])
    return {HASHES: base64.b64encode(packed).decode("ascii"), FORM: form}


def form_of(config: Mapping[str, str]) -> str:
    """A short hash of what decides where rows are sent, and as what: after a change, none of them was sent so."""
    found = sorted((key, value) for key, value in config.items() if key in _FORMING or key.startswith(_FORMING_GROUPS))
    return hashed(repr(found))


def range_key(columns: Sequence[Column]) -> Column | None:
    """The primary key, if it is one column with whole numbers of at most 64 bits."""
    keys = [column for column in columns if column.key_position]
    if len(keys) != 1:
        return None
    (key,) = keys
    is_whole = key.kind in (Kind.DECIMAL, Kind.NUMERIC) and not key.scale and 0 < key.precision <= _MOST_DIGITS
    return key if key.kind in INTEGERS or is_whole else None


@dataclass(slots=True)
class _Open:
    """The range that is being read.

    Attributes:
        before: the kept range that it continues, or None.
        upper: its largest possible key; None: there is no limit.
        rows: so far.
    """

    before: KeyRange | None
    upper: int | None
    rows: list[Row] = field(default_factory=list)

    @property
    def limit(self) -> int:
        """How many rows it may have."""
        return RANGE_ROWS if self.upper is None else 2 * RANGE_ROWS


class ChangedReader:
    """Streams those rows of a table that are in a range with a change."""

    forgotten = 0
    """There is no look-back here."""

    def __init__(self, reading: Reading, table: TableId, key: Column, known: Sequence[KeyRange]) -> None:
        """Does not read yet.

        Args:
            reading: connected.
            table: what is read.
            key: as `range_key` found it.
            known: ranges of the last complete run.
        """
        self._reading, self._key, self._table = reading, key, table
        self._reader = TableReader(reading, table, Position(), order=reading.database.quoting.text(key.name))
        self._known = list(known)
        self._next_known = 0
        self._open = self._taken_known()
        self._place = -1
        self._ready: deque[RowBatch] = deque()
        self._ended = False
        self._deleted: list[tuple[int, KeyRange]] = []
        self.ranges: list[KeyRange] = []
        """Ranges of this run, complete at the end."""

    def close(self) -> None:
        """End the statement."""
        self._reader.close()

    def next(self, count: int) -> RowBatch | None:
        """The next rows of a changed range; None at the end. Rows without a change are read, but not returned."""
        while not self._ready and not self._ended:
            batch = self._reader.next(count)
            if batch is not None:
                self._sort(batch)
                continue
            self._ended = True
            self._close_range()
            while self._open.before is not None:
                self._close_range()
        if not self._ready:
            return None
        batch = self._ready.popleft()
        if len(batch) > count:
            self._ready.appendleft(replace(batch, rows=batch.rows[count:]))
        return replace(batch, rows=batch.rows[:count])

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

    def _sort(self, batch: RowBatch) -> None:
        """Divide rows among ranges."""
        if self._place < 0:
            self._place = next(f.index for f in batch.mapping.fields if f.column.name == self._key.name)
            self._mapping = batch.mapping
        keys = [self._key_of(row) for row in batch.rows]
        start = 0
        while start < len(keys):
            found = self._open
            if found.upper is not None and keys[start] > found.upper:
                self._close_range()
            elif len(found.rows) == found.limit:
                # What follows is another range with the same upper bound.
                self._open = _Open(None, found.upper)
                self._add(found.rows, None)
            else:
                end = len(keys) if found.upper is None else bisect_right(keys, found.upper, start)
                end = min(end, start + found.limit - len(found.rows))
                found.rows += batch.rows[start:end]
                start = end

    def _key_of(self, row: Row) -> int:
        value = row[self._place]
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
        if done.before is not None and len(done.rows) < done.before.rows:
            self._deleted.append((done.before.rows - len(done.rows), done.before))
        self._add(done.rows, done.before)

    def _add(self, rows: list[Row], before: KeyRange | None) -> None:
        """Keep a range, and send its rows unless they are those of the range `before`."""
        if not rows:
            return
        digest = hashlib.blake2b(repr(self._mapping.schema).encode("utf-8", "surrogatepass"), digest_size=16)
        for row in rows:
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        last = self._key_of(rows[-1])
        # The upper bound stays although its row is deleted: the next range keeps its rows.
        found = KeyRange(last if before is None else max(last, before.last), len(rows), digest.digest())
        self.ranges.append(found)
        if found != before:
            self._ready.append(RowBatch(rows, self._mapping, Position(), Position()))

    def _taken_known(self) -> _Open:
        """The next kept range. The last one, while it is small, takes the rows after it, too."""
        if self._next_known == len(self._known):
            return _Open(None, None)
        known = self._known[self._next_known]
        self._next_known += 1
        is_open = self._next_known == len(self._known) and known.rows < RANGE_ROWS
        return _Open(known, None if is_open else known.last)
