"""Offsets of many partitions in one request per broker, with an answer or an error for each partition.

`watermarks` serves one run, which fails if a partition has no answer. Here many clients share the requests, and a topic
that one of them may not read must not concern the others. Nothing is retried: the caller asks again in its next round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as _Partition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.kafka.admin.consumer_group import committed_now
from airflow_connect.kafka.admin.topics import TopicInfo
from airflow_connect.kafka.admin.watermarks import answered
from airflow_connect.kafka.clients.settings import READ_COMMITTED
from airflow_connect.kafka.clients.short_lived import Admin, translate, wait
from airflow_connect.retrying import Backoff, Retry

REQUEST_TIMEOUT_S = 10.0
"""How long one request may take; all partitions wait together."""
EARLIEST, LATEST = -2, -1
"""What to ask for instead of a timestamp, as in Kafka's protocol."""
NO_SUCH_RECORD = -1
"""The answer for a timestamp after all records."""
GROUPS_TIMEOUT_S = 20.0
"""How long the offsets of all groups of a round may take; the rest is left to the next round."""
GROUP_TIMEOUT_S = 4.0

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def describe_each(admin: Admin, names: Collection[str]) -> dict[str, TopicInfo | ConnectError]:
    """Ids and numbers of partitions, in one request.

    Raises:
        UnavailableError: Kafka says nothing about any of them.
    """
    if not names:
        return {}
    futures = admin.describe_topics(TopicCollection(sorted(names)), request_timeout=REQUEST_TIMEOUT_S)
    found: dict[str, TopicInfo | ConnectError] = {}
    for name, future in futures.items():
        try:
            described = wait(future, f"describing topic {name}", REQUEST_TIMEOUT_S + 1)
            found[name] = TopicInfo(str(described.topic_id), len(described.partitions))
        except ConnectError as error:
            found[name] = error
    failures = [answer for answer in found.values() if isinstance(answer, UnavailableError)]
    if len(failures) == len(found):
        raise failures[0]
    return found


def all_topics(admin: Admin) -> list[str]:
    """Names of all topics that may be seen, sorted.

    Raises:
        UnavailableError: Kafka did not answer.
    """
    try:
        return sorted(admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics)
    except KafkaException as error:
        raise translate(error, "listing topics") from error


def offset_of_each(
    admin: Admin, wanted: Mapping[TopicPartition, int], isolation: str
) -> dict[TopicPartition, int | ConnectError]:
    """One offset per partition, in one ListOffsets request per broker.

    Args:
        wanted: `EARLIEST`, `LATEST` or a timestamp in milliseconds since the epoch: the first offset at or after it.
        isolation: with `read_committed` nothing at or above the last stable offset is seen.

    Returns:
        `NO_SUCH_RECORD` for a timestamp after all records.
    """
    if not wanted:
        return {}
    level = IsolationLevel.READ_COMMITTED if isolation == READ_COMMITTED else IsolationLevel.READ_UNCOMMITTED
    specs = {_Partition(tp.topic, tp.partition): _spec(what) for tp, what in wanted.items()}
    futures = admin.list_offsets(specs, isolation_level=level, request_timeout=REQUEST_TIMEOUT_S)
    found: dict[TopicPartition, int | ConnectError] = {}
    for partition, future in futures.items():
        tp = TopicPartition(partition.topic, partition.partition)
        try:
            found[tp] = answered(future, f"asking for an offset of {tp}", REQUEST_TIMEOUT_S + 1).offset
        except ConnectError as error:
            found[tp] = error
    return found


def _spec(what: int) -> OffsetSpec:
    special: Mapping[int, Callable[[], OffsetSpec]] = {EARLIEST: OffsetSpec.earliest, LATEST: OffsetSpec.latest}
    return special[what]() if what in special else OffsetSpec.for_timestamp(what)


def committed_of_each(
    admin: Admin, groups: Mapping[str, Sequence[TopicPartition]]
) -> dict[str, dict[TopicPartition, int] | ConnectError]:
    """Committed offsets of groups; partitions without one are omitted.

    librdkafka sends one OffsetFetch request per group. Offsets of open transactions are not waited for. Groups that
    were not reached within `GROUPS_TIMEOUT_S` are omitted.
    """
    found: dict[str, dict[TopicPartition, int] | ConnectError] = {}
    tries = Retry(Backoff(0), within_s=GROUPS_TIMEOUT_S)
    for group, tps in groups.items():
        if tries.left_s <= 0:
            break
        try:
            found[group] = committed_now(admin, group, tps, min(GROUP_TIMEOUT_S, tries.left_s))
        except ConnectError as error:
            found[group] = error
    return found
