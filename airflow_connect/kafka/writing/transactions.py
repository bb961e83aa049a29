"""Fencing and transactions: records and consumer offsets that become visible together or not at all.

How each step handles librdkafka's errors: transaction_steps.py.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.counting import names, plural
from airflow_connect.errors import AccessError, ConnectError, FencedError, NotStoppedError, UnavailableError
from airflow_connect.kafka.admin.consumer_group import GroupMetadata
from airflow_connect.kafka.clients.short_lived import (
    API_TIMEOUT_S,
    NO_TOPIC,
    QuickProducer,
    kafka_error,
    producer,
    translate,
)
from airflow_connect.kafka.writing import transaction_steps
from airflow_connect.kafka.writing.missing_topics import TopicWatch, is_missing, without_partition
from airflow_connect.kafka.writing.refused_records import (
    LARGEST_MESSAGE_BYTES,
    PURGED,
    RECORD_AT_FAULT,
    most_specific,
    record_refusal,
)
from airflow_connect.kafka.writing.transaction_steps import CommitUnknownError

OutgoingRecord = tuple[str, int, bytes | None, bytes | None]
"""Topic, partition, key, value (None: tombstone)."""


class OutgoingMessage(Protocol):
    """A whole message for any topic, e.g. a dead letter."""

    @property
    def topic(self) -> str:
        """Destination topic."""

    @property
    def key(self) -> bytes | None:
        """Key bytes."""

    @property
    def value(self) -> bytes | None:
        """Value bytes; None is a tombstone."""

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Headers in order."""

    @property
    def timestamp(self) -> int | None:
        """Milliseconds since the epoch, or None for now."""

    @property
    def partition(self) -> int:
        """Partition; ANY_PARTITION: determined by the key."""

    @property
    def origin(self) -> str:
        """The record that it is a copy of, for messages."""


ANY_PARTITION = -1
TRANSACTION_TIMEOUT_MS = 60_000
FENCING_AT_ONCE = 8
_UNKNOWN = "The next run reads the state from Kafka and continues from what was committed."
_CREATE = "Create the topic, or correct its name in the configuration, and run again."
_MAY_LACK_TOPIC = NO_TOPIC | {KafkaError._MSG_TIMED_OUT}
"""Why a message was not delivered, if its topic may not exist: the client waits for a topic that may be new."""
_DECIDED = transaction_steps.DECIDED | {"linger.ms", "queue.buffering.max.ms"}


