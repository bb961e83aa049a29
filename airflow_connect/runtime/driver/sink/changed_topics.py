"""Topics that have other partitions, or another id, than at the last commit: the sink says what that means for it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airflow_connect.api.cluster_facts import TopicChange
from airflow_connect.api.offsets import is_other_topic

if TYPE_CHECKING:
    from airflow_connect.planning.planner import LogState, Memory


def changed_topics(log: LogState, memory: Memory) -> tuple[TopicChange, ...]:
    """What has changed since the last commit of the connector; nothing about topics that it did not know.

    Args:
        log: all partitions of the topics.
        memory: what the last run has committed.
    """
    before: dict[str, set[int]] = defaultdict(set)
    now: dict[str, set[int]] = defaultdict(set)
    for partitions, found in ((memory.committed, before), (log.earliest, now)):
        for place in partitions:
            found[place.topic].add(place.partition)
    changes = []
    for topic in sorted(before.keys() & now.keys()):
        is_other = is_other_topic(memory.topic_ids.get(topic, ""), log.topic_ids.get(topic, ""))
        change = TopicChange(topic, len(before[topic]), len(now[topic]), is_other)
        if is_other or change.partitions > change.partitions_before:
            changes.append(change)
    return tuple(changes)
