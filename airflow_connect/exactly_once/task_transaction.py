"""How a source task makes its records and their offsets final: together, or in which order.

A task sends records and stores offsets. A *unit* is everything between two calls of `store`. Invariants:

S1. Exactly once: a unit's records and its source offsets, in every offsets topic, are one Kafka transaction.
S2. A task reads its offsets after its `init_transactions`. It sees what an earlier attempt committed; what that attempt
    left open is aborted. The earlier attempt cannot commit anything afterwards.
S3. At least once: offsets are written only after Kafka has confirmed every record sent before them, or has refused a
    record because of its content and the refusal is tolerated. For each source partition only the contiguous prefix of
    such records is stored. Records may be sent only in a way that reports confirmations
    (kafka/writing/direct_produce.py).
S4. At most once: records are sent only after their offsets were confirmed.
S5. Only tasks of the run that claimed the connector last can commit. The driver writes the claim, then fences the tasks
    of the last generation (runtime/driver/source/run.py). A task checks the claim after its `init_transactions`.
S6. When the driver reads what the tasks of its run committed, no attempt of them can commit any more. Where an attempt
    may still be running, the driver first gives up its claim and fences the tasks.
S7. A task that must be the first to write to a partition looks at what lies before its first record after Kafka has
    that record, and before it commits. Of two such tasks, the one whose first record comes later sees the other one's,
    open or committed, and aborts (connectors/restore/alone.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.writing.produced import ProducedColumns, ProducedRecord

if TYPE_CHECKING:
    from airflow_connect.exactly_once.guarantee import Guarantee
    from airflow_connect.kafka.state.offsets.offsets_topic import OffsetRecord
    from airflow_connect.kafka.writing.refused_records import Delivered, Refused
    from airflow_connect.kafka.writing.task_producer import TaskProducer

Check: TypeAlias = Callable[[Mapping[TopicPartition, int]], None]
"""Gets the offset of the first record of a unit in each partition."""


class TaskDelivery(Protocol):
    """Sends records and stores offsets; one implementation per delivery guarantee."""

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """Add a record to the current unit. `refused` may be called until `store` returns, not by `ExactlyOnce`."""

    def send_columns(self, columns: ProducedColumns) -> int:
        """Add many records, text or bytes, to the current unit; returns their size in bytes."""

    def store(self, offsets: Sequence[OffsetRecord], check: Check | None = None) -> None:
        """End the unit: its records and these offsets become final.

        `check` is called where a unit can still be aborted, when all of it is in Kafka; its error aborts the unit.
        """

    def discard(self) -> None:
        """Drop the records of the current unit, where that is possible."""


class ExactlyOnce:
    """Records and offsets in one transaction (S1)."""

    def __init__(self, producer: TaskProducer, topics: Sequence[str]) -> None:
        """`topics`: every offsets topic of the connector."""
        self._producer = producer
        self._topics = tuple(topics)
        self._is_open = False

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """Send in the open transaction; the first record opens one. A refused record fails it, as in Kafka Connect."""
        self._is_open = True
        self._producer.send(record, delivered)

    def send_columns(self, columns: ProducedColumns) -> int:
        """As `send`."""
        self._is_open = True
        return self._producer.send_columns(columns)

    def store(self, offsets: Sequence[OffsetRecord], check: Check | None = None) -> None:
        """Write the offsets in the transaction and commit it; does nothing if there is nothing to write."""
        if not self._is_open and not offsets:
            return
        for record in _offset_records(self._topics, offsets):
            self._producer.send(record)
        if check is not None:
            self._check(check)
        self._producer.commit()
        self._is_open = False

    def _check(self, check: Check) -> None:
        self._producer.flush()
        try:
            check(self._producer.first)
        except ConnectError:
            self.discard()
            raise

    def discard(self) -> None:
        """Abort the transaction."""
        self._producer.abort()
        self._is_open = False


class AtLeastOnce:
    """Records first, then offsets (S3)."""

    def __init__(self, producer: TaskProducer, topics: Sequence[str]) -> None:
        """`topics`: every offsets topic of the connector."""
        self._producer = producer
        self._topics = tuple(topics)

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """Send at once."""
        self._producer.send(record, delivered, refused)

    def send_columns(self, columns: ProducedColumns) -> int:
        """As `send`."""
        return self._producer.send_columns(columns)

    def store(self, offsets: Sequence[OffsetRecord], check: Check | None = None) -> None:
        """Wait for the records, then write the offsets."""
        self._producer.flush()
        _write_offsets(self._producer, self._topics, offsets)

    def discard(self) -> None:
        """Does nothing: records that were sent cannot be recalled, and will be sent again."""


class AtMostOnce:
    """Offsets first, then records (S4). The records of a unit wait in memory, so units are single batches."""

    def __init__(self, producer: TaskProducer, topics: Sequence[str]) -> None:
        """`topics`: every offsets topic of the connector."""
        self._producer = producer
        self._topics = tuple(topics)
        self._waiting: list[Callable[[], object]] = []
        """What sends them, in their order."""

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """Keep the record until the offsets are written."""
        self._waiting.append(partial(self._producer.send, record, delivered, refused))

    def send_columns(self, columns: ProducedColumns) -> int:
        """As `send`."""
        self._waiting.append(partial(self._producer.send_columns, columns))
        return columns.values.nbytes + (0 if columns.keys is None else columns.keys.nbytes)

    def store(self, offsets: Sequence[OffsetRecord], check: Check | None = None) -> None:
        """Write the offsets, then the records."""
        _write_offsets(self._producer, self._topics, offsets)
        waiting, self._waiting = self._waiting, []
        for send in waiting:
            send()
        self._producer.flush()

    def discard(self) -> None:
        """Drop the waiting records; none was sent."""
        self._waiting.clear()


def delivery_of(guarantee: Guarantee, producer: TaskProducer, topics: Sequence[str]) -> TaskDelivery:
    """What a guarantee means for a task of a source."""
    if guarantee.uses_transactions:
        return ExactlyOnce(producer, topics)
    return AtMostOnce(producer, topics) if guarantee.commits_first else AtLeastOnce(producer, topics)


def _offset_records(topics: Sequence[str], offsets: Sequence[OffsetRecord]) -> list[ProducedRecord]:
    return [ProducedRecord(topic, None, key, value) for topic in topics for key, value in offsets]


def _write_offsets(producer: TaskProducer, topics: Sequence[str], offsets: Sequence[OffsetRecord]) -> None:
    for record in _offset_records(topics, offsets):
        producer.send(record)
    producer.flush()
