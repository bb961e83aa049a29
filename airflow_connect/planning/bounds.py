"""Bounds of a run that somebody chose: a replay's ranges, or the ranges of a plan that was approved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.errors import ConfigError, OffsetError
from airflow_connect.planning.chosen_positions import TimeLookup, parse_positions, resolve
from airflow_connect.planning.planner import LogState, Memory, Positions


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ranges that a run must not leave. Partitions without one are not part of the run.

    Attributes:
        ranges: at most one per partition.
        topic_ids: ids of their topics when the ranges were chosen; offsets of another topic mean nothing.
        begin: whether a partition without a committed offset begins at its range (a replay). Otherwise the committed
            offset decides where it begins, and must not lie before the range (an approved plan).
    """

    ranges: tuple[OffsetRange, ...]
    topic_ids: Mapping[str, str]
    begin: bool

    def narrow(self, log: LogState, memory: Memory) -> tuple[LogState, Memory]:
        """The log and the memory as a run sees them that knows nothing beyond its bounds.

        Raises:
            OffsetError: a topic was recreated since.
        """
        for topic, topic_id in self.topic_ids.items():
            if log.topic_ids.get(topic, topic_id) != topic_id:
                raise OffsetError(
                    f"Topic {topic} was recreated: its id is {log.topic_ids[topic]}, and was {topic_id} when the ranges"
                    " of this run were chosen.",
                    suggestion="Nothing was copied. Choose the ranges again.",
                )
        bounds = {r.topic_partition: r for r in self.ranges if r.topic_partition in log.earliest}
        # Offsets of other partitions stay: they tell whether a topic is read for the first time.
        committed, remembered = log.committed, memory.committed
        if self.begin:
            # As if an earlier run had ended there.
            starts = {tp: remembered.get(tp, r.start) for tp, r in bounds.items()}
            committed, remembered = {**starts, **committed}, {**starts, **remembered}
        ends = {tp: max(min(log.end[tp], r.end), committed.get(tp, 0)) for tp, r in bounds.items()}
        narrowed = replace(
            log,
            earliest={tp: log.earliest[tp] for tp in bounds},
            end=ends,
            committed=committed,
            # Something follows a bound, even if this run will never read it.
            unstable=log.unstable | {tp for tp, end in ends.items() if log.end[tp] > end},
        )
        return narrowed, replace(memory, committed=remembered)

    def check(self, positions: Positions) -> tuple[str, ...]:
        """Refuse to copy what was not approved; returns sentences about what was approved and is not copied.

        Raises:
            OffsetError: offsets were set back since the ranges were chosen.
        """
        chosen = {r.topic_partition: r for r in self.ranges}
        for planned in positions.ranges:
            approved = chosen[planned.topic_partition]
            if not planned.is_empty and planned.start < approved.start:
                raise OffsetError(
                    f"The run would begin at offset {planned.start} of {planned.topic_partition}, and its plan begins"
                    f" at {approved.start}.",
                    code="offset.plan_outdated",
                    suggestion="Offsets were set back since the plan was made. Nothing was copied. Plan again.",
                )
        late = {
            planned.topic_partition: (chosen[planned.topic_partition].start, planned.start)
            for planned in positions.ranges
            if not self.begin and chosen[planned.topic_partition].start < planned.start
        }
        return tuple(
            f"The plan of this run begins at {tp}@{start}, and the run at {found}: offsets below it are committed"
            " already, or Kafka has deleted them since."
            for tp, (start, found) in late.items()
            if found < chosen[tp].end
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {"ranges": [[*_cells(r)] for r in self.ranges], "topic_ids": dict(self.topic_ids), "begin": self.begin}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Bounds:
        """Inverse of `to_json`."""
        return cls(tuple(OffsetRange(*cells) for cells in data["ranges"]), dict(data["topic_ids"]), data["begin"])


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The range of a replay, as people choose it.

    Attributes:
        start, until: positions, see `chosen_positions.parse_positions`. `start` is inclusive, `until` exclusive. If
            `start` names partitions, the others are not replayed. None or a partition that `until` does not name: what
            the connector has copied, that is its committed offset.
        group: the group of the connector whose records are replayed.
        keeps_within_copied: refuse records that the connector has not copied yet: it will write them to the same place.
    """

    start: Any
    until: Any
    group: str
    keeps_within_copied: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form; times become text."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        return plain

    def resolve(self, log: LogState, copied: Mapping[TopicPartition, int], first_at: TimeLookup) -> Bounds:
        """The ranges, as the log is now. A range that would end before it begins is empty.

        Args:
            log: the topics of the connector.
            copied: its committed offsets.
            first_at: looks up times.

        Raises:
            ConfigError: a position is wrong, or deletes an offset.
            OffsetError: a partition does not exist, or an offset is outside its log; the message names it.
        """
        starts = _offsets(resolve(parse_positions(self.start, "start"), log, first_at), "start")
        ends = {tp: copied.get(tp, start) for tp, start in starts.items()}
        if self.until is not None:
            untils = parse_positions(self.until, "until")
            extra = sorted(tp for tp in untils if tp is not None and tp in log.earliest and tp not in starts)
            if extra:
                raise ConfigError(
                    f"until names {extra[0]}, and start does not.",
                    suggestion="Name the same partitions in both.",
                    config_path="until",
                )
            found = _offsets(resolve(untils, log, first_at), "until")
            ends.update((tp, end) for tp, end in found.items() if tp in starts)
        if self.keeps_within_copied:
            _refuse_beyond(ends, {tp: copied.get(tp, start) for tp, start in starts.items()})
        ranges = tuple(OffsetRange(*tp, start, max(start, ends[tp])) for tp, start in sorted(starts.items()))
        return Bounds(ranges, {r.topic: log.topic_ids[r.topic] for r in ranges}, begin=True)


def _refuse_beyond(ends: Mapping[TopicPartition, int], copied: Mapping[TopicPartition, int]) -> None:
    for tp, end in sorted(ends.items()):
        if end > copied[tp]:
            raise OffsetError(
                f"The replay of {tp} would end at {end}, but the connector has copied it only up to {copied[tp]}. It"
                " will write the rest to the same place itself.",
                code="replay.not_copied_yet",
                suggestion="Nothing was copied. Leave until out, or replay to another place.",
            )


def _offsets(resolved: Mapping[TopicPartition, int | None], name: str) -> dict[TopicPartition, int]:
    found = {tp: offset for tp, offset in resolved.items() if offset is not None}
    if len(found) < len(resolved):
        raise ConfigError(
            f"{name} has no position for {min(resolved.keys() - found.keys())}.",
            suggestion="Give an offset, a time, earliest or latest.",
            config_path=name,
        )
    return found


def approved(plan: Mapping[str, Any]) -> Bounds:
    """The bounds of a run that copies what a plan says, and no more. `plan`: of `Plan.to_json`."""
    ranges: Sequence[Mapping[str, Any]] = [r for task in plan["tasks"] for r in task["ranges"]]
    # Without records, but the run commits where they begin, and the next plan continues there.
    begun = {TopicPartition(t, p): OffsetRange(t, p, at, at) for t, p, at in plan.get("at_latest", ())}
    found: dict[TopicPartition, OffsetRange] = {}
    for r in map(OffsetRange.from_json, map(dict, ranges)):  # Several tasks may share a partition.
        other = found.get(r.topic_partition, r)
        found[r.topic_partition] = replace(r, start=min(r.start, other.start), end=max(r.end, other.end))
    found = {**begun, **found}
    return Bounds(tuple(found.values()), {r.topic: plan["topic_ids"][r.topic] for r in found.values()}, begin=False)


def _cells(r: OffsetRange) -> tuple[str, int, int, int]:
    return r.topic, r.partition, r.start, r.end
