"""Messages of the Python client as records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import KafkaRecord

if TYPE_CHECKING:
    from confluent_kafka import Message

    from airflow_connect.api.offsets import TopicPartition


def record_of(tp: TopicPartition, message: Message[Any, Any]) -> KafkaRecord:
    """A message of the client as a record."""
    kind, stamp = message.timestamp()
    headers: Any = message.headers()  # typed too widely by the client
    return KafkaRecord(
        topic=tp.topic,
        partition=tp.partition,
        offset=int(message.offset() or 0),
        key=message.key(),
        value=message.value(),
        timestamp=stamp if kind else None,
        timestamp_type=kind,
        headers=tuple(headers or ()),
    )
