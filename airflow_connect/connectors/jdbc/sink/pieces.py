"""Finds the rows that the database refuses, and writes all others in one transaction.

All rows are written under one savepoint. If a row is refused, what comes before its statement is written again, the
rows of the statement are halved until the row is found, and the rest goes on. Of each savepoint under which rows were
written, PostgreSQL keeps a lock until the transaction ends, in a table of the whole server (`max_locks_per_transaction`
is for how many). So when there are many, everything is written again without the rows that are known to be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.sink.chunk_work import Failed, Work
from airflow_connect.connectors.jdbc.sink.mismatch import (
    has_schema,
    is_mismatch,
    lacks_unique_key,
    mismatch,
    missing_unique_key,
)
from airflow_connect.connectors.jdbc.sink.outcome import ANOTHER_ROW, Outcome, RowRefusedError
from airflow_connect.databases.connecting import is_of_a_driver
from airflow_connect.databases.failures import Failure, kind_of
from airflow_connect.databases.reasons import reason_of
from airflow_connect.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.batches import Chunk, Row
    from airflow_connect.connectors.jdbc.sink.statements.standard_sql import Names
    from airflow_connect.connectors.jdbc.sink.tables import FieldColumns

    Columned = tuple[Chunk, FieldColumns]
    Refused = tuple[Chunk, FieldColumns, Failed]
    Execute = Callable[[Connection, Work, list[tuple[Row, SinkRecord]]], Outcome]

MOST_SAVEPOINTS = 500
"""Of a transaction of PostgreSQL, whose server has room for some 6,400 locks by default, for all sessions together."""
_ALL, _GROUP = "airflow_connect_all", "airflow_connect_rows"
_REPEATED_KEY = "21000"
"""PostgreSQL: one statement would change a row twice, since the column takes different values for the same key."""
_INCOMPARABLE = ((1267,), (3854,))
"""MariaDB, MySQL: a text that the character set of the column does not have."""
_SYNTAX = "42601"
"""PostgreSQL: of a statement, or of a text for a type that has a syntax of its own, such as `tsquery` and `ltree`."""
_MISREAD = "PostgreSQL cannot read one of its texts as the type of the column, which has a syntax of its own (42601)"
_MORE_THAN_ONE_ROW = 1242
"""MySQL, MariaDB: what the guard of `MySqlStatements.on_duplicate` raises."""
_OF_A_ROW = frozenset({Failure.CONSTRAINT, Failure.VALUE})
"""Anything else is a reason of the server, however few rows are tried: those that are not written fail the run."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one statement.

    Attributes:
        chunk, columns: of which they are a part.
        work: how they are written.
        rows: with their records.
        updates: whether rows are updated.
    """

    chunk: Chunk
    columns: FieldColumns
    work: Work
    rows: list[tuple[Row, SinkRecord]]
    updates: bool

    def without(self, known: set[int]) -> Piece:
        """Without records that are known; `known`: their `id`."""
        return replace(self, rows=[row for row in self.rows if id(row[1]) not in known])

    def halves(self) -> tuple[Piece, Piece]:
        """Two pieces of at least one row."""
        middle = len(self.rows) // 2
        return replace(self, rows=self.rows[:middle]), replace(self, rows=self.rows[middle:])


def apply_pieces(
    connection: Connection, pieces: Sequence[Piece], execute: Execute
) -> tuple[list[tuple[Piece, Outcome]], list[Refused]]:
    """Write pieces in their order.

    Args:
        connection: in a transaction.
        pieces: to be written.
        execute: writes rows, all or nothing.

    Returns:
        What was written, and the rows that the database refused.

    Raises:
        Exception: of the driver, if the transaction is lost, or cannot go on.
    """
    refused: list[Refused] = []
    if not pieces:
        return [], refused
    dialect, left = connection.dialect, list(pieces)
    if dialect.name != "postgresql":
        return _apply(connection, [left], execute, refused, None)[0], refused
    while True:
        dialect.do_savepoint(connection, _ALL)
        done, is_whole = _apply(connection, [left], execute, refused, MOST_SAVEPOINTS)
        if is_whole:
            dialect.do_release_savepoint(connection, _ALL)
            return done, refused
        # There are so many because rows were refused: the next round finds others.
        dialect.do_rollback_to_savepoint(connection, _ALL)
        dialect.do_release_savepoint(connection, _ALL)
        known = {id(failed.record) for _, _, failed in refused}
        left = [rest for rest in (piece.without(known) for piece in pieces) if rest.rows]


def _apply(
    connection: Connection, left: list[list[Piece]], execute: Execute, refused: list[Refused], most: int | None
) -> tuple[list[tuple[Piece, Outcome]], bool]:
    """One round; returns what was written, and whether that is all. `left`: groups of pieces, the last one first."""
    dialect, done, savepoints = connection.dialect, list[tuple[Piece, Outcome]](), 0
    found = len(refused)
    while left:
        group = left.pop()
        if most is not None and savepoints >= most and len(refused) > found:
            return done, False
        dialect.do_savepoint(connection, _GROUP)
        outcomes: list[Outcome] = []
        try:
            for piece in group:
                outcomes.append(execute(connection, piece.work, piece.rows))  # noqa: PERF401 - counts what succeeded.
            dialect.do_release_savepoint(connection, _GROUP)
        except Exception as error:
            place = min(len(outcomes), len(group) - 1)
            _check_types(error, group[place])
            if connection.invalidated or not _concerns_rows(error, group[place]):
                raise  # Not rolled back here: after a deadlock, there is no savepoint any more.
            _check_transaction(connection, group[place], error)
            dialect.do_rollback_to_savepoint(connection, _GROUP)
            # PostgreSQL keeps a savepoint after going back to it: all others would be inside it.
            dialect.do_release_savepoint(connection, _GROUP)
            next_groups = [group[:place], *_parts(group[place], error, refused), group[place + 1 :]]
            left += [each for each in reversed(next_groups) if each]
            continue
        savepoints += 1
        done += zip(group, outcomes, strict=True)
    return done, True


def _concerns_rows(error: Exception, piece: Piece) -> bool:
    return is_of_rows(error, piece.work.names) or _is_of_a_value(error, piece)


def _check_types(error: Exception, piece: Piece) -> None:
    """Refuse to go on with records whose schema does not fit the table: each of them would be refused.

    Raises:
        DatabaseError: with the fields, their columns and the types of both; or the table has no unique index for them.
    """
    if lacks_unique_key(error):
        raise missing_unique_key(error, piece.work) from None
    record = piece.rows[0][1]
    if is_mismatch(error, compares=_finds_rows(piece)) and has_schema(record):
        raise mismatch(error, piece.work, record) from None


def _is_of_a_value(error: Exception, piece: Piece) -> bool:
    """Whether the type or the characters of one of the values are the reason."""
    compares = _finds_rows(piece)
    return is_mismatch(error, compares=compares) or (compares and _is_incomparable(error))


def _finds_rows(piece: Piece) -> bool:
    return piece.work.deletes or piece.updates


def _parts(piece: Piece, error: Exception, refused: list[Refused]) -> list[list[Piece]]:
    """How the rows of a piece are tried again; a single one is added to `refused` instead."""
    work = piece.work
    if work.may_copy and _repeats_a_key(error):
        return [[replace(piece, work=replace(work, may_copy=False))]]
    if len(piece.rows) > 1:
        return [[half] for half in piece.halves()]
    if _is_guard(error, work.names):
        error = RowRefusedError(ANOTHER_ROW)
    elif _is_misread(error):
        error = RowRefusedError(_MISREAD, Failure.VALUE)
    elif not _finds_rows(piece) and _is_of_a_value(error, piece):
        error = RowRefusedError(reason_of(error), Failure.VALUE)
    elif _is_of_a_value(error, piece):
        reason = f"its key cannot be compared with {', '.join(work.names.keys)} of {work.table}"
        error = RowRefusedError(f"{reason}: {reason_of(error)}", Failure.VALUE)
    refused.append((piece.chunk, piece.columns, Failed(piece.rows[0][1], error)))
    return []


def is_refused(error: Exception) -> bool:
    """Whether the reason is a row."""
    if is_of_a_driver(error):
        return kind_of(error) in _OF_A_ROW or _is_misread(error)
    # sqlite3 refuses numbers of more than 64 bits, psycopg texts with NUL, by exceptions of Python.
    return isinstance(error, (OverflowError, ValueError, TypeError, RowRefusedError))


def is_of_rows(error: Exception, names: Names) -> bool:
    """Whether some of many rows are the reason, written in any way: one is refused, or two have one key."""
    return is_refused(error) or _repeats_a_key(error) or _is_guard(error, names)


def _check_transaction(connection: Connection, piece: Piece, error: Exception) -> None:
    """Refuse to go on if SQLite has ended the transaction: rows would be written without their offsets.

    Raises:
        DatabaseError: a constraint or a trigger is declared with ROLLBACK.
    """
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name != "sqlite" or driver.in_transaction:
        return
    first, last = piece.rows[0][1].where, piece.rows[-1][1].where
    raise DatabaseError(
        f"A constraint or a trigger of {piece.work.table} has ended the transaction, because it is declared with"
        f" ROLLBACK and refuses {first if first == last else f'a record from {first} to {last}'}: {reason_of(error)}.",
        code="database.constraint",
        suggestion="Nothing of the transaction was written. Declare it with ABORT, SQLite's default, so that only the"
        " record is refused; or correct the record.",
    ) from None


def _repeats_a_key(error: Exception) -> bool:
    """Whether PostgreSQL takes two keys of a statement for the same one: single statements may write them."""
    return getattr(getattr(error, "orig", None) or error, "sqlstate", None) == _REPEATED_KEY


def _is_misread(error: Exception) -> bool:
    """Whether PostgreSQL calls a text a syntax error: of an error in a statement, it tells the position."""
    original: Any = getattr(error, "orig", None) or error
    diagnosis = getattr(original, "diag", None)
    places = (getattr(diagnosis, name, None) for name in ("statement_position", "internal_position"))
    return getattr(original, "sqlstate", None) == _SYNTAX and diagnosis is not None and not any(places)


def _is_incomparable(error: Exception) -> bool:
    """Whether the database cannot compare a column with a value."""
    original: Any = getattr(error, "orig", None) or error
    return is_of_a_driver(error) and original.args[:1] in _INCOMPARABLE


def _is_guard(error: Exception, names: Names) -> bool:
    """Whether an upsert would have changed a row with another key."""
    arguments: tuple[object, ...] = (getattr(error, "orig", None) or error).args
    return names.guarded and arguments[:1] == (_MORE_THAN_ONE_ROW,)
