"""Which offsets the records of a batch got in Kafka, from delivery reports.

Reports of one partition come in the order in which its records were sent: the producer is idempotent, and a batch that
is sent again keeps its place. So a report need not name its record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from confluent_kafka import KafkaError, Message
    from numpy.typing import NDArray

    from airflow_connect.kafka.writing.refused_records import Placed


class AwaitedBatch:
    """A batch of records of one partition, some of which are not in Kafka yet."""

    def __init__(self, count: int, placed: Placed) -> None:
        """`placed` gets the offsets of all `count` records when the last of them is in Kafka."""
        self._missing = count
        self._parts: list[NDArray[np.int64]] = []
        self._placed = placed

    def take(self, offsets: NDArray[np.int64]) -> None:
        """Take the offsets of its next records."""
        import numpy as np

        self._parts.append(offsets)
        self._missing -= len(offsets)
        if not self._missing:
            self._placed(np.concatenate(self._parts))


class PlacedColumns:
    """Records in flight, by topic and partition: how many of which batch."""

    def __init__(self) -> None:
        """Starts without a record."""
        self._waiting: dict[tuple[str, int], deque[tuple[AwaitedBatch, int]]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether all records are in Kafka."""
        return not any(self._waiting.values())

    def expect(self, topic: str, partition: int, batch: AwaitedBatch, count: int) -> None:
        """The next `count` records of a batch are about to be sent."""
        if count:
            self._waiting.setdefault((topic, partition), deque()).append((batch, count))

    def arrived(self, topic: str, partition: int, offsets: NDArray[np.int64]) -> None:
        """Take the offsets of the next records that Kafka has confirmed."""
        waiting = self._waiting.get((topic, partition))
        while waiting and len(offsets):
            batch, count = waiting.popleft()
            taken, offsets = offsets[:count], offsets[count:]
            if len(taken) < count:
                waiting.appendleft((batch, count - len(taken)))
            batch.take(taken)

    def forget(self) -> None:
        """Drop every batch: its transaction was aborted."""
        self._waiting.clear()


def placing(
    awaited: AwaitedBatch, refused: Callable[[KafkaError, Message[Any, Any]], None]
) -> Callable[[KafkaError | None, Message[Any, Any]], None]:
    """The callback of the Python client for a record of a batch that is sent record by record."""
    import numpy as np

    def tell(error: KafkaError | None, message: Message[Any, Any]) -> None:
        if error is None:
            awaited.take(np.array([message.offset()], np.int64))
        else:
            refused(error, message)

    return tell
