"""Compares the zone of the database's own clock with `db.timezone`, in which columns without a zone are read.

Where they are not the same, times that the clock writes are hours off, and rows that are found by them may be missed.
Zones that are the same in winter only are not the same: London has the clock of UTC then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.read.other_sessions import UNKNOWN, has_others, zones_of_others
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
SELECT a.attname, CASE WHEN 'date'::regtype IN (t.oid, t.typbasetype) THEN 'date' END,
  pg_get_expr(d.adbin, d.adrelid)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = %(schema)s AND c.relname = %(table)s
  AND '{timestamp,date}'::regtype[] && ARRAY[t.oid, t.typbasetype]::regtype[]
ORDER BY a.attnum
""",
    "mysql": """
SELECT column_name, data_type, CONCAT_WS(' ', column_default, extra) FROM information_schema.columns
WHERE table_schema = %(schema)s AND table_name = %(table)s AND data_type IN ('datetime', 'date')
ORDER BY ordinal_position
""",
    "sqlite": "SELECT name, type, dflt_value FROM pragma_table_xinfo(:table)",
}
"""Names, types and defaults of columns with a date, or a time without a zone, and in SQLite of all columns."""
_LOCAL_OF_SQLITE = re.compile(r"'localtime'", re.IGNORECASE)
_OFFSET_OF_SQLITE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)'")
"""The end of a format whose texts have a zone, or of a number of hours that is added."""
_UTC_OF_MYSQL = re.compile(r"\butc_(?:timestamp|date)\b", re.IGNORECASE)
_ZONE_OF_POSTGRESQL = re.compile(r"(?:\bat time zone |\btimezone\()'([^']+)'::text", re.IGNORECASE)
_COMPUTED_IN_A_ZONE = re.compile(r"""\(*(?!local)(?:\w+|"[^"]+") AT TIME ZONE '([^']+)'::text\)*""", re.IGNORECASE)
"""A column of PostgreSQL without a zone that is computed of one that holds points in time."""
_AHEAD_OF_POSTGRESQL = """
SELECT extract(epoch FROM (to_timestamp(%(at)s) AT TIME ZONE %(zone)s) - (to_timestamp(%(at)s) AT TIME ZONE 'UTC'))::int
"""
"""PostgreSQL knows more names of zones than others, and takes UTC+2 for a zone that is behind UTC."""
_HOURS = re.compile(r"[+-]?\d+(?:\.\d+)?")
"""A zone of a session of PostgreSQL that is a number of hours ahead of UTC. As the zone of a time it is not known."""
SESSION, MACHINE, _UTC = "", "localtime", "UTC"
"""Zones of defaults: that of sessions, and in SQLite that of the machine."""


def compare_tracked(reading: Reading, tracked: Tracked, table: TableId | None) -> None:
    """Say once if local times that the database's own clock writes to tracked columns are not those of `db.timezone`.

    A table whose tracked columns have defaults that name the zone of `db.timezone` is no reason: its times are right.

    Args:
        reading: connected; gets the note.
        tracked: columns of a table or query.
        table: None for the query.
    """
    is_date = any(c.kind is Kind.DATE and reading.name != "sqlite" for c in tracked.timestamps)
    is_local = is_date or any(c.kind is Kind.TIMESTAMP or reading.name == "sqlite" for c in tracked.timestamps)
    if reading.zones_compared or not is_local:
        return
    differs, then, _ = _difference_of_sessions(reading, table)
    if differs and _name_the_zone(reading, tracked, table):
        return
    reading.zones_compared = bool(differs) or not has_others(reading)  # Not every role writes to every table.
    if not differs:
        return
    clock, current = ("CURRENT_DATE", "day") if is_date else ("CURRENT_TIMESTAMP", "second")
    reading.note(
        f"{differs}. If the tracked timestamps are written by the database's clock ({clock}), rows are copied hours"
        f" late{then}, or rows of the current {current} are missed: set db.timezone to the zone in which they are"
        " written."
    )


def name_filled(reading: Reading, table: TableId | None) -> None:
    """Name columns of a table whose defaults are the time of a clock in another zone than `db.timezone`.

    That zone is the one of sessions, or one that the default names. `compare_tracked` compares tracked columns with the
    zone of sessions, so they are named here only if their defaults name another one.

    Args:
        reading: connected, outside a transaction; gets the notes.
        table: None for the query, which has no defaults.
    """
    if table is None:
        return
    known = reading.config.timestamp_columns(table.full_name) if reading.config.uses_timestamps else ()
    tracked = {name.lower() for name in known}
    filled: dict[str, list[str]] = {}
    for name, declared, zone in _clocks(reading, table):
        is_tracked = name.lower() in tracked
        # A date is no other one because of the zone, unless rows are found by it.
        is_time = is_tracked or (
            declared != "date" if reading.name != "sqlite" else sqlite_column(name, declared).kind is Kind.TIMESTAMP
        )
        if zone is not None and is_time and not (is_tracked and zone == SESSION):
            filled.setdefault(zone, []).append(name)
    for zone, found in filled.items():
        differs, then, is_certain = (
            (*_difference(reading, zone), True) if zone else _difference_of_sessions(reading, table)
        )
        if differs:
            are = "are" if is_certain else "may be"
            missed = ", and rows may be missed that are found by them" if tracked & set(map(str.lower, found)) else ""
            reading.note(
                f"{differs}. Columns of {table.full_name} that the database's clock, or an expression, fills"
                f" ({list_of(found, _SHOWN)}) {are} hours off{then}{missed}: set db.timezone to the zone in which they"
                " are written, or give the columns a type with a zone."
            )
    reading.connection.rollback()  # A snapshot of several tasks is entered by a transaction that has not read yet.


