"""The range reader on a real broker: it yields exactly what lies in a range, and it always ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError, OffsetError, UnavailableError
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, READ_UNCOMMITTED, latest_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading import batch_reader
from airflow_connect.kafka.reading.batch_reader import RangeReader
from tests.support.kafka_data import TopicProducer, delete_records, wait_until

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., str]


@pytest.fixture
def settings(kafka: KafkaBroker) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap}


def read_all(reader: RangeReader) -> list[KafkaRecord]:
    return [record for _, records in reader.records() for record in records]


def stable_end(settings: dict[str, Any], topic: str, partition: int = 0) -> int:
    """End of a partition when all transactions are over and their markers are written."""
    admin, tp = admin_client(settings), TopicPartition(topic, partition)
    wait_until(
        lambda: latest_offsets(admin, [tp], READ_COMMITTED) == latest_offsets(admin, [tp], READ_UNCOMMITTED),
        "the transaction markers",
    )
    return latest_offsets(admin, [tp], READ_COMMITTED)[tp]


def test_records_of_any_shape_arrive_as_they_were_written(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic(config={"max.message.bytes": "2000000"})
    large = bytes(range(256)) * 4096
    rows = [
        (0, b"k", b"v", 1_700_000_000_123, [("h", b"1"), ("h", b"\xff"), ("n", None)]),
        (0, None, b"v", 1_700_000_000_124),
        (0, b"k", None, 1_700_000_000_125),
        (0, None, None, 1_700_000_000_126),
        (0, b"", b"", 1_700_000_000_127),
        (0, b"large", large, 1_700_000_000_128),
    ]
    produce(topic, rows, {"message.max.bytes": 2_000_000})
    records = read_all(RangeReader(settings, [OffsetRange(topic, 0, 0, 6)]))
    assert [(r.offset, r.key, r.value, r.timestamp) for r in records] == [
        (n, row[1], row[2], row[3]) for n, row in enumerate(rows)
    ]
    assert [r.headers for r in records] == [(("h", b"1"), ("h", b"\xff"), ("n", None)), (), (), (), (), ()]
    assert {r.timestamp_type for r in records} == {1}

    (batch,) = RangeReader(settings, [OffsetRange(topic, 0, 0, 3)]).columns()
    assert batch.offsets.tolist() == [0, 1, 2]
    assert (batch.keys.to_pylist(), batch.values.to_pylist()) == ([b"k", None, b"k"], [b"v", b"v", None])
    assert batch.timestamps.tolist() == [1_700_000_000_123, 1_700_000_000_124, 1_700_000_000_125]
    assert (batch.timestamp_type, batch.records()) == (1, records[:3])
    batch = batch.slice(1, 3)
    assert (batch.size_bytes, batch.records()) == (2, records[1:3])
    assert (len(batch), batch.topic_partition) == (2, TopicPartition(topic, 0))


def test_many_partitions_of_two_topics_are_each_read_in_order_and_cut(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topics = [make_topic(partitions=40), make_topic(partitions=3)]
    for topic, partitions in zip(topics, (40, 3), strict=True):
        produce(topic, [(n % partitions, b"%d" % n, b"v" * 100) for n in range(partitions * 100)])
    ranges = [OffsetRange(topics[0], p, p, 50 + p) for p in range(40)]
    ranges += [OffsetRange(topics[1], 0, 0, 100), OffsetRange(topics[1], 1, 7, 7), OffsetRange(topics[1], 2, 99, 100)]
    reader = RangeReader(settings, ranges)
    offsets: dict[TopicPartition, list[int]] = {}
    for batch in reader.columns():
        offsets.setdefault(batch.topic_partition, []).extend(batch.offsets.tolist())
    assert offsets == {r.topic_partition: list(range(r.start, r.end)) for r in ranges if not r.is_empty}
    assert reader.positions() == {r.topic_partition: r.end for r in ranges}


def test_both_forms_agree(settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer) -> None:
    topic = make_topic(partitions=3)
    produce(topic, [(n % 3, b"%d" % n, None if n % 7 == 0 else b"v%d" % n, 5_000 + n) for n in range(9_000)])
    ranges = [OffsetRange(topic, p, 10, 2_990) for p in range(3)]
    by_record = sorted(
        (r.partition, r.offset, r.timestamp, r.timestamp_type, r.key, r.value)
        for r in read_all(RangeReader(settings, ranges))
    )
    by_column = sorted(
        (b.partition, offset, stamp, b.timestamp_type, key, value)
        for b in RangeReader(settings, ranges).columns()
        for offset, stamp, key, value in zip(
            b.offsets.tolist(), b.timestamps.tolist(), b.keys.to_pylist(), b.values.to_pylist(), strict=True
        )
    )
    assert by_column == by_record and len(by_record) == 3 * 2_980


def test_aborted_records_and_markers_at_the_tail_end_a_range(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic()
    produce.transaction(topic, [(0, b"k", b"kept")] * 2)
    produce.transaction(topic, [(0, b"k", b"aborted")] * 3, "abort")
    end = stable_end(settings, topic)
    assert end == 7  # two records, commit marker, three records, abort marker
    reader = RangeReader(settings, [OffsetRange(topic, 0, 0, end)], on_stall_s=20)
    assert [r.offset for r in read_all(reader)] == [0, 1]
    assert reader.positions() == {TopicPartition(topic, 0): end}
    only_aborted = RangeReader(settings, [OffsetRange(topic, 0, 3, end)], on_stall_s=20)
    assert read_all(only_aborted) == []
    assert only_aborted.positions() == {TopicPartition(topic, 0): end}
    dirty = RangeReader({**settings, "isolation.level": "read_uncommitted"}, [OffsetRange(topic, 0, 0, end)])
    assert [r.offset for r in read_all(dirty)] == [0, 1, 3, 4, 5]


def test_range_that_ends_inside_a_gap_ends_with_the_record_after_it(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic()
    produce.transaction(topic, [(0, b"k", b"v")] * 2)
    produce.transaction(topic, [(0, b"k", b"aborted")] * 3, "abort")
    produce(topic, [(0, b"k", b"after")])
    reader = RangeReader(settings, [OffsetRange(topic, 0, 0, 5)])
    assert [r.offset for r in read_all(reader)] == [0, 1]
    assert reader.positions() == {TopicPartition(topic, 0): 5}


def test_compaction_gaps_are_read_over(settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer) -> None:
    compacting = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
    }
    topic = make_topic(config=compacting)
    for n in range(20):
        produce(topic, [(0, b"same", b"%d" % n)])
    whole = [OffsetRange(topic, 0, 0, 20)]

    def compacted() -> list[int]:
        produce(topic, [(0, b"other", b"rolls the segment")])
        return [r.offset for r in read_all(RangeReader(settings, whole))]

    wait_until(lambda: len(compacted()) < 20, "compaction", every_s=0.3)
    reader = RangeReader(settings, whole)
    offsets = [r.offset for r in read_all(reader)]
    assert offsets == sorted(offsets) and set(offsets) < set(range(20))
    assert reader.positions() == {TopicPartition(topic, 0): 20}


def test_open_transaction_below_the_end_stalls_with_the_place_and_goes_on_once_it_ends(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic()
    produce(topic, [(0, b"k", b"before")])
    stranger = produce.transaction(topic, [(0, b"k", b"open")], "open")
    whole = [OffsetRange(topic, 0, 0, 2)]
    with pytest.raises(UnavailableError, match=f"{topic}-0@1 of 2"):
        read_all(RangeReader(settings, whole, on_stall_s=2.0))
    ending = threading.Timer(0.3, stranger.commit_transaction)
    ending.start()
    assert [r.value for r in read_all(RangeReader(settings, whole, on_stall_s=20))] == [b"before", b"open"]
    ending.join()


def test_endless_producer_does_not_extend_a_range(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic()
    produce(topic, [(0, b"k", b"v")] * 500)
    done = threading.Event()

    def produce_on() -> None:
        while not done.is_set():
            produce(topic, [(0, b"k", b"more")] * 200)

    producer = threading.Thread(target=produce_on)
    producer.start()
    reader = RangeReader(settings, [OffsetRange(topic, 0, 0, 300)])
    offsets = [r.offset for r in read_all(reader)]
    done.set()
    producer.join()
    assert offsets == list(range(300))
    assert reader.positions() == {TopicPartition(topic, 0): 300}


def test_offsets_that_expired_fail_with_both_values(
    kafka: KafkaBroker, settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic()
    produce(topic, [(0, b"k", b"v")] * 10)
    delete_records(kafka.bootstrap, topic, 0, 6)
    with pytest.raises(OffsetError, match=rf"no longer holds {topic}-0@2 \(planned up to 10\)"):
        read_all(RangeReader(settings, [OffsetRange(topic, 0, 2, 10)], on_stall_s=20))


def test_topic_that_is_gone_fails_by_name(settings: dict[str, Any], unique_name: str) -> None:
    quick = {**settings, "topic.metadata.propagation.max.ms": 100}
    with pytest.raises(AccessError, match=unique_name):
        read_all(RangeReader(quick, [OffsetRange(unique_name, 0, 0, 1)], on_stall_s=20))


def test_reader_closed_early_keeps_its_position_and_a_second_range_is_refused(
    settings: dict[str, Any], make_topic: MakeTopic, produce: TopicProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_reader, "MAX_RECORDS", 10)
    topic = make_topic()
    produce(topic, [(0, b"k", b"v")] * 100)
    reader = RangeReader(settings, [OffsetRange(topic, 0, 0, 100)])
    batches = reader.records()
    _, first = next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert 0 < len(first) <= 10
    assert reader.positions() == {TopicPartition(topic, 0): len(first)}
    with pytest.raises(ValueError, match="more than one range"):
        RangeReader(settings, [OffsetRange(topic, 0, 0, 1), OffsetRange(topic, 0, 1, 2)])


def test_reader_of_empty_ranges_needs_no_broker() -> None:
    reader = RangeReader({"bootstrap.servers": "127.0.0.1:1"}, [OffsetRange("t", 0, 5, 5)])
    assert list(reader.columns()) == []
    assert reader.positions() == {TopicPartition("t", 0): 5}
