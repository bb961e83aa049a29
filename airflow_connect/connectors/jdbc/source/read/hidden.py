"""Names what no run finds: rows, because of what they have in the tracked columns; columns, and digits of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.criteria import Criteria, Source, Statement
from airflow_connect.connectors.jdbc.source.values.columns import Kind
from airflow_connect.connectors.jdbc.source.values.mapping import names_of
from airflow_connect.counting import agreeing, counted

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.connectors.jdbc.source.values.mapping import TableMapping

_TIMELESS = {
    "postgresql": "an infinite timestamp",
    "mysql": "a timestamp of zero",
    "sqlite": "a value that SQLite does not read as a date and time (such as 31/01/2026)",
}
"""What rows have that `Criteria.timeless` counts."""
_BITS, _BITS_OF_INT8 = (Kind.BIT_TEXT, Kind.BIT_BYTES), 8
_AHEAD_US = 600_000_000
"""Less than zones differ, which is a quarter of an hour at least; more than most clocks are wrong."""
_DATE_LENGTH = len("2026-01-31")
_BY_POSITION = "because such rows cannot be found by position."

_INVISIBLE = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = %(schema)s AND table_name = %(table)s AND extra LIKE '%%INVISIBLE%%' ORDER BY ordinal_position
"""


def note_invisible(reading: Reading, source: Source) -> None:
    """Name the columns of a table of MySQL or MariaDB that `SELECT *` does not return."""
    table = source.table
    if table is None or reading.name != "mysql":
        return
    parameters = {"schema": table.catalog, "table": table.table}
    found = reading.connection.exec_driver_sql(_INVISIBLE, parameters).scalars().all()
    if found:
        reading.note(
            f"Columns of {source.name} are left out, because they are INVISIBLE: {', '.join(map(str, found))}. Select"
            " them in a query, or make them visible."
        )


def note_columns(reading: Reading, mapping: TableMapping, source: Source) -> None:
    """Name the columns that a source leaves out, and those whose numbers may become others."""
    if mapping.left_out:
        reading.note(
            f"Columns of {source.name} are left out, because their types have no counterpart in Kafka Connect:"
            f" {names_of(mapping.left_out)}."
        )
    if mapping.inexact and reading.name != "sqlite":
        reading.note(
            f"With numeric.mapping={reading.config.numeric_mapping}, columns of {source.name} become FLOAT64, which"
            f" keeps about 15 digits of a number: {names_of(mapping.inexact)}. Set numeric.mapping=none, or"
            " precision_only, to keep all."
        )
    moneys = [f.column for f in mapping.fields if f.column.type_name == "money"] if reading.name == "postgresql" else []
    if moneys:
        reading.note(
            f"Columns of {source.name} with the type money become FLOAT64, as in Kafka Connect, which keeps about 15"
            f" digits of an amount: {names_of(moneys)}. Select them as numeric(21,2) in a query to keep all."
        )
    bits = [f.column for f in mapping.fields if f.column.kind in _BITS and f.column.precision == _BITS_OF_INT8]
    if bits:
        reading.note(
            f"Columns of {source.name} with 8 bits become INT8, as in Kafka Connect, so numbers from 128 on are"
            f" negative, such as -1 for 255: {names_of(bits)}. Select them as larger numbers in a query to keep them."
        )


def count_repeated(reading: Reading, criteria: Criteria, source: Source, number: int) -> None:
    """Count rows whose number another row has, as in a view of several tables: others may come too late to be found.

    Args:
        reading: connected; gets the number.
        criteria: by which rows are found.
        source: the table or query.
        number: of rows.
    """
    if number and criteria.tracked.incrementing is not None:
        reading.count(
            f"Rows of {source.name} with a number in {criteria.tracked.incrementing.name} that another row has, too, as"
            " in a view of several tables. A row that is added later, with a number at or below the offset, is NOT"
            " copied: use a column that no two rows share, or a mode with a timestamp. Their number:",
            number,
        )