def _name_the_zone(reading: Reading, tracked: Tracked, table: TableId | None) -> bool:
    """Whether the default of each tracked column names the zone of `db.timezone`, or one with the same clock."""
    if table is None:
        return False
    zones = {name: zone for name, _, zone in _clocks(reading, table)}
    found = {zones.get(column.name) for column in tracked.timestamps}
    return all(zone and not _difference(reading, zone)[0] for zone in found)


def _clocks(reading: Reading, table: TableId) -> Iterator[tuple[str, str, str | None]]:
    """Columns of a table, their types, and what `clock_of` says of their defaults."""
    place = {"schema": table.schema or table.catalog, "table": table.table}
    chosen = {"table": table.table} if reading.name == "sqlite" else place
    for name, declared, default in reading.connection.exec_driver_sql(_DEFAULTS[reading.name], chosen).all():
        yield str(name), str(declared), clock_of(str(default), reading.name)


def clock_of(default: str, database: str) -> str | None:
    """In which zone a default is the present time, or a computed column of PostgreSQL another one.

    Args:
        default: of a column, or how it is computed, as the database shows it.
        database: SQLAlchemy's name of it.

    Returns:
        `SESSION`, `MACHINE`, or the zone that the default names; None: it is no present time, or it is not known in
        which zone, or the value says it itself.
    """
    is_clock = any(True for _ in times_of_the_clock(default, database))
    computed = _COMPUTED_IN_A_ZONE.fullmatch(default) if database == "postgresql" else None
    if computed is not None:
        return _UTC if computed[1].upper() == _UTC else computed[1]
    if names_a_zone(default, database):
        zones = _ZONE_OF_POSTGRESQL.findall(default) if is_clock and "local" not in default.lower() else []
        if len(zones) != 1:
            return None
        return _UTC if zones[0].upper() == _UTC else str(zones[0])
    if database == "mysql" and not is_clock:
        return _UTC if _UTC_OF_MYSQL.search(default) else None
    if not is_clock or (database == "sqlite" and _OFFSET_OF_SQLITE.search(default)):
        return None
    return MACHINE if database == "sqlite" and _LOCAL_OF_SQLITE.search(default) else SESSION


def _difference_of_sessions(reading: Reading, table: TableId | None) -> tuple[str, str, bool]:
    """How the zone of sessions differs from `db.timezone`, as a sentence; when; and whether it is that of all."""
    differs, then = _difference(reading)
    if differs:
        return differs, then, True
    for zone, whose in zones_of_others(reading, table):
        if zone is UNKNOWN:
            source = (
                "ALTER ROLE ... SET timezone, from options in connection.url, or from PGTZ"
                if reading.name == "postgresql"
                else "a statement in init_connect of the server, or from time_zone"
            )
            sentence = (
                f"The zone of sessions of this user comes from {source}, so that of {whose} is not known, and may not"
                " be db.timezone"
            )
            return sentence, "", False
        differs, then = _difference(reading, zone, whose)
        if differs:
            return differs, then, False
    return "", "", True


def _difference(reading: Reading, zone: str = SESSION, whose: str = "") -> tuple[str, str]:
    """How a zone differs from `db.timezone`, as a sentence, and when; "": it does not.

    Args:
        reading: connected.
        zone: that is compared.
        whose: what has it, for the sentence; "": defaults, or sessions.
    """
    default = "defaults with 'localtime'" if zone == MACHINE else f"defaults that name the zone {zone}"
    what = whose or ("sessions of the database" if zone == SESSION else default)
    for day, ahead_s, expected_s in _offsets(reading, zone):
        if ahead_s != expected_s:
            begin = f"On {day.isoformat()}, {what}" if day else what[0].upper() + what[1:]
            sentence = f"{begin} are {_hours(ahead_s)}, but db.timezone is {_hours(expected_s)}"
            return sentence, " in that part of the year" if day else ""
    return "", ""


def _offsets(reading: Reading, zone: str) -> Iterator[tuple[date | None, int, int]]:
    """A day, or None for now, and how many seconds a zone, and clocks of `db.timezone`, are ahead of UTC then."""
    for moment, of_sessions_s in reading.database.dialect.seconds_ahead(reading.connection).items():
        instant_us = reading.clock_us if moment is None else reading.times.instant_us(moment)
        utc = reading.times.aware(instant_us).replace(tzinfo=None)
        ahead_s = of_sessions_s if zone == SESSION else _ahead_s(reading, zone, instant_us)
        yield moment and moment.date(), ahead_s, micros_of(reading.times.local(instant_us) - utc) // SECOND_US


def _ahead_s(reading: Reading, zone: str, instant_us: int) -> int:
    """How many seconds a zone, which is not that of sessions, is ahead of UTC."""
    if zone == _UTC:
        return 0
    if zone == MACHINE:
        offset = reading.times.aware(instant_us).astimezone().utcoffset()
        return micros_of(offset) // SECOND_US if offset is not None else 0
    if _HOURS.fullmatch(zone):
        return round(float(zone) * 3600)
    parameters = {"at": instant_us // SECOND_US, "zone": zone}
    return int(reading.connection.exec_driver_sql(_AHEAD_OF_POSTGRESQL, parameters).scalar_one())


def _hours(ahead_s: int) -> str:
    hours = f"{abs(ahead_s) / 3600:g}"
    where = "behind" if ahead_s < 0 else "ahead of"
    return f"{hours} hour{'' if hours == '1' else 's'} {where} UTC" if ahead_s else "in UTC"
