"""Executes the rows of chunks: the fastest way the database has, and row by row where one of them is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.chunk_work import Failed, Work
from airflow_connect.connectors.jdbc.sink.columns.chunk import ColumnChunk, RowsNeededError
from airflow_connect.connectors.jdbc.sink.columns.loading import loader_of, most_bytes_of
from airflow_connect.connectors.jdbc.sink.mismatch import is_mismatch, lacks_unique_key
from airflow_connect.connectors.jdbc.sink.outcome import SKIPPED, Outcome, RowRefusedError
from airflow_connect.connectors.jdbc.sink.pieces import Piece, apply_pieces, is_of_rows
from airflow_connect.connectors.jdbc.sink.statements.dialects import MySqlStatements, PostgreSqlStatements
from airflow_connect.connectors.jdbc.sink.statements.standard_sql import Statements
from airflow_connect.converters import placeholders
from airflow_connect.databases.failures import Failure

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.batches import Chunk, Row
    from airflow_connect.connectors.jdbc.sink.pieces import Columned, Refused
    from airflow_connect.connectors.jdbc.sink.tables import FieldColumns
    from airflow_connect.databases.connecting import Database

FEWEST_FOR_COPY = 100
"""Rows. Below, and to find out which row is refused, INSERT decides what a column accepts."""
_STAGE = "airflow_connect_stage"
_LARGE = 128 << 10
"""Characters or bytes in a row whose statement is measured: no server is set to take less than 1 MiB at once."""


class ChunkExecutor:
    """Writes chunks inside a transaction that a caller has begun."""

    def __init__(self, database: Database, statements: Statements, insert_mode: str, batch_rows: int) -> None:
        """`insert_mode`, `batch_rows`: see `JdbcSinkConfig`."""
        self.loader = None if insert_mode == keys.UPDATE else loader_of(database.engine, statements, batch_rows)
        self._database = database
        self._statements = statements
        self._mode = insert_mode
        self._batch_rows = batch_rows
        self._stages = 0
        self._checked: set[tuple[str, tuple[type, ...]]] = set()
        self._may_create: bool | None = None
        self.outcome = Outcome()
        """Of the present transaction; whoever begins one replaces it."""

    def apply(self, connection: Connection, chunks: Sequence[Columned]) -> list[Refused]:
        """Write chunks in their order; returns the rows that the database refused, while all others are written.

        Args:
            connection: in a transaction.
            chunks: each with the column of each field; fields without one are left out.

        Raises:
            Exception: of the driver, if the transaction is lost, or cannot go on.
        """
        refused: list[Refused] = []
        pieces: list[Piece] = []
        for chunk, columns in chunks:
            failed: list[Failed] = []
            pieces += self._pieces(connection, chunk, columns, failed)
            refused += [(chunk, columns, one) for one in failed]
        done, found = apply_pieces(connection, pieces, self._execute)
        for piece, outcome in done:
            self.outcome.add(outcome)
            if not piece.work.deletes:
                values = placeholders.in_rows([row for row, _ in piece.rows], piece.work.fields)
                self.outcome.add_unavailable(piece.work.table, values)
        refused += found
        places = {id(chunk): place for place, (chunk, _) in enumerate(chunks)}
        return sorted(refused, key=lambda one: places[id(one[0])])

    def _pieces(
        self, connection: Connection, chunk: Chunk, columns: FieldColumns, failed: list[Failed]
    ) -> Iterator[Piece]:
        """The rows of a chunk, as statements take them; those that no column can hold are added to `failed`."""
        work = Work.of(self._database, chunk, columns)
        rows = work.exact(list(zip(work.projected(chunk.rows), chunk.records, strict=True)), failed)
        rows = work.as_texts(rows, failed)
        if work.deletes or self._mode == keys.UPDATE:
            rows = work.comparable(rows, failed)
        if isinstance(self._statements, MySqlStatements):
            rows = self._of_packets(connection, work, rows, failed)
        for start in range(0, len(rows), self._batch_rows):
            yield Piece(chunk, columns, work, rows[start : start + self._batch_rows], self._mode == keys.UPDATE)

    def apply_columns(self, connection: Connection, chunk: ColumnChunk, columns: FieldColumns) -> None:
        """Write a chunk of columns, all or nothing.

        Args:
            connection: in a transaction, which the caller must roll back after an error.
            chunk: records of one table.
            columns: as for `apply`.

        Raises:
            RowsNeededError: they cannot be written in columns, or the database refused a row.
            Exception: of the driver, if the transaction is lost, or cannot go on.
        """
        assert self.loader is not None
        replaces = self._mode == keys.UPSERT
        if not (replaces or columns.may_copy):
            raise RowsNeededError
        work = Work.of(self._database, chunk, columns)
        chosen = work.columns(chunk)
        if replaces and any(column.null_count for column in chosen[: len(work.names.keys)]):
            raise RowsNeededError  # The last row of a key would count, and no two nulls are the same key.
        if replaces and not self._may_stage(connection):
            raise RowsNeededError
        try:
            skipped = self.loader.load(connection, work.names, chosen, replaces=replaces)
        except Exception as error:
            if isinstance(error, RowsNeededError) or connection.invalidated:
                raise
            if is_of_rows(error, work.names) or is_mismatch(error, compares=False) or lacks_unique_key(error):
                raise RowsNeededError from error  # Which record, or which types, is found with rows.
            raise
        if skipped and not replaces:
            raise RowsNeededError  # Row by row, the record is found.
        if skipped:
            self.outcome.skipped[str(chunk.plan.table)] += skipped
        self.outcome.add_unavailable(work.table, placeholders.in_columns(chosen, work.fields))

    def _of_packets(
        self, connection: Connection, work: Work, rows: list[tuple[Row, SinkRecord]], failed: list[Failed]
    ) -> list[tuple[Row, SinkRecord]]:
        """Rows that the server takes at once; of a larger one it would close the connection, each time again."""
        large = [
            n for n, (row, _) in enumerate(rows) if sum(len(v) for v in row if isinstance(v, str | bytes)) > _LARGE
        ]
        if not large or work.deletes:
            return rows
        driver: Any = connection.connection.driver_connection
        most_bytes, too_large = most_bytes_of(connection), set()
        upserts = self._mode == keys.UPSERT
        statement = self._statements.upsert(work.names) if upserts else self._statements.insert(work.names)
        with driver.cursor() as cursor:
            sizes = {n: len(cursor.mogrify(statement, rows[n][0]).encode(errors="surrogatepass")) for n in large}
        for n, size_bytes in sizes.items():
            if size_bytes > most_bytes:
                too_large.add(n)
                reason = (
                    f"its statement has {size_bytes} bytes, and max_allowed_packet of the server is {most_bytes + 2}"
                )
                failed.append(Failed(rows[n][1], RowRefusedError(reason, Failure.VALUE)))
        return [row for n, row in enumerate(rows) if n not in too_large]

    def _execute(self, connection: Connection, work: Work, records: list[tuple[Row, SinkRecord]]) -> Outcome:
        """Write rows; returns what was not written without an error."""
        statements, rows = self._statements, [row for row, _ in records]
        if work.deletes:
            found = list(_each_count(connection, statements.delete(work.names), rows, may_copy=work.may_copy))
            none, several = found.count(0), sum(count > 1 for count in found)
            return Outcome(
                undeleted=Counter({work.table: none} if none else {}),
                deleted_several=Counter({work.table: several} if several else {}),
            )
        if self._mode == keys.UPDATE:
            return self._update(connection, work, records)
        upserts = self._mode == keys.UPSERT
        nulls = sum(None in row[: len(work.names.keys)] for row in rows) if upserts else 0
        may_copy = work.may_copy and len(rows) >= FEWEST_FOR_COPY and not nulls
        may_copy = may_copy and isinstance(statements, PostgreSqlStatements)
        if may_copy and (not upserts or self._may_stage(connection)):
            skipped = self._copy(connection, work, rows)
        else:
            statement = statements.upsert(work.names) if upserts else statements.insert(work.names)
            if _is_sqlite_view(connection, work.may_copy):
                count = sum(_each_count(connection, statement, rows, may_copy=False))
            else:
                count = connection.exec_driver_sql(statement, rows).rowcount
            skipped = statements.skipped(work.names, len(rows), count, upserts=upserts)
        if skipped and self._mode != keys.UPSERT:
            raise RowRefusedError(SKIPPED)
        return Outcome(
            skipped=Counter({work.table: skipped} if skipped else {}),
            without_key=Counter({work.table: nulls} if nulls else {}),
        )

    def _update(self, connection: Connection, work: Work, records: list[tuple[Row, SinkRecord]]) -> Outcome:
        statement, count = self._statements.update(work.names), len(work.names.keys)
        rows = [(*(row[count:] or row), *row[:count]) for row, _ in records]
        outcome = Outcome()
        counts = _each_count(connection, statement, rows, may_copy=work.may_copy)
        for changed, (_, record) in zip(counts, records, strict=True):
            if changed == 0:
                outcome.unmatched.append((work.table, record))
            elif changed > 1:
                outcome.several[work.table] += 1
        return outcome

    def _may_stage(self, connection: Connection) -> bool:
        """Whether the user may create the temporary table that many upserts of PostgreSQL go through."""
        if not isinstance(self._statements, PostgreSqlStatements):
            return True
        if self._may_create is None:
            asked = "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
            self._may_create = bool(connection.exec_driver_sql(asked).scalar_one())
        return self._may_create

    def _copy(self, connection: Connection, work: Work, rows: list[Row]) -> int:
        """COPY, for upserts into a temporary table and from there; returns how many rows were left out.

        Of rows with the same key, only the last counts, as if they had been written one after the other.
        """
        assert isinstance(self._statements, PostgreSqlStatements)
        statements, names = self._statements, work.names
        upserts = self._mode == keys.UPSERT
        self._check_types(connection, statements.upsert(names) if upserts else statements.insert(names), rows)
        if not upserts:
            return len(rows) - _copy_rows(connection, names.table, names.all, rows)
        self._stages += 1
        stage = f"{_STAGE}_{self._stages}"
        listed = ",".join(names.all)
        connection.exec_driver_sql(
            f"CREATE TEMPORARY TABLE {stage} ON COMMIT DROP AS SELECT {listed} FROM {names.table} WITH NO DATA"
        )
        last = {row[: len(names.keys)]: row[len(names.keys) :] for row in rows}
        # Of keys that are equal, such as 0.0 and -0.0, the row has the first one, as if it were updated by the last.
        _copy_rows(connection, stage, names.all, [(*key, *more) for key, more in last.items()])
        inserted = connection.exec_driver_sql(
            f"INSERT INTO {names.table} ({listed}) SELECT {listed} FROM {stage} {statements.on_conflict(names)}"
        )
        connection.exec_driver_sql(f"DROP TABLE {stage}")
        return statements.skipped(names, len(last), inserted.rowcount, upserts=True)

    def _check_types(self, connection: Connection, statement: str, rows: list[Row]) -> None:
        """Have the database refuse what INSERT refuses, but COPY takes: a number for a boolean, an identity column.

        The result must not depend on the number of rows. EXPLAIN executes nothing. Each statement is checked once for
        the same types of values.

        Raises:
            Exception: of the driver.
        """
        columns = zip(*rows, strict=True)
        one_of_each = tuple(next((value for value in column if value is not None), None) for column in columns)
        checked = (statement, tuple(map(type, one_of_each)))
        if checked not in self._checked:
            connection.exec_driver_sql(f"EXPLAIN {statement}", one_of_each)
            self._checked.add(checked)


def _is_sqlite_view(connection: Connection, may_copy: bool) -> bool:
    return connection.dialect.name == "sqlite" and not may_copy


def _each_count(connection: Connection, statement: str, rows: Sequence[Row], *, may_copy: bool) -> Iterator[int]:
    """How many rows of the table each execution of a statement has changed; `may_copy`: false for a view.

    One count for all would hide a record without a row behind one that has two. For a view, SQLite counts none: whether
    its triggers have changed a row of any table tells whether the record is written.
    """
    driver: Any = connection.connection.driver_connection
    is_view = _is_sqlite_view(connection, may_copy)
    if connection.dialect.name != "postgresql":
        for row in rows:
            before = driver.total_changes if is_view else 0
            found = connection.exec_driver_sql(statement, row).rowcount
            yield min(1, driver.total_changes - before) if is_view else found
        return
    with driver.cursor() as cursor:
        cursor.executemany(statement, rows, returning=True)  # Without waiting for each answer.
        yield int(cursor.rowcount)
        while cursor.nextset():
            yield int(cursor.rowcount)


def _copy_rows(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> int:
    """Returns how many rows the table got."""
    # SQLAlchemy doubles % in names for statements with parameters; COPY goes to the driver without any.
    statement = f"COPY {table} ({','.join(columns)}) FROM STDIN".replace("%%", "%")
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor:
        with cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
        return int(cursor.rowcount)  # Not after the cursor is closed: psycopg 3.3 then says -1.
