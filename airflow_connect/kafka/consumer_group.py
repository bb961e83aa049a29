"""The consumer group `connect-<name>`: where a sink connector keeps its offsets, as Kafka Connect does.

A run never joins the group. It reads offsets with a consumer that assigns and subscribes nothing, and writes
them inside a transaction (transactions.py). Kafka accepts such a write although a Kafka Connect worker is a live
member, because the write names no member; therefore a run looks for members itself, and refuses.

Two faults of librdkafka's admin client take the process with them (seen in 2.16.0):

1. Where the broker answers NOT_COORDINATOR, as one does whose offsets topic is new or moves, a question for committed
   offsets follows the pointer to a consumer group that it does not have (issue 5040). A consumer has that group.
2. Any question for a coordinator whose connection has just broken ends in an assertion (issue 4605, pull request 5397).
   So it is asked by a client that has not asked before, after a consumer has had an answer from the coordinator.
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
    Admin,
    admin_client,
    group_handle,
    kafka_error,
    names,
    state_consumer,
    translate,
)

COORDINATOR_TIMEOUT_S = 60.0
"""How long a group's coordinator may be on its way: a broker restarts, or the offsets topic is new."""
TRY_TIMEOUT_S = 4.0
"""A client whose coordinator restarted never gets an answer from it again (librdkafka 2.x); a new client does."""
SHORTEST_TRY_S = 0.2
"""The last question before a deadline is given this long at least."""
_COORDINATOR_COMES = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
_REFUSED = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
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
    """Committed next offsets; partitions without one are left out; about 20 ms.

    Offsets that a transaction has written but not yet ended are waited for (KIP-447, `require_stable`):
    reading past them would copy records twice. Kafka answers UNSTABLE_OFFSET_COMMIT meanwhile, also for the
    few milliseconds that the markers of a transaction need after its commit has returned; a consumer asks again
    by itself.

    Raises:
        UnavailableError: a transaction with offsets of this group stays open, or nobody answers.
        AccessError: the group or a topic may not be read.
    """
    wanted = [_Partition(tp.topic, tp.partition) for tp in tps]
    if not wanted:
        return {}
    doing = f"reading the committed offsets of group {group}"
    found = _stable_offsets(admin, group, wanted, doing)
    for tp in found:
        if tp.error is not None:
            raise translate(tp.error, f"{doing} for {_name_of(tp)}")
    return {
        TopicPartition(tp.topic, tp.partition): Committed(tp.offset, tp.metadata or "")
        for tp in found
        if tp.offset >= 0
    }


def _stable_offsets(admin: Admin, group: str, wanted: list[_Partition], doing: str) -> list[_Partition]:
    try:
        return _from_coordinator(
            admin, lambda client, timeout_s: _fetch(client, group, wanted, timeout_s), doing, STABLE_TIMEOUT_S
        )
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is not None and inner.code() == KafkaError._TIMED_OUT and _is_unstable(admin, group, wanted):
            unstable, where = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT), names(map(_name_of, wanted))
            raise translate(unstable, f"{doing} for {where}") from error
        raise translate(error, doing) from error


def _is_unstable(admin: Admin, group: str, wanted: list[_Partition]) -> bool:
    """Whether the offsets are there for those who do not ask for stable ones."""
    try:
        return bool(_fetch(admin, group, wanted, TRY_TIMEOUT_S, isolation="read_uncommitted"))
    except KafkaException:
        return False  # the error of the question before it is the one to tell


def _fetch(
    admin: Admin, group: str, wanted: list[_Partition], timeout_s: float, isolation: str = "read_committed"
) -> list[_Partition]:
    """Ask as a consumer, with a client of its own: what an earlier one believed of the coordinator is forgotten."""
    consumer = state_consumer(
        admin.settings,
        group_id=group,
        isolation_level=isolation,
        retry_backoff_ms=10,
        retry_backoff_max_ms=50,
    )
    deadline, step_s = time.monotonic() + timeout_s, SHORTEST_TRY_S
    try:
        while True:
            try:
                return consumer.committed(wanted, timeout=min(step_s, max(deadline - time.monotonic(), 0.01)))
            except KafkaException as error:
                # One whose coordinator is refused to it only waits; the reason comes as a message.
                told = consumer.poll(0)
                reason = told.error() if told is not None else None
                if reason is not None and reason.code() in _REFUSED:
                    raise KafkaException(reason) from error
                if not _is_timeout(error) or time.monotonic() >= deadline:
                    raise
            step_s *= 2
    finally:
        consumer.close()


