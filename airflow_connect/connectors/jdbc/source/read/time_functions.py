"""Names queries and views whose rows or values depend on when, or in which zone, a run reads them.

The session's zone is UTC here. `at::date` in PostgreSQL and `DATE(at)` in MySQL give the day of a point in time in that
zone, and `now()` in a column without a zone its time: in a program with another zone, the same statement has another
result. And with `now()` in a condition, rows appear and vanish although their tracked columns stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.read.points_in_time import session_times
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.statements import without_texts
from airflow_connect.connectors.jdbc.source.values.sqlite_values import are_utc
from airflow_connect.counting import names as list_of

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
_NOW = re.compile(
    r"\b(?:(now|clock_timestamp|statement_timestamp|transaction_timestamp|sysdate|curdate|curtime)\s*\("
    rf"|({_KEYWORDS})\b)",
    re.IGNORECASE,
)
_NOW_OF_SQLITE = "'now'"
_CHOICES = re.compile(
    r"\b(?:(coalesce|ifnull|nvl2?|greatest|least|if)\s*\(|(case|union|intersect|except)\b)", re.IGNORECASE
)
_SELECT = re.compile(r"\b(?:select|table|values|with)\b", re.IGNORECASE)
_RENAMED = re.compile(r"\bas\s+\w+\s*\(", re.IGNORECASE)
_CASES, _BRACKETS = re.compile(r"\b(?:case|end)\b", re.IGNORECASE), re.compile(r"[()]")
_TIME = re.compile(rf"\b(?:now|\w*timestamp\w*|\w*date\w*|from_unixtime|{_KEYWORDS})\b", re.IGNORECASE)
"""Words for times that are no columns. A column has such a name often enough, too."""
_KINDS = {
    "postgresql": ("timestamp with time zone", ("timestamp without time zone", "date")),
    "mysql": ("timestamp", ("datetime", "date")),
}
"""The type of points in time, and those without a zone, which a choice between both converts to it, or it to them."""
_WITH_TIMES = """
SELECT table_name, data_type, column_name FROM information_schema.columns WHERE data_type IN ({kinds}){schema}
"""
_CONDITION = re.compile(r"\b(?:where|on|having)\b", re.IGNORECASE)
_SHOWN = 3

_VIEWS = {
    "postgresql": """
SELECT pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND c.relkind = 'v'
""",
    "mysql": """
