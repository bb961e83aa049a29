"""The consumer group `connect-<name>`: where a sink connector keeps its offsets, as Kafka Connect does.

A run never joins the group. It reads offsets with the admin client and writes them inside a transaction
(transactions.py). Kafka accepts such a write although a Kafka Connect worker is a live member, because the
write names no member; therefore a run looks for members itself, and refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.errors import NotStoppedError
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.clients import (
    API_TIMEOUT_S,
    Admin,
    group_handle,
    kafka_error,
    names,
    translate,
    wait,
)


@dataclass(frozen=True, slots=True)
class Member:
    """A live member of a consumer group."""

    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        """`client id (host)`."""
        return f"{self.client_id} ({self.host.lstrip('/')})"


def read_committed_offsets(admin: Admin, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Committed next offsets; partitions without one are left out.

    Offsets that a transaction has written but not yet committed make Kafka answer UNSTABLE_OFFSET_COMMIT,
    which librdkafka retries (KIP-447, `require_stable`): reading past them would copy records twice.
    """
    wanted = [_Partition(tp.topic, tp.partition) for tp in tps]
    if not wanted:
        return {}
    request = [ConsumerGroupTopicPartitions(group, wanted)]
    futures = admin.list_consumer_group_offsets(request, require_stable=True, request_timeout=API_TIMEOUT_S)
    doing = f"reading the committed offsets of group {group}"
    offsets: dict[TopicPartition, int] = {}
    for found in wait(futures[group], doing).topic_partitions or []:
        if found.error is not None:
            raise translate(found.error, f"{doing} for {found.topic}-{found.partition}")
        if found.offset >= 0:
            offsets[TopicPartition(found.topic, found.partition)] = found.offset
    return offsets


def group_state(admin: Admin, group: str) -> tuple[str, tuple[Member, ...]]:
    """State name in lower case (`empty`, `stable`, ...; `dead`: there is no such group) and live members."""
    future = admin.describe_consumer_groups([group], request_timeout=API_TIMEOUT_S)[group]
    try:
        found = future.result(API_TIMEOUT_S)
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is not None and inner.name() == "GROUP_ID_NOT_FOUND":
            return "dead", ()
        raise translate(error, f"describing group {group}") from error
    members = tuple(
        Member(
            m.client_id,
            m.host,
            tuple(TopicPartition(p.topic, p.partition) for p in _assigned(m)),
        )
        for m in found.members
    )
    return found.state.name.lower(), members


def _assigned(member: Any) -> list[Any]:
    return list(member.assignment.topic_partitions) if member.assignment else []


def ensure_no_live_members(admin: Admin, group: str) -> None:
    """Refuse to touch the offsets of a connector that somebody else is running.

    Raises:
        NotStoppedError: the group has members, e.g. a live Kafka Connect worker.
    """
    state, members = group_state(admin, group)
    if members:
        raise NotStoppedError(
            f"Consumer group {group} is {state} with {len(members)} live member(s): {names(members)}.",
            suggestion="Stop the connector where it runs now (Kafka Connect: PUT /connectors/<name>/stop), "
            "wait for the group to become empty, then run again. No offset was changed.",
        )


class GroupMetadata:
    """What `send_offsets_to_transaction` wants to know of a group, without joining it (generation -1)."""

    def __init__(self, group: str, settings: Mapping[str, Any]) -> None:
        self.group = group
        self._lender = group_handle(settings, group)
        self.metadata = self._lender.consumer_group_metadata()

    def close(self) -> None:
        """Let go of the consumer that lends the metadata."""
        self._lender.close()


def group_metadata(group: str, settings: Mapping[str, Any]) -> GroupMetadata:
    """Metadata of a group that the caller never joins."""
    return GroupMetadata(group, settings)


def alter_offsets(admin: Admin, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set committed offsets outside a transaction (`offsets set`, `offsets reset`).

    Raises:
        NotStoppedError: the group has live members. Kafka reports that per partition and raises nothing by
        itself.
    """
    if not offsets:
        return
    new = [_Partition(tp.topic, tp.partition, offset) for tp, offset in offsets.items()]
    request = [ConsumerGroupTopicPartitions(group, new)]
    doing = f"setting offsets of group {group}"
    result = wait(admin.alter_consumer_group_offsets(request, request_timeout=API_TIMEOUT_S)[group], doing)
    for changed in result.topic_partitions or []:
        if changed.error is not None:
            raise translate(changed.error, f"{doing} for {changed.topic}-{changed.partition}")
