"""The topic of dead letters, made as Kafka Connect makes it (`DeadLetterQueueReporter.createAndSetup`)."""

from __future__ import annotations

from confluent_kafka import KafkaException

from airflow_connect.kafka.clients import API_TIMEOUT_S, Admin, translate
from airflow_connect.kafka.new_topics import create

PARTITIONS = 1


def ensure(admin: Admin, topic: str, replication_factor: int) -> None:
    """Create the topic unless it exists; about 5 ms when it does.

    It has to be there before anything is published: dead letters are written by the commit, and a commit that always
    fails would leave the manifest open for ever.

    Args:
        replication_factor: `errors.deadletterqueue.topic.replication.factor`, for a new topic.

    Raises:
        ConfigError: the replication factor cannot be had.
        AccessError: the topic does not exist and may not be created.
    """
    try:
        found = admin.list_topics(topic, timeout=API_TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        raise translate(error, f"looking for the dead letter queue {topic}") from error
    if found is not None and found.error is None:
        return
    create(admin, topic, PARTITIONS, replication_factor, config_path="errors.deadletterqueue.topic.replication.factor")
