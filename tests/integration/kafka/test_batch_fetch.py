"""Messages fetched below Python are those of the Python client: held equal on a real broker, shape by shape."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import KafkaError

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import OffsetError
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, latest_offsets
from airflow_connect.kafka.clients.librdkafka import NotDirectError
from airflow_connect.kafka.clients.settings import consumer_config
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading import batch_fetch, batch_reader
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.kafka.reading.message_memory import Event
from tests.support.kafka_data import TopicProducer
from tests.support.waiting import wait_until

MakeTopic = Callable[..., str]

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(kafka: KafkaBroker) -> dict[str, Any]:
    return dict(consumer_config({"bootstrap.servers": kafka.bootstrap}, {"name": "c"}).settings)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every direct consumer that was opened."""
    found: list[Any] = []
    really_open = batch_fetch.open_fetch

    def open_fetch(*arguments: Any) -> Any:
        found.append(really_open(*arguments))
        return found[-1]

    monkeypatch.setattr(batch_fetch, "open_fetch", open_fetch)
    return found


def rows(batches: list[ColumnBatch]) -> list[tuple[Any, ...]]:
    """Columns as rows, checked against the same batches' records."""
    found: list[tuple[Any, ...]] = []
    for batch in batches:
        columns = batch.offsets.tolist(), batch.timestamps.tolist(), batch.keys.to_pylist(), batch.values.to_pylist()
        by_column = [
            (
                batch.topic,
                batch.partition,
                offset,
                stamp if batch.timestamp_type else None,
                batch.timestamp_type,
                key,
                value,
            )
            for offset, stamp, key, value in zip(*columns, strict=True)
        ]
        records = batch.records()
        assert by_column == [row_of(record)[:-1] for record in records]
        found += [row_of(record) for record in records]
    return sorted(found, key=lambda row: row[:3])


def row_of(r: KafkaRecord) -> tuple[Any, ...]:
    return (r.topic, r.partition, r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers)


def assert_equal_to_the_python_client(
    settings: dict[str, Any], ranges: list[OffsetRange], opened: list[Any]
) -> list[tuple[Any, ...]]:
    reference = RangeReader(settings, ranges, on_stall_s=30)
    expected = sorted((row_of(r) for _, batch in reference.records() for r in batch), key=lambda row: row[:3])
    reader = RangeReader(settings, ranges, on_stall_s=30)
    assert rows(list(reader.columns())) == expected
    assert reader.positions() == reference.positions() == {r.topic_partition: r.end for r in ranges}
    wait_until(lambda: opened[-1].is_closed, "all messages to come back")
    return expected


def stable_end(settings: dict[str, Any], topic: str, records_and_markers: int) -> int:
    """End of partition 0, once all markers are in the log."""
    admin, tp = admin_client(settings), TopicPartition(topic, 0)
    wait_until(
        lambda: latest_offsets(admin, [tp], READ_COMMITTED)[tp] == records_and_markers, "the transaction markers"
    )
    return records_and_markers


def test_values_of_every_size_and_shape_are_equal(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer, opened: list[Any]
) -> None:
    topic = make_topic(partitions=3, config={"max.message.bytes": "2000000"})
    chosen = random.Random(7)
    sizes = [*range(40), 0, 1, 11, 12, 13, 1_000_000, 200, 1_000_000, *(chosen.randrange(3000) for _ in range(2000))]
    values = [None, b"", *(chosen.randbytes(size) for size in sizes)]
    keys = [None, b"", b"k", b"a key of more than twelve bytes"]
    headers = [(), (("h", b"1"), ("h", None), ("é", b"\xff")), (("empty", b""),)]
    for codec in ("none", "lz4", "zstd"):
        written = [(n % 3, keys[n % 4], value, 1_700_000_000_000 + n, headers[n % 3]) for n, value in enumerate(values)]
        produce(topic, written, {"compression.type": codec, "message.max.bytes": 2_000_000})
    ends = [sum(n % 3 == p for n in range(len(values))) * 3 for p in range(3)]
    ranges = [OffsetRange(topic, 0, 0, ends[0]), OffsetRange(topic, 1, 5, ends[1] - 7), OffsetRange(topic, 2, 1, 2)]
    found = assert_equal_to_the_python_client(settings, ranges, opened)
    assert len(found) == sum(len(r) for r in ranges)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_transactions_and_aborted_tails_are_equal(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer, opened: list[Any], isolation: str
) -> None:
    topic = make_topic()
    produce.transaction(topic, [(0, b"k", b"kept")] * 2)
    produce.transaction(topic, [(0, b"k", b"aborted")] * 3, "abort")
    produce.transaction(topic, [(0, b"k", b"kept too")])
    produce.transaction(topic, [(0, b"k", b"aborted")] * 3, "abort")
    end = stable_end(settings, topic, 13)
    chosen = {**settings, "isolation.level": isolation}
    for start, stop in ((0, end), (2, end), (3, 6), (4, 5), (8, end), (9, end), (end - 1, end)):
        found = assert_equal_to_the_python_client(chosen, [OffsetRange(topic, 0, start, stop)], opened)
        if isolation == "read_committed":
            assert {row[6] for row in found} <= {b"kept", b"kept too"}


def test_gaps_of_a_compacted_topic_are_equal(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer, opened: list[Any]
) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    topic = make_topic(config=config)
    keys = [b"%d" % (n % 7) if n % 2 else b"once-%d" % n for n in range(500)]
    produce(topic, [(0, key, b"%d" % n) for n, key in enumerate(keys)])

    def is_compacted() -> bool:
        """Nothing is left to be removed: a cleaner still at work would change the log between two reads of it."""
        produce(topic, [(0, b"roll", b"x")])
        reader = RangeReader(settings, [OffsetRange(topic, 0, 0, len(keys))])
        return sum(len(batch) for _, batch in reader.records()) == len(set(keys))

    wait_until(is_compacted, "compaction")
    for start, stop in ((0, 500), (50, 450), (1, 2)):
        assert_equal_to_the_python_client(settings, [OffsetRange(topic, 0, start, stop)], opened)