def note_hidden(reading: Reading, criteria: Criteria, source: Source, position: Position) -> None:
    """Name the rows of a table that no run after a position finds, with their number.

    They have null, or no point in time, where rows are compared, or a number below that of the first run. So are rows
    whose time is still far away. Rows of a query are counted before its first run only: that reads all of them, and a
    later one may read few.

    Args:
        reading: connected; gets the notes.
        criteria: by which rows are found.
        source: the table, or the query.
        position: where reading begins.
    """
    is_query = source.table is None
    if is_query and position != Position():
        return

    def say(statement: Statement, what: str, why: str) -> None:
        count = reading.execute(statement).scalar_one()
        if count:
            reading.note(
                f"{counted(count, 'row')} of {source.name} {agreeing(count, 'have')} {what} and"
                f" {agreeing(count, 'are')} not copied, {why}"
            )

    tracked = criteria.tracked
    # The columns of a query may be null where those of its tables are not, such as by an outer join.
    nullable = ", ".join(column.name for column in tracked.columns) if is_query else tracked.nullable
    if nullable:
        say(criteria.nulls(), f"null in {nullable}", _BY_POSITION)
    timeless = criteria.timeless()
    if timeless is not None:
        where = ", ".join(column.name for column in tracked.timestamps)
        say(timeless, f"{_TIMELESS[reading.name]} in {where}", _BY_POSITION)
    _note_ahead(reading, criteria, source)
    _note_seconds(reading, criteria, source)
    _note_days(reading, criteria, source)
    negative = criteria.negative(position)
    if negative is not None:
        say(
            negative,
            f"a negative number in {tracked.columns[-1].name}",
            "because the first run begins at 0, as in Kafka Connect. To copy the table again with them, set its offset"
            " to a smaller number.",
        )


def _note_ahead(reading: Reading, criteria: Criteria, source: Source) -> None:
    """Count the rows that wait until the database's clock has reached their time.

    Whoever writes local times of another zone is not always known beforehand: programs, triggers, computed columns.
    """

    def ahead(clock_us: int) -> int:
        statement = criteria.ahead(clock_us, _AHEAD_US)
        return 0 if statement is None else int(reading.execute(statement).scalar_one())

    # The clock of a run is that of its beginning, and rows may have been written since then.
    if not ahead(reading.clock_us):
        return
    number = ahead(reading.times.instant_us(reading.database.dialect.current_time(reading.connection)))
    if not number:
        return
    stamps = criteria.tracked.timestamps
    is_local = reading.name == "sqlite" or any(column.kind is not Kind.INSTANT for column in stamps)
    zone = " in another zone than db.timezone, or" if is_local else ""
    reading.note(
        f"{counted(number, 'row')} of {source.name} {agreeing(number, 'have')} a timestamp in"
        f" {', '.join(column.name for column in stamps)} that is more than 10 minutes ahead and"
        f" {agreeing(number, 'are')} not copied, before the database's clock has reached it. If it is the time of a"
        f" change, it is written{zone} by a clock that is ahead, and each row is copied so much later."
    )


def _note_seconds(reading: Reading, criteria: Criteria, source: Source) -> None:
    """Name rows of SQLite whose tracked number seems to have seconds: the upper bound of a run is not in them."""
    statement = criteria.in_seconds(reading.clock_us)
    number = 0 if statement is None else reading.execute(statement).scalar_one()
    if number:
        where = ", ".join(column.name for column in criteria.tracked.timestamps)
        reading.note(
            f"{counted(number, 'row')} of {source.name} {agreeing(number, 'have')} a number in {where} that is a time"
            " of these years in seconds. It is read as milliseconds since 1970, as by Kafka Connect's driver: its time"
            " is one of January 1970, and a row that is written in a second of which rows were copied is NOT copied."
            " Store milliseconds, or select the number times 1000 in a query."
        )


def _note_days(reading: Reading, criteria: Criteria, source: Source) -> None:
    """Name rows of SQLite that have only a date in a column of which nothing tells that it has no times of day."""
    stamps = criteria.tracked.timestamps
    if reading.name != "sqlite" or any(column.kind is Kind.DATE for column in stamps):
        return
    names = [reading.database.quoting.text(column.name) for column in stamps]
    condition = " OR ".join(f"typeof({name}) = 'text' AND length({name}) = {_DATE_LENGTH}" for name in names)
    number = reading.execute(source.count(condition)).scalar_one() if names else 0
    if number:
        where = ", ".join(column.name for column in stamps)
        by_number = criteria.tracked.incrementing
        unless = "" if by_number is None else f", unless its {by_number.name} is larger"
        reading.note(
            f"{counted(number, 'row')} of {source.name} {agreeing(number, 'have')} a date without a time in {where},"
            " which is read as midnight. A row that is written later with a day of which rows were copied is NOT"
            f" copied{unless}. Copy a table whose column is declared as DATE: its days are copied when they are over."
            " Or set timestamp.delay.interval.ms=86400000."
        )
