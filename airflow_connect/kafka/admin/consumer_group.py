"""The consumer group `connect-<name>`: where a sink connector keeps its offsets, as Kafka Connect does.

A run never joins the group. It reads offsets with a consumer that assigns and subscribes nothing, and writes
them inside a transaction (kafka/writing/transactions.py). Kafka accepts such a write even while a Kafka Connect worker
is a live member, because the write does not name a member. Therefore a run checks for members itself, and refuses if
there are any.

Two bugs of librdkafka's admin client crash the process (seen in 2.16.0):

1. If the broker answers NOT_COORDINATOR, because its offsets topic is new or moving, a request for committed offsets
dereferences the client's consumer group, which an admin client does not have (issue 5040). A consumer has one.
2. A request to a coordinator ends in an assertion if it times out inside the client before the coordinator is known, as
it does while a broker hangs, or if the connection has just broken (issue 4605, pull request 5397). So it is sent by a
new client, after a consumer has got an answer from the coordinator. The request itself has no time limit: the caller
stops waiting, and then drops the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConnectError, NotStoppedError, UnavailableError
from airflow_connect.kafka.clients.short_lived import (
    API_TIMEOUT_S,
    Admin,
    admin_client,
    group_handle,
    kafka_error,
    state_consumer,
    translate,
    wait,
)
from airflow_connect.retrying import Backoff, Retry

COORDINATOR_TIMEOUT_S = 60.0
"""How long a group may be without a coordinator: a broker restarts, or the offsets topic is new."""
TRY_TIMEOUT_S = 4.0
"""After its coordinator restarted, a client never gets an answer from it again (librdkafka 2.x); a new client does."""
NEVER_S = 3600.0
"""librdkafka's longest timeout of a request, for the requests that only the caller ends; see the module."""
SHORTEST_TRY_S = 0.2
"""Minimum time for the last request before a deadline."""
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
    """What a group has committed for a partition: the next offset, and the metadata that Kafka stores with it."""

    offset: int
    note: str


