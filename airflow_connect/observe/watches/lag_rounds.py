"""How much a sink connector has not copied.

Committed offsets only grow while a connector runs, so the lag against older ones is never too small. A round computes
it with the offsets that earlier rounds have read, and reads them again only if that lag reaches the condition. So
connectors with little new data cost no request of their own. Someone may have set the offsets back, so they are read
again after `REREAD_AFTER_MS` in any case.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.kafka.admin import many_offsets
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.reading.first_timestamps import FirstRecord, first_records
from airflow_connect.observe.status.uncopied import uncopied
from airflow_connect.observe.watches.cluster_view import ClusterView
from airflow_connect.observe.watches.conditions import LagReaches
from airflow_connect.observe.watches.observation import MOST_PARTITIONS, Observation
from airflow_connect.observe.watches.runs import state_of
from airflow_connect.observe.watches.target import Target
from airflow_connect.planning.packing import DEFAULT_BYTES_PER_RECORD

REREAD_AFTER_MS = 5 * 60 * 1000


class _Place(NamedTuple):
    topic_id: str
    partition: int
    offset: int


class LagWatch(NamedTuple):
    """A condition on the lag of a connector, and the connector's documents in the runs topic."""

    target: Target
    condition: LagReaches
    documents: Mapping[str, bytes] | ConnectError


class _Committed(NamedTuple):
    offsets: Mapping[TopicPartition, int]
    read_ms: int
    tps: frozenset[TopicPartition]


@dataclass
class LagMemory:
    """What rounds remember.

    Attributes:
        groups: committed offsets as last read.
        firsts: the first record at or after a position, by topic id, partition and offset.
    """

    groups: dict[str, _Committed] = field(default_factory=dict)
    firsts: dict[_Place, FirstRecord] = field(default_factory=dict)


