"""Offsets that the tasks of a run have moved themselves (`SinkConnector.commits_offsets`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.own_offsets import MEMBER_CLIENT, SESSION_TIMEOUT, SESSION_TIMEOUT_MS
from airflow_connect.kafka.admin.consumer_group import group_state
from airflow_connect.retrying import Backoff, Retry

if TYPE_CHECKING:
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.kafka.clients.short_lived import Admin
    from airflow_connect.planning.planner import LogState
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration


_MARGIN_S = 5.0


def wait_for_killed_tasks(admin: Admin, group: str, client: Mapping[str, Any]) -> None:
    """Return once a group has no tasks of a killed run any more, or has other members, or it takes too long.

    Args:
        admin: asks Kafka.
        group: of the connector.
        client: settings of its consumer.
    """
    session_s = float(client.get(SESSION_TIMEOUT, SESSION_TIMEOUT_MS)) / 1000
    tries = Retry(Backoff(0.25, longest_s=0.5), within_s=session_s + _MARGIN_S)
    while True:
        members = group_state(admin, group)[1]
        if not members or any(member.client_id != MEMBER_CLIENT for member in members) or not tries.pause():
            return


def moved_by_tasks(ranges: Sequence[OffsetRange], now: Mapping[TopicPartition, int]) -> frozenset[TopicPartition]:
    """Partitions whose offset is one that their task may have committed: within what it was to copy.

    Args:
        ranges: the plan; a partition has one range.
        now: what the group has committed.
    """
    return frozenset(
        r.topic_partition for r in ranges if r.topic_partition in now and r.start <= now[r.topic_partition] <= r.end
    )


def with_unjudged(config: SinkConfiguration, log: LogState, state: ConnectorState | None) -> LogState:
    """The log, with offsets set back to where a run began that has ended without a commit, if errors are tolerated.

    The tasks of that run may have moved offsets behind records that failed: what it knew of them ended with it. So they
    are read and converted again. Tasks pass nothing to their target again that the group has as written. An offset
    beyond the end of the log is none that a task has committed there: it stays, and the plan refuses it.

    Args:
        config: of the run.
        log: with the offsets of the group.
        state: of the connector.
    """
    if state is None or not config.commits_offsets or not config.resolved.connector.errors.tolerate:
        return log
    starts = config.sink.unjudged(state.kept)
    back = {
        tp: start
        for tp, start in starts.items()
        if tp in log.earliest
        and log.earliest[tp] <= start < log.committed.get(tp, start) <= max(log.end[tp], log.high.get(tp, 0))
    }
    return replace(log, committed={**log.committed, **back})
