"""Rules between the keys of the JDBC source, with Confluent's sentences where it has one.

Source: io.confluent.connect.jdbc.validation.JdbcSourceConnectorValidation (10.9). Two differences: a configuration
without any selection of tables copies the whole database, as it did before 10.9; and timestamp.column.name and
incrementing.column.name are accepted beside the include list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from airflow_connect.api.config.config_def import Problem, Rule
from airflow_connect.api.config.typed import TypedKey
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.keys import JdbcSourceKeys as Keys
from airflow_connect.connectors.jdbc.source.settings.statements import without_texts
from airflow_connect.databases.keys import URL

_LEGACY, _NEW = (Keys.whitelist, Keys.blacklist), (Keys.include, Keys.exclude)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_LONGEST_MS = 100 * 366 * 86_400_000
_INNERMOST = re.compile(r"\([^()]*\)")
# MySQL and MariaDB execute what such a comment has.
_EXECUTED = re.compile(r"/\*M?!\d*(.*?)\*/", re.DOTALL)
_NAMED = r"(?<!\.)(?<!\. )(?<!\bAS )"
"""Before a word that is no name: PostgreSQL takes reserved words for names of columns after a dot, and after AS."""
# A reserved word of all databases, so what follows may have any form: 5, +5, '5', abs(5). The exceptions limit nothing.
_LIMIT = re.compile(rf"{_NAMED}\b(?:LIMIT\b(?! ?(?:ALL|NULL)\b| ?- ?1\b)|FETCH (?:FIRST|NEXT)\b)", re.IGNORECASE)
# Of PostgreSQL and of MySQL; OFFSET 0 leaves out nothing, and keeps PostgreSQL from merging a subquery. Without a LIMIT
# before it, OFFSET may be a column of SQLite and MySQL, after which there is something else than its number.
_COUNT = r"(?! ?0+\b) ?(?:[\d\x00\x01+]|\w+ ?\x00)"
_OFFSET = re.compile(
    rf"{_NAMED}\bLIMIT\b(?:.*\bOFFSET\b(?! ?0+\b)|(?! ?0+ ?,)(?:(?! FOR )[^,])*,)"
    rf"|{_NAMED}(?<![,=<>(+-] )(?<!\bSELECT )(?<!\b(?:BY|OR|ON) )(?<!\b(?:AND|NOT) )(?<!\bWHERE )\bOFFSET\b{_COUNT}",
    re.IGNORECASE,
)
_NO_ROWS = re.compile(rf"{_NAMED}\b(?:LIMIT 0+\b(?! ?,)|FETCH (?:FIRST|NEXT) 0+\b)", re.IGNORECASE)
_SKIP_LOCKED = re.compile(r"\bSKIP\s+LOCKED\b", re.IGNORECASE)
# Of MariaDB, which counts the rows that a condition lets through, as LIMIT does.
_ROWNUM = re.compile(
    r"(?:[<>=]|\bBETWEEN\b) *ROWNUM *\x02|\bROWNUM *\x02 *(?:[<>=!]|\b(?:NOT )?(?:BETWEEN|IN)\b)", re.IGNORECASE
)
_EXAMINED = re.compile(r"\bROWS EXAMINED\b", re.IGNORECASE)
_SAMPLE = re.compile(rf"{_NAMED}\bTABLESAMPLE \w+ ?\x00", re.IGNORECASE)


def checks() -> Iterator[tuple[Sequence[TypedKey[Any] | str], Rule]]:
    """Keys that must be valid by themselves, and the rule about them."""
    tables, query = (*_LEGACY, *_NEW), (Keys.plain_query, Keys.masked_query)
    columns = (Keys.timestamps, Keys.timestamps_by_table, Keys.incrementing, Keys.incrementing_by_table)
    yield tables, _tables
    yield (*tables, *query), _query
    yield (URL, Keys.mode, *query), _limited
    yield (URL, Keys.mode, *query, Keys.query_suffix), _leaving_out
    yield (URL, Keys.mode, Keys.query_suffix), _no_rows
    yield (URL, Keys.lookback_ms, Keys.query_suffix), _limited_window
    yield (Keys.mode, *columns, *query, Keys.lookback_ms), _columns
    yield (Keys.changed_only, Keys.mode, *query), _changed_only
    yield (Keys.initial_ms, Keys.delay_ms), _times
    yield (Keys.isolation,), _isolation


def _tables(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.whitelist.of(parsed) and Keys.blacklist.of(parsed):
        yield Problem(Keys.blacklist.name, f"{Keys.whitelist} and {Keys.blacklist} are exclusive.", "Remove one.")
    legacy, new = [key for key in _LEGACY if key.of(parsed)], [key for key in _NEW if key.of(parsed)]
    if legacy and new:
        yield Problem(
            new[0].name,
            f"Cannot mix legacy and new configuration approaches: {legacy[0]} and {new[0]} are both set.",
            f"Remove {legacy[0]}, and write its tables as regular expressions in {Keys.include}.",
        )
    if Keys.exclude.of(parsed) and not Keys.include.of(parsed):
        yield Problem(
            Keys.exclude.name,
            f"{Keys.exclude} cannot be used without {Keys.include}. Exclude list only applies to tables"
            " that match the include list.",
            f"Set {Keys.include}, for example to .*",
        )


def _query(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    masked = Keys.masked_query.of(parsed)
    has_masked = masked is not None and bool(masked.value)
    if Keys.plain_query.of(parsed) and has_masked:
        yield Problem(
            Keys.masked_query.name,
            "Both 'query' and 'query.masked' configs cannot be set at the same time.",
            "Please use only one of them.",
        )
    selected = [key for key in (*_LEGACY, *_NEW) if key.of(parsed)]
    if (Keys.plain_query.of(parsed) or has_masked) and selected:
        yield Problem(
            selected[0].name,
            "Do not specify table filtering configs with 'query'.",
            f"Remove {', '.join(map(str, selected))} when using query mode or 'query' when using table filtering mode.",
        )


def _has_query(parsed: Mapping[str, Any]) -> bool:
    masked = Keys.masked_query.of(parsed)
    return bool(Keys.plain_query.of(parsed) or (masked is not None and masked.value))


def _limited(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Refuse a query that ends with a LIMIT: later runs would get the same rows again, and never those after them."""
    mode, (key, query) = Keys.mode.of(parsed), _query_of(parsed)
    if mode == names.BULK:
        return
    found = "a LIMIT" if _LIMIT.search(_own_words(query, parsed)) else ""
    if not found and _database(parsed) == "mysql" and _ROWNUM.search(_without_brackets(query, parsed)):
        found = "a condition with ROWNUM()"
    if found:
        yield Problem(
            key.name,
            f"The query has {found}, which in mode {mode} counts before the condition for new rows: rows after the"
            " first ones would never be copied.",
            f"{'Move it to' if 'LIMIT' in found else 'Write a LIMIT into'} {Keys.query_suffix}, which limits the new"
            " rows of a run. If it belongs to the meaning of the query, such as the largest of each day, put the query"
            " into a subquery.",
        )