SELECT view_definition FROM information_schema.views WHERE table_schema = %(schema)s AND table_name = %(table)s
""",
    "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'view' AND lower(name) = lower(:table)",
}


def note_time_functions(reading: Reading, opaque: Collection[TableId | None]) -> None:
    """Name those that have such functions.

    Args:
        reading: connected; gets the notes.
        opaque: views, and None for the query.
    """
    ahead = reading.database.dialect.seconds_ahead(reading.connection)
    # SQLite has no zones, and UTC may be the zone of the database in any case.
    has_zone = reading.name != "sqlite" and (any(ahead.values()) or not are_utc(reading.times))
    for table in opaque if has_zone or reading.config.mode != names.BULK else ():
        statement = reading.config.query if table is None else definition(reading, table)
        what = "The query" if table is None else f"The view {table.full_name}"
        if not statement and reading.config.mode != names.BULK:
            reading.note(
                f"{what} has a definition that the user in connection.user may not see, so runs do not notice that it"
                " was changed, nor what in it hides rows from them. Grant SHOW VIEW."
            )
        if has_zone and (found := sorted(set(local_functions(statement, reading.name)))):
            reading.note(
                f"{what} has functions that depend on the time zone of the session if they get or make points in time"
                f" ({list_of(found, _SHOWN)}). That zone is UTC here, so their days and times of day may not be those"
                " of other programs, nor of db.timezone. Name the zone in the statement, with"
                f" {'AT TIME ZONE' if reading.name == 'postgresql' else 'CONVERT_TZ'}."
            )
        times = _times_of(reading, statement) if has_zone and statement else []
        mixed, columns = _mixed_tables(reading, times)
        _note_session_times(reading, what, statement, times)
        if mixed and (chosen := sorted(set(choices(statement, reading.name, columns)))):
            reading.note(
                f"{what} has {list_of(chosen, _SHOWN)}, and reads columns that hold points in time and others without a"
                f" zone ({list_of(mixed, _SHOWN)}). Where both meet, the database takes the latter for times of the"
                " session, whose zone is UTC here: such values, and rows that are found by them, may be hours off. Name"
                f" the zone in the statement, with {'AT TIME ZONE' if reading.name == 'postgresql' else 'CONVERT_TZ'}."
            )
        if reading.config.mode != names.BULK and (found := sorted(set(times_in_conditions(statement, reading.name)))):
            reading.note(
                f"{what} has the time of the run in a condition ({list_of(found, _SHOWN)}), so that rows appear and"
                " vanish while their tracked columns stay as they are. A row that appears at or below the offset, or is"
                " gone before a run has read it, is NOT copied. Take the time out of the condition, or use mode bulk."
            )


def definition(reading: Reading, view: TableId) -> str:
    """The statement of a view; "" if the user may not see it."""
    place = {"schema": view.schema or view.catalog, "table": view.table}
    chosen = {"table": view.table} if reading.name == "sqlite" else place
    return str(reading.connection.exec_driver_sql(_VIEWS[reading.name], chosen).scalar() or "")


def _times_of(reading: Reading, statement: str) -> Sequence[tuple[str, str, str]]:
    """Table, type and name of columns with a date or a time, of tables that a statement may read."""
    zoned, plain = _KINDS[reading.name]
    kinds = ", ".join(f"'{kind}'" for kind in (zoned, *plain))
    schema = " AND table_schema = DATABASE()" if reading.name == "mysql" else ""
    listed = reading.connection.exec_driver_sql(_WITH_TIMES.format(kinds=kinds, schema=schema))
    words = {word.lower() for word in re.findall(r"[^\W]+", statement)}
    found = [(str(table), str(kind), str(name)) for table, kind, name in listed]
    return [row for row in found if words.issuperset(re.findall(r"[^\W]+", row[0].lower()))]


def _mixed_tables(reading: Reading, times: Sequence[tuple[str, str, str]]) -> tuple[list[str], list[str]]:
    """The tables with columns that hold points in time and those without a zone, if there are both, and the columns."""
    if {kind == _KINDS[reading.name][0] for _, kind, _ in times} != {True, False}:
        return [], []
    return sorted({reading.behind(name) for name, _, _ in times}), sorted({column.lower() for _, _, column in times})


def _note_session_times(reading: Reading, what: str, statement: str, times: Sequence[tuple[str, str, str]]) -> None:
    if not times:
        return
    zoned = _KINDS[reading.name][0]
    points, local = (
        {name.lower() for _, kind, name in times if (kind == zoned) is is_point} for is_point in (True, False)
    )
    found = sorted(set(session_times(statement, reading.name, points, local, set(_FUNCTIONS.split("|")))))
    if found:
        reading.note(
            f"{what} computes with columns that hold points in time, or compares them with times without a zone"
            f" ({list_of(found, _SHOWN)}). The database takes the times of the session for that, whose zone is UTC"
            " here: results may be hours off where they are times of db.timezone, and rows others than those that other"
            " programs find. Name the zone in the statement, with"
            f" {'AT TIME ZONE' if reading.name == 'postgresql' else 'CONVERT_TZ'}."
        )


def choices(statement: str, database: str = "", columns: Collection[str] | None = None) -> Iterator[str]:
    """What makes one value of several, of which one may have a zone and another none; nothing if it names a zone.

    Args:
        statement: of a query or a view.
        database: SQLAlchemy's name of it.
        columns: names of those with a time, in small letters; a choice in which none of them is, is one of other
            values. None: not known.
    """
    words = without_texts(statement, database=database)
    if _NAMES_A_ZONE.search(words):
        return
    # Another SELECT, or the names of an alias, may give columns other names; a quoted one looks like a text.
    is_plain = len(_SELECT.findall(words)) == 1 and not _RENAMED.search(words)
    is_quoted = any(f"{mark}{name}{mark}" in statement.lower() for name in columns or () for mark in '"`')
    for found in _CHOICES.finditer(words):
        name = next(name.upper() for name in found.groups() if name)
        part = _part(words, found.end(), "CASE" if name == "CASE" else "")
        if columns is None or not is_plain or is_quoted or _TIME.search(part) or _has_any(part, columns):
            yield name


def _part(words: str, begin: int, opened: str) -> str:
    """What a choice has: up to its END, or to its closing bracket."""
    depth, marks = 1, _CASES if opened else _BRACKETS
    for mark in marks.finditer(words, begin):
        depth += 1 if mark[0].lower() in ("case", "(") else -1
        if not depth:
            return words[begin : mark.start()]
    return words[begin:]


def _has_any(part: str, columns: Collection[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", part, re.IGNORECASE) for name in columns)


def local_functions(statement: str, database: str = "") -> Iterator[str]:
    """The functions, words and types of a statement that make local times; nothing if it names a zone."""
    words = without_texts(statement, database=database)
    if _NAMES_A_ZONE.search(words):
        return
    for found in _LOCAL.finditer(words):
        yield next(name.lower() for name in found.groups() if name)


def names_a_zone(expression: str, database: str) -> bool:
    """Whether an expression says in which zone its times are."""
    return _NAMES_A_ZONE.search(without_texts(expression, database=database)) is not None


def times_of_the_clock(expression: str, database: str) -> Iterator[str]:
    """The functions and words of an expression that give the present time in the zone of the session."""
    for found in _NOW.finditer(without_texts(expression.replace(_NOW_OF_SQLITE, " now() "), database=database)):
        yield next(name.lower() for name in found.groups() if name)


def times_in_conditions(statement: str, database: str = "") -> Iterator[str]:
    """The functions and words that give the time of the run, from the first condition of a statement on."""
    for found in _NOW.finditer(conditions(statement.replace(_NOW_OF_SQLITE, " now() "), database)):
        yield next(name.lower() for name in found.groups() if name)


def conditions(statement: str, database: str = "") -> str:
    """A statement without texts and comments, from its first condition on; "": it has none."""
    words = without_texts(statement, database=database)
    first = _CONDITION.search(words)
    return words[first.start() :] if first else ""
