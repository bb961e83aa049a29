"""Where a run begins, if not at the group's offset: after the files of another connector, or where the run must say.

A sink whose files contain their offsets, such as the HDFS sink, can tell where the files end
(`SinkConnector.first_offsets`). This takes precedence over the group's offset. It is called for partitions without a
committed offset in the connector's state: once in the life of a connector, and again only for new topics. A partition
that was added to a topic has no files of an earlier connector; files with its name are of a topic that was deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.planning.planner import LogState, Memory, Positions

if TYPE_CHECKING:
    from airflow_connect.documents.run import Plan
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
    from airflow_connect.runtime.driver.sink.started_sink import StartedSink


class StartOffsets(NamedTuple):
    """Where to take over: offsets by partition, and notes for the report."""

    offsets: Mapping[TopicPartition, int]
    notes: tuple[str, ...]

    def in_log(self, log: LogState) -> LogState:
        """The same log, with these offsets as if the group had them."""
        return replace(log, committed={**log.committed, **self.offsets})

    def in_positions(self, positions: Positions) -> Positions:
        """The same positions; these offsets are committed even where there is nothing to copy."""
        starts = {r.topic_partition: r.start for r in positions.ranges}
        to_commit = {**positions.to_commit, **{tp: starts[tp] for tp in self.offsets if tp in starts}}
        return replace(positions, to_commit=to_commit, notes=(*self.notes, *positions.notes))


def start_offsets(sink: StartedSink, log: LogState, memory: Memory, *, apply: bool) -> StartOffsets:
    """Call the sink's `first_offsets` for topics that are not in the connector's state.

    Raises:
        ConnectError: the store refused, or did not answer.
    """
    copied = {tp.topic for tp in memory.committed}
    unknown = sorted(tp for tp in log.earliest if tp.topic not in copied)
    found = sink.first_offsets(unknown, apply=apply)
    notes = tuple(_note(tp, found[tp], log.committed.get(tp), sink.store_name) for tp in sorted(found))
    return StartOffsets(found, notes)


def begin_at(
    kafka: SinkSession, known: ConnectorState, plan: Plan, offsets: Mapping[TopicPartition, int]
) -> ConnectorState:
    """Commit offsets at which this run begins, before it copies; returns the state of the connector.

    If the run fails, the next one must not choose later ones (`auto.offset.reset=latest`); and a plugin that reads its
    group's offsets must find these (`PlannedState.group_offsets`).

    Raises:
        FencedError: a newer run has taken over.
        ConnectError: Kafka refused them, or did not answer.
    """
    if not offsets:
        return known
    ids = {tp.topic: plan.topic_ids[tp.topic] for tp in offsets}
    state = replace(known, committed={**known.committed, **offsets}, topic_ids={**known.topic_ids, **ids})
    kafka.commit_starts(offsets, state)
    return state


def _note(tp: TopicPartition, offset: int, committed: int | None, store: str) -> str:
    if committed is None or committed == offset:
        return f"{tp} continues at {offset}, where the files of an earlier connector in {store} end."
    return (
        f"{tp} continues at {offset}, where the files of an earlier connector in {store} end; the group's offset"
        f" {committed} is ignored."
    )
