"""Many records into the Python client's own producer without a Python object each: `rd_kafka_produce_batch`.

The producer is confluent_kafka's: transactions, deliveries and errors stay with it. Only the hand-over is done here, on
the library that it has loaded (librdkafka.py), with an array of `rd_kafka_message_t` (rdkafka.h) that NumPy fills from
the offsets of Arrow arrays. Values are copied by librdkafka. Where the client is not one whose layout is known, nobody
gets a `DirectProduce`, and records go one by one.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import confluent_kafka

from airflow_connect.kafka.librdkafka import Librdkafka, loaded_library

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

KNOWN_CLIENTS = ("2.16.",)
"""Versions whose `Handle` begins with the head of a Python object and then the `rd_kafka_t *`."""
CHUNK = 10_000
_HANDLE_AT = 16
_PRODUCER = 0
_ANY_PARTITION = -1
_COPY = 0x2
_MESSAGE = [
    ("err", "i4"), ("_pad", "i4"), ("rkt", "u8"), ("partition", "i4"), ("_pad2", "i4"), ("payload", "u8"),
    ("len", "u8"), ("key", "u8"), ("key_len", "u8"), ("offset", "i8"), ("private", "u8"),
]  # fmt: skip


class DirectProduce:
    """Hands arrays over to one producer."""

    def __init__(self, library: Librdkafka, producer: Any, handle: int) -> None:
        """Use `direct_produce`."""
        self._library = library
        self._producer = producer  # Keeps the handle alive.
        self._handle = handle
        self._topics: dict[str, int] = {}

    def send(self, topic: str, keys: pa.Array[Any] | None, values: pa.Array[Any]) -> int:
        """Enqueue every record, in order; returns how many were taken: fewer when the queue is full or Kafka refuses.

        Args:
            keys, values: string or binary arrays of equal length, at most `CHUNK` long.
        """
        import numpy as np

        count = len(values)
        messages = np.zeros(count, dtype=_MESSAGE)
        messages["payload"], messages["len"] = addresses(values)
        if keys is not None:
            messages["key"], messages["key_len"] = addresses(keys)
        rkt = self._topic(topic)
        taken: int = self._library.call("produce_batch", rkt, _ANY_PARTITION, _COPY, messages.ctypes.data, count)
        if taken == count:
            return count
        refused = np.flatnonzero(messages["err"])
        return int(refused[0]) if len(refused) else taken

    def close(self) -> None:
        """Let go of the topics; before the producer is closed."""
        for rkt in self._topics.values():
            self._library.call("topic_destroy", rkt)
        self._topics.clear()

    def _topic(self, name: str) -> int:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = self._library.call("topic_new", self._handle, name.encode(), None)
        return found


def direct_produce(producer: Any) -> DirectProduce | None:
    """For a producer of confluent_kafka; None where its layout is not known."""
    library = loaded_library()
    if library is None or not str(confluent_kafka.__version__).startswith(KNOWN_CLIENTS):
        return None
    handle = ctypes.c_void_p.from_address(id(producer) + _HANDLE_AT).value
    if not handle or library.call("type", handle) != _PRODUCER:
        return None
    return DirectProduce(library, producer, handle)


def addresses(values: pa.Array[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each value lies in memory, and its length; 0 and 0 for a null. The array must outlive the use."""
    import numpy as np
    import pyarrow as pa

    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    kind: Any = np.int64 if is_large else np.int32
    buffers: list[Any] = values.buffers()
    validity, offset_buffer, data = buffers
    width = np.dtype(kind).itemsize
    offsets = np.frombuffer(offset_buffer, kind, len(values) + 1, values.offset * width).astype(np.uint64)
    # An empty value has an address too: with none librdkafka would write a null.
    base = np.uint64(data.address if data is not None and data.size else offset_buffer.address)
    starts, lengths = offsets[:-1] + base, np.diff(offsets)
    if validity is not None and values.null_count:
        missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=bool)
        starts[missing], lengths[missing] = 0, 0
    return starts, lengths
