"""Answers about topics alone: how much they hold, and which time they have passed."""

from __future__ import annotations

from airflow_connect.observe.watches.cluster_view import ClusterView
from airflow_connect.observe.watches.conditions import TimePassed, TopicsHold
from airflow_connect.observe.watches.observation import MOST_PARTITIONS, Observation
from airflow_connect.observe.watches.target import Target


def observe_data(view: ClusterView, target: Target, condition: TopicsHold) -> Observation:
    """Count offsets, from the beginning of the log or from a time on.

    Raises:
        ConnectError: a topic cannot be looked at.
    """
    records: dict[str, int] = {}
    for tp in view.partitions_of(target):
        end = view.end(tp)
        if condition.since_ms is None:
            start: int | None = view.beginning(tp)
        else:
            start = view.at_time(tp, condition.since_ms)
        count = 0 if start is None else max(0, end - start)
        records[tp.topic] = records.get(tp.topic, 0) + count
    total = sum(records.values())
    largest = sorted(records.items(), key=lambda item: (-item[1], item[0]))[:MOST_PARTITIONS]
    return Observation(total >= condition.min_records, {"records": total, "topics": dict(largest)})


def observe_time(view: ClusterView, target: Target, condition: TimePassed, now_ms: int) -> Observation:
    """Find partitions that have not passed the time.

    Raises:
        ConnectError: a topic cannot be looked at.
    """
    may_be_idle = condition.idle_ms is not None and now_ms >= condition.time_ms + condition.idle_ms
    waiting, idle, passed = [], 0, 0
    for tp in view.partitions_of(target):
        if view.at_time(tp, condition.time_ms) is not None:
            passed += 1
        elif may_be_idle and view.high(tp) <= view.end(tp):
            idle += 1
        else:
            waiting.append(str(tp))
    facts = {"time_ms": condition.time_ms, "passed": passed, "idle": idle, "waiting": waiting[:MOST_PARTITIONS]}
    return Observation(not waiting and passed + idle > 0, facts)
