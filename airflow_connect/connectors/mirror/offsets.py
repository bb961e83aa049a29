"""Source partitions and offsets of the mirror source, and where a partition is resumed.

The form is MirrorMaker 2's: `{"cluster": "a", "partition": 0, "topic": "t"}` -> `{"offset": 499}`, the offset of the
last mirrored record, so reading resumes one later (MirrorUtils.wrapPartition, wrapOffset). Members are added: the ids
of the topic and of its copy, by which topics that were recreated are recognised, and whether the offset is only where
`auto.offset.reset=latest` begins. MirrorMaker 2 ignores them, and drops them when it continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.mirror.keys import MirrorKeys
from airflow_connect.errors import ConfigError, OffsetError

CLUSTER, TOPIC, PARTITION, OFFSET, TOPIC_ID = "cluster", "topic", "partition", "offset", "topic_id"
COPY_ID, BEGINS_AT = "copy_id", "begins_at"
EARLIEST, LATEST, NEAREST = "earliest", "latest", "nearest"


def partition_of(cluster: str, tp: TopicPartition) -> SourcePartition:
    """The source partition of a topic's partition; members in the order in which Java writes them."""
    return {CLUSTER: cluster, PARTITION: tp.partition, TOPIC: tp.topic}


def topic_partition_of(cluster: str, partition: SourcePartition) -> TopicPartition | None:
    """The opposite of `partition_of`; None if it is not a partition of this cluster."""
    topic, number = partition.get(TOPIC), partition.get(PARTITION)
    if partition.get(CLUSTER) != cluster or not isinstance(topic, str) or not _is_whole(number):
        return None
    return TopicPartition(topic, int(str(number)))


def offset_of(position: int, topic_id: str, copy_id: str = "") -> SourceOffset:
    """The offset to commit when everything below `position` is mirrored.

    Args:
        position: where reading resumes.
        topic_id: id of the topic that was read.
        copy_id: id of the topic that was written; "": unknown.
    """
    return {OFFSET: position - 1, TOPIC_ID: topic_id, **({COPY_ID: copy_id} if copy_id else {})}


def start_at_latest(log: LogBounds) -> SourceOffset:
    """The offset to commit where `auto.offset.reset=latest` begins, before anything is mirrored."""
    return {**offset_of(log.end, log.topic_id), BEGINS_AT: LATEST}


