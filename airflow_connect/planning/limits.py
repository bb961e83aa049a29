"""Limits a plan: `run.max.records`, `run.max.bytes`, `run.max.seconds`, `run.until.timestamp`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_connect.api.offsets import OffsetRange, TopicPartition

MAX_DEAD_LETTER_BYTES = 32 << 20
"""Bytes of dead letters that one run commits, over all tasks: keys, values and headers.

They travel in the tasks' reports, in the manifest and in one Kafka transaction, which a broker aborts after
`transaction.timeout.ms`, 60 seconds by default. A driver needs about ten times as much memory for them.
"""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one run; 0 or None means no limit.

    Attributes:
        max_records: maximum number of offsets to copy, over all partitions. Gaps count, so there may be fewer records.
        max_bytes: maximum bytes of keys and values to read; a task stops after the batch that crosses its share.
        max_seconds: maximum seconds of copying; what was read until then is published.
        until_timestamp_ms: records at or after this time are left to a later run.
        max_dead_letter_bytes: bytes of dead letters; partitions with further ones end early.
    """

    max_records: int = 0
    max_bytes: int = 0
    max_seconds: float = 0.0
    until_timestamp_ms: int | None = None
    max_dead_letter_bytes: int = MAX_DEAD_LETTER_BYTES


def until_timestamp(ranges: Sequence[OffsetRange], first_later: Mapping[TopicPartition, int]) -> list[OffsetRange]:
    """End each range before the first record whose timestamp is at or after the limit.

    Args:
        ranges: planned ranges.
        first_later: offset of the first record at or after the limit, per partition; partitions without one are absent.
    """
    return [replace(r, end=max(r.start, min(r.end, first_later.get(r.topic_partition, r.end)))) for r in ranges]


def max_records(ranges: Sequence[OffsetRange], limit: int) -> list[OffsetRange]:
    """Share `limit` offsets fairly: every partition gets the same share; what it does not need goes to the others."""
    if limit <= 0:
        return list(ranges)
    shares = fair_shares([len(r) for r in ranges], limit)
    return [replace(r, end=r.start + share) for r, share in zip(ranges, shares, strict=True)]


def fair_shares(demands: Sequence[int], supply: int) -> list[int]:
    """Max-min fair division of `supply` among `demands`; the sum is min(supply, sum(demands)).

    The smallest demands are met first; a remainder that cannot be divided goes to the first in order.
    """
    shares = [0] * len(demands)
    open_demands = sorted(range(len(demands)), key=lambda i: demands[i])
    left = supply
    for position, index in enumerate(open_demands):
        claimants = len(open_demands) - position
        fair = left // claimants
        if demands[index] > fair:
            _divide(shares, sorted(open_demands[position:]), left)
            break
        shares[index] = demands[index]
        left -= demands[index]
    return shares


def _divide(shares: list[int], indexes: Sequence[int], supply: int) -> None:
    each, remainder = divmod(supply, len(indexes))
    for rank, index in enumerate(indexes):
        shares[index] = each + (1 if rank < remainder else 0)
