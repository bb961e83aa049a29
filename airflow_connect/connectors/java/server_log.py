"""How far PostgreSQL has read its log for Debezium.

The server skips changes of tables and databases that are not captured, and Debezium learns nothing of it: it is
connected, its queue is empty, and it returns nothing. A run that took that for the end would be empty while there are
changes behind what is skipped, and so would the next one, which begins at the same offset. So a run also looks at the
position up to which the server has read for the slot (`sent_lsn`), and goes on while it moves and lies before where the
log ended when the task started.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

POSTGRESQL = "io.debezium.connector.postgresql.PostgresConnector"
STALLED_S = 10.0
"""How long the position may stay where it is before nothing more is expected."""
_CONNECT_S = 10
_LEAST_IDLE_S = 2.0
_END = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'"
_SENT = (
    "SELECT s.sent_lsn - '0/0' FROM pg_replication_slots r JOIN pg_stat_replication s ON s.pid = r.active_pid"
    " WHERE r.slot_name = %s"
)
_TLS = {"sslmode": "sslmode", "sslcert": "sslcert", "sslkey": "sslkey", "sslrootcert": "sslrootcert"}


class ServerLog:
    """The log of one server.

    Attributes:
        unknown: why its position is not known, a clause; "" if it is.
    """

    def __init__(self, config: Mapping[str, str], idle_s: float) -> None:
        """Connect, and read the end of the log.

        Args:
            config: of the connector.
            idle_s: how long what the server has sent may take to become records.
        """
        self._idle_s = max(idle_s, _LEAST_IDLE_S)
        self._slot = config.get("slot.name") or "debezium"
        self._has_stream = config.get("snapshot.mode") != "initial_only"
        self._connection: Any = None
        self.unknown = ""
        self._sent, self._moved_at = -1, 0.0
        self._behind_at = -math.inf
        self._end = 0
        try:
            self._connection = _connected(config)
            self._end = int(self._connection.execute(_END).fetchone()[0])
        except Exception as error:  # noqa: BLE001 (the run says that it does not know; Debezium's own connection counts)
            self._give_up(error)

    @classmethod
    def of(cls, class_name: str, config: Mapping[str, str], idle_s: float) -> ServerLog | None:
        """That of a connector; None if its class needs none."""
        return cls(config, idle_s) if class_name == POSTGRESQL else None

    def is_behind(self, now: float) -> bool:
        """Whether the server is still reading what was there when the task started, or was a moment ago.

        Args:
            now: seconds of a monotonic clock.
        """
        if self.unknown or not self._has_stream:
            return False
        try:
            row = self._connection.execute(_SENT, (self._slot,)).fetchone()
        except Exception as error:  # noqa: BLE001 (as above)
            self._give_up(error)
            return False
        if row is None or row[0] is None:
            self.unknown = f"the user may not see the position of the slot {self._slot}, or no process reads it"
            return False
        sent = int(row[0])
        if sent != self._sent:
            self._sent, self._moved_at = sent, now
        if sent < self._end and now - self._moved_at < STALLED_S:
            self._behind_at = now
        return now - self._behind_at < self._idle_s

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _give_up(self, error: Exception) -> None:
        self.unknown = f"it cannot be asked ({type(error).__name__})"


def _connected(config: Mapping[str, str]) -> Any:
    import psycopg

    tls: dict[str, Any] = {
        option: config[f"database.{key}"] for key, option in _TLS.items() if config.get(f"database.{key}")
    }
    return psycopg.connect(
        host=config.get("database.hostname"),
        port=config.get("database.port") or "5432",
        user=config.get("database.user"),
        password=config.get("database.password"),
        dbname=config.get("database.dbname"),
        connect_timeout=_CONNECT_S,
        autocommit=True,
        prepare_threshold=None,
        **tls,
    )
