"""Alters the offsets of a sink: those of its group, and what its state record remembers of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.counting import plural
from airflow_connect.errors import OffsetError, RetriableError
from airflow_connect.exactly_once.journal import Commit, JournalView
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.kafka.admin import consumer_group, watermarks
from airflow_connect.planning.chosen_positions import Positions, resolve
from airflow_connect.planning.limits import RunLimits
from airflow_connect.runtime.driver.offsets.altered import AlteredOffsets
from airflow_connect.runtime.driver.reporting import now_ms
from airflow_connect.runtime.driver.sink.kafka_session import SinkSession

if TYPE_CHECKING:
    from airflow_connect.planning.planner import LogState
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration


def alter(configuration: SinkConfiguration, positions: Positions) -> AlteredOffsets:
    """Move the connector to these positions.

    Raises:
        ConnectError: see `entry.set_offsets`.
    """
    with configuration.references.hiding_errors(), configuration.sink, SinkSession(configuration) as kafka:
        kafka.ensure_group_empty()  # Invariant 9.
        _refuse_open_manifest(kafka.peek(), configuration.name)  # Before the fence: a run that publishes goes on.
        kafka.journal.fence()  # Invariant 2.
        view = kafka.journal.read()
        _refuse_open_manifest(view, configuration.name)  # Invariant 6.
        log = kafka.log_state(RunLimits())
        wanted = resolve(positions, log, lambda tps, ms: watermarks.offsets_for_timestamp(kafka.admin, tps, ms))
        known = view.state or ConnectorState(configuration.name, "", CLOSED, 0)
        _refuse_half_of_a_recreated_topic(known, log, wanted)
        config = dict(configuration.resolved.connector.raw)
        ids = {topic: log.topic_ids.get(topic, "") for topic in {tp.topic for tp in wanted}}
        configuration.sink.call_unstarted("alter_offsets", lambda sink: sink.alter_offsets(config, wanted, ids))
        _write(kafka, configuration.resolved.consumer_group, _Change(known, log, wanted))
        after = consumer_group.read_committed_offsets(kafka.admin, configuration.resolved.consumer_group, wanted)
    before = {str(tp): log.committed.get(tp) for tp in wanted}
    now = {str(tp): after.get(tp) for tp in wanted}
    return AlteredOffsets(configuration.name, sum(now[tp] != before[tp] for tp in now), before, now)


class _Change:
    """What is to be written.

    Attributes:
        offsets: all offsets of the group from now on, if some are deleted; otherwise those that are set.
        state: the connector's state from now on.
        deletes: whether the group loses an offset.
    """

    def __init__(self, known: ConnectorState, log: LogState, wanted: Mapping[TopicPartition, int | None]) -> None:
        new = {tp: offset for tp, offset in wanted.items() if offset is not None}
        gone = {tp for tp, offset in wanted.items() if offset is None}
        self.deletes = bool(gone & log.committed.keys())
        known = known.seeing({topic: log.topic_ids[topic] for topic in {tp.topic for tp in wanted}})
        # The group's own offsets are deleted for a moment, so all of them have to be in the state.
        before = {**known.committed, **(log.committed if self.deletes else {})}
        self.offsets = {**(_without(log.committed, gone) if self.deletes else {}), **new}
        committed = {**_without(before, gone), **new}
        # A topic without any offset is read as one that was never seen.
        new_again = {tp.topic for tp in gone} - {tp.topic for tp in committed}
        self.state = replace(
            known,
            at_ms=now_ms(),
            committed=committed,
            topic_ids={topic: topic_id for topic, topic_id in known.topic_ids.items() if topic not in new_again},
        )


def _write(kafka: SinkSession, group: str, change: _Change) -> None:
    """Set offsets and state in one transaction (invariant 5).

    A transaction cannot delete offsets of a group, so a group that loses some is deleted, and the others are written
    again. Between the two, and if this process dies there, the state has them: a run takes an offset that the group has
    lost from the state.
    """
    if not change.deletes:
        kafka.journal.commit(Commit(offsets=change.offsets, state=change.state))
        return
    kafka.journal.commit(Commit(offsets={}, state=change.state))
    consumer_group.delete_group(kafka.admin, group)
    if change.offsets:
        kafka.journal.commit(Commit(offsets=change.offsets, state=change.state))


def _refuse_open_manifest(view: JournalView, name: str) -> None:
    if view.manifest is not None:
        count = len(view.manifest.files)  # 0: the sink writes no files.
        published = (
            f"begun to publish {plural(count, 'file')} and has not committed their" if count else "not committed its"
        )
        raise RetriableError(
            f"Run {view.manifest.run_id} of connector {name} has {published} offsets.",
            code="offset.run_unfinished",
            suggestion="No offset was changed. Wait until it ends. If it was killed, run the connector once: that"
            " run finishes the work. Then set the offsets.",
        )


def _refuse_half_of_a_recreated_topic(
    known: ConnectorState, log: LogState, wanted: Mapping[TopicPartition, int | None]
) -> None:
    """The offsets of the other partitions would belong to a topic that is gone, and nobody would notice."""
    for topic, topic_id in log.topic_ids.items():
        stale = [tp for tp in log.earliest if tp.topic == topic and tp not in wanted]
        if known.topic_ids.get(topic, topic_id) != topic_id and stale and any(tp.topic == topic for tp in wanted):
            raise OffsetError(
                f"Topic {topic} was recreated since the last run, and there is no position for {stale[0]}.",
                suggestion=f"Nothing was changed. Give a position for every partition of {topic}.",
            )


def _without(offsets: Mapping[TopicPartition, int], gone: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    return {tp: offset for tp, offset in offsets.items() if tp not in gone}
