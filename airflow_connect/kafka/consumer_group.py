"""The consumer group `connect-<name>`: where a sink connector keeps its offsets, as Kafka Connect does.

A run never joins the group. It reads offsets with the admin client and writes them inside a transaction
(transactions.py). Kafka accepts such a write although a Kafka Connect worker is a live member, because the
write names no member; therefore a run looks for members itself, and refuses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.errors import NotStoppedError, UnavailableError
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.clients import (
    API_TIMEOUT_S,
    Admin,
    admin_client,
    group_handle,
    kafka_error,
    names,
    translate,
    wait,
)

COORDINATOR_TIMEOUT_S = 60.0
"""How long a group's coordinator may be on its way: a broker restarts, or the offsets topic is new."""
TRY_TIMEOUT_S = 4.0
"""A client whose coordinator restarted never gets an answer from it again (librdkafka 2.x); a new client does."""
_COORDINATOR_COMES = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
_Found = TypeVar("_Found")

STABLE_TIMEOUT_S = 75.0
"""Longer than a transaction with offsets stays open: transactions.TRANSACTION_TIMEOUT_MS and the broker's check."""


@dataclass(frozen=True, slots=True)
class Member:
    """A live member of a consumer group."""

    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        """`client id (host)`."""
        return f"{self.client_id} ({self.host.lstrip('/')})"


class Committed(NamedTuple):
    """What a group has committed for a partition: the next offset, and the text that Kafka keeps beside it."""

    offset: int
    note: str


def read_committed_offsets(admin: Admin, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """As `read_committed`, offsets only."""
    return {tp: committed.offset for tp, committed in read_committed(admin, group, tps).items()}


def read_committed(admin: Admin, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
    """Committed next offsets; partitions without one are left out; about 1 ms.

    Offsets that a transaction has written but not yet ended are waited for (KIP-447, `require_stable`):
    reading past them would copy records twice. Kafka answers UNSTABLE_OFFSET_COMMIT meanwhile, also for the
    few milliseconds that the markers of a transaction need after its commit has returned; the admin client
    does not retry that by itself.

    Raises:
        UnavailableError: a transaction with offsets of this group stays open.
    """
    wanted = [_Partition(tp.topic, tp.partition) for tp in tps]
    if not wanted:
        return {}
    deadline = time.monotonic() + STABLE_TIMEOUT_S
    doing = f"reading the committed offsets of group {group}"
    while True:
        found = _listed_offsets(admin, group, wanted, doing)
        problems = [(tp, tp.error) for tp in found if tp.error is not None]
        if not problems:
            return {
                TopicPartition(tp.topic, tp.partition): Committed(tp.offset, tp.metadata or "")
                for tp in found
                if tp.offset >= 0
            }
        is_unstable = all(problem.code() == KafkaError.UNSTABLE_OFFSET_COMMIT for _, problem in problems)
        if not is_unstable or time.monotonic() >= deadline:
            first, problem = problems[0]
            raise translate(problem, f"{doing} for {first.topic}-{first.partition}")
        time.sleep(0.01)


def _listed_offsets(admin: Admin, group: str, wanted: list[_Partition], doing: str) -> list[_Partition]:
    def ask(client: Admin) -> Future[ConsumerGroupTopicPartitions]:
        request = [ConsumerGroupTopicPartitions(group, wanted)]
        return client.list_consumer_group_offsets(request, require_stable=True, request_timeout=TRY_TIMEOUT_S)[group]

    try:
        return list(_from_coordinator(admin, ask, doing).topic_partitions or [])
    except KafkaException as error:
        raise translate(error, doing) from error


def group_state(admin: Admin, group: str) -> tuple[str, tuple[Member, ...]]:
    """State name in lower case (`empty`, `stable`, ...; `dead`: there is no such group) and live members."""
    try:
        found = _from_coordinator(
            admin,
            lambda client: client.describe_consumer_groups([group], request_timeout=TRY_TIMEOUT_S)[group],
            f"describing group {group}",
        )
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


def _from_coordinator(admin: Admin, ask: Callable[[Admin], Future[_Found]], doing: str) -> _Found:
    """An answer of the group's coordinator; asks again while there is none yet, which librdkafka does not do here."""
    deadline = time.monotonic() + COORDINATOR_TIMEOUT_S
    while True:
        is_last_try = time.monotonic() >= deadline
        try:
            return ask(admin).result(TRY_TIMEOUT_S + 1)
        except KafkaException as error:
            inner = kafka_error(error)
            if inner is not None and inner.code() == KafkaError._TIMED_OUT and not is_last_try:
                admin = admin_client(admin.settings)
            elif is_last_try or inner is None or inner.code() not in _COORDINATOR_COMES:
                raise
        except TimeoutError as error:
            if is_last_try:
                waited = f"{COORDINATOR_TIMEOUT_S:.0f} s"
                raise UnavailableError(f"Kafka did not answer within {waited} while {doing}.") from error
            admin = admin_client(admin.settings)
        time.sleep(0.05)


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
