"""Which zones sessions have that are not this one: those of other users write the rows.

PostgreSQL: the zone of a session comes from its client, else from its role, else from the database, else from the
server. Only the last one is hidden from a session that has one of the others.

MySQL and MariaDB: `init_connect` of the server may set a zone, but not for users with certain privileges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.databases.dialects.postgresql import ZONE_SOURCE

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

UNKNOWN = None
_INIT_CONNECT = re.compile(r"\btime_zone\s*:?=\s*(?:'([^']*)'|\"([^\"]*)\")?", re.IGNORECASE)
_OFFSET = re.compile(r"([+-]?)(\d\d?):(\d\d)")
_KNOWN = "airflow_connect.zones_of_roles"
"""Key of a connection's `info`: what `_zones_of_roles` has found."""
_ZONES = """
SELECT CASE WHEN s.setrole <> 0 THEN s.setrole::text END, r.rolname, substr(setting, 10), r.rolname = session_user
FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole, unnest(s.setconfig) setting
WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
  AND setting ILIKE 'timezone=%%'
  AND (s.setrole = 0 OR r.rolname = session_user OR (r.rolcanlogin AND NOT r.rolsuper))
ORDER BY s.setdatabase, s.setrole
"""
"""Those of ALTER ROLE and ALTER DATABASE. What is set for one database comes last, and counts.

Other superusers are left out: hosts of databases have such a role with a zone (rdsadmin), which writes no rows.
"""
_MAY_WRITE = """
WITH named AS (
  SELECT c.oid, c.relkind = ANY('{r,p}') AND NOT c.relispartition AS is_plain
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = %(schema)s::text AND c.relname = %(table)s::text
)
SELECT EXISTS (
  SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = ANY('{r,p}') AND n.nspname !~ '^pg_|^information_schema$'
    AND (c.oid IN (SELECT oid FROM named) OR NOT EXISTS (SELECT 1 FROM named WHERE is_plain))
    AND has_any_column_privilege(%(role)s::oid, c.oid, 'INSERT, UPDATE')
)
"""
"""Rows of a partition may come through its table, and those of a view or a query through any other one."""


class OtherZone(NamedTuple):
    """A zone of sessions that may write rows.

    Attributes:
        name: of the zone, as PostgreSQL knows it; None: it is not known.
        whose: the sessions, for messages.
    """

    name: str | None
    whose: str


class _RoleZone(NamedTuple):
    oid: str | None
    role: str
    zone: str
    is_own: bool


def has_others(reading: Reading) -> bool:
    """Whether sessions of different tables may have different zones."""
    return reading.name == "postgresql" and bool(_zones_of_roles(reading) or _is_of_client(reading))


def zones_of_others(reading: Reading, table: TableId | None) -> Iterator[OtherZone]:
    """The zones of sessions that may write rows, if it is not known that they have the one of this session.

    Args:
        reading: connected.
        table: that is read; None: the query.
    """
    if reading.name == "mysql":
        yield from _zone_of_init_connect(reading)
    if reading.name != "postgresql":
        return
    found = _zones_of_roles(reading)
    default = found.get(None)
    if _is_of_client(reading) or any(each.is_own for each in found.values()):
        whose = "sessions of other users of the database"
        yield OtherZone(UNKNOWN if default is None else default.zone, whose)
    for each in found.values():
        if each.oid is not None and not each.is_own and _may_write(reading, each.oid, table):
            yield OtherZone(each.zone, f"sessions of the role {each.role} (ALTER ROLE ... SET timezone)")


def _zone_of_init_connect(reading: Reading) -> Iterator[OtherZone]:
    # Not SELECT @@global: servers that only speak the protocol of MySQL may not know the variable.
    row = reading.connection.exec_driver_sql("SHOW GLOBAL VARIABLES LIKE 'init_connect'").first()
    found = None if row is None else _INIT_CONNECT.search(str(row[1]))
    if found is None:
        return
    whose = "sessions of users to whom init_connect of the server applies"
    zone = found[1] or found[2] or ""
    offset = _OFFSET.fullmatch(zone)
    if offset is not None:
        yield OtherZone(f"{offset[1]}{int(offset[2]) + int(offset[3]) / 60:g}", whose)
    elif zone != str(reading.config.connection.zone):
        yield OtherZone(UNKNOWN, whose)


def _zones_of_roles(reading: Reading) -> dict[str | None, _RoleZone]:
    """By the oid of a role, or None for all others."""
    info = reading.connection.info
    if _KNOWN not in info:
        rows = [_RoleZone(*row) for row in reading.connection.exec_driver_sql(_ZONES).all()]
        info[_KNOWN] = {row.oid: row for row in rows}
    found: dict[str | None, _RoleZone] = info[_KNOWN]
    return found


def _is_of_client(reading: Reading) -> bool:
    """Whether this session has its zone from the address or the environment (PGTZ)."""
    return reading.connection.info.get(ZONE_SOURCE) == "client"


def _may_write(reading: Reading, role: str, table: TableId | None) -> bool:
    place = {"schema": None, "table": None} if table is None else {"schema": table.schema, "table": table.table}
    return bool(reading.connection.exec_driver_sql(_MAY_WRITE, {"role": role, **place}).scalar())
