"""The topic of dead letters: what it accepts, and its creation as in Kafka Connect (`DeadLetterQueueReporter`)."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaException

from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.new_topics import create
from airflow_connect.kafka.admin.topic_settings import settings_of
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, translate

PARTITIONS = 1
TIME_MARGIN_MS = 5 * 60 * 1000
UNLIMITED_MS = str(2**63 - 1)


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


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """What a queue accepts; None: it is not limited, or Kafka does not tell.

    Attributes:
        topic: the queue.
        largest_bytes: size of the largest batch of records.
        largest_text: which setting says so.
        before_ms, after_ms: how far a timestamp may be from the broker's clock.
        is_compacted: records need keys, and only the last one of each key is kept.
        replaces_time: brokers replace every timestamp by their clock (`message.timestamp.type=LogAppendTime`).
    """

    topic: str
    largest_bytes: int | None = None
    largest_text: str = ""
    before_ms: int | None = None
    after_ms: int | None = None
    is_compacted: bool = False
    replaces_time: bool = False

    def accepts_time(self, timestamp_ms: int, now_ms: int) -> bool:
        """Whether a broker keeps this timestamp, with clocks and a publish that differ by `TIME_MARGIN_MS`."""
        if self.replaces_time:
            return False
        too_old = self.before_ms is not None and now_ms - timestamp_ms > _less_margin(self.before_ms)
        too_new = self.after_ms is not None and timestamp_ms - now_ms > _less_margin(self.after_ms)
        return not too_old and not too_new


def limits_of(admin: Admin, topic: str, largest_request: int, *, is_compressed: bool) -> QueueLimits:
    """What the queue accepts; only what the client accepts if its settings may not be read.

    Args:
        largest_request: the client's own limit for a record, `message.max.bytes`, in bytes.
        is_compressed: whether the producer compresses; then the brokers' limit says nothing about a record's size.

    Raises:
        UnavailableError: Kafka does not answer.
    """
    try:
        found = settings_of(admin, [topic])[topic]
    except AccessError:
        # Describing topics needs a permission that writing does not need. The commit names what Kafka refuses.
        return QueueLimits(topic, largest_request, f"{largest_request} bytes (max.request.size of the producer)")
    largest, text = largest_request, f"{largest_request} bytes (max.request.size of the producer)"
    of_topic = int(found["max.message.bytes"])
    if not is_compressed and of_topic < largest:
        largest, text = of_topic, f"{of_topic} bytes (max.message.bytes)"
    replaces_time = found.get("message.timestamp.type") == "LogAppendTime"
    if replaces_time:
        before_ms = after_ms = None
    else:
        # Brokers before 3.6 have one limit for both.
        both = found.get("message.timestamp.difference.max.ms", UNLIMITED_MS)
        before_ms = int(found.get("message.timestamp.before.max.ms", both))
        after_ms = int(found.get("message.timestamp.after.max.ms", both))
    is_compacted = "compact" in found.get("cleanup.policy", "")
    return QueueLimits(topic, largest, text, before_ms, after_ms, is_compacted, replaces_time)


def _less_margin(limit_ms: int) -> int:
    return limit_ms - min(TIME_MARGIN_MS, limit_ms // 2)
