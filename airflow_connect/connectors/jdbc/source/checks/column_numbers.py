"""Whether a tracked column of PostgreSQL is that of the last run: another one may have its name.

PostgreSQL gives each column of a table a number (`pg_attribute.attnum`). The column keeps it with another name or type,
and no other column of the table ever gets it. MySQL, MariaDB and SQLite have no such number: they tell that a table was
altered (`origin.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.identities import Identities
    from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
    from airflow_connect.databases.identifiers import TableId

_NUMBERED = ""
"""Stands for the column that the database numbers, if the configuration does not name it."""


def tracked_names(config: JdbcSourceConfig, key: str) -> list[str]:
    """The columns of a table by which rows are found, as the configuration names them.

    Args:
        config: of the source.
        key: the full name of the table.
    """
    number = [config.incrementing_column(key)] if config.uses_incrementing else []
    stamps = config.timestamp_columns(key) if config.uses_timestamps else ()
    return [name for name in (*number, *stamps) if name]


def numbers_of(config: JdbcSourceConfig, found: Identities, table: TableId | None) -> str:
    """The names of the tracked columns of a table and their numbers, as JSON; "": they are not known.

    Args:
        config: of the source.
        found: what the database says.
        table: None for the query.
    """
    known = {} if table is None else found.numbers.get(table, {})
    if table is None or not known:
        return ""
    numbers = {}
    for name in tracked_names(config, table.full_name):
        same = [other for other in known if other == name] or [o for o in known if o.lower() == name.lower()]
        if len(same) == 1:
            numbers[name] = known[same[0]]
    numbered = [known[name] for name in found.counters.get(table, {}) if name in known]
    if config.uses_incrementing and not config.incrementing_column(table.full_name) and len(numbered) == 1:
        numbers[_NUMBERED] = numbered[0]
    return json.dumps(numbers, sort_keys=True) if numbers else ""


def other_columns(before: Sequence[str], now: str) -> list[str]:
    """Which tracked columns of a table are others than at the last run, as parts of a sentence.

    Args:
        before: the numbers that the document of the last run has; () or "": it has none.
        now: those of this run.
    """
    known = json.loads(before[0]) if before and before[0] else {}
    others = [name for name, number in json.loads(now or "{}").items() if known.get(name, number) != number]
    return [
        f"another column has the name {name} now, because the one of the last run was dropped or renamed"
        if name != _NUMBERED
        else "another column is the one that the database numbers, because that of the last run was dropped"
        for name in others
    ]


def is_respelled(old: str, new: str, before: Sequence[str], now: str, *, folds: bool) -> bool:
    """Whether tracked columns are those of the last run, with capitals in other places.

    Args:
        old: their names in the configuration of the last run, with commas between.
        new: those of this run.
        before: see `other_columns`.
        now: the numbers of this run.
        folds: whether no table has two columns whose names differ in capitals only.
    """
    if old.lower() != new.lower():
        return False
    known, found = (json.loads(text or "{}") for text in (before[0] if before else "", now))
    pairs = zip(old.split(","), new.split(","), strict=True)
    return folds or all(first in known and known[first] == found.get(second) for first, second in pairs)
