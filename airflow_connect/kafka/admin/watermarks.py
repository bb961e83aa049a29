"""Where partitions begin and end, for many partitions in one call (ListOffsets, KIP-396).

About 1 ms per call against a local broker. `latest_offsets` under `read_committed` is the last stable
offset: records of open transactions are at or above it, so a run that ends there never waits for another client's
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import NamedTuple

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as _Partition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec  # type: ignore[attr-defined]

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.clients import settings as client_config
from airflow_connect.kafka.clients.asking import FIRST_ANSWER_TIMEOUT_S
from airflow_connect.kafka.clients.short_lived import (
    ANSWER_TIMEOUT_S,
    API_TIMEOUT_S,
    Admin,
    admin_client,
    is_unanswered,
    kafka_error,
    translate,
    wait,
)
from airflow_connect.retrying import Backoff, Retry

READ_COMMITTED, READ_UNCOMMITTED = client_config.READ_COMMITTED, client_config.READ_UNCOMMITTED
LEADER_TIMEOUT_S = 15.0
"""How long a partition may be without a leader: a broker restarts, a topic is new."""
UNKNOWN_TIMEOUT_S = 2.0
"""How long a new topic may be unknown to some brokers."""
_NEW_LEADER = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError._NOENT,
    }
)
"""Answers while a partition gets a new leader, and until that leader knows its high watermark (KIP-207)."""


class LogEnd(NamedTuple):
    """The end of a log.

    Attributes:
        offset: high watermark.
        epoch: leader epoch of the last record, or a later one; None: the broker does not report it.
    """

    offset: int
    epoch: int | None


def earliest_offsets(admin: Admin, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """First offset that each log still holds."""
    spec: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    return {tp: found.offset for tp, found in _list(admin, tps, spec, READ_UNCOMMITTED).items()}


def log_ends(admin: Admin, tps: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
    """High watermarks, with the leader epoch that distinguishes this log from one that lost its end (KIP-320)."""
    spec: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    found = _list(admin, tps, spec, READ_UNCOMMITTED)
    return {tp: LogEnd(end.offset, end.leader_epoch) for tp, end in found.items()}


def latest_offsets(
    admin: Admin, tps: Iterable[TopicPartition], isolation: str, patience_s: float = API_TIMEOUT_S
) -> dict[TopicPartition, int]:
    """Exclusive end of the readable log: last stable offset for `read_committed`, otherwise the high watermark.

    If no answer comes, it fails after about `patience_s`.
    """
    spec: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return {tp: found.offset for tp, found in _list(admin, tps, spec, isolation, patience_s).items()}


def offsets_for_timestamp(admin: Admin, tps: Iterable[TopicPartition], ts_ms: int) -> dict[TopicPartition, int | None]:
    """First offset at or after `ts_ms` (milliseconds since the epoch); None: no such record exists."""
    found = _list(admin, tps, OffsetSpec.for_timestamp(ts_ms), READ_UNCOMMITTED)
    return {tp: first.offset if first.offset >= 0 else None for tp, first in found.items()}


def answered(future: Future[ListOffsetsResultInfo], doing: str, timeout_s: float) -> ListOffsetsResultInfo:
    """What the leader of a partition has answered.

    librdkafka (2.16) asks each broker for its partitions. If one of them does not answer, its partitions have no error
    and no offset (-1001) in the result: they would count as empty.

    Raises:
        UnavailableError: the leader has not answered.
        ConnectError: it has refused.
    """
    found: ListOffsetsResultInfo = wait(future, doing, timeout_s)
    if found.offset == OFFSET_INVALID:
        raise UnavailableError(f"The broker that leads the partition did not answer while {doing}.") from TimeoutError()
    return found


def _list(
    admin: Admin,
    tps: Iterable[TopicPartition],
    spec: OffsetSpec,
    isolation: str,
    patience_s: float = API_TIMEOUT_S,
) -> dict[TopicPartition, ListOffsetsResultInfo]:
    offsets: dict[TopicPartition, ListOffsetsResultInfo] = {}
    missing = list(dict.fromkeys(tps))
    tries = Retry(Backoff(0.02, longest_s=0.02), within_s=LEADER_TIMEOUT_S)
    answer_s = FIRST_ANSWER_TIMEOUT_S
    while missing:
        level = IsolationLevel.READ_COMMITTED if isolation == READ_COMMITTED else IsolationLevel.READ_UNCOMMITTED
        wanted = {_Partition(tp.topic, tp.partition): spec for tp in missing}
        futures = admin.list_offsets(wanted, isolation_level=level, request_timeout=answer_s)
        is_answered = True
        for found, future in futures.items():
            doing = f"asking for an offset of {found.topic}-{found.partition}"
            try:
                offset = answered(future, doing, answer_s + 1)
                offsets[TopicPartition(found.topic, found.partition)] = offset
            except UnavailableError as error:
                _raise_unless_passing(error, tries, patience_s)
                is_answered = is_answered and not is_unanswered(error)
        missing = [tp for tp in missing if tp not in offsets]
        if missing:
            is_new = tries.elapsed_s < UNKNOWN_TIMEOUT_S
            tries.pause()  # `_raise_unless_passing` ends the loop
            if not is_answered:
                admin = admin_client(admin.settings)  # a client may keep on choosing a dead broker
                answer_s = min(2 * answer_s, ANSWER_TIMEOUT_S)
            _refresh_leaders(admin, missing, within_s=max(1.0, patience_s - tries.elapsed_s), may_be_new=is_new)
    return offsets


def _raise_unless_passing(error: UnavailableError, tries: Retry, patience_s: float) -> None:
    """Raise the error of a request, unless another try may help: the leader is not known or not ready yet, or died."""
    if is_unanswered(error):
        if tries.elapsed_s >= patience_s:
            raise error
        return
    inner = kafka_error(error.__cause__) if error.__cause__ else None
    if tries.left_s <= 0 or inner is None or inner.code() not in _NEW_LEADER:
        raise error


def _refresh_leaders(admin: Admin, tps: Iterable[TopicPartition], within_s: float, may_be_new: bool) -> None:
    """A client keeps the first leaders that it was given, even if a topic was too new to have any."""
    for tp in {tp.topic: tp for tp in tps}.values():
        doing = f"looking for the leader of {tp}"
        try:
            found = admin.list_topics(tp.topic, timeout=within_s).topics[tp.topic]
        except KafkaException as error:
            raise translate(error, doing) from error
        if found.error is not None and not may_be_new:
            raise translate(found.error, doing)
