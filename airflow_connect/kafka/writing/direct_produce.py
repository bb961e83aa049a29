"""Sends many records through the Python client's producer without a Python object each: `rd_kafka_produce_batch`.

The producer and its transactions are confluent_kafka's. Records are enqueued here, with the library that it has loaded
(kafka/clients/librdkafka.py), from an array of `rd_kafka_message_t` (rdkafka.h) that NumPy fills from the offsets of
Arrow arrays. librdkafka copies the values.

Delivery reports are read here too. confluent_kafka's own callback ignores records that it did not produce (`dr_msg_cb`
returns if the message has no Python state), so its `poll` and `flush` would lose the report that a broker refused one.
While records that were enqueued here are in flight, only `serve` may be called: it reads reports from the same queue
as events (`rd_kafka_queue_poll`), many at a time.

If the memory layout of the client is unknown, there is no `DirectProduce`, and records are sent one by one.
"""

from __future__ import annotations

import ctypes
from itertools import repeat
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import KafkaError

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.clients.librdkafka import Librdkafka, NotDirectError, required_library
from airflow_connect.kafka.reading.foreign_memory import words_at
from airflow_connect.kafka.writing.refused_records import LESS_SPECIFIC, most_specific

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from airflow_connect.kafka.clients.short_lived import QuickProducer

KNOWN_CLIENTS = ("2.16.",)
"""Versions whose `Handle` consists of a Python object header and then the `rd_kafka_t *`."""
LONGEST_LINGER_MS = 100
"""The end of a unit waits as long as the last batches linger: only `flush` would send them earlier, see above."""
CHUNK = 10_000
_HANDLE_AT = 16
_PRODUCER = 0
_DELIVERY_REPORT, _LOG, _ERROR = 0x1, 0x4, 0x8
_ANY_PARTITION = -1
_COPY = 0x2
_MESSAGE = [
    ("err", "i4"), ("_pad", "i4"), ("rkt", "u8"), ("partition", "i4"), ("_pad2", "i4"), ("payload", "u8"),
    ("len", "u8"), ("key", "u8"), ("key_len", "u8"), ("offset", "i8"), ("private", "u8"),
]  # fmt: skip
_RKT, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP = 2, 3, 4, 5, 7, 8
_FIELDS = (_RKT, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP)
_RKT_WORD, _PARTITION_WORD, _OFFSET_WORD, _WORDS = 1, 2, 7, 8
"""Words of `rd_kafka_message_t` in a delivery report."""
_HEADER = 9
_FIELD = [("type", "i4"), ("_pad", "i4"), ("word", "i8"), ("size", "u8"), ("third", "i8"), ("_rest", "V40")]
"""`rd_kafka_vu_t` (rdkafka.h): a type and a union of 64 bytes, which here is a number; an address and a size; or, for a
header, the addresses of its name and its value, and the value's size."""