def test_timestamp_type_that_changes_inside_a_range_cuts_the_batch(
    settings: dict[str, Any], kafka: KafkaBroker, make_topic: MakeTopic, produce: TopicProducer, opened: list[Any]
) -> None:
    topics = [make_topic(), make_topic(config={"message.timestamp.type": "LogAppendTime"})]
    for topic in topics:
        produce(topic, [(0, None, b"v", 1_700_000_000_000 + n) for n in range(10)])
    found = assert_equal_to_the_python_client(settings, [OffsetRange(t, 0, 0, 10) for t in topics], opened)
    assert {(row[0], row[4]) for row in found} == {(topics[0], 1), (topics[1], 2)}


def test_range_that_kafka_lost_fails_as_it_does_with_the_python_client(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer, opened: list[Any]
) -> None:
    topic = make_topic()
    produce(topic, [(0, None, b"v")] * 3)
    with pytest.raises(OffsetError, match=f"no longer holds {topic}-0@1000"):
        list(RangeReader(settings, [OffsetRange(topic, 0, 1000, 2000)]).columns())
    assert opened


def test_python_client_goes_on_where_the_direct_one_stops(
    settings: dict[str, Any],
    make_topic: MakeTopic,
    produce: TopicProducer,
    opened: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, b"%d" % n, b"v%d" % n) for n in range(60_000)])
    monkeypatch.setattr(batch_reader, "HAND_OVER_S", -1.0)  # stops at the first fetch that brings nothing new
    ranges = [OffsetRange(topic, p, 0, 30_000) for p in range(2)]
    reader = RangeReader(settings, ranges)
    batches = list(reader.columns())
    assert [row[2] for row in rows(batches)] == [*range(30_000), *range(30_000)]
    assert reader.positions() == {r.topic_partition: 30_000 for r in ranges}


def test_messages_stay_readable_after_the_reader_was_closed(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer, opened: list[Any]
) -> None:
    topic = make_topic()
    produce(topic, [(0, b"k", b"v%d" % n, 0, [("h", b"%d" % n)]) for n in range(100)])
    reader = RangeReader(settings, [OffsetRange(topic, 0, 0, 100)])
    batches = list(reader.columns())
    reader.close()
    assert not opened[-1].is_closed
    assert [r.headers for b in batches for r in b.records()] == [(("h", b"%d" % n),) for n in range(100)]
    batches.clear()
    wait_until(lambda: opened[-1].is_closed, "all messages to come back")


@pytest.mark.parametrize(
    "more", [{"sasl.mechanisms": "OAUTHBEARER"}, {"no.such.setting": "1"}, {"error_cb": print}], ids=str
)
def test_settings_that_need_python_are_left_to_the_python_client(
    settings: dict[str, Any], more: dict[str, Any]
) -> None:
    with pytest.raises(NotDirectError, match=next(iter(more)).removesuffix("s")):
        batch_fetch.open_fetch({**settings, **more}, {TopicPartition("t", 0): 0})


def test_reading_returns_to_the_fast_path_after_a_passing_error(
    settings: dict[str, Any],
    make_topic: MakeTopic,
    produce: TopicProducer,
    opened: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic()
    produce(topic, [(0, b"%d" % n, b"v%d" % n) for n in range(60_000)])
    really_fetch, fetches = batch_fetch.BatchFetch.fetch, 0

    def fetch(self: batch_fetch.BatchFetch, *arguments: Any) -> Iterator[ColumnBatch | Event]:
        nonlocal fetches
        fetches += 1
        if fetches == 3:
            yield Event(TopicPartition(topic, 0), KafkaError._TRANSPORT, -1)
        yield from really_fetch(self, *arguments)

    monkeypatch.setattr(batch_fetch.BatchFetch, "fetch", fetch)
    monkeypatch.setattr(batch_reader, "TAKE_BACK_S", 0.0)
    reader = RangeReader(settings, [OffsetRange(topic, 0, 0, 60_000)])
    batches = list(reader.columns())

    assert [row[2] for row in rows(batches)] == [*range(60_000)]
    assert (len(opened), fetches > 3) == (2, True)
    assert reader.notes == ("Kafka was read for a while by the slower Python client: Local: Broker transport failure.",)


def test_python_client_keeps_reading_until_it_has_read_for_a_while(
    settings: dict[str, Any],
    make_topic: MakeTopic,
    produce: TopicProducer,
    opened: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic()
    produce(topic, [(0, None, b"v")] * 30_000)
    monkeypatch.setattr(batch_reader, "HAND_OVER_S", -1.0)
    reader = RangeReader(settings, [OffsetRange(topic, 0, 0, 30_000)])
    assert sum(len(batch) for batch in reader.columns()) == 30_000
    assert len(opened) == 1


def test_batches_that_threads_let_go_in_any_order_are_all_given_back(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer, opened: list[Any]
) -> None:
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, None, b"v%d" % n) for n in range(100_000)])
    seen = 0
    with ThreadPoolExecutor(4) as threads:
        for batch in RangeReader(settings, [OffsetRange(topic, p, 0, 50_000) for p in range(2)]).columns():
            seen += len(batch)
            threads.submit(lambda held: len(held.read_records(0, min(50, len(held)))), batch)
            del batch
    assert seen == 100_000
    wait_until(lambda: opened[-1].is_closed, "all messages to come back")