@dataclass
class LagRound:
    """One round of questions about lag.

    Attributes:
        admin: asks for committed offsets.
        consumer: librdkafka settings of a consumer, for timestamps of records.
        isolation: which records count.
        view: topics and ends of this round, loaded for all targets.
        memory: of earlier rounds.
        now_ms: the clock.
    """

    admin: Admin
    consumer: Mapping[str, Any]
    isolation: str
    view: ClusterView
    memory: LagMemory
    now_ms: int
    _partitions: dict[str, set[TopicPartition]] = field(default_factory=dict, init=False)
    _fresh: set[str] = field(default_factory=set, init=False)
    _errors: dict[str, ConnectError] = field(default_factory=dict, init=False)
    _first_errors: dict[TopicPartition, ConnectError] = field(default_factory=dict, init=False)
    _states: dict[str, ConnectorState | None] = field(default_factory=dict, init=False)
    _used: set[_Place] = field(default_factory=set, init=False)

    def observe(self, watches: Sequence[LagWatch]) -> list[Observation | ConnectError]:
        """The answer to each watch, in their order."""
        for target in (watch.target for watch in watches):
            self._partitions.setdefault(target.group, set()).update(self.view.partitions_of_all([target]))
        self.memory.groups = {group: known for group, known in self.memory.groups.items() if group in self._partitions}
        self._read_groups([group for group in self._partitions if self._is_unknown(group)])
        self._read_firsts(watches)
        reached = [w for w in watches if self._may_be_reached(w)]
        self._read_groups({w.target.group for w in reached} - self._fresh)
        self._read_firsts(reached)
        self.memory.firsts = {place: first for place, first in self.memory.firsts.items() if place in self._used}
        return [self._answer(watch) for watch in watches]

    def _is_unknown(self, group: str) -> bool:
        """Whether the committed offsets have to be read before anything can be said."""
        known = self.memory.groups.get(group)
        if known is None or self.now_ms - known.read_ms >= REREAD_AFTER_MS:
            return True
        return not self._partitions[group] <= known.tps

    def _read_groups(self, wanted: Iterable[str]) -> None:
        groups = sorted(wanted)
        random.shuffle(groups)  # A round that has no time for all of them leaves out others than the last one.
        found = many_offsets.committed_of_each(self.admin, {group: sorted(self._partitions[group]) for group in groups})
        for group in groups:
            answer = found.get(group, UnavailableError(f"The offsets of group {group} were not read in this round."))
            if isinstance(answer, ConnectError):
                self.memory.groups.pop(group, None)
                self._errors[group] = answer
            else:
                self._fresh.add(group)
                self.memory.groups[group] = _Committed(answer, self.now_ms, frozenset(self._partitions[group]))

    def _may_be_reached(self, watch: LagWatch) -> bool:
        answer = self._answer(watch)
        return isinstance(answer, Observation) and answer.is_reached

    def _read_firsts(self, watches: Sequence[LagWatch]) -> None:
        """Read timestamps that are not known yet, of records that are not copied."""
        wanted: dict[TopicPartition, _Place] = {}
        for watch in watches:
            if watch.condition.min_age_ms is None:
                continue
            try:
                ranges = self._ranges(watch)
            except ConnectError:
                continue  # the answer to this watch
            for r, place in zip(ranges, self._starts_of(watch.target, ranges), strict=True):
                self._used.add(place)
                known = self.memory.firsts.get(place)
                if known is None or (known.timestamp_ms is None and known.offset < r.end):
                    # Connectors at different positions of one partition are read in turn.
                    wanted.setdefault(r.topic_partition, place)
        starts = {tp: place.offset for tp, place in wanted.items()}
        found = first_records(self.consumer, starts, self.isolation)
        for tp, first in found.items():
            if isinstance(first, ConnectError):
                self._first_errors[tp] = first
            else:
                self.memory.firsts[wanted[tp]] = first

    def _starts_of(self, target: Target, ranges: Sequence[OffsetRange]) -> list[_Place]:
        topics = self.view.topics_of(target)
        return [_Place(topics[r.topic].topic_id, r.partition, r.start) for r in ranges]

    def _ranges(self, watch: LagWatch) -> list[OffsetRange]:
        """What a run would copy now, without its limits; without empty ranges.

        Raises:
            ConnectError: it cannot be determined, or a run would fail.
        """
        target = watch.target
        self.view.topics_of(target)  # A topic that is missing is the first problem to name.
        committed, state = self._committed(target), self._state(watch)
        log = self.view.log_state(target, committed)
        return [r for r in uncopied(log, state, target.policy, self.now_ms) if not r.is_empty]

    def _committed(self, target: Target) -> Mapping[TopicPartition, int]:
        if target.group in self._errors:
            raise self._errors[target.group]
        return self.memory.groups[target.group].offsets

    def _state(self, watch: LagWatch) -> ConnectorState | None:
        if isinstance(watch.documents, ConnectError):
            raise watch.documents
        name = watch.target.name
        if name not in self._states:
            self._states[name] = state_of(name, watch.documents)
        return self._states[name]

    def _answer(self, watch: LagWatch) -> Observation | ConnectError:
        try:
            ranges, state = self._ranges(watch), self._state(watch)
            committed = self._committed(watch.target)
        except ConnectError as error:
            return error
        per_record = state.bytes_per_record if state else {}
        wanted, records = watch.condition, sum(len(r) for r in ranges)
        size = round(sum(len(r) * per_record.get(r.topic, DEFAULT_BYTES_PER_RECORD) for r in ranges))
        facts: dict[str, Any] = {"connector": watch.target.name, "records": records, "bytes": size}
        age_ms = None
        if wanted.min_age_ms is not None:
            age_ms = self._age_ms(watch.target, ranges)
            facts["age_s"] = None if age_ms is None else age_ms / 1000
        bounds = ((wanted.min_records, records), (wanted.min_bytes, size), (wanted.min_age_ms, age_ms))
        reached = any(bound is not None and value is not None and value >= bound for bound, value in bounds)
        if not reached and wanted.min_age_ms is not None:
            for r in ranges:
                if r.topic_partition in self._first_errors:
                    return self._first_errors[r.topic_partition]
        longest = sorted(ranges, key=lambda r: (-len(r), r.topic, r.partition))[:MOST_PARTITIONS]
        facts["offsets"] = {str(r.topic_partition): [r.start, r.end] for r in longest}
        return Observation(reached, facts, _mark_of(committed))

    def _age_ms(self, target: Target, ranges: Sequence[OffsetRange]) -> int | None:
        """Age of the oldest first record of the ranges, None if there is none, or none could be read."""
        firsts = [self.memory.firsts.get(place) for place in self._starts_of(target, ranges)]
        times = [first.timestamp_ms for first in firsts if first is not None and first.timestamp_ms is not None]
        return max(0, self.now_ms - min(times)) if times else None


def _mark_of(committed: Mapping[TopicPartition, int]) -> str:
    """A short text that changes with every commit."""
    text = json.dumps(sorted([*tp, offset] for tp, offset in committed.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
