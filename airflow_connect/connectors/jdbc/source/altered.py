"""Checks offsets that are set by hand, or by another program over the REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.api.source import SourceOffset
from airflow_connect.connectors.jdbc.source.offsets.positions import (
    BEFORE,
    INCREMENTING,
    LOCAL,
    NANOS,
    PROTOCOL,
    QUERY,
    QUERY_PARTITION,
    TABLE,
    TIMESTAMP,
    Position,
)
from airflow_connect.connectors.jdbc.source.offsets.ranges import AFTER, BY, check_range_offset
from airflow_connect.connectors.jdbc.source.read.changed import ranges_of
from airflow_connect.connectors.jdbc.source.read.gaps import GAP_PARTITIONS, GAPS, gaps_of
from airflow_connect.connectors.jdbc.source.read.sent_ranges import RANGES, SENT, sent_of
from airflow_connect.errors import ConfigError

_PARTITIONS = (
    {PROTOCOL, TABLE},
    {TABLE},
    {QUERY},
    {PROTOCOL, TABLE, RANGES},
    {PROTOCOL, TABLE, BY, AFTER},
    *GAP_PARTITIONS,
)


_VALUES = {PROTOCOL: "1", **QUERY_PARTITION}
"""What each source partition with one of these has: an offset under another one would have no effect."""


def check_offsets(offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]) -> None:
    """Check offsets by source partition, as `SourceConnector.alter_offsets` gets them.

    Raises:
        ConfigError: a partition is none of this connector, or an offset has a value that no run writes.
    """
    for pairs, offset in offsets.items():
        if offset is None:
            continue  # anything may be deleted, so that invalid offsets can be removed
        partition = dict(pairs)
        if set(partition) not in _PARTITIONS:
            raise _refused(f"A source partition names a table or the query, not {sorted(partition)}")
        for key, value in _VALUES.items():
            if partition.get(key, value) != value:
                raise _refused(f"No run reads a source partition whose {key} is not {value!r}")
        if partition.get(RANGES) == SENT:
            sent_of(offset, "a table")
        elif RANGES in partition:
            ranges_of(offset, "a table")
        elif GAPS in partition:
            gaps_of(offset, "a table")
        else:
            _check_position(partition, offset)


def _check_position(partition: Mapping[str, Any], offset: SourceOffset) -> None:
    if AFTER in partition:
        check_range_offset(partition, offset)
    for key in (INCREMENTING, TIMESTAMP, NANOS, LOCAL, BEFORE):
        value = offset.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _refused(f"{key} of an offset must be a whole number, not {value!r}")
    Position.of(offset, "a table")


def _refused(message: str) -> ConfigError:
    return ConfigError(
        message + ".",
        code="offset.refused",
        suggestion='Write partition {"protocol": "1", "table": "shop.public.orders"} and offset {"incrementing": 41} or'
        ' {"timestamp": 1795231188845, "timestamp_nanos": 845000000}, or null to delete.',
    )