def read_committed_offsets(admin: Admin, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Like `read_committed`, offsets only.

    The note of another client is not looked at: confluent_kafka (2.16.0) reads it behind its end, and may find no text.
    """
    wanted = [_Partition(tp.topic, tp.partition) for tp in tps]
    doing = f"reading the committed offsets of group {group}"
    answered = _answered(_stable_offsets(admin, group, wanted, doing), doing) if wanted else []
    return {TopicPartition(tp.topic, tp.partition): tp.offset for tp in answered}


def read_committed(admin: Admin, group: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
    """Committed next offsets; partitions without one are omitted; about 20 ms.

    Waits for offsets of open transactions (KIP-447, `require_stable`): ignoring them would copy records twice.
    Meanwhile Kafka answers UNSTABLE_OFFSET_COMMIT, even for the few milliseconds that the markers of a transaction need
    after its commit has returned; a consumer retries automatically.

    Raises:
        UnavailableError: a transaction with offsets of this group stays open, or Kafka does not answer.
        AccessError: the group or a topic may not be read.
    """
    wanted = [_Partition(tp.topic, tp.partition) for tp in tps]
    if not wanted:
        return {}
    doing = f"reading the committed offsets of group {group}"
    return _with_notes(_answered(_stable_offsets(admin, group, wanted, doing), doing))


def every_committed_offset(admin: Admin, group: str, *, is_stable: bool = True) -> dict[TopicPartition, int]:
    """Committed next offsets of every partition that the group knows, also of topics that cannot be seen.

    `is_stable`: wait for open transactions; otherwise their offsets do not count.

    Raises:
        UnavailableError: Kafka does not answer.
        AccessError: the group may not be read.
    """
    request, doing = ConsumerGroupTopicPartitions(group), f"reading the committed offsets of group {group}"

    def ask(client: Admin, timeout_s: float) -> ConsumerGroupTopicPartitions:
        fresh = _fresh_admin(client, group, timeout_s)
        futures = fresh.list_consumer_group_offsets([request], require_stable=is_stable, request_timeout=NEVER_S)
        answer: ConsumerGroupTopicPartitions = futures[group].result(timeout_s)
        return answer

    try:
        found = _from_coordinator(admin, ask, doing).topic_partitions or []
    except KafkaException as error:
        raise translate(error, doing) from error
    return {TopicPartition(tp.topic, tp.partition): tp.offset for tp in found if tp.offset >= 0}


def committed_now(
    admin: Admin, group: str, tps: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, int]:
    """Committed next offsets for someone who only looks: one attempt, and offsets of open transactions do not count.

    As `read_committed_offsets`, it does not look at notes.

    Raises:
        UnavailableError: no answer within `timeout_s`.
        AccessError: the group or a topic may not be read.
    """
    return {TopicPartition(tp.topic, tp.partition): tp.offset for tp in _offsets_now(admin, group, tps, timeout_s)}


def committed_with_notes_now(
    admin: Admin, group: str, tps: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, Committed]:
    """Like `committed_now`, with notes."""
    return _with_notes(_offsets_now(admin, group, tps, timeout_s))


def _offsets_now(admin: Admin, group: str, tps: Iterable[TopicPartition], timeout_s: float) -> list[_Partition]:
    wanted = [_Partition(tp.topic, tp.partition) for tp in tps]
    doing = f"reading the committed offsets of group {group}"
    try:
        found = _fetch(admin, group, wanted, timeout_s, isolation="read_uncommitted") if wanted else []
    except KafkaException as error:
        raise translate(error, doing) from error
    return _answered(found, doing)


def _with_notes(found: Iterable[_Partition]) -> dict[TopicPartition, Committed]:
    return {TopicPartition(tp.topic, tp.partition): Committed(tp.offset, tp.metadata or "") for tp in found}


def _answered(found: Iterable[_Partition], doing: str) -> list[_Partition]:
    """Partitions that have an offset; raises what Kafka answered for one of the others."""
    answered = list(found)
    for tp in answered:
        if tp.error is not None:
            raise translate(tp.error, f"{doing} for {_name_of(tp)}")
    return [tp for tp in answered if tp.offset >= 0]


def all_groups(admin: Admin) -> list[str]:
    """Names of all consumer groups that may be seen, sorted; no coordinator is asked.

    Raises:
        ConnectError: Kafka refused, or did not answer.
    """
    found = wait(admin.list_consumer_groups(request_timeout=API_TIMEOUT_S), "listing consumer groups")
    if found.errors:
        raise translate(found.errors[0], "listing consumer groups")
    return sorted(group.group_id for group in found.valid)


def _stable_offsets(admin: Admin, group: str, wanted: list[_Partition], doing: str) -> list[_Partition]:
    try:
        return _from_coordinator(
            admin, lambda client, timeout_s: _fetch(client, group, wanted, timeout_s), doing, STABLE_TIMEOUT_S
        )
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is not None and inner.code() == KafkaError._TIMED_OUT and _is_unstable(admin, group, wanted):
            with suppress(KafkaException):
                # The coordinator may have come only now: then nothing is known of a transaction.
                return _fetch(admin, group, wanted, TRY_TIMEOUT_S)
            raise UnavailableError(
                f"A transaction that has written offsets of group {group} is still open after {STABLE_TIMEOUT_S:.0f} s,"
                f" so the offsets of {names(map(_name_of, wanted))} are not known (UNSTABLE_OFFSET_COMMIT).",
                suggestion="Run again. If that does not help, find the transaction on the partitions of"
                " __consumer_offsets with `kafka-transactions.sh find-hanging`, and end it with"
                " `kafka-transactions.sh abort`.",
            ) from error
        raise translate(error, doing) from error


def _is_unstable(admin: Admin, group: str, wanted: list[_Partition]) -> bool:
    """Whether the offsets can be read without requiring stable ones."""
    try:
        return bool(_fetch(admin, group, wanted, TRY_TIMEOUT_S, isolation="read_uncommitted"))
    except KafkaException:
        return False  # the error of the previous request is the one to report


def _fetch(
    admin: Admin, group: str, wanted: list[_Partition], timeout_s: float, isolation: str = "read_committed"
) -> list[_Partition]:
    """Query as a consumer, with a new client, which does not have stale data about the coordinator."""
    consumer = state_consumer(
        admin.settings,
        group_id=group,
        isolation_level=isolation,
        retry_backoff_ms=10,
        retry_backoff_max_ms=50,
    )
    tries, step_s = Retry(Backoff(0), within_s=timeout_s), SHORTEST_TRY_S
    try:
        while True:
            try:
                return consumer.committed(wanted, timeout=min(step_s, max(tries.left_s, 0.01)))
            except KafkaException as error:
                # A client that is denied access to its coordinator only waits; the reason arrives as a message.
                told = consumer.poll(0)
                reason = told.error() if told is not None else None
                if reason is not None and reason.code() in _REFUSED:
                    raise KafkaException(reason) from error
                if not _is_timeout(error) or not tries.pause():
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
    """State name in lower case (`empty`, `stable`, ...; `dead`: the group does not exist) and live members."""
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


def _describe(admin: Admin, group: str, timeout_s: float, **options: Any) -> Any:
    client = _fresh_admin(admin, group, timeout_s)
    return client.describe_consumer_groups([group], request_timeout=NEVER_S, **options)[group].result(timeout_s)


def operations_on_group(admin: Admin, group: str) -> Any:
    """What this client may do with a group, whether it exists or not (KIP-430); None: the broker does not say.

    Raises:
        AccessError: the group may not even be described.
        UnavailableError: Kafka does not answer.
    """
    doing = f"describing group {group}"
    try:
        found = _from_coordinator(
            admin,
            lambda client, timeout_s: _describe(client, group, timeout_s, include_authorized_operations=True),
            doing,
        )
    except KafkaException as error:
        raise translate(error, doing) from error
    return found.authorized_operations


def _fresh_admin(admin: Admin, group: str, timeout_s: float) -> Admin:
    """A client that may query the coordinator of a group, which has just answered another client; see the module.

    Raises:
        KafkaException: the coordinator does not answer, or refuses the group.
    """
    # No topic has this name: it is not a legal one.
    _fetch(admin, group, [_Partition("?", 0)], timeout_s, isolation="read_uncommitted")
    return admin_client(admin.settings)


def _from_coordinator(
    admin: Admin, ask: Callable[[Admin, float], _Found], doing: str, timeout_s: float = COORDINATOR_TIMEOUT_S
) -> _Found:
    """An answer of the group's coordinator; retries while there is no coordinator, which librdkafka does not do here.

    Args:
        admin: the client to use; after a request without an answer, a new client with its settings.
        ask: sends the request with a client and waits this many seconds.
        doing: the current activity, for messages.
        timeout_s: how long to retry.

    Raises:
        KafkaException: an error other than a missing coordinator, or that one until `timeout_s`.
        UnavailableError: no broker answers any more.
    """
    tries = Retry(Backoff(0.05, longest_s=0.05), within_s=timeout_s)
    while True:
        try:
            return ask(admin, min(TRY_TIMEOUT_S, max(tries.left_s, SHORTEST_TRY_S)))
        except KafkaException as error:
            inner = kafka_error(error)
            is_timeout = inner is not None and inner.code() == KafkaError._TIMED_OUT
            is_coming = inner is not None and inner.code() in _COORDINATOR_COMES
            if not (is_timeout or is_coming) or not tries.pause():
                raise
        except TimeoutError as error:
            if not tries.pause():
                raise UnavailableError(f"Kafka did not answer within {timeout_s:.0f} s while {doing}.") from error
            is_timeout = True
        if is_timeout:
            admin = admin_client(admin.settings)


def _assigned(member: Any) -> list[Any]:
    return list(member.assignment.topic_partitions) if member.assignment else []


def ensure_no_live_members(admin: Admin, group: str) -> None:
    """Refuse to change the offsets of a connector that is running elsewhere.

    Raises:
        NotStoppedError: the group has members, e.g. a live Kafka Connect worker.
    """
    state, members = group_state(admin, group)
    if members:
        raise NotStoppedError(
            f"Consumer group {group} is {state} with {plural(len(members), 'live member')}: {names(members)}.",
            suggestion="Stop the connector where it runs now (Kafka Connect: PUT /connectors/<name>/stop), "
            "wait for the group to become empty, then run again. No offset was changed.",
        )


class GroupMetadata:
    """The group metadata for `send_offsets_to_transaction`, without joining the group (generation -1)."""

    def __init__(self, group: str, settings: Mapping[str, Any]) -> None:
        self.group = group
        self._lender = group_handle(settings, group)
        self.metadata = self._lender.consumer_group_metadata()

    def close(self) -> None:
        """Release the consumer that provides the metadata."""
        self._lender.close()


def group_metadata(group: str, settings: Mapping[str, Any]) -> GroupMetadata:
    """Metadata of a group that the caller never joins."""
    return GroupMetadata(group, settings)


def alter_offsets(admin: Admin, group: str, offsets: Mapping[TopicPartition, int | Committed]) -> None:
    """Set committed offsets outside a transaction (`offsets set`, `offsets reset`), with or without metadata.

    Raises:
        NotStoppedError: the group has live members. Kafka only reports that per partition.
    """
    for error in try_to_alter_offsets(admin, group, offsets).values():
        raise error


def try_to_alter_offsets(
    admin: Admin, group: str, offsets: Mapping[TopicPartition, int | Committed]
) -> dict[TopicPartition, ConnectError]:
    """As `alter_offsets`, but returns what Kafka refused of single partitions; the others are set.

    Raises:
        ConnectError: Kafka refused the request as a whole, or did not answer.
    """
    if not offsets:
        return {}
    new = [_placed(tp, offset) for tp, offset in offsets.items()]
    doing = f"setting offsets of group {group}"
    try:
        changed = _from_coordinator(admin, lambda client, timeout_s: _alter(client, group, new, timeout_s), doing)
    except KafkaException as error:
        raise translate(error, doing) from error
    return {
        TopicPartition(tp.topic, tp.partition): translate(tp.error, f"{doing} for {_name_of(tp)}")
        for tp in changed
        if tp.error is not None
    }


def _placed(tp: TopicPartition, wanted: int | Committed) -> _Partition:
    offset, note = wanted if isinstance(wanted, Committed) else (wanted, "")
    return _Partition(tp.topic, tp.partition, offset, note) if note else _Partition(tp.topic, tp.partition, offset)


def _alter(admin: Admin, group: str, new: list[_Partition], timeout_s: float) -> list[_Partition]:
    """Set offsets; a missing coordinator is reported for every partition, and raised here."""
    request = [ConsumerGroupTopicPartitions(group, new)]
    client = _fresh_admin(admin, group, timeout_s)  # a client without a reference would never answer
    future = client.alter_consumer_group_offsets(request, request_timeout=NEVER_S)[group]
    changed = list(future.result(timeout_s).topic_partitions or [])
    for tp in changed:
        if tp.error is not None and tp.error.code() in _COORDINATOR_COMES:
            raise KafkaException(tp.error)
    return changed


def delete_group(admin: Admin, group: str) -> None:
    """Delete a group with all its offsets; nothing happens if it does not exist.

    Raises:
        NotStoppedError: the group has live members.
        UnavailableError, AccessError: Kafka does not answer, or refuses.
    """
    doing = f"deleting group {group}"
    try:
        _from_coordinator(admin, lambda client, timeout_s: _delete(client, group, timeout_s), doing)
    except KafkaException as error:
        inner = kafka_error(error)
        if inner is None or inner.code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise translate(error, doing) from error


def _delete(admin: Admin, group: str, timeout_s: float) -> None:
    client = _fresh_admin(admin, group, timeout_s)
    client.delete_consumer_groups([group], request_timeout=NEVER_S)[group].result(timeout_s)