class Committed(NamedTuple):
    """A committed offset.

    Attributes:
        position: where reading resumes.
        topic_id: id of the topic that was read; "" if it was written by MirrorMaker 2.
        copy_id: id of the topic that was written; "": unknown.
        is_start: nothing was mirrored yet; see `start_at_latest`.
    """

    position: int
    topic_id: str
    copy_id: str = ""
    is_start: bool = False

    @classmethod
    def of(cls, offset: SourceOffset | None) -> Committed | None:
        """Read an offset; None: there is none.

        Raises:
            OffsetError: it does not have the expected form.
        """
        if offset is None:
            return None
        last = offset.get(OFFSET)
        if not _is_whole(last):
            raise OffsetError(
                f"A committed offset of the mirror has no whole number as {OFFSET}: {dict(offset)}.",
                suggestion="Set it again, or delete it to mirror the partition from its beginning.",
            )
        topic_id, copy_id = (str(offset.get(member) or "") for member in (TOPIC_ID, COPY_ID))
        return cls(int(str(last)) + 1, topic_id, copy_id, BEGINS_AT in offset)


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What the source cluster holds of a partition.

    Attributes:
        low: first offset.
        end: where the run ends: the last stable offset, or the high watermark with read_uncommitted.
        high: high watermark.
        topic_id: id of the topic.
    """

    low: int
    end: int
    high: int
    topic_id: str


class Start(NamedTuple):
    """Where a partition begins.

    Attributes:
        position: first offset to read.
        must_commit: whether this position must be committed even if there is nothing to read.
        note: a sentence for the report, or "".
    """

    position: int
    must_commit: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class StartRules:
    """What the configuration says about partitions whose offset does not tell where to begin.

    Attributes:
        reset: the consumer's `auto.offset.reset`, for topics that were never mirrored.
        out_of_range: `offsets.out.of.range`.
    """

    reset: str
    out_of_range: str


def start_of(
    tp: TopicPartition, committed: Committed | None, log: LogBounds, rules: StartRules, *, is_known: bool
) -> Start:
    """Where to begin.

    Args:
        tp: the partition, for messages.
        committed: None: it was never mirrored.
        log: of the source cluster, now.
        rules: of the configuration.
        is_known: whether any partition of its topic was mirrored before.

    Raises:
        OffsetError: the source cluster no longer holds the committed offset, and `offsets.out.of.range` is not set.
    """
    if committed is None:
        return _first_start(tp, log, rules.reset, is_known)
    position, out_of_range = committed.position, rules.out_of_range
    if committed.topic_id and committed.topic_id != log.topic_id:
        what = (
            f"Topic {tp.topic} of the source cluster was recreated: its id is {log.topic_id}, but {tp}@{position - 1}"
            f" was mirrored from {committed.topic_id}"
        )
    elif not log.low <= position <= log.high:
        what = (
            f"{tp} was mirrored up to offset {position - 1}, but the source cluster now holds [{log.low}, {log.high})"
        )
    else:
        return Start(position, must_commit=False)
    begin = {EARLIEST: log.low, LATEST: log.high, NEAREST: min(max(position, log.low), log.high)}.get(out_of_range)
    if begin is None:
        raise out_of_range_error(what)
    is_same = committed.topic_id in ("", log.topic_id) and position <= log.high
    unread = max(position, log.low) if is_same else log.low
    left_out = f" What it holds in [{unread}, {begin}) is not mirrored." if unread < begin else ""
    how = f"It continues at {begin} ({MirrorKeys.out_of_range}={out_of_range})."
    return Start(begin, must_commit=True, note=f"{what}.{left_out} {how}")


def out_of_range_error(what: str) -> OffsetError:
    """The error about an offset that the source cluster does not hold."""
    return OffsetError(
        f"{what}.",
        suggestion="Records may be missing or come twice, so nothing was mirrored. To choose where to continue, set"
        f" {MirrorKeys.out_of_range} to earliest, latest or nearest for one run.",
        config_path=MirrorKeys.out_of_range.name,
    )


def check_altered(partition: Mapping[str, Any], offset: SourceOffset | None) -> None:
    """Check an offset that is being altered (KIP-875); anything may be deleted.

    Raises:
        ConfigError: the partition or the offset does not have MirrorMaker 2's form.
    """
    if offset is None:
        return
    number = partition.get(PARTITION)
    is_named = all(isinstance(partition.get(name), str) and partition[name] for name in (CLUSTER, TOPIC))
    if set(partition) != {CLUSTER, TOPIC, PARTITION} or not is_named or not _is_whole(number) or int(str(number)) < 0:
        raise _refused(f"A source partition has {CLUSTER}, {TOPIC} and {PARTITION}, not {dict(partition)}")
    last = offset.get(OFFSET)
    if not _is_whole(last) or int(str(last)) < 0:
        raise _refused(f"An offset has {OFFSET}, a whole number that is not negative, unlike {dict(offset)}")


def _first_start(tp: TopicPartition, log: LogBounds, reset: str, is_known: bool) -> Start:
    if reset == EARLIEST:
        return Start(log.low, must_commit=False)
    if reset == LATEST and is_known:
        # All of its records came after the topic was seen for the first time (KIP-1327).
        how = f"{tp} was added to a topic that is mirrored already, so it is mirrored from its beginning, {log.low}"
        note = f"{how}: auto.offset.reset=latest is for topics that were never mirrored." if log.low < log.end else ""
        return Start(log.low, must_commit=False, note=note)
    if reset == LATEST:
        # Otherwise the next run would begin at a later end, and records in between would be lost.
        return Start(log.end, must_commit=True)
    raise OffsetError(
        f"{tp} of the source cluster was never mirrored, and auto.offset.reset is none.",
        suggestion="Set consumer.auto.offset.reset to earliest or latest.",
        config_path="consumer.auto.offset.reset",
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(message: str) -> ConfigError:
    return ConfigError(
        message + ".",
        code="offset.refused",
        suggestion='Write partition {"cluster": "a", "topic": "orders", "partition": 0} and offset {"offset": 499}, the'
        " offset of the last mirrored record, or null to delete.",
    )
