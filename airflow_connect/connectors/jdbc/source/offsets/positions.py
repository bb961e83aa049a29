"""Source partitions and offsets, in the form of Confluent's JDBC source.

Source: io.confluent.connect.jdbc.source.{OffsetProtocols,TimestampIncrementingOffset,JdbcSourceConnectorConstants}.

A connector that comes from Kafka Connect continues at its offsets, and one that returns there finds those that were
written here. Two forms of a table's name are known: pgjdbc names the database as catalog since 42.7.5, before it named
none. A table keeps the form under which it has an offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.api.source import OffsetReader, SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.values.local_times import SECOND_US
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import OffsetError

PROTOCOL, TABLE, QUERY = "protocol", "table", "query"
QUERY_PARTITION: SourcePartition = {QUERY: QUERY}
INCREMENTING, TIMESTAMP, NANOS = "incrementing", "timestamp", "timestamp_nanos"
LOCAL, BEFORE = "timestamp_local_us", "timestamp_before_us"
"""Keys of ours: a time that clocks skip, which has the same instant as a later one, and the last instant before the
change. Confluent's connector ignores them."""
SENT, SENT_FROM = "lookback", "lookback_from"
BULK_RUN, BULK_DONE = "bulk_run", "bulk_done"
"""Keys of ours: rows that were sent lately (lookback.py); the run that copied a table in mode bulk."""

_DAY_MS = 86_400_000
_FIRST_MS, _LAST_MS = -62_135_596_800_000 - _DAY_MS, 253_402_300_799_999 + _DAY_MS
"""The years 1 to 9999 in any zone."""
NO_ID = -1
"""Confluent's `incrementing` of a table without an offset: rows with larger numbers are read."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where reading resumes.

    Attributes:
        incrementing: the largest number that was read, or None.
        timestamp_us: time of the last complete group, microseconds since the epoch, or None.
        local_us: if clocks skip the time of that group, the time as its column has it: microseconds since
            1970-01-01T00:00 on the local clock. Otherwise None.
        before_us: with `local_us`: the last instant before clocks change.
        sent: packed rows of the look-back window, or "".
        sent_from_us: time up to which the window must not reach back, or None.
    """

    incrementing: int | None = None
    timestamp_us: int | None = None
    sent: str = ""
    sent_from_us: int | None = None
    local_us: int | None = None
    before_us: int | None = None

    @property
    def reached_us(self) -> int | None:
        """An instant that the clock had reached when the position was written; None: it has no time."""
        return self.timestamp_us if self.before_us is None else self.before_us

    def changed(self, **attributes: Any) -> Position:
        """A copy with other attributes."""
        return replace(self, **attributes)

    def offset(self) -> SourceOffset:
        """As Confluent writes it."""
        offset: dict[str, Any] = {}
        if self.incrementing is not None:
            offset[INCREMENTING] = self.incrementing
        if self.timestamp_us is not None:
            offset[TIMESTAMP] = self.timestamp_us // 1000
            offset[NANOS] = self.timestamp_us % SECOND_US * 1000
        if self.local_us is not None:
            offset[LOCAL], offset[BEFORE] = self.local_us, self.before_us
        if self.sent_from_us is not None:
            offset[SENT], offset[SENT_FROM] = self.sent, self.sent_from_us
        return offset

    @classmethod
    def of(cls, offset: SourceOffset | None, where: str = "") -> Position:
        """From a committed offset; keys of other modes are ignored, as Confluent does.

        Raises:
            OffsetError: a value is not a number, or no time.
        """
        if not offset:
            return cls()
        millis, nanos = _number(offset, TIMESTAMP, where), _number(offset, NANOS, where)
        micros = None
        if millis is not None:
            _check_time(millis, nanos, where)
            # java.sql.Timestamp: the nanoseconds replace the fraction of the second.
            micros = millis * 1000 if nanos is None else millis // 1000 * SECOND_US + nanos // 1000
        sent = offset.get(SENT)
        return cls(
            _number(offset, INCREMENTING, where),
            micros,
            sent if isinstance(sent, str) else "",
            _number(offset, SENT_FROM, where),
            *_skipped(_number(offset, LOCAL, where), _number(offset, BEFORE, where), micros),
        )


def _check_time(millis: int, nanos: int | None, where: str) -> None:
    if _FIRST_MS <= millis <= _LAST_MS and 0 <= (nanos or 0) < 1_000_000_000:
        return
    raise OffsetError(
        f"The offset of {where or 'a table'} has {TIMESTAMP}={millis} and {NANOS}={nanos}, which is not a time of the"
        f" years 1 to 9999: {TIMESTAMP} is in milliseconds since 1970, {NANOS} the nanoseconds of its second.",
        code="offset.refused",
        suggestion='Write it as {"timestamp": 1767268800123, "timestamp_nanos": 123456000}, or delete it to read the'
        " table from its beginning.",
    )


def _skipped(local_us: int | None, before_us: int | None, instant_us: int | None) -> tuple[int | None, int | None]:
    is_whole = None not in (local_us, before_us, instant_us)
    return (local_us, before_us) if is_whole else (None, None)


def _number(offset: SourceOffset, key: str, where: str) -> int | None:
    value = offset.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise OffsetError(
            f"The offset of {where or 'a table'} has {key}={value!r}, which is not a whole number.",
            code="offset.refused",
            suggestion="Set the offset to a number, or delete it to read the table from its beginning.",
        )
    return value


def partition_of(full_name: str) -> SourcePartition:
    """The source partition of a table, protocol 1."""
    return {PROTOCOL: "1", TABLE: full_name}


def known_partitions(table: TableId) -> list[SourcePartition]:
    """Every source partition under which an offset of a table may be, the preferred one first."""
    full_names = dict.fromkeys((table.full_name, TableId("", table.schema, table.table).full_name))
    if table.schema == "" and table.catalog:
        full_names = dict.fromkeys((table.full_name,))  # MySQL: the catalog is part of the name in every version
    return [*(partition_of(name) for name in full_names), {TABLE: table.table}]


def committed_position(table: TableId, reader: OffsetReader) -> tuple[SourcePartition, Mapping[str, Any] | None]:
    """The source partition under which a table's offsets are written, and its offset.

    An offset of protocol 0 (without `protocol`) is read, but continued under protocol 1, as Confluent does.
    """
    candidates = known_partitions(table)
    for candidate, offset in zip(candidates, reader.offsets(candidates), strict=True):
        if offset is not None:
            return (candidate if PROTOCOL in candidate else candidates[0]), offset
    return candidates[0], None


def tables_with_offsets(committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> set[str]:
    """Full names of the tables that have an offset of protocol 1."""
    return {str(p[TABLE]) for p, _ in committed if PROTOCOL in p and isinstance(p.get(TABLE), str)}
