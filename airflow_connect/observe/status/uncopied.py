"""What a sink has not copied. The sensors and `ConnectHook.lag` ask here, so they give one answer."""

from __future__ import annotations

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.planning.planner import LogState, Memory, Policy, plan_positions


def uncopied(log: LogState, state: ConnectorState | None, policy: Policy, now_ms: int) -> tuple[OffsetRange, ...]:
    """What a run would copy now, partition by partition; a range is empty if there is nothing.

    A partition without a committed offset begins where a run would: at the offset that the last run committed, or by
    `auto.offset.reset`. The files of an open manifest are not copied before a run publishes them.

    Args:
        log: ends of the topics and committed offsets.
        state: what the connector's last run left.
        policy: of the connector, without the limits of a run.
        now_ms: the clock.

    Raises:
        OffsetError: a run would fail, because a committed offset cannot be used.
    """
    memory = Memory(state.committed, state.topic_ids, state.at_ms) if state else Memory()
    return plan_positions(log, memory, policy, now_ms).ranges
