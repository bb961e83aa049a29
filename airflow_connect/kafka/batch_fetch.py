"""Fetching many messages per call, without a Python object per message.

A second way to the same messages: `RangeReader` decides about positions and ends, and goes on with the Python client
where this one meets anything but records and ends of partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_connect.kafka.librdkafka import DirectConsumer, loaded_library, open_consumer
from airflow_connect.kafka.message_memory import Event, Messages

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.kafka.column_batch import ColumnBatch

MAX_MESSAGES = 8192
_FETCH_BYTES = 8 << 20
"""Large messages are fetched in smaller numbers."""


class BatchFetch:
    """A consumer and the messages that it lent out. It is closed when it was asked for and all messages are back."""

    def __init__(self, consumer: DirectConsumer) -> None:
        """Use `open_fetch`."""
        self._consumer = consumer
        self._pointers = np.zeros(MAX_MESSAGES, dtype=np.int64)
        self._lent = 0
        self._is_closing = False
        self._size = MAX_MESSAGES

    def fetch(self, at_most: int, timeout_s: float) -> Iterator[ColumnBatch | Event]:
        """Wait for `at_most` messages, but not longer than `timeout_s`."""
        wanted = min(at_most, self._size)
        count = self._consumer.consume(self._pointers.ctypes.data, wanted, round(timeout_s * 1000))
        if not count:
            return
        self._lent += 1
        messages = Messages(self._consumer.library, self._pointers[:count].copy(), self._give_back)
        size = 0
        for part in messages.parts():
            size += 0 if isinstance(part, Event) else part.size_bytes
            yield part
        self._size = max(1, min(MAX_MESSAGES, _FETCH_BYTES * count // max(1, size)))

    def unassign(self, tp: TopicPartition) -> None:
        """Stop reading a partition."""
        self._consumer.unassign(tp)

    def close(self) -> None:
        """Let go of the connections as soon as no message is lent out; idempotent."""
        if not self._is_closing:
            self._is_closing = True
            self._close_if_free()

    def _give_back(self) -> None:
        self._lent -= 1
        self._close_if_free()

    def _close_if_free(self) -> None:
        if self._is_closing and not self._lent:
            self._consumer.close()


def open_fetch(settings: Mapping[str, Any], positions: Mapping[TopicPartition, int]) -> BatchFetch | None:
    """Begin to read partitions, or None where only the Python client can do it.

    Args:
        settings: librdkafka settings, complete.
        positions: where to begin.
    """
    # Tokens are made by a callback into Python.
    mechanism = str(settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "")
    if "OAUTHBEARER" in mechanism.upper():
        return None
    library = loaded_library()
    consumer = None if library is None else open_consumer(library, settings)
    if consumer is None:
        return None
    if not consumer.assign(positions):
        consumer.close()
        return None
    return BatchFetch(consumer)
