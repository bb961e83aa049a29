"""Determines where a run starts and ends in every partition, and checks the committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from airflow_connect.api.offsets import OffsetRange, TopicPartition, is_other_topic
from airflow_connect.counting import agreeing, plural
from airflow_connect.errors import OffsetError
from airflow_connect.planning.limits import RunLimits, max_records, until_timestamp

EARLIEST, LATEST, NEAREST = "earliest", "latest", "nearest"

REFRESH_AFTER_MS = 24 * 60 * 60 * 1000
"""Offsets are committed again once a day even if nothing moved: Kafka drops the offsets of a group that has had no
commit for `offsets.retention.minutes` (7 days by default), and a batch connector's group is always empty."""

_MOST_PLACES = 20
"""A note names so many partitions."""


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
        group: the consumer group of the connector, for sentences.
        target: what the sink writes to, for sentences, if it may keep offsets of its own there; "" if it does not.
    """

    auto_offset_reset: str = EARLIEST
    out_of_range: str = ""
    limits: RunLimits = field(default_factory=RunLimits)
    group: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Positions:
    """The outcome of planning, before packing.

    Attributes:
        ranges: one per partition, empty ones included.
        to_commit: offsets to commit even if their range is empty: of new partitions, resets, and all once a day.
        at_latest: those of them that auto.offset.reset=latest chose. They are committed before the copy begins: if this
            run fails, the next one must not choose later ones.
        notes: sentences for people.
        at_end: partitions of which nothing remains once their range is read: no limit shortened it, and no transaction
            is open after it.
        reset: starts of partitions whose offset was beyond the end of the log, as `offsets.out.of.range` chose them.
        behind: offsets between the starts and the ends of the log, without the limits of the run.
    """

    ranges: tuple[OffsetRange, ...]
    to_commit: Mapping[TopicPartition, int]
    notes: tuple[str, ...]
    at_end: frozenset[TopicPartition] = frozenset()
    behind: int = 0
    at_latest: Mapping[TopicPartition, int] = field(default_factory=dict)
    reset: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Offsets to copy."""
        return sum(len(r) for r in self.ranges)


def plan_positions(
    log: LogState, memory: Memory, policy: Policy, now_ms: int, named: Collection[TopicPartition] = ()
) -> Positions:
    """Find start and end of every partition.

    Args:
        log: the topics.
        memory: what the last run recorded.
        policy: the configuration.
        now_ms: milliseconds since the epoch.
        named: partitions of which another note says why they start at the group's offset.

    Raises:
        OffsetError: a committed offset is outside the log, or a topic was recreated, and `offsets.out.of.range` is not
            set. The message has both values.
    """
    # What has an offset, or has lost one: `offsets reset` forgets the id as well.
    seen = {tp.topic for tp in (*log.committed, *memory.committed)} | memory.topic_ids.keys()
    starts = {tp: _start(tp, log, memory, policy, is_first=tp.topic not in seen) for tp in sorted(log.earliest)}
    begun = {tp: found for tp, found in starts.items() if found.is_found and tp not in named}
    notes = [
        *_found_notes(begun, log, policy.group),
        *(found.note for found in starts.values() if found.note),
        *_skipped_notes(starts, log),
    ]
    to_commit = {tp: found.offset for tp, found in starts.items() if not found.is_stored}
    if memory.at_ms and now_ms - memory.at_ms >= REFRESH_AFTER_MS:
        to_commit = {tp: found.offset for tp, found in starts.items()}
    ranges = [OffsetRange(*tp, found.offset, max(found.offset, log.end[tp])) for tp, found in starts.items()]
    narrowed = tuple(_narrow(ranges, log, policy.limits, notes))
    at_end = frozenset(r.topic_partition for r in narrowed if r.end >= log.end[r.topic_partition]) - log.unstable
    at_latest = {tp: found.offset for tp, found in starts.items() if found.is_latest}
    reset = {tp: found.offset for tp, found in starts.items() if found.is_reset}
    return Positions(narrowed, to_commit, tuple(notes), at_end, sum(len(r) for r in ranges), at_latest, reset)


