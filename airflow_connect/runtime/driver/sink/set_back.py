"""Targets that were set back: a database from a backup lacks records whose offsets are committed to Kafka.

A sink that stores offsets with its records can tell (`SinkConnector.kept_offsets`). An operator who sets the group's
offset in Kafka alone is obeyed: then the group has another offset than the last run has committed. If it is beyond what
the target has, such as after a restored backup, the report names the records that the target lacks and does not get.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.errors import OffsetError
from airflow_connect.planning.planner import LogState, Memory

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.driver.sink.started_sink import StartedSink


def earlier_offsets(
    sink: StartedSink, log: LogState, memory: Memory, state: ConnectorState, reset: Collection[TopicPartition]
) -> tuple[dict[TopicPartition, int], tuple[str, ...]]:
    """What the target has, of partitions where it has less than the group.

    `reset`: partitions whose offsets in the target `offsets.out.of.range` decides.

    Returns:
        The offsets where the group has what the last run committed; sentences about partitions whose group offset
        another client has changed.

    Raises:
        ConnectError: the target refused, or did not answer.
    """
    known = {tp: log.topic_ids.get(tp.topic, "") for tp in memory.committed.keys() - reset if tp in log.earliest}
    if not known or not state.run_id:
        return {}, ()
    kept = sink.kept_offsets(known, state.run_id, state.kept)
    # A run goes on at the remembered offset if the group has lost its own, which expires, or goes with the group.
    committed = {tp: log.committed.get(tp, memory.committed[tp]) for tp in known}
    earlier = {tp: kept[tp] for tp in known if kept.get(tp, committed[tp]) < committed[tp]}
    unaltered = {tp: offset for tp, offset in earlier.items() if memory.committed[tp] == committed[tp]}
    return unaltered, tuple(
        f"{sink.store_name} has the records of {tp} up to {offset}, and earlier runs had committed"
        f" {memory.committed[tp]}: it was set back since, such as by a restored backup. Another client has changed the"
        f" group's offset to {log.committed[tp]}, so that the records in [{offset}, {log.committed[tp]}) are NOT"
        f" written. If they are not in it, set the offset of the connector to {offset}."
        for tp, offset in sorted(earlier.items())
        if tp not in unaltered
    )


def set_back(log: LogState, memory: Memory, offsets: Mapping[TopicPartition, int]) -> tuple[LogState, Memory]:
    """Log and memory as if no run had committed more than what the target has."""
    committed = {**log.committed, **offsets}
    return replace(log, committed=committed), replace(memory, committed={**memory.committed, **offsets})


def reset_target(
    configuration: SinkConfiguration, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, str]
) -> None:
    """Tell a target that keeps offsets those that `offsets.out.of.range` has chosen after a log had lost its end.

    It may have larger ones, of records that Kafka has lost: those that come in their place would count as written.

    Raises:
        ConnectError: the target refused, or did not answer.
    """
    if offsets:
        config = dict(configuration.resolved.connector.raw)
        ids = {tp.topic: topic_ids.get(tp.topic, "") for tp in offsets}
        configuration.sink.call_unstarted("alter_offsets", lambda sink: sink.alter_offsets(config, offsets, ids))


def facts_of(memory: Memory, offsets: Mapping[TopicPartition, int], store: str) -> tuple[str, ...]:
    """A sentence about each partition; `memory`: what the last run has committed."""
    return tuple(
        f"{store} has the records of {tp} up to {offset}, but earlier runs have committed {memory.committed[tp]}: it"
        " was set back since, such as by a restored backup."
        for tp, offset in sorted(offsets.items())
    )


@contextmanager
def naming(facts: Sequence[str]) -> Iterator[None]:
    """Say why these offsets are asked for, if Kafka no longer has them."""
    try:
        yield
    except OffsetError as error:
        raise OffsetError(
            " ".join((*facts, error.message)),
            code=error.code, suggestion=error.suggestion, config_path=error.config_path,
        ) from None  # fmt: skip
