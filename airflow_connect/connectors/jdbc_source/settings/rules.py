"""Rules between the keys of the JDBC source, with Confluent's sentences where it has one.

Source: io.confluent.connect.jdbc.validation.JdbcSourceConnectorValidation (10.9). Two differences: a configuration
without any selection of tables copies the whole database, as it did before 10.9; and timestamp.column.name and
incrementing.column.name are accepted beside the include list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_connect.api.config.config_def import Problem, Rule
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.jdbc_source.settings import names
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

_LEGACY = (names.TABLE_WHITELIST, names.TABLE_BLACKLIST)
_NEW = (names.TABLE_INCLUDE, names.TABLE_EXCLUDE)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_LONGEST_MS = 100 * 366 * 86_400_000
_MAPPED = re.compile(r"(?P<pattern>.+):(?P<columns>[^:]+)")


class ForModes:
    """Shows a key in some modes only."""

    def __init__(self, *modes: str) -> None:
        """`modes`: those in which the key has an effect."""
        self._modes = modes

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """None to recommend."""
        return ()

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether the mode uses the key."""
        return str(parsed.get(names.MODE) or "").lower() in self._modes


def mapped_columns(name: str, items: Sequence[str]) -> list[tuple[JavaPattern, tuple[str, ...]]]:
    """The items of `incrementing.column.mapping` or `timestamp.columns.mapping`.

    Raises:
        InvalidValueError: an item is not `regex:column` or `regex:[column|column]`.
    """
    found = []
    for item in items:
        matched = _MAPPED.fullmatch(item)
        columns = matched["columns"].strip() if matched else ""
        if name == names.TIMESTAMP_MAPPING:
            is_list = columns.startswith("[") and columns.endswith("]")
            listed = tuple(part.strip() for part in columns[1:-1].split("|")) if is_list else ()
        else:
            listed = (columns,)
        if matched is None or not listed or not all(listed):
            form = "regex:[column|column]" if name == names.TIMESTAMP_MAPPING else "regex:column"
            raise invalid(name, item, f"Write it as {form}")
        try:
            found.append((compile_java_pattern(matched["pattern"].strip()), listed))
        except PatternError as error:
            raise invalid(name, item, f"It has no valid regular expression: {error}") from None
    return found


def check_incrementing_mapping(name: str, value: Any) -> None:
    """Raise InvalidValueError if an item of the mapping is not valid."""
    mapped_columns(name, value or ())


def check_timestamp_mapping(name: str, value: Any) -> None:
    """Raise InvalidValueError if an item of the mapping is not valid."""
    mapped_columns(name, value or ())


