"""What a run reads, compared with what the last run has read: an offset has only the name of a table.

A table that was dropped and created again may have rows at or below the offset, which no run would copy; so may another
database behind `connection.url`. Therefore the connector keeps a document from run to run: the address, the server, a
hash of the query, the tracked columns, and an identity of each table (`identities.py`). Only a change is looked at, and
only if there are rows at or below the offset. What follows depends on how sure it is:

- A table of PostgreSQL with another oid on the same server was made again. TRUNCATE, VACUUM FULL and ALTER TABLE keep
  the oid. Its rows may be those that were copied (a dump that was restored) or others: the table fails, unless
  `table.recreated=continue`.
- MySQL, MariaDB and SQLite do not tell a table that was made again from one that was altered: a note with the number of
  rows, so that no ALTER TABLE stops a connector. So is a view with another definition.
- A partition, or a table that inherits, was added with rows at or below the offset: a note with their number, because
  rows that were moved there were copied before.
- A sequence of PostgreSQL that gives numbers at or below the offset: mode incrementing would not find these rows, so it
  fails. `set_back.py` looks at sequences only if the largest number is below the offset.
- A table of PostgreSQL behind a query has another oid: a note with the number of rows of the query at or below the
  offset. A table that is joined may be rebuilt every day, so it must not stop the connector.
- Another address, server, query or column: a note with the numbers. A database that moves takes its rows along, and a
  failover to another host must not stop a connector. PostgreSQL with the same system identifier is the same server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.connectors.jdbc.source.checks.apart import apart, read_apart
from airflow_connect.connectors.jdbc.source.checks.column_numbers import (
    is_respelled,
    numbers_of,
    other_columns,
    tracked_names,
)
from airflow_connect.connectors.jdbc.source.checks.sequences import Sequences, look_at_numbers
from airflow_connect.connectors.jdbc.source.checks.unseen import tables_behind
from airflow_connect.connectors.jdbc.source.checks.views_behind import views_named
from airflow_connect.connectors.jdbc.source.offsets.lookback import SentRows
from airflow_connect.connectors.jdbc.source.offsets.positions import QUERY, Position
from airflow_connect.connectors.jdbc.source.read.identities import (
    QUERY_OF_FILE,
    VIEW,
    hashed,
    identities,
    parts_named,
    place,
    relatives,
)
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.connectors.jdbc.source.settings.statements import spelling
from airflow_connect.counting import agreeing, format_count, plural
from airflow_connect.errors import OffsetError, StateError

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

VERSION = 1
MOST_COUNTED = 100_000
"""How many rows at or below an offset are counted: it must be seen that there are some, not all of them."""
_SHOWN = 10
_AUTO = "the column that the database numbers"
_UNKNOWN = "an unknown number of rows"
_LOADING = "complete ranges of an unfinished first copy"
_LAST, _PARTS, _NUMBERS = 3, 4, 5
"""Where what is known of a table has the last number of a sequence, its partitions, and the numbers of columns."""
_BEHIND = "behind the query: "
"""Begins the name of a table behind the query, among the tables of the document."""
_VIEW_BEHIND = f"{_BEHIND}view "
_OTHER_VIEWS = (
    "Since the last run, views that the query names got another definition, or tables behind them were altered, or"
    " dropped and created again ({views}). Its rows at or below the offset are taken as copied, and are not copied now."
    " If they are not those that were copied before, delete or set the offset"
)
_AGAIN_BEHIND = (
    "Since the last run, tables behind the query were dropped and created again ({tables}). Its rows at or below the"
    " offset are taken as copied, and are not copied now. If they are not those that were copied before, delete or set"
    " the offset"
)
_SINCE = "Since the last run"
_TAKEN = (
    "{}, {}. Rows at or below an offset are taken as copied, and are not copied now. If they are not"
    " those that were copied before, delete or set the offsets"
)
_CHANGED = "{} was changed"
_SPELLING = "query.spelling"
"""Of the query without white space that means nothing; earlier documents do not have it."""
_SAME_ROWS = (_CHANGED.format("topic.prefix"), _CHANGED.format("db.timezone"))
"""Changes after which a table has the rows that it had before."""
_ADDED = (
    "Since the last run, tables that have rows at or below the offset were added, as partitions, as tables that"
    " inherit, or behind a view or a query. Rows that were moved there were copied before; others are not copied:"
    " delete or set the offsets to copy them"
)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a run has read: `server` and `database` as in `Identities`.

    `tables`: of each its identity, its incrementing and its timestamp columns, the last number of its sequence, its
    partitions, and the numbers of its tracked columns, which earlier documents do not have; "" for what is not known.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    server: str = ""
    database: str = ""
    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> _Known | None:
        """From a document; None: there is none, or it is of another kind of connector with this name."""
        if "tables" not in kept or "settings" not in kept:
            return None
        if kept.get("v") != VERSION:
            raise StateError(
                f"What the connector keeps from run to run has version {kept.get('v')}, and this release knows"
                f" {VERSION}.",
                suggestion="Use the release that wrote it, or a newer one.",
            )
        return cls(kept["settings"], kept["server"], kept["database"], kept["tables"])


class _Compared(NamedTuple):
    """What is different for all tables that the same run has read last.

    `changes`: as parts of a sentence. `has_moved`: whether it was another database, or might have been one.
    """

    changes: Sequence[str] = ()
    has_moved: bool = False


class Origin:
    """Compares what a run reads with what the last one has read."""

    def __init__(self, reading: Reading, kept: Mapping[str, Any], tables: Sequence[TableId]) -> None:
        """Ask the database.

        Args:
            reading: connected.
            kept: the document of the last run, or {}.
            tables: that are read; () for a query.

        Raises:
            StateError: a newer release wrote the document.
        """
        self._reading = reading
        self._before = _Known.of(kept)
        config = reading.config
        tracked = {name for table in tables for name in tracked_names(config, table.full_name)}
        views = [] if tables else views_named(reading)
        self._found = identities(reading.name, reading.connection, tables or views, tracked)
        self._sequences = Sequences(reading, self._found)
        self._sequences.name_servers()
        self._chosen = tables
        self._settings = {
            "connection.url": place(config.connection.address),
            "topic.prefix": config.prefix,
            "db.timezone": str(config.connection.zone),
            **({QUERY: hashed(config.query), _SPELLING: self._spelling()} if config.query else {}),
        }
        self._apart = {} if self._before is None else read_apart(kept)
        self._since_last = self._compared_with(self._before)
        self._now: dict[str, list[str]] = {}
        is_behind = reading.name == "postgresql" and not tables and bool(config.query)
        self._behind = tables_behind(reading, None) if is_behind else {}
        of_views = ((view, self._found.tables.get(view)) for view in views)
        self._views = {f"{_VIEW_BEHIND}{view}": identity for view, identity in of_views if identity}
        self._moves: dict[str, tuple[Sequence[str], Position]] = {}
        self._checked: dict[str, list[str]] = {}
        self._other: dict[str, Sequence[str]] = {}
        self._is_taken = False
        self._told: dict[str, list[str]] = {}

    def check(self, table: TableId | None, position: Position, *, is_loading: bool = False) -> None:
        """Look at a table, or the query, before it is read from a position on.

        Args:
            table: None for the query.
            position: after which rows are read; `Position()`: from the first one.
            is_loading: ranges of an unfinished first copy are read instead.

        Raises:
            OffsetError: the table was made again, and has rows that would not be copied.
        """
        key = QUERY if table is None else table.full_name
        config = self._reading.config
        now = [
            self._identity(table),
            *self._columns(key),
            *self._numbers(table, key),
            numbers_of(config, self._found, table),
        ]
        before = None if self._before is None else self._before.tables.get(key)
        if before is not None and not now[0]:
            now[0] = before[0]  # The database does not tell at this moment; the next run compares again.
        self._sequences.refuse_descending(table, key)
        self._sequences.name_hidden(table, key)
        self._sequences.name_blocks(table, key)
        if before is not None:
            before = self._respelled(before, now)
        compared = self._compared(key)
        if before is not None and (is_loading or position != Position()):
            is_other = not compared.has_moved and "" not in (before[0], now[0]) and before[0] != now[0]
            is_same = not compared.has_moved and before[:_LAST] == now[:_LAST]
            changed = [*compared.changes, *_changed_columns(before[1:_LAST], now[1:_LAST])]
            changes = [*changed, *(other_columns(before[_NUMBERS:], now[_NUMBERS]) if is_same else ())]
            again, views = self._made_again_behind(table), self._other_views(table)
            is_different = bool(changes or is_other or again or views)
            rows = self._rows_up_to(table, position, is_loading) if is_different else ""
            if rows and again:
                self._told.setdefault(_AGAIN_BEHIND.format(tables=", ".join(again)), []).append(f"{key}: {rows}")
            if rows and views:
                self._told.setdefault(_OTHER_VIEWS.format(views=", ".join(views)), []).append(f"{key}: {rows}")
            if not rows and is_different:
                self._other[key] = before
            if rows and is_other:
                self._name_other(key, rows, is_view=now[0].startswith(VIEW))
            if rows and changes:
                self._tell_taken(key, changes, rows)
            if not changed and not is_other:
                self._name_added(table, before, now, position, is_loading=is_loading)
            if not changed and not is_other and not is_loading:
                self._moves[key] = before[_LAST:], position
        self._now[key] = now

    def accept(self, table: TableId | None, *, has_rows: bool = True) -> None:
        """Remember a table that was checked, for the next run. Called when nothing else was found.

        A table that was made again and is empty may be one that a job rebuilds, or into which a dump is being restored:
        its rows come later. Until then it stays the one that the last run has read.

        Args:
            table: None for the query.
            has_rows: whether there are rows after its offset.

        Raises:
            OffsetError: its sequence gives numbers that the offset is beyond.
        """
        key = QUERY if table is None else table.full_name
        if key in self._moves:
            before, position = self._moves[key]
            look_at_numbers(key, before, self._now[key][_LAST:], position)
        behind = {f"{_BEHIND}{name}": [oid, "", "", "", "", ""] for name, oid in self._behind.items()}
        behind |= {name: [identity, "", "", "", "", ""] for name, identity in self._views.items()}
        known = self._other.get(key)
        if known is not None and self._before is not None and not has_rows:
            self._name_without_rows(key)
            if not self._compared(key).has_moved:
                self._now[key] = list(known)
                behind |= {name: list(self._before.tables.get(name, oid)) for name, oid in behind.items()}
        self._is_taken = self._is_taken or (known is not None and has_rows)
        self._checked[key] = self._now[key]
        if table is None:
            self._checked |= behind

    def has_named(self, table: TableId) -> bool:
        """Whether a note has the number of all rows of a table at or below its offset."""
        begin = f"{table.full_name}: "
        return any(found.startswith(begin) for every in self._told.values() for found in every)

    @property
    def is_urgent(self) -> bool:
        """Whether a run that dies must have kept the document, because it copies tables for the first time.

        So it is with a table that was made again, whose rows are all after the offset: they are before it soon. Not if
        something was named: then it must be named again.
        """
        known = {} if self._before is None else self._before.tables
        return not self._told and (self._is_taken or not self._checked.keys() <= known.keys())

    def finish(self, with_offset: Iterable[str]) -> Mapping[str, Any]:
        """Name what was found, and return the document for the next run.

        Args:
            with_offset: full names of all tables with an offset; what is known of others that are gone is dropped.
        """
        for sentence, found in self._told.items():
            more = f" and {format_count(len(found) - _SHOWN)} more" if len(found) > _SHOWN else ""
            self._reading.note(f"{sentence}: {', '.join(found[:_SHOWN])}{more}.")
        needed = {table.full_name for table in self._chosen}.union(with_offset, [QUERY])
        last = self._before or _Known()
        known = {name: list(found) for name, found in last.tables.items() if name in needed or name.startswith(_BEHIND)}
        now = {"settings": self._settings, "server": self._found.server, "database": self._found.database}
        of_last = {"settings": last.settings, "server": last.server, "database": last.database}
        others = [name for name in known.keys() - self._checked.keys() if not name.startswith(_BEHIND)]
        return {
            "v": VERSION,
            **now,
            "tables": {**known, **self._checked},
            **apart(others, self._apart, of_last, now),
        }

    def _name_without_rows(self, key: str) -> None:
        """A note about a table without rows, if it may be that of another database: the next run cannot tell."""
        elsewhere = [change for change in self._compared(key).changes if change not in _SAME_ROWS]
        if elsewhere:
            self._tell_taken(key, elsewhere, "no row yet")

    def _tell_taken(self, key: str, changes: Sequence[str], rows: str) -> None:
        since = f"{_SINCE} that read them" if key in self._apart else _SINCE
        self._told.setdefault(_TAKEN.format(since, " and ".join(changes)), []).append(f"{key}: {rows}")

    def _compared(self, key: str) -> _Compared:
        """What is different since the run that has read a table last."""
        if self._before is None or key not in self._apart:
            return self._since_last
        return self._compared_with(replace(self._before, **self._apart[key]))

    def _compared_with(self, before: _Known | None) -> _Compared:
        return _Compared() if before is None else _Compared(self._changes_since(before), self._is_elsewhere(before))

    def _name_other(self, key: str, rows: str, *, is_view: bool) -> None:
        """A note, or an error, about a table that is not the one that the last run has read."""
        if is_view:
            what = (
                "Views have another definition than at the last run, or tables behind them were dropped and created"
                " again, or altered: rows at or below their offsets are not copied. If they are not those that were"
                " copied before, delete or set the offsets"
            )
        elif self._reading.name != "postgresql":
            what = (
                "Since the last run, tables were altered, or dropped and created again; the database does not tell"
                " which. If they were created again, delete or set their offsets: rows at or below these are not copied"
            )
        elif self._reading.config.recreated == names.CONTINUE:
            what = (
                "Tables were dropped and created again since the last run. With table.recreated=continue, their rows at"
                " or below the offset are taken as copied, and are not copied now"
            )
        else:
            raise _made_again(key, rows)
        self._told.setdefault(what, []).append(f"{key}: {rows}")

    def _made_again_behind(self, table: TableId | None) -> list[str]:
        """The tables of PostgreSQL behind the query that are others than at the last run."""
        if table is not None or self._before is None or self._compared(QUERY).has_moved:
            return []
        known = self._before.tables
        found = [name for name, oid in self._behind.items() if known.get(f"{_BEHIND}{name}", [oid])[0] != oid]
        return list(dict.fromkeys(self._reading.behind(str(name)) for name in found))[:_SHOWN]

    def _other_views(self, table: TableId | None) -> list[str]:
        """The views that the query names, and that are others than at the last run."""
        if table is not None or self._before is None or self._compared(QUERY).has_moved:
            return []
        known = self._before.tables
        found = [name for name, now in self._views.items() if known.get(name, [now])[0] != now]
        return [name.removeprefix(_VIEW_BEHIND) for name in found][:_SHOWN]

    def _numbers(self, table: TableId | None, key: str) -> tuple[str, str]:
        """The last number that a sequence gave to the tracked column, and the oids of partitions, with commas."""
        if table is None:
            return "", ",".join(sorted(relatives(self._reading.connection, self._oids_behind)) if self._behind else ())
        return self._sequences.last(table, key), ",".join(self._found.parts.get(table, ()))

    @property
    def _oids_behind(self) -> list[str]:
        """Of the tables that the query reads."""
        return [oid.rpartition(".")[2] for oid in self._behind.values()]

    def _name_added(
        self, table: TableId | None, before: Sequence[str], now: Sequence[str], position: Position, *, is_loading: bool
    ) -> None:
        """Name partitions, and tables behind a view or the query, that were added with rows at or below the offset."""
        is_derived = table is None or now[0].startswith(VIEW)
        # Earlier documents have no parts, or not those of views and queries.
        if len(before) <= (_NUMBERS if is_derived else _PARTS) or before[_PARTS] == now[_PARTS]:
            return
        added = set(now[_PARTS].split(",")).difference(before[_PARTS].split(","), [""])
        if table is None:  # It may read a single partition of a table that got another one.
            added.intersection_update(self._oids_behind)
        for part, is_readable in parts_named(self._reading.connection, sorted(added)):
            rows = self._rows_up_to(table, position, is_loading, part=part) if is_readable else _UNKNOWN
            if rows:
                key = QUERY if table is None else table.full_name
                self._told.setdefault(_ADDED, []).append(f"{key}: {rows} in {self._reading.behind(part.full_name)}")

    def _rows_up_to(
        self, table: TableId | None, position: Position, is_loading: bool, part: TableId | None = None
    ) -> str:
        """What would not be copied, in words; "": nothing. `part`: of the table, whose rows alone are counted."""
        reading, config = self._reading, self._reading.config
        if is_loading:
            is_empty = part is not None and reading.execute(reading.source(part).any("true", {})).fetchone() is None
            return "" if is_empty else _LOADING
        if config.lookback_ms and position.timestamp_us is not None:
            sent = SentRows(position, config.lookback_ms * 1000, config.lookback_rows)
            position = sent.begin(position)
        criteria = reading.criteria(reading.source(table))
        if part is not None:
            source = reading.source(part)
            kinds = {column.name: column.kind for column in reading.described(source)}
            if any(kinds.get(column.name) is not column.kind for column in criteria.tracked.columns):
                return _UNKNOWN  # The view, or the query, computes the tracked columns.
            criteria = criteria.of(source)
        statement = criteria.copied(position, MOST_COUNTED)
        count = int(reading.execute(statement).scalar_one()) if statement is not None else 0
        if not count:
            return ""
        return f"at least {plural(count, 'row')}" if count == MOST_COUNTED else plural(count, "row")

    def _identity(self, table: TableId | None) -> str:
        return self._found.tables.get(QUERY_OF_FILE if table is None else table, "")

    def _columns(self, key: str) -> tuple[str, str]:
        config = self._reading.config
        number = (config.incrementing_column(key) or _AUTO) if config.uses_incrementing else ""
        return number, ",".join(config.timestamp_columns(key)) if config.uses_timestamps else ""

    def _respelled(self, before: Sequence[str], now: Sequence[str]) -> Sequence[str]:
        """What the last run has read, with the names of columns as they are written now."""
        folds = self._reading.name != "postgresql"
        columns = [
            new if is_respelled(old, new, before[_NUMBERS:], now[_NUMBERS], folds=folds) else old
            for old, new in zip(before[1:_LAST], now[1:_LAST], strict=True)
        ]
        return [before[0], *columns, *before[_LAST:]]

    def _spelling(self) -> str:
        return hashed(repr(spelling(self._reading.config.query, database=self._reading.name)))

    def _is_elsewhere(self, before: _Known) -> bool:
        """Whether this is another database, or might be one."""
        now = self._found
        if before.server and now.server and before.server != now.server:
            return True
        if before.settings.get("connection.url") == self._settings["connection.url"]:
            return False
        return not (before.server and now.server) or before.database != now.database

    def _changes_since(self, before: _Known) -> list[str]:
        """What is different for all tables, as parts of a sentence."""
        old, new = before.settings, self._settings
        found = [
            _CHANGED.format(key) for key in ("topic.prefix", "db.timezone", QUERY) if key in old and key in new
            and old[key] != new[key] and not (key == QUERY and old.get(_SPELLING) == new[_SPELLING])
        ]  # fmt: skip
        is_other_database = (
            "" not in (before.database, self._found.database) and before.database != self._found.database
        )
        address, address_before = new["connection.url"], old.get("connection.url", "")
        if self._is_elsewhere(before):
            is_renamed = address != address_before
            found.append(
                f"connection.url was changed from {address_before} to {address}, which may be another database"
                if is_renamed
                else f"{address} has become another server"
            )
        elif is_other_database and self._reading.config.query:
            found.append(f"the database {address} was made again")
        return found


def _changed_columns(before: Sequence[str], now: Sequence[str]) -> list[str]:
    return [
        f"the tracked column was changed from {old} to {new}"
        for old, new in zip(before, now, strict=True)
        if old and new and old != new
    ]


def _made_again(key: str, rows: str) -> OffsetError:
    number, _, _ = rows.rpartition(" ")
    left = f"{number} of its rows {agreeing(1 if number == '1' else 2, 'are')} at or below the offset"
    if rows == _LOADING:
        left = f"{rows} would not be read again"
    return OffsetError(
        f"The table {key} was dropped and created again since the last run, and {left}: they would not be copied."
        " Either they were copied from the earlier table (it was rebuilt, or restored from a dump), or they are new.",
        code="database.recreated",
        suggestion="If they are new, delete the offset of the table: all of its rows are copied. If they were copied,"
        " set table.recreated=continue for one run: only rows after the offset are copied.",
        config_path="table.recreated",
    )
