"""The contract of a dialect, with what most databases have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from airflow_connect.databases.urls import DatabaseAddress


AHEAD = "airflow_connect.seconds_ahead"
"""Key of a connection's `info`: what `seconds_ahead` returns."""


def days_of_the_year() -> tuple[datetime, datetime]:
    """Winter and summer of this year."""
    year = datetime.now(UTC).year
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year, 7, 1, tzinfo=UTC)


class DatabaseDialect:
    """A database, as far as it differs from others.

    Attributes:
        name: SQLAlchemy's name of the database.
    """

    name: ClassVar[str]

    clock_statement: ClassVar[str] = "SELECT CURRENT_TIMESTAMP"
    offset_now: ClassVar[str] = ""
    offset_then: ClassVar[str] = ""
    """How many seconds the clock of a session is ahead of UTC, in the zone that the server gives to sessions: now, and
    at a moment, {0} seconds after 1970."""

    def engine_options(self, address: DatabaseAddress) -> dict[str, Any]:
        """Arguments of `create_engine`."""
        return {}

    def connect_arguments(self, address: DatabaseAddress) -> dict[str, Any]:
        """Keyword arguments of the driver's `connect`."""
        return dict(address.arguments)

    def prepare_engine(self, engine: Engine) -> None:
        """Called for each new engine, before it connects."""

    def prepare(self, connection: Connection) -> None:
        """Called for each new connection, before its first use."""

    def prepare_reading(self, connection: Connection) -> None:
        """Called for a connection that streams results, which waits while rows are written elsewhere."""

    def note_zone(self, connection: Connection) -> None:
        """Keep how far sessions are ahead of UTC, before `prepare` changes the zone of this one."""
        if not self.offset_now:
            return
        days = days_of_the_year()
        parts = [self.offset_now, *(self.offset_then.format(int(day.timestamp())) for day in days)]
        row = connection.exec_driver_sql(f"SELECT {', '.join(parts)}").one()
        connection.info[AHEAD] = dict(zip((None, *days), map(int, row), strict=True))

    def seconds_ahead(self, connection: Connection) -> Mapping[datetime | None, int]:
        """How many seconds the clock of other sessions is ahead of UTC now (None), and at other moments of the year.

        Zones that are the same now may have other clocks in another season. {}: there is no such clock.
        """
        found: Mapping[datetime | None, int] = connection.info.get(AHEAD, {})
        return found

    def streaming_cursor(self, connection: Connection) -> Any:
        """A cursor of the driver whose result stays on the server; `fetchmany` fetches that many rows."""
        return connection.connection.cursor()

    def current_time(self, connection: Connection) -> datetime:
        """The database's own clock, in UTC."""
        value = connection.exec_driver_sql(self.clock_statement).scalar_one()
        return self.utc(value)

    def replayed_until(self, connection: Connection) -> datetime | None:
        """Up to when a replica has the transactions of its primary, in UTC; None: it is no replica, or cannot tell."""
        return None

    def refuses_writes(self, connection: Connection) -> bool:
        """Whether the server is set to read only, as replicas are that do not say up to when they have transactions."""
        return False

    def state(self, connection: Connection) -> str:
        """What the server has now, for `has_state` of another connection; "": it does not tell."""
        return ""

    def has_state(self, connection: Connection, state: str) -> bool:
        """Whether a server has for certain what another connection has found by `state`."""
        return True

    def utc(self, value: Any) -> datetime:
        """The value of `clock_statement` as an instant in UTC. Values without a zone are UTC."""
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
