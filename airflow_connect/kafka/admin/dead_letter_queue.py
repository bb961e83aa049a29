"""The topic of dead letters, created as in Kafka Connect (`DeadLetterQueueReporter.createAndSetup`)."""

from __future__ import annotations

from confluent_kafka import KafkaException

from airflow_connect.kafka.admin.new_topics import create
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, translate

PARTITIONS = 1


def ensure(admin: Admin, topic: str, replication_factor: int) -> None:
    """Create the topic unless it exists; about 5 ms if it does.

    It must exist before anything is published: the commit writes dead letters, and a commit that always fails would
    leave the manifest open forever.

    Args:
        replication_factor: `errors.deadletterqueue.topic.replication.factor`, for a new topic.

    Raises:
        ConfigError: the replication factor is not possible.
        AccessError: the topic does not exist and may not be created.
    """
    try:
        found = admin.list_topics(topic, timeout=API_TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        raise translate(error, f"looking for the dead letter queue {topic}") from error
    if found is not None and found.error is None:
        return
    create(admin, topic, PARTITIONS, replication_factor, config_path="errors.deadletterqueue.topic.replication.factor")