class DirectProduce:
    """Enqueues arrays in one producer."""

    def __init__(self, library: Librdkafka, producer: QuickProducer, handle: int) -> None:
        """Use `direct_produce`."""
        self._library = library
        self._producer = producer  # Keeps the handle alive.
        self._handle = handle
        self._queue: int = library.call("queue_get_main", handle)
        self._topics: dict[str, int] = {}
        self.first: dict[TopicPartition, int] | None = None
        """If set, it gets the offset of the first record that Kafka confirms, by partition."""
        self.refusal: KafkaError | None = None
        """Why the last records were not accepted."""

    def send(self, topic: str, keys: pa.Array[Any] | None, values: pa.Array[Any]) -> int:
        """Enqueue every record, in order; returns how many were accepted: fewer if the queue is full or Kafka refuses.

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
        if not len(refused):
            return taken
        self._keep_refusal(int(messages["err"][refused[0]]))
        return int(refused[0])

    def send_placed(
        self,
        topic: str,
        keys: pa.Array[Any] | None,
        values: pa.Array[Any],
        partition: int | None,
        timestamps: pa.Array[Any] | None,
        headers: pa.ListArray[Any] | None = None,
    ) -> int:
        """As `send`, with a partition, with timestamps (milliseconds since the epoch, without nulls), or with headers.

        `rd_kafka_produce_batch` takes no timestamps, so there is one call for each record (`rd_kafka_produceva`). All
        arguments are written at once by NumPy; a record still has no Python object of its own.
        """
        fields = _Fields(len(values), headers)
        fields.set(_RKT, self._topic(topic))
        fields.set(_FLAGS, _COPY)
        fields.set(_PARTITION, _ANY_PARTITION if partition is None else partition)
        fields.set(_VALUE, *addresses(values))
        if keys is not None:
            fields.set(_KEY, *addresses(keys))
        if timestamps is not None:
            fields.set(_TIMESTAMP, timestamps.to_numpy())
        places, widths = fields.records()
        # The loop over the records is one of C: as a statement of Python it takes a tenth longer.
        calls = map(self._library.produce_fields, repeat(self._handle), places, widths)
        error = next(filter(None, calls), None)
        if error is None:
            return len(values)
        self._keep_refusal(self._library.call("error_code", error))
        self._library.call("error_destroy", error)
        return len(values) - 1 - len(list(places))

    def _keep_refusal(self, code: int) -> None:
        self.refusal = KafkaError(code, _text(self._library.call("err2str", code)))

    def serve(self, timeout_s: float) -> KafkaError | None:
        """Read delivery reports, waiting for the first; returns the most specific reason for a refused record."""
        reasons: list[KafkaError] = []
        timeout_ms = round(timeout_s * 1000)
        while event := self._library.call("queue_poll", self._queue, timeout_ms):
            timeout_ms = 0
            try:
                if reason := self._served(event):
                    reasons.append(reason)
            finally:
                self._library.call("event_destroy", event)
        return most_specific(reasons)

    def _served(self, event: int) -> KafkaError | None:
        kind = self._library.call("event_type", event)
        if kind == _DELIVERY_REPORT:
            return self._refused(event)
        if kind == _ERROR:
            code, text = self._library.call("event_error", event), self._library.call("event_error_string", event)
            is_fatal = bool(self._library.call("event_error_is_fatal", event))
            self._producer.diary.error(KafkaError(code, _text(text), fatal=is_fatal))
        elif kind == _LOG:
            facility, line, level = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_int()
            self._library.call("event_log", event, facility, line, level)
            self._producer.diary.log(level.value, "%s", _text(line.value))
        return None

    def _refused(self, event: int) -> KafkaError | None:
        """The most specific error of a delivery report."""
        import numpy as np

        count = self._library.call("event_message_count", event)
        messages = np.zeros(count, dtype=np.int64)
        count = self._library.call("event_message_array", event, messages.ctypes.data, count)
        words = words_at(messages[:count], _WORDS)
        codes = words[0].astype(np.int32)
        failed = np.flatnonzero(codes)
        if not len(failed):
            if self.first is not None:
                self._keep_first(self.first, words)
            return None
        telling = failed[~np.isin(codes[failed], LESS_SPECIFIC)]
        first = int(telling[0] if len(telling) else failed[0])
        code = int(codes[first])
        # Not rd_kafka_message_errstr: for a message of a producer that is the record's value. Not
        # rd_kafka_message_produce_errstr either: in 2.16 its text may have been released already.
        return KafkaError(code, _text(self._library.call("err2str", code)))

    def _keep_first(self, first: dict[TopicPartition, int], words: Sequence[NDArray[np.int64]]) -> None:
        """Keep where the first record of each partition is; `words`: of the messages of a delivery report."""
        import numpy as np

        topics, partitions, offsets = words[_RKT_WORD], words[_PARTITION_WORD].astype(np.int32), words[_OFFSET_WORD]
        changes = np.flatnonzero((np.diff(topics) != 0) | (np.diff(partitions) != 0)) + 1
        for start in [0, *changes.tolist()]:
            topic = self._library.topic_name(int(topics[start]))
            partition = int(partitions[start])
            first.setdefault(TopicPartition(topic, partition), int(offsets[start]))

    def close(self) -> None:
        """Release the topics and the queue; call it before the producer is closed."""
        if self._queue:
            self._library.call("queue_destroy", self._queue)
            self._queue = 0
        for rkt in self._topics.values():
            self._library.call("topic_destroy", rkt)
        self._topics.clear()

    def _topic(self, name: str) -> int:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = self._library.call("topic_new", self._handle, name.encode(), None)
        return found


class _Fields:
    """The arguments of `rd_kafka_produceva` for many records: for each some fields, then its headers."""

    def __init__(self, count: int, headers: pa.ListArray[Any] | None) -> None:
        """Room for `count` records, their headers written already. All arrays must outlive the calls."""
        import numpy as np

        self._begins = np.arange(count + 1, dtype=np.int64) * len(_FIELDS)
        if headers is not None:
            buffers: list[Any] = headers.buffers()
            bounds = np.frombuffer(buffers[1], np.int32, count + 1, headers.offset * 4).astype(np.int64)
            self._begins += bounds - bounds[0]
        self._fields = np.zeros(int(self._begins[-1]), dtype=_FIELD)
        self._is_dense = headers is None
        if headers is not None:
            self._write_headers(headers, np.diff(bounds))
        for number, kind in enumerate(_FIELDS):
            self._fields["type"][self._rows(number)] = kind

    def set(self, kind: int, word: Any, size: Any = 0) -> None:
        """Write one field of every record."""
        # Partition and flags are 32 bits wide; the low half of a little-endian word is in the same place.
        rows = self._rows(_FIELDS.index(kind))
        self._fields["word"][rows], self._fields["size"][rows] = word, size

    def records(self) -> tuple[Iterator[int], Iterator[int]]:
        """Address and number of the fields of each record."""
        import numpy as np

        places = self._fields.ctypes.data + self._begins[:-1] * self._fields.itemsize
        widths = repeat(len(_FIELDS)) if self._is_dense else iter(np.diff(self._begins).tolist())
        return iter(places.tolist()), widths

    def _rows(self, number: int) -> Any:
        return slice(number, None, len(_FIELDS)) if self._is_dense else self._begins[:-1] + number

    def _write_headers(self, headers: pa.ListArray[Any], counts: NDArray[np.int64]) -> None:
        import numpy as np
        import pyarrow.compute as pc

        parts: Any = headers.flatten()
        keys, values = parts.flatten()
        # librdkafka takes names that end with a zero, and copies them as it copies values.
        names: Any = pc.binary_join_element_wise(keys, b"\0", b"")
        first = np.repeat(self._begins[1:] - np.cumsum(counts), counts)
        rows = first + np.arange(len(names))
        self._kept = names, values
        self._fields["type"][rows] = _HEADER
        self._fields["word"][rows] = addresses(names)[0]
        self._fields["size"][rows], self._fields["third"][rows] = addresses(values)


def direct_produce(producer: QuickProducer) -> DirectProduce:
    """A `DirectProduce` for a producer of confluent_kafka.

    Raises:
        NotDirectError: its layout is not known, or its settings need the Python client.
    """
    library, version = required_library(), str(confluent_kafka.__version__)
    if not version.startswith(KNOWN_CLIENTS):
        raise NotDirectError(f"confluent-kafka {version} is not a supported version")
    _refuse_settings(producer.settings)
    handle = ctypes.c_void_p.from_address(id(producer) + _HANDLE_AT).value
    if not handle or library.call("type", handle) != _PRODUCER:
        raise NotDirectError("the producer of confluent-kafka does not have the expected memory layout")
    return DirectProduce(library, producer, handle)


def _refuse_settings(settings: Mapping[str, Any]) -> None:
    mechanism = str(settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "")
    if "OAUTHBEARER" in mechanism.upper():  # tokens come from a Python callback, which `serve` does not call
        raise NotDirectError("sasl.mechanism=OAUTHBEARER needs the Python client")
    linger_ms = float(settings.get("linger.ms", settings.get("queue.buffering.max.ms", 0)))
    if linger_ms > LONGEST_LINGER_MS:
        raise NotDirectError(f"linger.ms is longer than {LONGEST_LINGER_MS} ms")


def _text(text: bytes | None) -> str:
    return (text or b"").decode("utf-8", "replace")


def addresses(values: pa.Array[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Address and length of each value; 0 and 0 for a null. The array must outlive their use."""
    import numpy as np
    import pyarrow as pa

    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    kind: Any = np.int64 if is_large else np.int32
    buffers: list[Any] = values.buffers()
    validity, offset_buffer, data = buffers
    width = np.dtype(kind).itemsize
    offsets = np.frombuffer(offset_buffer, kind, len(values) + 1, values.offset * width).astype(np.uint64)
    # An empty value has an address too: without one, librdkafka would write a null.
    base = np.uint64(data.address if data is not None and data.size else offset_buffer.address)
    starts, lengths = offsets[:-1] + base, np.diff(offsets)
    if validity is not None and values.null_count:
        missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=bool)
        starts[missing], lengths[missing] = 0, 0
    return starts, lengths