def _narrow(ranges: list[OffsetRange], log: LogState, limits: RunLimits, notes: list[str]) -> list[OffsetRange]:
    before = sum(len(r) for r in ranges)
    if limits.until_timestamp_ms is not None:
        ranges = until_timestamp(ranges, log.first_later)
    ranges = max_records(ranges, limits.max_records)
    after = sum(len(r) for r in ranges)
    if after < before:
        notes.append(
            f"Limits of the run reduced {plural(before, 'offset')} to {after}; the rest is left to later runs."
        )
    return ranges


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a partition starts.

    Attributes:
        is_stored: whether the group has this offset already.
        note: a sentence for people, or "".
        is_latest: auto.offset.reset=latest chose it.
        is_found: the group had it before the connector's first run of the partition.
        is_reset: the offset was beyond the end of the log, and `offsets.out.of.range` chose this one.
    """

    offset: int
    is_stored: bool = False
    note: str = ""
    is_latest: bool = False
    is_found: bool = False
    is_reset: bool = False


def _start(tp: TopicPartition, log: LogState, memory: Memory, policy: Policy, *, is_first: bool) -> _Start:
    """`is_first`: no partition of the topic has an offset."""
    committed, remembered = log.committed.get(tp), memory.committed.get(tp)
    known_id, current_id = memory.topic_ids.get(tp.topic, ""), log.topic_ids.get(tp.topic, "")
    if is_other_topic(known_id, current_id):
        before = remembered if remembered is not None else committed
        what = f"Topic {tp.topic} was recreated: its id is {current_id}, and an earlier run saw {known_id}" + (
            f" and committed {tp}@{before}" if before is not None else ""
        )
        start = _resolve(tp, what, committed, log, policy)
        return _Start(start, start == committed, f"{what}; starting at {start}{_left_out(log.earliest[tp], start)}.")
    if committed is None and remembered is None:
        return _first_sight(tp, log, policy, is_first=is_first)
    if committed is None and current_id and not known_id:
        # Kafka deletes a group's offsets with the topic, and also when the group has not committed for long.
        what = (
            f"The group has no offset for {tp}, and an earlier run committed {remembered} without recording the id of"
            f" the topic. Either the group's offsets have expired and {tp} continues at {remembered}, or {tp.topic} was"
            " recreated and nothing of it was copied yet"
        )
        start = _resolve(tp, what, remembered, log, policy)
        return _Start(start, note=f"{what}; starting at {start}{_left_out(log.earliest[tp], start)}.")
    note = ""
    if committed is None:
        committed = remembered
        note = f"The group has no offset for {tp} any more; resumed at {remembered}, which the last run committed."
    low, high = _extent(tp, log)
    if committed is None or not low <= committed <= high:
        what = f"The committed offset {committed} of {tp} is outside the log, which holds [{low}, {high})"
        start = _resolve(tp, what, committed, log, policy)
        # Beyond the end: what the log holds may be what was copied, or have replaced it.
        is_beyond = committed is None or committed > high
        unread = low if committed is None or is_beyond else max(low, committed)
        return _Start(start, note=f"{what}; starting at {start}{_left_out(unread, start)}.", is_reset=is_beyond)
    if remembered is None and committed > low:
        # Committed again for the same reason as below.
        return _Start(committed, is_found=True)
    if remembered is None or committed == remembered:
        return _Start(committed, tp in log.committed, note)
    # Committed again, so that the state has it, and the next run does not say it a second time.
    return _Start(committed, note=_moved(tp, committed, remembered, policy.target))


def _moved(tp: TopicPartition, committed: int, remembered: int, target: str) -> str:
    """A sentence about an offset of the group that is not the one that the last run committed."""
    first, last = sorted((committed, remembered))
    count = last - first
    what = "not copied by this connector" if committed > remembered else "copied again, if Kafka still has them"
    if target and committed < remembered:
        what = (
            f"NOT written again where {target} has a later offset of the connector. To write them again, set the offset"
            " of the connector with this package, which sets both"
        )
    return (
        f"The group's offset of {tp} is {committed}, and the last run committed {remembered}: another client has"
        f" changed it. The {plural(count, 'offset')} in [{first}, {last}) {agreeing(count, 'are')} {what}."
    )


def _left_out(unread: int, start: int) -> str:
    """A sentence about what may never have been copied, and is not copied by this run either; or ""."""
    if start <= unread:
        return ""
    count = start - unread
    return f". The {plural(count, 'offset')} in [{unread}, {start}) {agreeing(count, 'are')} not copied"


def _extent(tp: TopicPartition, log: LogState) -> tuple[int, int]:
    return log.earliest[tp], max(log.end[tp], log.high.get(tp, 0))


def _first_sight(tp: TopicPartition, log: LogState, policy: Policy, *, is_first: bool) -> _Start:
    """A partition that never had an offset follows `auto.offset.reset`, as in Kafka Connect.

    Except that `latest` is for topics that are read for the first time. A partition that was added to a topic has only
    records that were written since, and they would be lost (KAFKA-20539).
    """
    low, high = _extent(tp, log)
    if policy.auto_offset_reset == EARLIEST:
        return _Start(low)
    if policy.auto_offset_reset == LATEST:
        if is_first:
            return _Start(high, is_latest=True)
        deleted = f", because Kafka has deleted those before {low}" if low else ""
        return _Start(
            low,
            note=f"{tp} has no offset, and other partitions of its topic have one: it is read from its first record,"
            f" offset {low}{deleted}. auto.offset.reset=latest is only for topics that are read for the first time.",
        )
    raise OffsetError(
        f"{tp} has no committed offset and auto.offset.reset is {policy.auto_offset_reset!r}.",
        suggestion="Set consumer.override.auto.offset.reset to earliest or latest.",
        config_path="consumer.override.auto.offset.reset",
    )


def _skipped_notes(starts: Mapping[TopicPartition, _Start], log: LogState) -> list[str]:
    """What `latest` skips, by topic."""
    skipped: dict[str, int] = {}
    for tp, found in starts.items():
        if found.is_latest and found.offset > log.earliest[tp]:
            skipped[tp.topic] = skipped.get(tp.topic, 0) + found.offset - log.earliest[tp]
    return [
        f"Topic {topic} is read for the first time. Because of auto.offset.reset=latest,"
        f" the {plural(count, 'offset')} before its end {agreeing(count, 'are')} not copied."
        for topic, count in skipped.items()
    ]


def _found_notes(starts: Mapping[TopicPartition, _Start], log: LogState, group: str) -> list[str]:
    """What a first run passes over because the group has offsets already, by topic."""
    found: dict[str, list[TopicPartition]] = {}
    for tp in starts:
        found.setdefault(tp.topic, []).append(tp)
    return [_found_note(topic, {tp: starts[tp].offset for tp in tps}, log, group) for topic, tps in found.items()]


def _found_note(topic: str, offsets: Mapping[TopicPartition, int], log: LogState, group: str) -> str:
    count = sum(offset - log.earliest[tp] for tp, offset in offsets.items())
    places = [f"{tp}@{offset}" for tp, offset in offsets.items()]
    more = len(places) - _MOST_PLACES
    listed = ", ".join(places[:_MOST_PLACES]) + (f" and {more} more" if more > 0 else "")
    return (
        f"This connector copies these partitions of topic {topic} for the first time, and begins at the offsets that"
        f" its group {group} has committed: {listed}. The {plural(count, 'offset')} before"
        f" {'them' if len(places) > 1 else 'it'} that Kafka still holds {agreeing(count, 'are')} not copied. Kafka"
        " Connect, or this connector before it lost its state, has copied them; or the group is that of another"
        " connector: then give this connector a group of its own."
    )


def _resolve(tp: TopicPartition, what: str, known: int | None, log: LogState, policy: Policy) -> int:
    low, high = _extent(tp, log)
    if policy.out_of_range == EARLIEST:
        return low
    if policy.out_of_range == LATEST:
        return high
    if policy.out_of_range == NEAREST:
        return low if known is None else min(max(known, low), high)
    raise OffsetError(
        what + ".",
        suggestion="Records may be lost or repeated, so nothing was copied. To choose where to continue, set "
        "offsets.out.of.range to earliest, latest or nearest for one run.",
        config_path="offsets.out.of.range",
    )