class TransactionalWriter:
    """The one producer of a run.

    Args:
        settings: librdkafka settings.
        transactional_id: `<group.id>-<connector>`; a producer that initialises it later fences this writer.
        transaction_timeout_ms: time after which the cluster aborts an open transaction by itself.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        transactional_id: str,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    ) -> None:
        own = {key: value for key, value in settings.items() if key not in _DECIDED}
        own["transactional.id"] = transactional_id
        own["transaction.timeout.ms"] = transaction_timeout_ms
        own.setdefault("message.max.bytes", LARGEST_MESSAGE_BYTES)
        self.transactional_id = transactional_id
        self._timeout_s = transaction_timeout_ms / 1000
        self._producer: QuickProducer = producer(own, linger_ms=0)
        self._undelivered: list[KafkaError] = []
        self._suspect_topics: set[str] = set()
        self._purged_by_earlier_abort = self._has_refused_content = False
        self._ends_at = math.inf

    def fence(self) -> None:
        """Fence every older writer of the same id and abort what it left open; about 7 ms.

        Raises:
            UnavailableError: the cluster or its transaction coordinator does not respond.
            AccessError: there is no permission for the transactional.id.
        """
        doing = f"fencing older runs of transactional.id {self.transactional_id}"
        transaction_steps.fence_older(self._producer, doing)

    def commit(
        self,
        records: Sequence[OutgoingRecord],
        offsets: Mapping[TopicPartition, int] | None = None,
        group: GroupMetadata | None = None,
        messages: Sequence[OutgoingMessage] = (),
        notes: Mapping[TopicPartition, str] = MappingProxyType({}),
    ) -> None:
        """Write `records`, `messages` and, if given, the next offsets of `group` in one transaction; ~4 ms.

        `notes`: metadata that Kafka stores with an offset; up to `offset.metadata.max.bytes`, 4096 by default.

        Raises:
            FencedError: a newer run has taken over.
            CommitUnknownError: the commit was sent, but its outcome is unknown.
            UnavailableError: nothing was committed; trying again is safe.
            NotStoppedError: Kafka refused the offsets because of live members; nothing was committed.
            ConfigError: a record is too large; nothing was committed.
            DataError: Kafka refused one of `messages`; the message names it. Nothing was committed.
        """
        if offsets and group is None:
            raise ValueError("offsets need the metadata of their group")
        positions = [
            _Partition(tp.topic, tp.partition, offset, notes.get(tp, "")) for tp, offset in (offsets or {}).items()
        ]
        alone = False
        for is_last in (False, False, True):
            try:
                self._transact(records, positions, group, messages, alone=alone)
            except ConnectError:
                # The transaction was aborted, so writing it again is safe. A broker refuses whole batches: alone, the
                # message that is at fault can be named, or none is. And librdkafka 2.16 may purge the first messages
                # of a transaction together with those of the one that was aborted before.
                alone = alone or (bool(messages) and self._has_refused_content)
                if is_last or not ((alone and self._has_refused_content) or self._purged_by_earlier_abort):
                    raise
            else:
                return

    def _transact(
        self,
        records: Sequence[OutgoingRecord],
        offsets: list[_Partition],
        group: GroupMetadata | None,
        messages: Sequence[OutgoingMessage],
        *,
        alone: bool = False,
    ) -> None:
        """`alone`: each message in a batch of its own."""
        deadline = self._ends_at = time.monotonic() + self._timeout_s
        # A new list: purged messages of an aborted transaction report to the list of that transaction.
        self._undelivered, self._suspect_topics = [], set()
        self._purged_by_earlier_abort = self._has_refused_content = False
        doing = f"writing a transaction of {self.transactional_id}"
        try:
            self._producer.begin_transaction()
            for topic, partition, key, value in records:
                self._produce(topic, value, key, partition=partition)
            for message in messages:
                self._produce(
                    message.topic,
                    message.value,
                    message.key,
                    partition=message.partition,
                    headers=list(message.headers),
                    timestamp=message.timestamp or 0,
                )
                if alone:
                    self._deliver(message)
            if messages:  # A message that was refused would be reported as another failure of the transaction.
                self._wait_for_all(records, messages)
            if offsets and group is not None and not self._undelivered:
                self._send_offsets(offsets, group, deadline)
            # Delivery errors surface here, while an abort is still possible and certain.
            self._wait_for_all(records, messages)
        except (KafkaException, BufferError, ConnectError) as error:
            ours = self._lacking_partition(error, records, messages, doing)
            raise self._abort(ours or error, doing) from error
        if reason := most_specific(self._undelivered):
            self._has_refused_content = reason.code() in RECORD_AT_FAULT
            self._purged_by_earlier_abort = reason.code() == KafkaError._PURGE_QUEUE
            cause = KafkaException(reason)
            told = transaction_steps.reason_of(self._producer, cause)
            if told.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                # Records of a topic that may not be written are reported as purged, and this does not name the topic.
                cause, self._purged_by_earlier_abort = told, False
                doing += f" to {names(sorted({*(topic for topic, *_ in records), *(one.topic for one in messages)}))}"
            ours = self._lacking_partition(cause, records, messages, doing)
            raise self._abort(ours or cause, doing) from cause
        self._commit(deadline)

    def close(self) -> None:
        """Release the connections. Waits at most `CLOSE_TIMEOUT_S`."""
        transaction_steps.close(self._producer, self.transactional_id)

    def _produce(self, topic: str, value: bytes | None, key: bytes | None, **more: Any) -> None:
        undelivered, suspect = self._undelivered, self._suspect_topics

        def delivered(error: KafkaError | None, _message: Message[Any, Any]) -> None:
            if error is not None:
                undelivered.append(error)
                if error.code() in _MAY_LACK_TOPIC:
                    suspect.add(topic)

        def is_known() -> bool:
            return any(error.code() not in PURGED for error in undelivered)

        while True:
            try:
                self._producer.produce(topic, value, key, on_delivery=delivered, **more)
                return
            except BufferError:  # the local queue is full: deliveries make room
                self._producer.poll(0.1)
                if self._undelivered:
                    raise
            except KafkaException as error:
                if not transaction_steps.has_failed(error):
                    raise
                transaction_steps.await_report(self._producer, is_known, self._producer.poll)
                if not undelivered:
                    raise
                return  # the caller aborts, and reports why

    def _wait_for_all(self, records: Sequence[OutgoingRecord], messages: Sequence[OutgoingMessage]) -> None:
        """Wait until everything is delivered or refused, or the time of the transaction is over.

        Raises:
            AccessError: a topic was deleted; the client would wait for it until then.
        """
        topics = {*(topic for topic, *_ in records), *(one.topic for one in messages)}
        watch = TopicWatch(self._producer)
        while self._producer.flush(min(1.0, self._timeout_s)) and time.monotonic() < self._ends_at:
            if missing := watch.missing(topics):
                self._suspect_topics.update(missing)
                # `_abort` says the rest.
                raise AccessError(
                    f"Kafka does not have topic {names(missing)}, which has records to be written.",
                    code="kafka.no_topic",
                    suggestion=_CREATE,
                )

    def _lacking_partition(
        self, error: Exception, records: Sequence[OutgoingRecord], messages: Sequence[OutgoingMessage], doing: str
    ) -> AccessError | None:
        inner = kafka_error(error)
        if inner is None or inner.code() != KafkaError._UNKNOWN_PARTITION:
            return None
        written = [(topic, partition) for topic, partition, *_ in records]
        written += [(one.topic, one.partition) for one in messages]
        return without_partition(self._producer, dict(sorted(written)), doing)

    def _deliver(self, message: OutgoingMessage) -> None:
        """Wait for a message that was sent alone.

        Raises:
            DataError: Kafka refused it.
        """
        self._producer.flush(self._timeout_s)
        reason = most_specific(self._undelivered)
        if reason is not None and reason.code() in RECORD_AT_FAULT:
            raise record_refusal(reason, f"writing a copy of {message.origin} to topic {message.topic}")

    def _send_offsets(self, positions: list[_Partition], group: GroupMetadata, deadline: float) -> None:
        def send() -> None:
            self._producer.send_offsets_to_transaction(positions, group.metadata, API_TIMEOUT_S)

        transaction_steps.repeat(send, deadline, f"adding the offsets of group {group.group} to the transaction")

    def _commit(self, deadline: float) -> None:
        refused = transaction_steps.commit(self._producer, self.transactional_id, deadline, _UNKNOWN)
        if refused is not None:
            raise self._abort(refused, f"committing a transaction of {self.transactional_id}") from refused

    def _abort(self, error: Exception, doing: str) -> ConnectError:
        """Abort, and return the error. The commit was never sent or was refused, so nothing is committed."""
        ours = error if isinstance(error, ConnectError) else translate(error, doing)
        try:
            self._producer.abort_transaction(API_TIMEOUT_S)  # purges what is still queued
        except KafkaException as failed:
            also = translate(failed, f"aborting a transaction of {self.transactional_id}")
            if isinstance(also, FencedError):
                # The cluster itself fences a transaction that has timed out, as it does while a message waits for a
                # topic that does not exist.
                return self._lacking_topic(doing) or self._timed_out(ours) or also
            # Not another problem: the cluster aborts it after transaction.timeout.ms, or the next
            # fence does.
        if isinstance(ours, AccessError | UnavailableError):
            ours = self._lacking_topic(doing) or ours
        if isinstance(ours, UnavailableError | NotStoppedError):
            return type(ours)(f"{ours.message} Nothing was committed.", code=ours.code, suggestion=ours.suggestion)
        return ours

    def _lacking_topic(self, doing: str) -> AccessError | None:
        """The error that names topics of undelivered messages that do not exist; None: there are none."""
        missing = [topic for topic in sorted(self._suspect_topics) if is_missing(self._producer, topic, API_TIMEOUT_S)]
        if not missing:
            return None
        return AccessError(
            f"Kafka does not have topic {names(missing)}, which has records to be written: found while {doing}."
            " Nothing was committed.",
            code="kafka.no_topic",
            suggestion=_CREATE,
        )

    def _timed_out(self, ours: ConnectError) -> ConnectError | None:
        """What failed in a transaction whose time is over, if a newer run need not be the reason; None: it is."""
        if isinstance(ours, FencedError) or time.monotonic() < self._ends_at:
            return None
        return type(ours)(
            f"{ours.message} By then the transaction was open for {plural(round(self._timeout_s), 'second')}, and"
            " Kafka has ended it: because of its age, or because a newer run has taken over. Nothing was committed.",
            code=ours.code,
            suggestion=ours.suggestion,
        )


def fence(settings: Mapping[str, Any], transactional_ids: Sequence[str]) -> None:
    """Make every producer with these ids unable to write, and end what they left open; about 10 ms each.

    Raises:
        UnavailableError, AccessError: Kafka did not allow it; nothing may be planned then.
    """

    def fence_one(transactional_id: str) -> None:
        writer = TransactionalWriter(settings, transactional_id)
        try:
            writer.fence()
        finally:
            writer.close()

    with ThreadPoolExecutor(FENCING_AT_ONCE, "fence") as threads:
        for done in [threads.submit(fence_one, transactional_id) for transactional_id in transactional_ids]:
            done.result()


__all__ = ["CommitUnknownError", "OutgoingRecord", "TransactionalWriter", "fence"]