def _tables(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[names.TABLE_WHITELIST] and parsed[names.TABLE_BLACKLIST]:
        yield Problem(
            names.TABLE_BLACKLIST, f"{names.TABLE_WHITELIST} and {names.TABLE_BLACKLIST} are exclusive.", "Remove one."
        )
    legacy, new = [n for n in _LEGACY if parsed[n]], [n for n in _NEW if parsed[n]]
    if legacy and new:
        yield Problem(
            new[0],
            f"Cannot mix legacy and new configuration approaches: {legacy[0]} and {new[0]} are both set.",
            f"Remove {legacy[0]}, and write its tables as regular expressions in {names.TABLE_INCLUDE}.",
        )
    if parsed[names.TABLE_EXCLUDE] and not parsed[names.TABLE_INCLUDE]:
        yield Problem(
            names.TABLE_EXCLUDE,
            f"{names.TABLE_EXCLUDE} cannot be used without {names.TABLE_INCLUDE}. Exclude list only applies to tables"
            " that match the include list.",
            f"Set {names.TABLE_INCLUDE}, for example to .*",
        )


def _query(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    masked = parsed[names.QUERY_MASKED]
    has_masked = masked is not None and bool(masked.value)
    if parsed[names.QUERY] and has_masked:
        yield Problem(
            names.QUERY_MASKED,
            "Both 'query' and 'query.masked' configs cannot be set at the same time.",
            "Please use only one of them.",
        )
    selected = [name for name in (*_LEGACY, *_NEW) if parsed[name]]
    if (parsed[names.QUERY] or has_masked) and selected:
        yield Problem(
            selected[0],
            "Do not specify table filtering configs with 'query'.",
            f"Remove {', '.join(selected)} when using query mode or 'query' when using table filtering mode.",
        )


def _columns(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    mode = parsed[names.MODE].lower()
    timestamps = [c for c in parsed[names.TIMESTAMP_COLUMNS] if c]
    if parsed[names.TIMESTAMP_MAPPING] and timestamps:
        yield _both(names.TIMESTAMP_COLUMNS, names.TIMESTAMP_MAPPING)
    if parsed[names.INCREMENTING_MAPPING] and parsed[names.INCREMENTING_COLUMN]:
        yield _both(names.INCREMENTING_COLUMN, names.INCREMENTING_MAPPING)
    if "timestamp" in mode and not timestamps and not parsed[names.TIMESTAMP_MAPPING]:
        yield Problem(
            names.MODE,
            f"Timestamp column configuration must be provided when using mode '{names.TIMESTAMP}' or"
            f" '{names.TIMESTAMP_INCREMENTING}'.",
            f"Set {names.TIMESTAMP_COLUMNS} or {names.TIMESTAMP_MAPPING}.",
        )
    is_query = bool(parsed[names.QUERY] or (parsed[names.QUERY_MASKED] and parsed[names.QUERY_MASKED].value))
    if is_query and names.INCREMENTING in mode and not parsed[names.INCREMENTING_COLUMN]:
        yield Problem(
            names.INCREMENTING_COLUMN,
            f"A query in mode {mode} needs {names.INCREMENTING_COLUMN}: no column of a query numbers itself.",
            f"Set {names.INCREMENTING_COLUMN}.",
        )
    if parsed[names.LOOKBACK_MS] and mode != names.TIMESTAMP:
        yield Problem(
            names.LOOKBACK_MS,
            f"{names.LOOKBACK_MS} works only in mode {names.TIMESTAMP}, not in {mode}.",
            f"Set mode={names.TIMESTAMP}, which also finds new rows, or remove {names.LOOKBACK_MS}.",
        )
    if parsed[names.LOOKBACK_MS] and is_query:
        yield Problem(
            names.LOOKBACK_MS,
            f"{names.LOOKBACK_MS} needs a table with a primary key, which a query does not have.",
            f"Remove {names.LOOKBACK_MS}, or copy a table instead of a query.",
        )


def _changed_only(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    mode = parsed[names.MODE].lower()
    if not parsed[names.BULK_CHANGED_ONLY]:
        return
    if mode != names.BULK:
        yield Problem(
            names.BULK_CHANGED_ONLY,
            f"{names.BULK_CHANGED_ONLY} works only in mode {names.BULK}, not in {mode}.",
            f"Remove {names.BULK_CHANGED_ONLY}: the other modes copy only new rows.",
        )
    if parsed[names.QUERY] or (parsed[names.QUERY_MASKED] and parsed[names.QUERY_MASKED].value):
        yield Problem(
            names.BULK_CHANGED_ONLY,
            f"{names.BULK_CHANGED_ONLY} needs tables with a primary key, which a query does not have.",
            f"Remove {names.BULK_CHANGED_ONLY}, or copy a table instead of a query.",
        )


def _both(first: str, second: str) -> Problem:
    return Problem(second, f"Cannot use both {first} and {second}.", "Remove one of them.")


def _times(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    initial = parsed[names.TIMESTAMP_INITIAL]
    if initial is not None and not _FIRST_MS <= initial <= _LAST_MS:
        yield Problem(
            names.TIMESTAMP_INITIAL,
            f"{names.TIMESTAMP_INITIAL} is {initial}, which is not a time of the years 1 to 9999.",
            "Write it in milliseconds since 1970, such as 1767225600000 for 2026-01-01.",
        )
    if parsed[names.TIMESTAMP_DELAY_MS] > _LONGEST_MS:
        yield Problem(
            names.TIMESTAMP_DELAY_MS,
            f"{names.TIMESTAMP_DELAY_MS} is more than 100 years.",
            "Write it in milliseconds, such as 60000 for a minute.",
        )


def _isolation(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[names.ISOLATION].lower() == "sql_server_snapshot":
        yield Problem(
            names.ISOLATION,
            "Isolation mode of `SQL_SERVER_SNAPSHOT` can only be configured with a Sql Server Dialect",
            "Choose another isolation mode.",
        )


def _database(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    from airflow_connect.databases.urls import parse_url
    from airflow_connect.errors import ConfigError

    try:
        database = parse_url(parsed["connection.url"]).database
    except ConfigError:
        return  # The rule of the address itself says why.
    if database not in ("postgresql", "mysql", "sqlite"):
        yield Problem(
            "connection.url",
            f"The JDBC source does not read {database} yet: it reads PostgreSQL, MySQL, MariaDB and SQLite.",
            "Run this connector in Kafka Connect.",
        )


RULES: tuple[tuple[tuple[str, ...], Rule], ...] = (
    ((*_LEGACY, *_NEW), _tables),
    ((*_LEGACY, *_NEW, names.QUERY, names.QUERY_MASKED), _query),
    (
        (
            names.MODE, names.TIMESTAMP_COLUMNS, names.TIMESTAMP_MAPPING, names.INCREMENTING_COLUMN,
            names.INCREMENTING_MAPPING, names.QUERY, names.QUERY_MASKED, names.LOOKBACK_MS,
        ),
        _columns,
    ),
    ((names.BULK_CHANGED_ONLY, names.MODE, names.QUERY, names.QUERY_MASKED), _changed_only),
    ((names.TIMESTAMP_INITIAL, names.TIMESTAMP_DELAY_MS), _times),
    ((names.ISOLATION,), _isolation),
    (("connection.url",), _database),
)  # fmt: skip
