"""When librdkafka may be called directly, and messages that are lent out: who destroys them, and when."""

from __future__ import annotations

import ctypes
import re
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np
import pytest
from confluent_kafka import KafkaError

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.kafka.clients import librdkafka
from airflow_connect.kafka.clients.librdkafka import NotDirectError, required_library
from airflow_connect.kafka.clients.short_lived import QuickConsumer, producer
from airflow_connect.kafka.reading.batch_fetch import BatchFetch
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.kafka.reading.message_memory import Event, Messages
from airflow_connect.kafka.writing import direct_produce
from airflow_connect.kafka.writing.produced import ProducedColumns
from airflow_connect.kafka.writing.task_producer import TaskProducer
from tests.support.servers.mock_kafka import MockKafka
from tests.support.waiting import wait_until

LOCK = Path(__file__).parents[3] / "requirements.lock"
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def searched_again() -> Iterator[None]:
    """The library is looked for again, and once more after the test."""
    librdkafka._found_library.cache_clear()
    yield
    librdkafka._found_library.cache_clear()


# --- where it may be called -------------------------------------------------------------------------------------------


def test_locked_client_is_one_whose_layout_is_known() -> None:
    """A newer one in the lock: hold its `Handle` and its messages against these tests, then add it to KNOWN_CLIENTS."""
    found = re.search(r"^confluent-kafka==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert found is not None
    assert confluent_kafka.__version__ == found[1]
    assert direct_produce.direct_produce(producer(NOWHERE)) is not None


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (lambda m: m.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": 1}.get), "a free-threaded build"),
        (lambda m: m.setattr(sys, "gettotalrefcount", lambda: 0, raising=False), "a debug build"),
        (lambda m: m.setattr(sys, "getobjects", list, raising=False), "a debug build"),
        (lambda m: m.setattr(sys, "abiflags", "d"), "a debug build"),
        (lambda m: m.setattr(sys, "platform", "darwin"), "only 64-bit Linux is supported"),
        (lambda m: m.setattr(confluent_kafka, "libversion", lambda: ("3.0.0", 0x030000FF)), "librdkafka 3.0.0 is not"),
    ],
    ids=["free-threaded", "debug", "trace refs", "abi flags", "platform", "librdkafka"],
)
def test_unknown_build_takes_the_slow_path_and_says_why(
    monkeypatch: pytest.MonkeyPatch, searched_again: None, break_it: Any, reason: str
) -> None:
    break_it(monkeypatch)
    with pytest.raises(NotDirectError, match=reason):
        required_library()
    with pytest.raises(NotDirectError, match=reason):
        direct_produce.direct_produce(producer(NOWHERE))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"sasl.mechanisms": "OAUTHBEARER", "security.protocol": "SASL_PLAINTEXT"}, "OAUTHBEARER needs"),
        ({"linger.ms": 5000}, "linger.ms is longer than 100 ms"),
    ],
)
def test_settings_that_the_direct_way_cannot_serve_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotDirectError, match=reason):
        direct_produce.direct_produce(producer({**NOWHERE, **settings}))


def test_unknown_client_sends_and_reads_the_same_records_and_says_so(
    monkeypatch: pytest.MonkeyPatch, searched_again: None
) -> None:
    import pyarrow as pa

    monkeypatch.setattr(confluent_kafka, "__version__", "2.99.0")
    monkeypatch.setattr(confluent_kafka, "libversion", lambda: ("2.99.0", 0x026300FF))
    with MockKafka() as mock:
        mock.create("t")
        sender = TaskProducer({"bootstrap.servers": mock.bootstrap}, "", 60_000)
        sender.send_columns(ProducedColumns("t", None, pa.array(["a", "b"])))
        sender.flush()
        sender.close()
        reader = RangeReader({"bootstrap.servers": mock.bootstrap}, [OffsetRange("t", 0, 0, 2)])
        batches = list(reader.columns())
    assert [value for batch in batches for value in batch.values.to_pylist()] == [b"a", b"b"]
    reason = "librdkafka 2.99.0 is not a supported version."
    assert sender.notes == (f"Columns were sent to Kafka record by record, which is slower: {reason}",)
    assert reader.notes == (f"Kafka was read for a while by the slower Python client: {reason}",)


def test_unknown_client_with_a_known_library_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    made = producer(NOWHERE)
    monkeypatch.setattr(confluent_kafka, "__version__", "2.17.0")
    with pytest.raises(NotDirectError, match=r"confluent-kafka 2\.17\.0 is not a supported version"):
        direct_produce.direct_produce(made)


def test_object_that_is_no_producer_is_refused() -> None:
    consumer: Any = QuickConsumer({**NOWHERE, "group.id": "g"})
    consumer.settings = {}
    with pytest.raises(NotDirectError, match="does not have the expected memory layout"):
        direct_produce.direct_produce(consumer)
    consumer.close()


# --- messages that are lent out ---------------------------------------------------------------------------------------

_WORDS = 17


