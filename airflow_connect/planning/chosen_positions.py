"""Positions in Kafka partitions as people write them: an offset, a time, the beginning or the end of the log.

Pure functions; `resolve` gets times looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.config.keys.points_in_time import parse_timestamp_ms
from airflow_connect.counting import plural
from airflow_connect.errors import ConfigError, OffsetError
from airflow_connect.planning.planner import LogState

EARLIEST, LATEST = "earliest", "latest"
_OFFSET, _TIME, _NONE = "offset", "time", "none"
_EXPECTED = (
    "Expected an offset, a time in ISO 8601 such as 2026-11-20T08:00:00Z, earliest or latest, for all partitions or as"
    ' {"topic-0": ...}, or the form of Kafka Connect\'s REST API:'
    ' [{"partition": {"kafka_topic": ..., "kafka_partition": ...}, "offset": {"kafka_offset": ...}}].'
)

TimeLookup = Callable[[Iterable[TopicPartition], int], Mapping[TopicPartition, int | None]]
"""First offset at or after a time in milliseconds, for each partition; None: there is no such record."""


@dataclass(frozen=True, slots=True)
class Position:
    """One position.

    Attributes:
        kind: `offset`, `time`, `earliest`, `latest`, or `none`: no offset at all.
        number: the offset, or milliseconds since the epoch.
    """

    kind: str
    number: int = 0


Positions = Mapping[TopicPartition | None, Position]
"""By partition; None stands for all partitions that are not named."""
RESET = Position(_NONE)


def parse_positions(given: Any, name: str) -> Positions:
    """Positions for all partitions, or for each one that is named.

    Args:
        given: one position for all partitions; a mapping `{"topic-0": position}`; or the list of Kafka Connect's REST
            API (KIP-875). Digits are an offset, other text is a time. None deletes the offset.
        name: what has this value, for messages.

    Raises:
        ConfigError: it is none of these; the message names the partition.
    """
    if isinstance(given, Mapping):
        return {_partition(key, name): _position(value, f"{name} of {key}") for key, value in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str):
        return dict(_of_rest(entry, name) for entry in given)
    return {None: _position(given, name)}


def _partition(key: Any, name: str) -> TopicPartition:
    topic, _, number = str(key).rpartition("-")
    if not topic or not re.fullmatch(r"[0-9]{1,9}", number):
        raise ConfigError(
            f"{name} has the key {key!r}, which does not name a partition.",
            suggestion="Write the topic, a hyphen and the number of the partition: meetups-0.",
            config_path=name,
        )
    return TopicPartition(topic, int(number))


def _of_rest(entry: Any, name: str) -> tuple[TopicPartition, Position]:
    """Source: SinkUtils.parseSinkConnectorOffsets, which reads the partition as text or as a number."""
    try:
        partition, offset = entry["partition"], entry["offset"]
        tp = _partition(f"{partition['kafka_topic']}-{partition['kafka_partition']}", name)
        return tp, RESET if offset is None else _position(int(offset["kafka_offset"]), f"{name} of {tp}")
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{name} holds {entry!r}.", suggestion=_EXPECTED, config_path=name) from error


def _position(value: Any, name: str) -> Position:
    if value is None:
        return RESET
    if isinstance(value, datetime):
        value = value.isoformat()
    text = str(value).strip()
    if text.lower() in (EARLIEST, LATEST):
        return Position(text.lower())
    if not isinstance(value, (bool, float)):
        if re.fullmatch(r"[0-9]{1,18}", text):
            return Position(_OFFSET, int(text))
        try:
            return Position(_TIME, parse_timestamp_ms(text))
        except ValueError:
            pass
    raise ConfigError(f"{name} is {value!r}, which is not a position.", suggestion=_EXPECTED, config_path=name)


def resolve(positions: Positions, log: LogState, first_at: TimeLookup) -> dict[TopicPartition, int | None]:
    """The offset of each position, as the log is now; None deletes.

    A time becomes the offset of the first record at or after it, or the end of the log if there is none.

    Raises:
        OffsetError: a partition does not exist, or an offset is outside its log. The message names it.
    """
    named = {tp: position for tp, position in positions.items() if tp is not None}
    for tp in named:
        if tp not in log.earliest:
            raise _unknown(tp, log)
    if None in positions:
        named = {**dict.fromkeys(log.earliest, positions[None]), **named}
    times: dict[int, list[TopicPartition]] = {}
    for tp, position in named.items():
        if position.kind == _TIME:
            times.setdefault(position.number, []).append(tp)
    at_time = {tp: offset for moment, tps in times.items() for tp, offset in first_at(tps, moment).items()}
    return {tp: _offset(tp, position, log, at_time.get(tp)) for tp, position in sorted(named.items())}


def _offset(tp: TopicPartition, position: Position, log: LogState, at_time: int | None) -> int | None:
    low, end = log.earliest[tp], max(log.earliest[tp], log.end[tp])
    if position.kind == _NONE:
        return None
    if position.kind == EARLIEST:
        return low
    if position.kind == LATEST:
        return end
    if position.kind == _TIME:
        return end if at_time is None else min(at_time, end)
    if not low <= position.number <= end:
        raise OffsetError(
            f"Offset {position.number} of {tp} is outside the log, which holds [{low}, {end}).",
            suggestion="Nothing was changed. Choose an offset in the log, or earliest or latest.",
        )
    return position.number


def _unknown(tp: TopicPartition, log: LogState) -> OffsetError:
    partitions = sum(other.topic == tp.topic for other in log.earliest)
    what, hint = f"Topic {tp.topic} has {plural(partitions, 'partition')}, and {tp} is not one of them.", ""
    if not partitions:
        what = f"The connector does not read topic {tp.topic}, so it has no offset of {tp}."
        hint = did_you_mean(nearest(tp.topic, sorted(log.topic_ids)))
    return OffsetError(what, code="offset.partition_unknown", suggestion=f"Nothing was changed. {hint}".rstrip())


__all__ = ["EARLIEST", "LATEST", "RESET", "Position", "Positions", "parse_positions", "resolve"]
