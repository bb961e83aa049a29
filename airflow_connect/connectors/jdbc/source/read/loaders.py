"""How psycopg returns values of PostgreSQL that a field may not hold, or that Connect has as texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.values.out_of_range import Beyond

if TYPE_CHECKING:
    from sqlalchemy import Connection


def load_leniently(connection: Connection) -> None:
    """Types that Connect has as texts arrive as texts, and dates and times that Python has not as `Beyond`.

    An interval is left out, but the driver would end the whole result for one that Python has not. A connection reads
    many tables, one after the other: doing it again changes nothing.
    """
    from psycopg.pq import Format
    from psycopg.types.string import TextLoader

    adapters = connection.connection.driver_connection.adapters  # type: ignore[union-attr]
    for name in ("json", "jsonb", "uuid", "interval"):
        adapters.register_loader(name, TextLoader)
    for name in ("date", "timestamp", "timestamptz", "time", "timetz"):
        original = adapters.get_loader(adapters.types[name].oid, Format.TEXT)
        if not getattr(original, "is_lenient", False):
            adapters.register_loader(name, _lenient(original))


def _lenient(original: Any) -> Any:
    """The driver's loader of a type, except for values that it refuses; without it, one would end the whole result."""
    from psycopg import DataError
    from psycopg.adapt import Loader

    class LenientLoader(Loader):
        """Asks the original."""

        is_lenient = True

        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._load = original(oid, context).load

        def load(self, data: Any) -> Any:
            try:
                return self._load(data)
            except DataError:
                text = bytes(data).decode()
                return Beyond(is_above=not (text.startswith("-") or text.endswith("BC")), text=text)

    return LenientLoader