class FakeLibrary:
    """Messages in memory of the test; timestamps as the public function tells them, and no headers."""

    has_known_headers = False

    def __init__(self, rows: list[tuple[int, int, int]]) -> None:
        """`rows`: error code, timestamp as it lies in memory, and as the function tells it."""
        self.memory = np.zeros((len(rows), _WORDS), dtype=np.int64)
        for n, (code, lies, _) in enumerate(rows):
            self.memory[n, [0, 7, 11, 12]] = code & 0xFFFFFFFF, n, 1 << 32, lies
        self.pointers = self.memory.ctypes.data + np.arange(len(rows), dtype=np.int64) * _WORDS * 8
        self._told = {int(pointer): row[2] for pointer, row in zip(self.pointers, rows, strict=True)}
        self.asked: list[int] = []
        self.destroyed: list[tuple[int, int]] = []

    def timestamp(self, pointer: int) -> tuple[int, int]:
        self.asked.append(int(np.flatnonzero(self.pointers == pointer)[0]))
        return self._told[pointer], 1

    def headers(self, pointer: int) -> tuple[()]:
        return ()

    def topic_name(self, topic: int) -> str:
        return "t"

    def destroy_message(self, pointer: int) -> None:
        self.destroyed.append((pointer, threading.get_ident()))


class FakeConsumer:
    """Lends out the messages of a library, once."""

    def __init__(self, library: FakeLibrary) -> None:
        self.library = library
        self.closed_after: int | None = None

    def consume(self, into: int, size: int, timeout_ms: int) -> int:
        count = min(size, len(self.library.pointers)) if not self.library.destroyed else 0
        ctypes.memmove(into, self.library.pointers.ctypes.data, count * 8)
        return count

    def close(self) -> None:
        assert self.closed_after is None, "closed twice"
        self.closed_after = len(self.library.destroyed)


EOF = KafkaError._PARTITION_EOF


def parts_of(rows: list[tuple[int, int, int]]) -> tuple[FakeLibrary, list[Any]]:
    library: Any = FakeLibrary(rows)
    return library, list(Messages(library, library.pointers, lambda _: None).parts())


@pytest.mark.parametrize("events", [{0}, {3}, {0, 3}], ids=str)
def test_layout_is_tried_with_records_and_not_with_events(events: set[int]) -> None:
    rows = [(EOF, -77, 99) if n in events else (0, 1000 + n, 1000 + n) for n in range(4)]
    library, parts = parts_of(rows)
    records = [n for n in range(4) if n not in events]
    assert sorted(library.asked) == [records[0], records[-1]]
    stamps = [stamp for part in parts if isinstance(part, ColumnBatch) for stamp in part.timestamps.tolist()]
    assert stamps == [1000 + n for n in records]
    assert len([part for part in parts if isinstance(part, Event)]) == len(events)


def test_other_layout_is_noticed_behind_an_event_and_every_record_is_asked_for() -> None:
    library, parts = parts_of([(0, 5, 1000), (0, 6, 1001), (0, 7, 1002), (EOF, 99, 99)])
    (batch,) = [part for part in parts if isinstance(part, ColumnBatch)]
    assert batch.timestamps.tolist() == [1000, 1001, 1002]
    assert 3 not in library.asked


def test_fetch_of_events_alone_asks_for_nothing() -> None:
    library, parts = parts_of([(EOF, 1, 2), (KafkaError._TRANSPORT, 1, 2)])
    assert [part.code for part in parts] == [EOF, KafkaError._TRANSPORT]
    assert library.asked == []


def lent_out() -> tuple[FakeLibrary, FakeConsumer, BatchFetch, list[Any]]:
    library = FakeLibrary([(0, n, n) for n in range(10)])
    consumer: Any = FakeConsumer(library)
    fetch = BatchFetch(consumer)
    return library, consumer, fetch, list(fetch.fetch(100, 0.0))


def test_messages_without_headers_are_given_back_while_their_batch_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeLibrary, "has_known_headers", True)
    library, consumer, fetch, batches = lent_out()
    fetch.close()
    assert (fetch.is_closed, consumer.closed_after) == (True, 10)
    library.memory[:] = -1
    (batch,) = batches
    assert (batch.headers(), batch.slice(2, 4).headers()) == (None, None)
    told = [(r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers) for r in batch.slice(2, 4).records()]
    assert told == [(n, n, 1, None, None, ()) for n in (2, 3)]


def drop_elsewhere(batches: list[Any]) -> None:
    thread = threading.Thread(target=batches.clear)
    thread.start()
    thread.join()


def test_messages_that_another_thread_lets_go_are_destroyed_by_the_one_that_fetches() -> None:
    library, consumer, fetch, batches = lent_out()
    drop_elsewhere(batches)
    assert library.destroyed == []
    assert list(fetch.fetch(100, 0.0)) == []
    assert [pointer for pointer, _ in library.destroyed] == library.pointers.tolist()
    assert {thread for _, thread in library.destroyed} == {threading.get_ident()}
    fetch.close()
    assert (fetch.is_closed, consumer.closed_after) == (True, 10)


def test_close_does_not_wait_for_messages_and_ends_after_the_last() -> None:
    library, consumer, fetch, batches = lent_out()
    fetch.close()
    fetch.close()
    assert (fetch.is_closed, consumer.closed_after) == (False, None)
    drop_elsewhere(batches)
    wait_until(lambda: fetch.is_closed, "the messages to come back")
    assert consumer.closed_after == len(library.pointers)


def test_messages_that_cannot_be_read_are_given_back_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Messages, *_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Messages, "_timestamps", fails)
    library = FakeLibrary([(0, n, n) for n in range(10)])
    consumer: Any = FakeConsumer(library)
    fetch = BatchFetch(consumer)
    with pytest.raises(MemoryError):
        list(fetch.fetch(100, 0.0))
    fetch.close()
    wait_until(lambda: fetch.is_closed, "the messages to come back")
    assert consumer.closed_after == 10


def test_topic_partition_of_an_event_without_a_topic_has_no_name() -> None:
    _, parts = parts_of([(EOF, 1, 2)])
    assert parts[0].topic_partition == TopicPartition("", 0)
