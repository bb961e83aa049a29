"""Database sessions of a sink: what holds for them, and the end of those that a frozen process holds open.

A process that is frozen, or whose machine is gone, must not hold the locks of its transaction forever: the next run
waits for them. Timeouts of the server end such a transaction while the server waits for the next statement. PostgreSQL
has none for a client that stops in the middle of a COPY, or of statements that it sends without waiting for answers.
There, transactions carry a mark with the epoch of their run, and a later run ends those with a lower one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

IDLE_TRANSACTION_S, IDLE_CONNECTION_S = 30, 120
LOCK_WAIT_S = 5
"""How long a run waits for a lock before it looks whether an earlier run holds it."""
_EPOCHS = 1 << 31


def session_settings(connection: Connection) -> list[str]:
    """Statements for a new session."""
    dialect = connection.dialect
    if dialect.name == "postgresql":
        return [f"SET idle_in_transaction_session_timeout = {IDLE_TRANSACTION_S * 1000}"]
    if dialect.name not in ("mysql", "mariadb"):
        return []
    # As Connector/J does: otherwise a server may cut values off, or store zeros, and call it a warning.
    settings = ["SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')"]
    if getattr(dialect, "is_mariadb", False) and (dialect.server_version_info or ()) >= (10, 3):
        settings.append(f"SET SESSION idle_write_transaction_timeout = {IDLE_TRANSACTION_S}")
    else:
        # MySQL has no limit for transactions, only one for connections, 8 hours by default. A connection that is idle
        # between two transactions ends, too; the next transaction then opens another one.
        settings.append(f"SET SESSION wait_timeout = {IDLE_CONNECTION_S}")
    return settings


class MarkedTransactions:
    """Marks of PostgreSQL's transactions: shared advisory locks (connector, epoch), which never block.

    With other databases, nothing happens.
    """

    def __init__(self, connector: str, table: str) -> None:
        """`connector`, `table`: name of the connector and of its offsets table."""
        digest = hashlib.sha256(f"{table}\0{connector}".encode()).digest()
        self._key = int.from_bytes(digest[:4], "big", signed=True)

    def mark(self, connection: Connection, epoch: int) -> None:
        """Mark the transaction that has begun."""
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({self._key}, {epoch % _EPOCHS})")

    @staticmethod
    def limit_waiting(connection: Connection) -> None:
        """In the transaction that has begun, fail after `LOCK_WAIT_S` instead of waiting on for a lock."""
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_WAIT_S * 1000}")

    def end_earlier(self, connection: Connection, epoch: int) -> int:
        """End the sessions whose transactions have a lower epoch; returns how many.

        They could not commit anything more after their present transaction, and that is rolled back. A user may end
        only sessions of the same user.
        """
        if connection.dialect.name != "postgresql":
            return 0
        with connection.begin():
            ended = connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                f" AND classid = {self._key % (1 << 32)} AND objid < {epoch % _EPOCHS}"
            ).scalars()
            return sum(map(bool, ended))