def _leaving_out(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Refuse what leaves out rows before the last one of a run: the offset would come after them all the same."""
    mode, query = Keys.mode.of(parsed), _query_of(parsed)
    if mode == names.BULK:
        return
    for key, text in (query, (Keys.query_suffix, Keys.query_suffix.of(parsed))):
        words = _own_words(text, parsed)
        found, why = "SKIP LOCKED", "that other transactions have locked"
        if _OFFSET.search(words):
            found, why = "an OFFSET", "before it"
        elif _SAMPLE.search(words):
            found, why = "TABLESAMPLE", "that are not in its sample"
        elif _EXAMINED.search(words) and key is Keys.query_suffix:
            found, why = "LIMIT ROWS EXAMINED", "that the server does not come to"
        elif not _SKIP_LOCKED.search(words):
            continue
        yield Problem(
            key.name,
            f"{key} has {found}, which leaves out rows {why}. In mode {mode} they would never be copied, because the"
            " next run begins after the last row of this one.",
            "Remove it. A LIMIT in query.suffix limits the new rows of a run.",
        )


def _no_rows(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Refuse LIMIT 0: each run would be green, and copy nothing."""
    if Keys.mode.of(parsed) != names.BULK and _NO_ROWS.search(_own_words(Keys.query_suffix.of(parsed), parsed)):
        yield Problem(
            Keys.query_suffix.name,
            f"{Keys.query_suffix} limits a run to 0 rows, so no run would ever copy anything.",
            "Remove it, or write how many new rows a run may copy. To stop the copies for a while, pause the DAG.",
        )


def _limited_window(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Refuse a LIMIT for the rows of the look-back window: a run would end before it comes to new ones."""
    if Keys.lookback_ms.of(parsed) and _LIMIT.search(_own_words(Keys.query_suffix.of(parsed), parsed)):
        yield Problem(
            Keys.query_suffix.name,
            f"{Keys.query_suffix} has a LIMIT, and {Keys.lookback_ms} is set: the rows of the window, which each run"
            " reads again, would count. As soon as there are as many of them, no run would copy a new row.",
            f"Remove the LIMIT, or {Keys.lookback_ms}.",
        )


def _query_of(parsed: Mapping[str, Any]) -> tuple[TypedKey[Any], str]:
    """The key that has a query, and the query, or ""."""
    masked, plain = Keys.masked_query.of(parsed), Keys.plain_query.of(parsed)
    if plain:
        return Keys.plain_query, plain
    return Keys.masked_query, masked.value if masked is not None else ""


def _own_words(statement: str, parsed: Mapping[str, Any]) -> str:
    """A statement without its subqueries, or the one that is in brackets as a whole."""
    words = _without_texts(statement, parsed)
    while words != (inner := _INNERMOST.sub("\x00", words)):
        if not inner.strip("(); \t\r\n\x00\x01"):
            return words
        words = inner
    return words


def _without_brackets(statement: str, parsed: Mapping[str, Any]) -> str:
    """The same with what it has in brackets, except subqueries."""
    words = _without_texts(statement, parsed)
    while words != (inner := _INNERMOST.sub(_unbracketed, words)):
        if not inner.strip("; \x00"):
            return words
        words = inner
    return words


def _unbracketed(found: re.Match[str]) -> str:
    inner = found[0][1:-1].strip()
    if inner.upper().startswith(("SELECT", "WITH")):
        return "\x00"
    return f" {inner} " if inner else "\x02"


def _without_texts(statement: str, parsed: Mapping[str, Any]) -> str:
    words = without_texts(_EXECUTED.sub(r" \1 ", statement), comment=" ", database=_database(parsed))
    return re.sub(r"\s+", " ", words.strip("; \t\r\n"))


def _database(parsed: Mapping[str, Any]) -> str:
    from airflow_connect.databases.urls import place_of
    from airflow_connect.errors import ConfigError

    try:
        return place_of(parsed[URL]).database
    except ConfigError:
        return ""  # The rule of the address itself says why.


def _columns(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    mode = Keys.mode.of(parsed)
    timestamps = Keys.timestamps.of(parsed)
    if Keys.timestamps_by_table.of(parsed) and timestamps:
        yield _both(Keys.timestamps, Keys.timestamps_by_table)
    if Keys.incrementing_by_table.of(parsed) and Keys.incrementing.of(parsed):
        yield _both(Keys.incrementing, Keys.incrementing_by_table)
    if "timestamp" in mode and not timestamps and not Keys.timestamps_by_table.of(parsed):
        yield Problem(
            Keys.mode.name,
            f"Timestamp column configuration must be provided when using mode '{names.TIMESTAMP}' or"
            f" '{names.TIMESTAMP_INCREMENTING}'.",
            f"Set {Keys.timestamps} or {Keys.timestamps_by_table}.",
        )
    is_query = _has_query(parsed)
    if is_query and names.INCREMENTING in mode and not Keys.incrementing.of(parsed):
        yield Problem(
            Keys.incrementing.name,
            f"A query in mode {mode} needs {Keys.incrementing}: no column of a query numbers itself.",
            f"Set {Keys.incrementing}.",
        )
    if Keys.lookback_ms.of(parsed) and mode != names.TIMESTAMP:
        yield Problem(
            Keys.lookback_ms.name,
            f"{Keys.lookback_ms} works only in mode {names.TIMESTAMP}, not in {mode}.",
            f"Set mode={names.TIMESTAMP}, which also finds new rows, or remove {Keys.lookback_ms}.",
        )
    if Keys.lookback_ms.of(parsed) and is_query:
        yield Problem(
            Keys.lookback_ms.name,
            f"{Keys.lookback_ms} needs a table with a primary key, which a query does not have.",
            f"Remove {Keys.lookback_ms}, or copy a table instead of a query.",
        )


def _changed_only(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    mode = Keys.mode.of(parsed)
    if not Keys.changed_only.of(parsed):
        return
    if mode != names.BULK:
        yield Problem(
            Keys.changed_only.name,
            f"{Keys.changed_only} works only in mode {names.BULK}, not in {mode}.",
            f"Remove {Keys.changed_only}: the other modes copy only new rows.",
        )
    if _has_query(parsed):
        yield Problem(
            Keys.changed_only.name,
            f"{Keys.changed_only} needs tables with a primary key, which a query does not have.",
            f"Remove {Keys.changed_only}, or copy a table instead of a query.",
        )


def _both(first: TypedKey[Any], second: TypedKey[Any]) -> Problem:
    return Problem(second.name, f"Cannot use both {first} and {second}.", "Remove one of them.")


def _times(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    initial = Keys.initial_ms.of(parsed)
    if initial is not None and not _FIRST_MS <= initial <= _LAST_MS:
        yield Problem(
            Keys.initial_ms.name,
            f"{Keys.initial_ms} is {initial}, which is not a time of the years 1 to 9999.",
            "Write it in milliseconds since 1970, such as 1767225600000 for 2026-01-01.",
        )
    if Keys.delay_ms.of(parsed) > _LONGEST_MS:
        yield Problem(
            Keys.delay_ms.name,
            f"{Keys.delay_ms} is more than 100 years.",
            "Write it in milliseconds, such as 60000 for a minute.",
        )


def _isolation(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if Keys.isolation.of(parsed) == "sql_server_snapshot":
        yield Problem(
            Keys.isolation.name,
            "Isolation mode of `SQL_SERVER_SNAPSHOT` can only be configured with a Sql Server Dialect",
            "Choose another isolation mode.",
        )


def database_is_read(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    """Refuse databases that the source does not read."""
    from airflow_connect.databases.urls import parse_url
    from airflow_connect.errors import ConfigError

    try:
        database = parse_url(parsed[URL]).database
    except ConfigError:
        return  # The rule of the address itself says why.
    if database not in ("postgresql", "mysql", "sqlite"):
        yield Problem(
            "connection.url",
            f"The JDBC source does not read {database} yet: it reads PostgreSQL, MySQL, MariaDB and SQLite.",
            "Run this connector in Kafka Connect.",
        )
