"""Compares the zone of the database's own clock with `db.timezone`, in which columns without a zone are read.

Where they are not the same, times that the clock writes are hours off, and rows that are found by them may be missed.
Zones that are the same in winter only are not the same: London has the clock of UTC then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.read.time_functions import names_a_zone, times_of_the_clock
from airflow_connect.connectors.jdbc.source.values.columns import Kind, sqlite_column
from airflow_connect.connectors.jdbc.source.values.local_times import SECOND_US, micros_of
from airflow_connect.counting import names as list_of

if TYPE_CHECKING:
    from datetime import date

    from airflow_connect.connectors.jdbc.source.read.criteria import Tracked
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

_SHOWN = 10
_DEFAULTS = {
    "postgresql": """
SELECT a.attname, 'timestamp', pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND 'timestamp'::regtype IN (t.oid, t.typbasetype)
ORDER BY a.attnum
""",
    "mysql": """
SELECT column_name, data_type, CONCAT_WS(' ', column_default, extra) FROM information_schema.columns
WHERE table_schema = %(schema)s AND table_name = %(table)s AND data_type = 'datetime' ORDER BY ordinal_position
""",
    "sqlite": "SELECT name, type, dflt_value FROM pragma_table_xinfo(:table)",
}
"""Names, types and defaults of columns with a time without a zone, and in SQLite of all columns."""
_LOCAL_OF_SQLITE = re.compile(r"'localtime'", re.IGNORECASE)


def compare_tracked(reading: Reading, tracked: Tracked) -> None:
    """Say once if local times that the database's own clock writes to tracked columns are not those of `db.timezone`.

    Args:
        reading: connected; gets the note.
        tracked: columns of a table or query.
    """
    is_date = any(c.kind is Kind.DATE and reading.name != "sqlite" for c in tracked.timestamps)
    is_local = is_date or any(c.kind is Kind.TIMESTAMP or reading.name == "sqlite" for c in tracked.timestamps)
    if reading.zones_compared or not is_local:
        return
    reading.zones_compared = True
    differs, then = _difference(reading)
    if not differs:
        return
    clock, current = ("CURRENT_DATE", "day") if is_date else ("CURRENT_TIMESTAMP", "second")
    reading.note(
        f"{differs}. If the tracked timestamps are written by the database's clock ({clock}), rows are copied hours"
        f" late{then}, or rows of the current {current} are missed: set db.timezone to the zone in which they are"
        " written."
    )


def name_filled(reading: Reading, table: TableId | None) -> None:
    """Name columns of a table that are not tracked, and that the clock fills, if its zone is not `db.timezone`.

    Args:
        reading: connected, outside a transaction; gets the note.
        table: None for the query, which has no defaults.
    """
    differs, then = _difference(reading) if table is not None else ("", "")
    if table is None or not differs:
        return
    tracked = reading.config.timestamp_columns(table.full_name) if reading.config.uses_timestamps else ()
    known = {name.lower() for name in tracked}
    place = {"schema": table.schema or table.catalog, "table": table.table}
    chosen = {"table": table.table} if reading.name == "sqlite" else place
    filled = [
        str(name)
        for name, declared, default in reading.connection.exec_driver_sql(_DEFAULTS[reading.name], chosen).all()
        if str(name).lower() not in known
        and (reading.name != "sqlite" or sqlite_column(name, declared).kind is Kind.TIMESTAMP)
        and _is_local_clock(str(default), reading.name)
    ]
    reading.connection.rollback()  # A snapshot of several tasks is entered by a transaction that has not read yet.
    if filled:
        reading.note(
            f"{differs}. Columns of {table.full_name} that the database's clock fills ({list_of(filled, _SHOWN)}) are"
            f" hours off{then}: set db.timezone to the zone in which they are written, or give the columns a type with"
            " a zone."
        )


def _is_local_clock(default: str, database: str) -> bool:
    """Whether the default of a column is the time of the clock in the zone of the session."""
    if names_a_zone(default, database) or _LOCAL_OF_SQLITE.search(default):
        return False
    return any(True for _ in times_of_the_clock(default, database))


def _difference(reading: Reading) -> tuple[str, str]:
    """How the zone of the database's sessions differs from `db.timezone`, as a sentence, and when; "": it does not."""
    for day, ahead_s, expected_s in _offsets(reading):
        if ahead_s != expected_s:
            begin = f"On {day.isoformat()}, sessions" if day else "Sessions"
            sentence = f"{begin} of the database are {_hours(ahead_s)}, but db.timezone is {_hours(expected_s)}"
            return sentence, " in that part of the year" if day else ""
    return "", ""


def _offsets(reading: Reading) -> Iterator[tuple[date | None, int, int]]:
    """A day, or None for now, and how many seconds sessions, and clocks of `db.timezone`, are ahead of UTC then."""
    for moment, ahead_s in reading.database.dialect.seconds_ahead(reading.connection).items():
        instant_us = reading.clock_us if moment is None else reading.times.instant_us(moment)
        utc = reading.times.aware(instant_us).replace(tzinfo=None)
        yield moment and moment.date(), ahead_s, micros_of(reading.times.local(instant_us) - utc) // SECOND_US


def _hours(ahead_s: int) -> str:
    hours = f"{abs(ahead_s) / 3600:g}"
    where = "behind" if ahead_s < 0 else "ahead of"
    return f"{hours} hour{'' if hours == '1' else 's'} {where} UTC" if ahead_s else "in UTC"
