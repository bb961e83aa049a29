"""Fetches many messages per call, without a Python object per message.

An alternative way to read the same messages. `RangeReader` decides about positions and ends, and switches to the Python
client if this one meets anything but records and ends of partitions.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_connect.kafka.clients.librdkafka import DirectConsumer, NotDirectError, open_consumer, required_library
from airflow_connect.kafka.reading.message_memory import Event, Messages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.kafka.reading.column_batch import ColumnBatch

MAX_MESSAGES = 8192
_FETCH_BYTES = 8 << 20
"""Large messages are fetched in smaller numbers."""


class BatchFetch:
    """A consumer and the messages that it has lent out.

    Any thread may return messages at any moment, when it drops the last reference, so returning only puts their
    pointers into a queue. The fetching thread destroys them before the next fetch. If messages are still lent out when
    the fetch is closed, a thread waits for them, because librdkafka's consumer must outlive its messages.
    """

    def __init__(self, consumer: DirectConsumer) -> None:
        """Use `open_fetch`."""
        self._consumer = consumer
        self._returned: SimpleQueue[NDArray[np.int64]] = SimpleQueue()  # may be put into by a finalizer, by contract
        self._lent = 0
        self._is_closing = False
        self._closed = threading.Event()
        self._size = MAX_MESSAGES

    def fetch(self, at_most: int, timeout_s: float) -> Iterator[ColumnBatch | Event]:
        """Wait for `at_most` messages, but not longer than `timeout_s`."""
        self._destroy_returned()
        pointers = np.zeros(min(at_most, self._size), dtype=np.int64)
        count = self._consumer.consume(pointers.ctypes.data, len(pointers), round(timeout_s * 1000))
        if not count:
            return
        self._lent += 1
        messages = Messages(self._consumer.library, pointers[:count], self._returned.put)
        size = 0
        for part in messages.parts():
            size += 0 if isinstance(part, Event) else part.size_bytes
            yield part
        self._size = max(1, min(MAX_MESSAGES, _FETCH_BYTES * count // max(1, size)))

    def unassign(self, tp: TopicPartition) -> None:
        """Stop reading a partition."""
        self._consumer.unassign(tp)

    def close(self) -> None:
        """Release the connections once no message is lent out; does not wait for that. Idempotent."""
        if self._is_closing:
            return
        self._is_closing = True
        self._destroy_returned()
        if self._lent:
            threading.Thread(target=self._close_when_all_are_back, name="close-fetch", daemon=True).start()
        else:
            self._close()

    @property
    def is_closed(self) -> bool:
        """Whether every message is destroyed and the connections are gone."""
        return self._closed.is_set()

    def _destroy_returned(self) -> None:
        while not self._returned.empty():
            self._destroy(self._returned.get())

    def _close_when_all_are_back(self) -> None:
        while self._lent:
            self._destroy(self._returned.get())
        self._close()

    def _destroy(self, pointers: NDArray[np.int64]) -> None:
        deque(map(self._consumer.library.destroy_message, pointers.tolist()), maxlen=0)
        self._lent -= 1

    def _close(self) -> None:
        self._consumer.close()
        self._closed.set()


def open_fetch(settings: Mapping[str, Any], positions: Mapping[TopicPartition, int]) -> BatchFetch:
    """Begin to read partitions.

    Args:
        settings: librdkafka settings, complete.
        positions: where to begin.

    Raises:
        NotDirectError: only the Python client can read them.
    """
    # Tokens are made by a callback into Python.
    mechanism = str(settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "")
    if "OAUTHBEARER" in mechanism.upper():
        raise NotDirectError("sasl.mechanism=OAUTHBEARER needs the Python client")
    consumer = open_consumer(required_library(), settings)
    if not consumer.assign(positions):
        consumer.close()
        raise NotDirectError("librdkafka refused the partitions")
    return BatchFetch(consumer)
