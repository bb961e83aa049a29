"""Determines where a run starts and ends in every partition, and checks the committed offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.errors import OffsetError
from airflow_connect.planning.limits import RunLimits, max_records, until_timestamp

EARLIEST, LATEST, NEAREST = "earliest", "latest", "nearest"

REFRESH_AFTER_MS = 24 * 60 * 60 * 1000
"""Offsets are committed again once a day even if nothing moved: Kafka drops the offsets of a group that has had no
commit for `offsets.retention.minutes` (7 days by default), and a batch connector's group is always empty."""


@dataclass(frozen=True, slots=True)
class LogState:
    """The current state of the topics in Kafka.

    Attributes:
        topic_ids: topic to its id.
        earliest: first offset in the log, per partition (all partitions of all topics).
        end: where the run ends: last stable offset, or high watermark under read_uncommitted.
        committed: offsets of the connector's group; partitions without one are absent.
        first_later: first offset at or after `run.until.timestamp`, where there is one.
        unstable: partitions with records after `end` that belong to open transactions.
        high: high watermarks, needed only where a committed offset is beyond `end` (an open transaction).
    """

    topic_ids: Mapping[str, str]
    earliest: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]
    first_later: Mapping[TopicPartition, int] = field(default_factory=dict)
    high: Mapping[TopicPartition, int] = field(default_factory=dict)
    unstable: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Memory:
    """What the connector's last run recorded (exactly_once/state.py)."""

    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """Configuration that decides about offsets.

    Attributes:
        auto_offset_reset: `earliest`, `latest` or `none`, for partitions that never had an offset.
        out_of_range: `offsets.out.of.range`: "" (fail), `earliest`, `latest` or `nearest`.
        limits: bounds of the run.
    """

    auto_offset_reset: str = EARLIEST
    out_of_range: str = ""
    limits: RunLimits = field(default_factory=RunLimits)


@dataclass(frozen=True, slots=True)
class Positions:
    """The outcome of planning, before packing.

    Attributes:
        ranges: one per partition, empty ones included.
        to_commit: offsets to commit even if their range is empty: of new partitions, resets, and all once a day.
        notes: sentences for people.
        at_end: partitions of which nothing remains once their range is read: no limit shortened it, and no transaction
            is open after it.
        behind: offsets between the starts and the ends of the log, without the limits of the run.
    """

    ranges: tuple[OffsetRange, ...]
    to_commit: Mapping[TopicPartition, int]
    notes: tuple[str, ...]
    at_end: frozenset[TopicPartition] = frozenset()
    behind: int = 0

    @property
    def total(self) -> int:
        """Offsets to copy."""
        return sum(len(r) for r in self.ranges)


def plan_positions(log: LogState, memory: Memory, policy: Policy, now_ms: int) -> Positions:
    """Find start and end of every partition.

    Raises:
        OffsetError: a committed offset is outside the log, or a topic was recreated, and `offsets.out.of.range` is not
            set. The message has both values.
    """
    notes: list[str] = []
    starts: dict[TopicPartition, int] = {}
    to_commit: dict[TopicPartition, int] = {}
    for tp in sorted(log.earliest):
        start, is_stored, note = _start(tp, log, memory, policy)
        starts[tp] = start
        if note:
            notes.append(note)
        if not is_stored:
            to_commit[tp] = start
    if memory.at_ms and now_ms - memory.at_ms >= REFRESH_AFTER_MS:
        to_commit = dict(starts)
    ranges = [OffsetRange(tp.topic, tp.partition, s, max(s, log.end[tp])) for tp, s in starts.items()]
    narrowed = tuple(_narrow(ranges, log, policy.limits, notes))
    at_end = frozenset(r.topic_partition for r in narrowed if r.end >= log.end[r.topic_partition]) - log.unstable
    return Positions(narrowed, to_commit, tuple(notes), at_end, sum(len(r) for r in ranges))


def _narrow(ranges: list[OffsetRange], log: LogState, limits: RunLimits, notes: list[str]) -> list[OffsetRange]:
    before = sum(len(r) for r in ranges)
    if limits.until_timestamp_ms is not None:
        ranges = until_timestamp(ranges, log.first_later)
    ranges = max_records(ranges, limits.max_records)
    after = sum(len(r) for r in ranges)
    if after < before:
        notes.append(f"Limits of the run reduced {before} offsets to {after}; the rest is left to later runs.")
    return ranges


def _start(tp: TopicPartition, log: LogState, memory: Memory, policy: Policy) -> tuple[int, bool, str]:
    """(offset to start at, whether the group already stores it, sentence for people)."""
    committed, remembered = log.committed.get(tp), memory.committed.get(tp)
    low, high = log.earliest[tp], max(log.end[tp], log.high.get(tp, 0))
    known_id, current_id = memory.topic_ids.get(tp.topic, ""), log.topic_ids.get(tp.topic, "")
    if known_id and current_id and known_id != current_id:
        what = (
            f"Topic {tp.topic} was recreated: its id is {current_id}, the last run saw {known_id} "
            f"and committed {tp}@{remembered if remembered is not None else committed}"
        )
        start = _resolve(tp, what, committed, low, high, policy)
        return start, start == committed, f"{what}; starting at {start}."
    if committed is None and remembered is not None:
        committed = remembered
        note = f"The group has no offset for {tp} any more; resumed at {remembered}, which the last run committed."
    elif committed is None:
        return _first_sight(tp, low, high, policy), False, ""
    else:
        note = ""
    is_stored = log.committed.get(tp) is not None
    if committed < low or committed > high:
        what = f"The committed offset {committed} of {tp} is outside the log, which holds [{low}, {high})"
        start = _resolve(tp, what, committed, low, high, policy)
        return start, False, f"{what}; starting at {start}."
    return committed, is_stored, note


def _first_sight(tp: TopicPartition, low: int, high: int, policy: Policy) -> int:
    """A partition that never had an offset follows `auto.offset.reset`, as in Kafka Connect."""
    if policy.auto_offset_reset == LATEST:
        return high
    if policy.auto_offset_reset == EARLIEST:
        return low
    raise OffsetError(
        f"{tp} has no committed offset and auto.offset.reset is {policy.auto_offset_reset!r}.",
        suggestion="Set consumer.override.auto.offset.reset to earliest or latest.",
        config_path="consumer.override.auto.offset.reset",
    )


def _resolve(tp: TopicPartition, what: str, committed: int | None, low: int, high: int, policy: Policy) -> int:
    if policy.out_of_range == EARLIEST:
        return low
    if policy.out_of_range == LATEST:
        return high
    if policy.out_of_range == NEAREST:
        return low if committed is None else min(max(committed, low), high)
    raise OffsetError(
        what + ".",
        suggestion="Records may be lost or repeated, so nothing was copied. To choose where to continue, set "
        "offsets.out.of.range to earliest, latest or nearest for one run.",
        config_path="offsets.out.of.range",
    )
