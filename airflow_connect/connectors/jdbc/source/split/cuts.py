"""Positions that divide a table into ranges of about the same number of rows.

They are positions of rows, so gaps and skew of the key do not matter. PostgreSQL returns a random sample of blocks,
which the sample's own order divides. MySQL, MariaDB and SQLite have no samples: there an index is walked in steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.changed import range_key
from airflow_connect.connectors.jdbc.source.read.criteria import Criteria, Source, Statement, Tracked
from airflow_connect.connectors.jdbc.source.read.moves import Moves
from airflow_connect.connectors.jdbc.source.read.reading import Reading
from airflow_connect.connectors.jdbc.source.values.columns import Column

_SAMPLE_ROWS, _SAMPLE_BLOCKS, _BLOCK_ROWS = 20_000, 400, 60
"""Size of a sample: rows of one block are often neighbours, so it has many blocks."""
_MYSQL_INDEX = """
SELECT 1 FROM information_schema.statistics
WHERE table_schema = %(catalog)s AND table_name = %(table)s AND seq_in_index = 1 AND column_name = %(column)s LIMIT 1
"""
_SQLITE_INDEX = """
SELECT 1 FROM pragma_index_list(?) list, pragma_index_info(list.name) info
WHERE info.seqno = 0 AND info.name = ? AND NOT list.partial LIMIT 1
"""


def dividing_key(columns: list[Column]) -> Column | None:
    """The column that divides a table in mode bulk: the first of its primary key, if it has whole numbers.

    Null is in none of the ranges, so a key that may be null (SQLite allows it) does not divide.
    """
    first = [column for column in columns if column.key_position == 1]
    # A longer key is divided by its first column, as if that were all of it.
    key = range_key(first)
    return None if key is None or key.optional else key


class Cuts:
    """Finds the positions for one table."""

    def __init__(self, reading: Reading, source: Source, tracked: Tracked) -> None:
        """`tracked`: the columns by which ranges are divided, in mode bulk the key as incrementing column."""
        self._reading, self._tracked = reading, tracked
        self._columns = [*tracked.timestamps, *([tracked.incrementing] if tracked.incrementing is not None else [])]
        self._is_bulk = reading.config.mode == "bulk"
        quoting = reading.database.quoting
        names = ", ".join(quoting.text(column.name) for column in self._columns)
        self._source, self._names = source, names
        # A COALESCE reads all of its columns; here all are in the result.
        self._moves = Moves(self._columns, tracked, reading.name, reading.times)
        self._criteria = Criteria(source, tracked, reading.name, quoting, reading.times)

    @property
    def columns(self) -> str:
        """The columns that divide the table, for messages."""
        return ", ".join(column.name for column in self._columns)

    def reason_against(self) -> str:
        """Why the table cannot be divided, as part of a sentence; "" if it can."""
        name, table = self._reading.name, self._source.table
        assert table is not None
        if name == "postgresql":
            return ""
        first = self._columns[0]
        if name == "sqlite" and self._tracked.timestamps:
            return "timestamps of SQLite have no common form that an index could find"
        if len(self._tracked.timestamps) > 1:
            return "no index finds rows by several timestamp columns"
        if first.key_position == 1 and first.numbers_itself and name == "sqlite":
            return ""  # the row id
        if name == "mysql":  # which tells the columns of a key in the order of the table
            parameters: Any = {"catalog": table.catalog, "table": table.table, "column": first.name}
            found = self._reading.connection.exec_driver_sql(_MYSQL_INDEX, parameters).scalar()
        else:
            found = self._reading.connection.exec_driver_sql(_SQLITE_INDEX, (table.table, first.name)).scalar()
        return "" if found else f"it has no index that begins with {first.name}"

    def find(self, after: Position | None, upto: Position | None, pieces: int, rows: int) -> list[Position]:
        """At most `pieces - 1` positions in ascending order, each that of a row.

        Args:
            after: after which rows are of interest; None: from the beginning of the table.
            upto: the last position of interest; None: there is no limit.
            pieces: number of ranges that are wanted; there are fewer if they would be small.
            rows: about how many rows the table has.
        """
        find = self._sampled if self._reading.name == "postgresql" else self._walked
        found = find(after, upto, pieces, rows)
        # A time that clocks skip cannot divide a table: a range is bounded by instants, and a later time has the same.
        return [cut for cut in dict.fromkeys(found) if cut != upto and cut.local_us is None]

    @property
    def _least(self) -> int:
        """Rows that are worth a range."""
        return max(1, self._reading.config.split_rows // 2)

    def _sampled(self, after: Position | None, upto: Position | None, pieces: int, rows: int) -> list[Position]:
        blocks = max(1, rows // _BLOCK_ROWS)
        percent = min(100, max(100 * _SAMPLE_ROWS / max(1, rows), 100 * _SAMPLE_BLOCKS / blocks))
        sample = "" if percent == 100 else f" TABLESAMPLE SYSTEM ({percent:.6f})"
        chosen = self._positions(self._statement(self._source.selecting(self._names, sample), after, upto))
        if not chosen:
            return []
        pieces = max(1, min(pieces, int(len(chosen) * 100 / percent) // self._least))
        cuts = (chosen[max(0, len(chosen) * number // pieces - 1)] for number in range(1, pieces))
        return [cut for cut in cuts if cut != chosen[-1]]

    def _walked(self, after: Position | None, upto: Position | None, pieces: int, rows: int) -> list[Position]:
        step = max(self._least, rows // pieces)
        source = self._source.selecting(self._names)
        found: list[Position] = []
        while len(found) < pieces - 1:
            statement = self._statement(source, after, upto)
            # Whole numbers of our own, so they may be part of the text.
            limited = replace(statement, sql=f"{statement.sql} LIMIT 1 OFFSET {step - 1}")
            reached = self._positions(limited)
            if not reached:
                break
            found += reached
            after = reached[0]
        return found

    def _statement(self, source: Source, after: Position | None, upto: Position | None) -> Statement:
        if not self._is_bulk:
            return self._criteria.of(source).select(after or Position(), self._reading.end_us, upto)
        key = self._columns[0].name
        first, last = (None if position is None else position.incrementing for position in (after, upto))
        statement = source.between(key, first, last)
        return replace(statement, sql=f"{statement.sql} ORDER BY {self._reading.database.quoting.text(key)}")

    def _positions(self, statement: Statement) -> list[Position]:
        rows: list[Any] = list(self._reading.execute(statement).fetchall())
        if self._tracked.incrementing is not None:
            return self._moves.positions(rows)
        return [self._moves.moment(row).position() for row in rows]
