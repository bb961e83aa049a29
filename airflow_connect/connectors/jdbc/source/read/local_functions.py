"""Names queries and views whose functions depend on the zone of the session, which is UTC here.

`at::date` in PostgreSQL and `DATE(at)` in MySQL give the day of a point in time in the session's zone, and `now()` in a
column without a zone the time of that zone: in a program with another zone, the same statement has another result.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.settings.statements import without_texts
from airflow_connect.connectors.jdbc.source.values.sqlite_values import are_utc

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

_FUNCTIONS = (
    "now|clock_timestamp|statement_timestamp|transaction_timestamp|sysdate|curdate|curtime|date|time|timestamp"
    "|date_format|time_format|from_unixtime|unix_timestamp|date_trunc|date_part|date_bin|extract|to_char|to_days|last_day"
    "|year|quarter|month|monthname|week|weekofyear|weekday|yearweek|day|dayname|dayofmonth|dayofweek|dayofyear|hour"
)
_KEYWORDS = "current_date|current_time|current_timestamp|localtime|localtimestamp"
_TYPES = r"(?:date|time|timestamp|datetime)\b(?!\s*(?:\(\d\))?\s*with\s+time)"
_LOCAL = re.compile(
    rf"\b(?P<call>{_FUNCTIONS})\s*\((?!\d\))|\b(?P<word>{_KEYWORDS})\b"
    rf"|(?<![\x01\s])\s*::\s*(?P<cast>{_TYPES})|\bas\s+(?P<type>{_TYPES})(?:\s*\(\d\))?(?:\s+without\s+time\s+zone)?\s*\)",
    re.IGNORECASE,
)
_NAMES_A_ZONE = re.compile(r"\bat\s+time\s+zone\b|\btimezone\s*\(|\bconvert_tz\s*\(", re.IGNORECASE)
_SHOWN = 3

_VIEWS = {
    "postgresql": """
SELECT pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND c.relkind = 'v'
""",
    "mysql": """
SELECT view_definition FROM information_schema.views WHERE table_schema = %(schema)s AND table_name = %(table)s
""",
}


def note_local_functions(reading: Reading, opaque: Collection[TableId | None]) -> None:
    """Name those that have such functions and name no zone, unless UTC is the zone of the database in any case.

    Args:
        reading: connected; gets the notes.
        opaque: views, and None for the query.
    """
    ahead = reading.database.dialect.seconds_ahead(reading.connection)
    if reading.name not in _VIEWS or (not ahead and are_utc(reading.times)):
        return
    for table in opaque:
        statement = reading.config.query if table is None else _definition(reading, table)
        found = sorted(set(local_functions(statement)))
        if found:
            what = "The query" if table is None else f"The view {table.full_name}"
            more = f" and {len(found) - _SHOWN} more" if found[_SHOWN:] else ""
            reading.note(
                f"{what} has functions that depend on the time zone of the session if they get or make points in time"
                f" ({', '.join(found[:_SHOWN])}{more}). That zone is UTC here, so their days and times of day may"
                " not be those of other programs, nor of db.timezone. Name the zone in the statement, with"
                f" {'AT TIME ZONE' if reading.name == 'postgresql' else 'CONVERT_TZ'}."
            )


def _definition(reading: Reading, view: TableId) -> str:
    place = {"schema": view.schema or view.catalog, "table": view.table}
    return str(reading.connection.exec_driver_sql(_VIEWS[reading.name], place).scalar() or "")


def local_functions(statement: str) -> Iterator[str]:
    """The functions, words and types of a statement that make local times; nothing if it names a zone."""
    words = without_texts(statement)
    if _NAMES_A_ZONE.search(words):
        return
    for found in _LOCAL.finditer(words):
        yield next(name.lower() for name in found.groups() if name)
