"""Everything that a topic holds now: the ranges between its beginnings and its ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, translate
from airflow_connect.kafka.reading.batch_reader import RangeReader


def ranges_of(admin: Admin, topic: str, what: str = "topic") -> list[OffsetRange]:
    """The committed contents of every partition; [] if the topic does not exist.

    Args:
        what: the kind of topic, for messages.

    Raises:
        AccessError: it may not be read.
        UnavailableError: Kafka does not answer.
    """
    try:
        found = admin.list_topics(topic, timeout=API_TIMEOUT_S).topics.get(topic)
    except KafkaException as error:
        raise translate(error, f"looking for the {what} {topic}") from error
    if found is None or found.error is not None:
        return []
    tps = [TopicPartition(topic, partition) for partition in sorted(found.partitions)]
    earliest = watermarks.earliest_offsets(admin, tps)
    latest = watermarks.latest_offsets(admin, tps, watermarks.READ_COMMITTED)
    return [OffsetRange(tp.topic, tp.partition, earliest[tp], max(earliest[tp], latest[tp])) for tp in tps]


def committed_records(settings: Mapping[str, Any], ranges: Sequence[OffsetRange]) -> Iterator[KafkaRecord]:
    """The records of the ranges, in order of offsets for each partition; aborted ones are left out.

    Args:
        settings: librdkafka settings of a consumer. No group is joined.
        ranges: at most one per partition.

    Raises:
        UnavailableError, AccessError: a topic cannot be read.
    """
    reader = RangeReader({**settings, "isolation.level": watermarks.READ_COMMITTED}, ranges)
    try:
        for _, records in reader.records():
            yield from records
    finally:
        reader.close()
