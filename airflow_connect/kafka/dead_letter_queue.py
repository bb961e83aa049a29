"""The topic of dead letters, made as Kafka Connect makes it (`DeadLetterQueueReporter.createAndSetup`)."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from airflow_connect.api.errors import ConfigError
from airflow_connect.kafka.clients import API_TIMEOUT_S, Admin, kafka_error, translate

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
    future = admin.create_topics([NewTopic(topic, PARTITIONS, replication_factor)], request_timeout=API_TIMEOUT_S)[
        topic
    ]
    try:
        future.result(API_TIMEOUT_S)
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is not None and inner.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if inner is not None and inner.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            raise ConfigError(
                f"The dead letter queue {topic} does not exist and cannot be created with {replication_factor} "
                f"replicas: {inner.str()}.",
                suggestion="Create the topic, or set a factor that the cluster has brokers for.",
                config_path="errors.deadletterqueue.topic.replication.factor",
            ) from error
        raise translate(error, f"creating the dead letter queue {topic}") from error
