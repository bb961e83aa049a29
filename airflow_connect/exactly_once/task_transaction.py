"""How the records of a source task and their offsets become final together, or in which order.

A task sends records and stores offsets; a *unit* is what lies between two calls of `store`. Invariants:

S1. Exactly once: a unit's records and its source offsets, in every offsets topic, are one Kafka transaction.
S2. A task reads its offsets after its `init_transactions`: what an earlier attempt committed is seen, and what it left
    open is gone. It can commit nothing afterwards.
S3. At least once: offsets are written only after every record sent before them was confirmed by Kafka, or refused for
    its own sake and tolerated; the contiguous prefix of each source partition of which that is true is all that is ever
    stored. Only a way to send whose confirmations reach us may be used (kafka/direct_produce.py).
S4. At most once: records are sent only after their offsets were confirmed.
S5. Only tasks of the run that claimed the connector last can commit. The driver writes the claim, then fences the tasks
    of the last generation (runtime/driver/source_run.py); a task looks at the claim after its `init_transactions`.
S6. Once the driver looks at what the tasks of its run committed, no attempt of them can commit any more: where there
    may be one, the driver gives its claim up, then fences them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from airflow_connect.api import connector_keys as keys
from airflow_connect.kafka.task_producer import ProducedRecord

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.kafka.offsets_topic import OffsetRecord
    from airflow_connect.kafka.refused_records import Delivered, Refused
    from airflow_connect.kafka.task_producer import TaskProducer


class TaskDelivery(Protocol):
    """One of the three ways."""

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """Take a record of the present unit; `refused` may be told before `store` returns, not with `ExactlyOnce`."""

    def send_columns(self, topic: str, keys: pa.Array[Any] | None, values: pa.Array[Any]) -> int:
        """Take many records of the present unit, text or bytes; returns their size in bytes."""

    def store(self, offsets: Sequence[OffsetRecord]) -> None:
        """End the unit: its records and these offsets become final."""

    def discard(self) -> None:
        """Forget the records of the present unit, where that is possible."""


class ExactlyOnce:
    """Records and offsets in one transaction (S1)."""

    def __init__(self, producer: TaskProducer, topics: Sequence[str]) -> None:
        """`topics`: every offsets topic of the connector."""
        self._producer = producer
        self._topics = tuple(topics)
        self._is_open = False

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """Into the open transaction; the first record opens one. A refused record fails it, as in Kafka Connect."""
        self._is_open = True
        self._producer.send(record, delivered)

    def send_columns(self, topic: str, keys: pa.Array[Any] | None, values: pa.Array[Any]) -> int:
        """As `send`."""
        self._is_open = True
        return self._producer.send_columns(topic, keys, values)

    def store(self, offsets: Sequence[OffsetRecord]) -> None:
        """Write the offsets into the transaction and commit it; nothing to write: nothing happens."""
        if not self._is_open and not offsets:
            return
        for record in _offset_records(self._topics, offsets):
            self._producer.send(record)
        self._producer.commit()
        self._is_open = False

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
        """At once."""
        self._producer.send(record, delivered, refused)

    def send_columns(self, topic: str, keys: pa.Array[Any] | None, values: pa.Array[Any]) -> int:
        """As `send`."""
        return self._producer.send_columns(topic, keys, values)

    def store(self, offsets: Sequence[OffsetRecord]) -> None:
        """Wait for the records, then write the offsets."""
        self._producer.flush()
        _write_offsets(self._producer, self._topics, offsets)

    def discard(self) -> None:
        """Records that were sent cannot be called back; they come again."""


class AtMostOnce:
    """Offsets first, then records (S4). The records of a unit wait in memory, so units are single batches."""

    def __init__(self, producer: TaskProducer, topics: Sequence[str]) -> None:
        """`topics`: every offsets topic of the connector."""
        self._producer = producer
        self._topics = tuple(topics)
        self._waiting: list[tuple[ProducedRecord, Delivered | None, Refused | None]] = []
        self._columns: list[tuple[str, pa.Array[Any] | None, pa.Array[Any]]] = []

    def send(self, record: ProducedRecord, delivered: Delivered | None = None, refused: Refused | None = None) -> None:
        """When the offsets are written."""
        self._waiting.append((record, delivered, refused))

    def send_columns(self, topic: str, keys: pa.Array[Any] | None, values: pa.Array[Any]) -> int:
        """As `send`."""
        self._columns.append((topic, keys, values))
        return values.nbytes + (0 if keys is None else keys.nbytes)

    def store(self, offsets: Sequence[OffsetRecord]) -> None:
        """Write the offsets, then the records."""
        _write_offsets(self._producer, self._topics, offsets)
        waiting, self._waiting = self._waiting, []
        for record, delivered, refused in waiting:
            self._producer.send(record, delivered, refused)
        columns, self._columns = self._columns, []
        for batch in columns:
            self._producer.send_columns(*batch)
        self._producer.flush()

    def discard(self) -> None:
        """Nothing was sent."""
        self._waiting.clear()
        self._columns.clear()


def delivery_of(guarantee: str, producer: TaskProducer, topics: Sequence[str]) -> TaskDelivery:
    """The way that `delivery.guarantee` names."""
    if guarantee == keys.EXACTLY_ONCE:
        return ExactlyOnce(producer, topics)
    return AtLeastOnce(producer, topics) if guarantee == keys.AT_LEAST_ONCE else AtMostOnce(producer, topics)


def _offset_records(topics: Sequence[str], offsets: Sequence[OffsetRecord]) -> list[ProducedRecord]:
    return [ProducedRecord(topic, None, key, value) for topic in topics for key, value in offsets]


def _write_offsets(producer: TaskProducer, topics: Sequence[str], offsets: Sequence[OffsetRecord]) -> None:
    for record in _offset_records(topics, offsets):
        producer.send(record)
    producer.flush()
