"""MirrorMaker 2's own topics: one partition, compacted (MirrorUtils.createSinglePartitionCompactedTopic)."""

from __future__ import annotations

from airflow_connect.kafka.admin import new_topics
from airflow_connect.kafka.clients.short_lived import Admin


def ensure_topic(admin: Admin, name: str, replication_factor: int, config_path: str) -> None:
    """Create a topic if it does not exist.

    Args:
        replication_factor: -1: the cluster's default.
        config_path: its key, for messages.

    Raises:
        ConfigError, AccessError, UnavailableError: Kafka refused, or did not answer.
    """
    if new_topics.partition_count(admin, name) is not None:
        return
    new_topics.create(admin, name, 1, replication_factor, {"cleanup.policy": "compact"}, config_path=config_path)
    new_topics.wait_until_visible(admin, name)
