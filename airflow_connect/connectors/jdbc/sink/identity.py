"""What a table is, apart from its name: whether it is the one that the last run has written.

A table that was dropped and created again, or replaced by a copy, lacks records whose offsets are committed. PostgreSQL
has an oid, which TRUNCATE and ALTER TABLE keep; MySQL and MariaDB have the second at which a table was made, which may
change with them. SQLite has nothing that only such a change alters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.databases.identifiers import TableId

_MYSQL = (
    "SELECT date_format(create_time, '%%Y-%%m-%%dT%%H:%%i:%%s') FROM information_schema.tables"
    " WHERE table_schema = COALESCE(%(schema)s, DATABASE()) AND table_name = %(name)s"
)
_SHOWN = 3


def identity_of(connection: Connection, table: TableId, quoted: str) -> str:
    """The identity of a table that exists; "": the database does not tell.

    Args:
        connection: of the database.
        table: as it is stored.
        quoted: its name for a statement.
    """
    if connection.dialect.name == "postgresql":
        name = {"name": quoted.replace("%%", "%")}
        return str(connection.exec_driver_sql("SELECT to_regclass(%(name)s)::oid::text", name).scalar() or "")
    if connection.dialect.name in ("mysql", "mariadb"):
        place = {"schema": table.catalog or None, "name": table.table}
        return str(connection.exec_driver_sql(_MYSQL, place).scalar() or "")
    return ""


def merged(one: str, other: str) -> str:
    """Which of the identities that two tasks have seen is kept.

    Of times the later one: a task has altered the table after the other had looked. Of oids the one that was there
    first: the table was replaced during the run, and the next one says so.
    """
    if one.isdigit() and other.isdigit():
        return min(one, other, key=int)
    return max(one, other)


def made_again(table: TableId, found: str, first: str) -> str:
    """The sentence about another table; `found`: its identity, `first`: where the run begins to write."""
    what = "was dropped and created again, or another table has taken its name"
    if not found.isdigit():
        what += ", or it was truncated or altered; the database does not tell which"
    return (
        f"The table {table} is not the one that the last run has written: it {what}. This run writes {first} on. If the"
        " rows of earlier records are not in it, set the offsets of the connector back, to write them again."
    )


def dropped_meanwhile(table: TableId, starts: Mapping[TopicPartition, int]) -> str:
    """The sentence about a table that was dropped while a task wrote to it; `starts`: where the task began to write."""
    places = [f"{partition} from offset {offset}" for partition, offset in sorted(starts.items())]
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    began = ", ".join(places[:_SHOWN]) + more
    return (
        f"The table {table} was dropped while this run wrote to it, and created again. What the run had written into it"
        f" before, {began} on, is not in the new table: set the offsets of the connector back to there, to write it"
        " again."
    )