def _is_timeout(error: KafkaException) -> bool:
    inner = kafka_error(error)
    return inner is not None and inner.code() == KafkaError._TIMED_OUT


def _name_of(partition: _Partition) -> str:
    return f"{partition.topic}-{partition.partition}"


def group_state(admin: Admin, group: str) -> tuple[str, tuple[Member, ...]]:
    """State name in lower case (`empty`, `stable`, ...; `dead`: there is no such group) and live members."""
    try:
        found = _from_coordinator(
            admin, lambda client, timeout_s: _describe(client, group, timeout_s), f"describing group {group}"
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


def _describe(admin: Admin, group: str, timeout_s: float) -> Any:
    client = _fresh_admin(admin, group, timeout_s)
    return _result(client.describe_consumer_groups([group], request_timeout=timeout_s)[group], timeout_s)


def _fresh_admin(admin: Admin, group: str, timeout_s: float) -> Admin:
    """A client that may ask the coordinator of a group, which has just answered another one; see the module.

    Raises:
        KafkaException: the coordinator does not answer, or refuses the group.
    """
    # No topic has this name: it would not be a legal one.
    _fetch(admin, group, [_Partition("?", 0)], timeout_s, isolation="read_uncommitted")
    return admin_client(admin.settings)


def _from_coordinator(
    admin: Admin, ask: Callable[[Admin, float], _Found], doing: str, timeout_s: float = COORDINATOR_TIMEOUT_S
) -> _Found:
    """An answer of the group's coordinator; asks again while there is none yet, which librdkafka does not do here.

    Args:
        admin: whom to ask; after a question without an answer, a new client with its settings.
        ask: asks such a client and waits so many seconds.
        doing: what is going on, for messages.
        timeout_s: how long to ask again.

    Raises:
        KafkaException: another error than that the coordinator is on its way, or that one until `timeout_s`.
        UnavailableError: no broker answers any more.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return ask(admin, min(TRY_TIMEOUT_S, max(deadline - time.monotonic(), SHORTEST_TRY_S)))
        except KafkaException as error:
            inner = kafka_error(error)
            is_timeout = inner is not None and inner.code() == KafkaError._TIMED_OUT
            is_coming = inner is not None and inner.code() in _COORDINATOR_COMES
            if time.monotonic() >= deadline or not (is_timeout or is_coming):
                raise
        except TimeoutError as error:
            if time.monotonic() >= deadline:
                raise UnavailableError(f"Kafka did not answer within {timeout_s:.0f} s while {doing}.") from error
            is_timeout = True
        if is_timeout:
            admin = admin_client(admin.settings)
        time.sleep(0.05)


def _result(future: Future[_Found], timeout_s: float) -> _Found:
    """What an admin request brought. It ends itself after `timeout_s`; the second more is for a loaded machine."""
    return future.result(timeout_s + 1)


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
    doing = f"setting offsets of group {group}"
    try:
        changed = _from_coordinator(admin, lambda client, timeout_s: _alter(client, group, new, timeout_s), doing)
    except KafkaException as error:
        raise translate(error, doing) from error
    for tp in changed:
        if tp.error is not None:
            raise translate(tp.error, f"{doing} for {_name_of(tp)}")


def _alter(admin: Admin, group: str, new: list[_Partition], timeout_s: float) -> list[_Partition]:
    """Set offsets; that the coordinator is not there yet is said of every partition, and raised here."""
    request = [ConsumerGroupTopicPartitions(group, new)]
    client = _fresh_admin(admin, group, timeout_s)  # a client that nobody holds would never answer
    future = client.alter_consumer_group_offsets(request, request_timeout=timeout_s)[group]
    changed = list(_result(future, timeout_s).topic_partitions or [])
    for tp in changed:
        if tp.error is not None and tp.error.code() in _COORDINATOR_COMES:
            raise KafkaException(tp.error)
    return changed
