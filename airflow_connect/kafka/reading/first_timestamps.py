"""Timestamps of the first records after given offsets, without joining a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.clients.short_lived import QuickConsumer, state_consumer, translate
from airflow_connect.retrying import Backoff, Retry

READ_TIMEOUT_S = 10.0
"""How long reading may take; partitions that have not answered are left to the next round."""
AT_ONCE = 200
"""Partitions that are read at the same time: each may answer with up to `FETCH_BYTES`."""
FETCH_BYTES = 16_384
"""Of a partition. The broker sends at least one whole batch of records, however large."""
METADATA_TIMEOUT_S = 5.0
BEGINNING = OFFSET_BEGINNING
"""As a start: the first offset that the partition still has."""


class FirstRecord(NamedTuple):
    """The first record at or after an offset.

    Attributes:
        offset: its offset; that of the end if there is no record before it.
        timestamp_ms: None if there is no record, or it has no timestamp.
    """

    offset: int
    timestamp_ms: int | None


def first_records(
    settings: Mapping[str, Any],
    starts: Mapping[TopicPartition, int],
    isolation: str,
    *,
    fetch_bytes: int = FETCH_BYTES,
    within_s: float = READ_TIMEOUT_S,
) -> dict[TopicPartition, FirstRecord | ConnectError]:
    """The first record at or after each offset; partitions that did not answer in time are omitted.

    Args:
        settings: librdkafka settings of a consumer.
        starts: inclusive; `BEGINNING` is one, too.
        fetch_bytes: of a partition at a time.
        within_s: how long reading may take.
        isolation: with `read_committed`, records of aborted and open transactions are passed over.
    """
    found: dict[TopicPartition, FirstRecord | ConnectError] = {}
    if not starts:
        return found
    consumer = state_consumer(
        settings,
        isolation_level=isolation,
        enable_partition_eof=True,
        fetch_message_max_bytes=fetch_bytes,
        queued_min_messages=1,
    )
    tries = Retry(Backoff(0), within_s=within_s)
    places = sorted(starts)
    try:
        # Without known leaders `assign` would wait for librdkafka's next metadata timer, up to a second.
        consumer.list_topics(timeout=METADATA_TIMEOUT_S)
        for first in range(0, len(places), AT_ONCE):
            _read_some(consumer, {tp: starts[tp] for tp in places[first : first + AT_ONCE]}, found, tries)
    except KafkaException as error:
        problem = translate(error, "reading the oldest records that are not copied")
        found.update({tp: problem for tp in places if tp not in found})
    finally:
        consumer.close()
    return found


def _read_some(
    consumer: QuickConsumer,
    starts: Mapping[TopicPartition, int],
    found: dict[TopicPartition, FirstRecord | ConnectError],
    tries: Retry,
) -> None:
    consumer.assign([_Partition(tp.topic, tp.partition, offset) for tp, offset in starts.items()])
    while not found.keys() >= starts.keys() and tries.left_s > 0:
        message = consumer.poll(0.1)
        if message is None or message.topic() is None:
            continue
        tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
        if tp not in starts or tp in found:
            continue
        answer = _answer(message, tp)
        if answer is not None:
            found[tp] = answer
            consumer.pause([_Partition(tp.topic, tp.partition)])
    consumer.unassign()


def _answer(message: Message[Any, Any], tp: TopicPartition) -> FirstRecord | ConnectError | None:
    problem, offset = message.error(), int(message.offset() or 0)
    if problem is not None:
        if problem.code() == KafkaError._PARTITION_EOF:
            return FirstRecord(offset, None)
        return None if problem.retriable() else translate(problem, f"reading {tp}")
    kind, timestamp_ms = message.timestamp()
    return FirstRecord(offset, None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms)
