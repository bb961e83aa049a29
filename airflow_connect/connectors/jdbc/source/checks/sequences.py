"""The sequences that number the incrementing column: what mode incrementing relies on.

It looks for numbers above the largest one it has copied. A sequence that counts down, that gives numbers in blocks to
sessions or servers, or that was set back, breaks that: each is refused or named here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.identities import Counter, Identities
from airflow_connect.connectors.jdbc.source.settings import names
from airflow_connect.errors import ConfigError, OffsetError

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.read.reading import Reading
    from airflow_connect.databases.identifiers import TableId

_HIBERNATE = "hibernate_sequence"
"""That of all tables, by default of Hibernate up to release 5."""


class Sequences:
    """Those of the tables that a run reads."""

    def __init__(self, reading: Reading, found: Identities) -> None:
        """`found` has the counters of the tracked columns."""
        self._reading = reading
        self._found = found

    def last(self, table: TableId, key: str) -> str:
        """The last number that was given to the incrementing column; "": none, or not known."""
        counter = self._counter(table, key)
        return "" if counter is None or counter.last is None else str(counter.last)

    def refuse_descending(self, table: TableId | None, key: str) -> None:
        """Raise `ConfigError` if the sequence of the incrementing column counts down."""
        counter = self._counter(table, key)
        if counter is not None and counter.increment < 0:
            raise ConfigError(
                f"The sequence of the incrementing column of {key} counts down (INCREMENT BY {counter.increment}): new"
                " rows would not be found, because mode incrementing looks for larger numbers.",
                code="database.column",
                suggestion="Use a mode with a timestamp, or mode bulk.",
                config_path="mode",
            )

    def name_hidden(self, table: TableId | None, key: str) -> None:
        """A note about a sequence whose numbers the user may not see: often it may only read tables."""
        counter = self._counter(table, key)
        if counter is not None and not counter.is_readable:
            self._reading.note(
                f"The user in connection.user may not read the sequence of the incrementing column of {key}, so a run"
                " cannot see whether it was set back, as by a restored backup or TRUNCATE ... RESTART IDENTITY. Rows"
                " with numbers up to the offset are then not found. GRANT SELECT ON the sequence, and such a run fails."
            )

    def name_blocks(self, table: TableId | None, key: str) -> None:
        """Sessions, or programs, that take several numbers at once write lower ones after higher ones."""
        counter = self._counter(table, key)
        if counter is not None and counter.cache > 1:
            self._reading.note(
                f"The sequence of the incrementing column of {key} has CACHE {counter.cache}: a session takes so many"
                " numbers at once, and may write them after another session has written larger ones. Mode incrementing"
                " does not find such rows. Set CACHE 1, or use a mode with a timestamp."
            )
        what, increment = (
            f"The sequence of the incrementing column of {key}",
            1 if counter is None else counter.increment,
        )
        if counter is None and table is not None:
            name, increment = self._likely_sequence(table, key)
            what = f"The sequence {name}, which seems to number {key} by its name,"
        if increment > 1:
            self._reading.note(
                f"{what} has INCREMENT BY {increment}: programs such as those with Hibernate then take so many numbers"
                " at once, and may write them after another program has written larger ones. Mode incrementing does not"
                " find such rows. If that is so, use a mode with a timestamp."
            )

    def name_servers(self) -> None:
        """A cluster of MySQL or MariaDB, in which each server has numbers of its own."""
        reading = self._reading
        if reading.name != "mysql" or reading.config.mode != names.INCREMENTING:
            return
        step = int(reading.connection.exec_driver_sql("SELECT @@global.auto_increment_increment").scalar_one())
        if step > 1:
            reading.note(
                f"The server has auto_increment_increment={step}, as where {step} servers write to the same tables,"
                " each with numbers of its own. A row of another server may come later, with a lower number, and mode"
                " incrementing does not find it. Use a mode with a timestamp, and timestamp.lookback.ms."
            )

    def _counter(self, table: TableId | None, key: str) -> Counter | None:
        config = self._reading.config
        if table is None or config.mode != names.INCREMENTING:
            return None
        counters = self._found.counters.get(table, {})
        column = config.incrementing_column(key)
        if not column:  # the one that the database numbers
            return next(iter(counters.values())) if len(counters) == 1 else None
        return counters.get(column) or counters.get(column.lower())

    def _likely_sequence(self, table: TableId, key: str) -> tuple[str, int]:
        """Name and increment of a sequence in blocks that no default of the table names: programs ask it themselves."""
        config = self._reading.config
        if config.mode != names.INCREMENTING:
            return "", 1
        own = table.table.lower()
        likely = {f"{own}_seq", f"seq_{own}", f"{own}_{config.incrementing_column(key)}_seq".lower(), _HIBERNATE}
        found = sorted(
            (f"{schema}.{name}", increment)
            for (schema, name), increment in self._found.blocks.items()
            if schema == table.schema and name.lower() in likely
        )
        return found[0] if found else ("", 1)


def look_at_numbers(key: str, before: Sequence[str], now: Sequence[str], position: Position) -> None:
    """Refuse a sequence that has moved, and gives numbers that the offset is beyond.

    One that stays where it is, is not used: ids come from elsewhere, as in a logical replica.
    """
    offset = position.incrementing
    if not before or before[0] == now[0] or not now[0] or offset is None or int(now[0]) >= offset:
        return
    raise OffsetError(
        f"Since the last run, the sequence of the incrementing column of {key} has moved from"
        f" {before[0] or 'its beginning'} to {now[0]}, but rows up to {offset} were copied: new rows with numbers"
        f" up to {offset} would not be found.",
        code="database.set_back",
        suggestion="Set the offset of the table to the number before its first new row: all rows after it are"
        f" copied, also those that were copied before. Or have the sequence go on after {offset} (setval), if no"
        " new row has a smaller number.",
    )
