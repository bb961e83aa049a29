"""A source reads its offsets from where they begin to matter, whatever the topic has gathered and has become of it."""

from __future__ import annotations

import itertools
import json
import random
import time

import pytest
from confluent_kafka import Producer

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.admin import new_topics
from airflow_connect.kafka.admin.watermarks import log_ends
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import bookmarks, own_records
from airflow_connect.kafka.state.bookmarks import LogMark
from airflow_connect.kafka.state.offsets import offsets_view
from airflow_connect.kafka.state.offsets.offsets_view import OffsetsView
from airflow_connect.testing.topics import Topics
from tests.integration.runtime.source.conftest import Numbers
from tests.integration.runtime.source.offsets.test_known_state import Written, write
from tests.support.kafka_data import create_topic, delete_topic

pytestmark = pytest.mark.integration

OTHERS = 1_500
"""Offsets of other connectors between two runs: more than a bookmark is worth."""


def others(count: int = OTHERS) -> Written:
    return [(f"other-{number}", number, 1) for number in range(count)]


def most_read(counts: list[tuple[str, int]], topic: str) -> int:
    found = max(size for name, size in counts if name == topic)
    counts.clear()
    return found


def read(bootstrap: str, connector: str, *topics: str, keeps: bool = True) -> dict[int, int]:
    """Offsets as a run finds them; its bookmarks are kept."""
    settings = {"bootstrap.servers": bootstrap}
    admin, view = admin_client(settings), OffsetsView(connector, topics)
    found = {int(str(p["p"])): int(str(o["n"])) for p, o in view.read(admin, settings).items()}
    if keeps:
        view.keep_bookmarks(settings)
    return found


def test_run_reads_offsets_from_its_bookmark(
    kafka: KafkaBroker, numbers: Numbers, unique_name: str, read_counts: list[tuple[str, int]]
):
    topic = f"{unique_name}-offsets"
    numbers.worker_config = {"offset.storage.topic": topic, "offset.storage.partitions": "1"}
    numbers.feed(10, 10)
    numbers.run()
    write(kafka, topic, others())
    numbers.feed(20, 20)
    numbers.run()  # Reads everything; its offsets lie before what others have written.
    numbers.run()  # Sets the bookmark behind that.
    assert most_read(read_counts, topic) >= OTHERS
    numbers.feed(30, 25)

    assert numbers.run().records == 15

    assert most_read(read_counts, topic) < 100
    numbers.assert_exactly_once(30, 25)


def test_few_offsets_that_never_move_are_written_again(
    kafka: KafkaBroker,
    numbers: Numbers,
    unique_name: str,
    read_counts: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(own_records, "LONG", 1_000)
    own, shared = f"{unique_name}-own", f"{unique_name}-offsets"
    numbers.worker_config = {"offset.storage.topic": shared, "offset.storage.partitions": "1"}
    numbers.config = {"offsets.storage.topic": own}
    numbers.feed(10, 10)
    numbers.run()
    before = {m.key(): m.value() for m in Topics(kafka.bootstrap).read(shared) if b"numbers" in (m.key() or b"")}
    write(kafka, shared, others())
    numbers.feed(20, 10)
    numbers.run()  # The offset of the second source partition stays where it is, and is written again.
    numbers.run()
    read_counts.clear()

    numbers.run()

    assert most_read(read_counts, shared) < 100
    kept = [m.key() for m in Topics(kafka.bootstrap).read(shared) if (m.key(), m.value()) in before.items()]
    assert [json.loads(key or b"")[1] for key in kept].count({"p": 1}) == 2, "as it is, and once"
    numbers.feed(21, 12)
    numbers.run()
    numbers.assert_exactly_once(21, 12)


def test_offset_that_somebody_sets_while_it_is_written_again_counts(
    kafka: KafkaBroker, numbers: Numbers, unique_name: str, monkeypatch: pytest.MonkeyPatch
):
    """Events: the driver reads; an operator sets one offset and deletes another; the driver writes both again."""
    monkeypatch.setattr(own_records, "LONG", 1_000)
    monkeypatch.setattr(own_records, "OFFSETS_A_RECORD", 10)
    topic = f"{unique_name}-offsets"
    numbers.worker_config = {"offset.storage.topic": topic, "offset.storage.partitions": "1"}
    numbers.feed(4, 4, 4)
    numbers.run()
    write(kafka, topic, others())
    real = OffsetsView.holding_back
    found: list[int] = []

    def holding_back(view: OffsetsView) -> list[offsets_view.StateRecord]:
        records = real(view)
        found.append(len(records))
        write(kafka, topic, [(numbers.name, 0, 2), (numbers.name, 1, None)])
        return records

    monkeypatch.setattr(OffsetsView, "holding_back", holding_back)

    numbers.run()

    assert found == [3]
    assert numbers.values() == {0: [0, 1, 2, 3, 2, 3], 1: [0, 1, 2, 3] * 2, 2: [0, 1, 2, 3]}


def test_many_offsets_that_never_move_are_left_where_they_are(kafka: KafkaBroker, unique_name: str):
    create_topic(kafka.bootstrap, unique_name, 1, {"cleanup.policy": "compact"})
    write(kafka, unique_name, [*(("c", p, 1) for p in range(20)), *others(own_records.LONG)])
    settings = {"bootstrap.servers": kafka.bootstrap}
    view = OffsetsView("c", [unique_name])
    view.read(admin_client(settings), settings)
    assert view.holding_back() == []

    write(kafka, unique_name, [("c", p, 2) for p in range(3, 20)])
    view.read(admin_client(settings), settings)
    assert [key for _, _, key, _ in view.holding_back()] == [f'["c",{{"p":{p}}}]'.encode() for p in range(3)]


def test_offsets_that_others_set_and_delete_behind_a_bookmark_count(kafka: KafkaBroker, unique_name: str):
    create_topic(kafka.bootstrap, unique_name, 1, {"cleanup.policy": "compact"})
    write(kafka, unique_name, [*others(), ("c", 0, 5), ("c", 1, 6), ("c", 2, 7)])
    assert read(kafka.bootstrap, "c", unique_name) == {0: 5, 1: 6, 2: 7}
    write(kafka, unique_name, [("c", 0, None), ("c", 1, 2), ("c", 9, 9)])
    assert read(kafka.bootstrap, "c", unique_name) == {1: 2, 2: 7, 9: 9}
    write(kafka, unique_name, [*others(), *(("c", p, None) for p in (1, 2, 9))])
    assert read(kafka.bootstrap, "c", unique_name) == {}
    write(kafka, unique_name, [*others(), ("c", 1, 1)])
    assert read(kafka.bootstrap, "c", unique_name) == {1: 1}


def test_bookmark_of_a_recreated_topic_is_not_used(
    kafka: KafkaBroker, unique_name: str, read_counts: list[tuple[str, int]]
):
    create_topic(kafka.bootstrap, unique_name, 1, {"cleanup.policy": "compact"})
    write(kafka, unique_name, [*others(), ("c", 0, 5)])
    read(kafka.bootstrap, "c", unique_name)
    read_counts.clear()
    read(kafka.bootstrap, "c", unique_name)
    assert most_read(read_counts, unique_name) < 10

    delete_topic(kafka.bootstrap, unique_name)
    create_topic(kafka.bootstrap, unique_name, 1, {"cleanup.policy": "compact"})
    write(kafka, unique_name, [("c", 0, 1), *others(), *others()])

    assert read(kafka.bootstrap, "c", unique_name) == {0: 1}
    # Kafka deletes what groups have committed for a topic with it, but not at the same moment.
    late = {TopicPartition(unique_name, 0): LogMark(OTHERS, OTHERS + 1, 0)}
    bookmarks.save_marks({"bootstrap.servers": kafka.bootstrap}, "c", "the-id-of-the-old-topic", late)
    assert read(kafka.bootstrap, "c", unique_name, keeps=False) == {0: 1}


def test_bookmark_in_a_log_that_lost_its_end_and_has_grown_again_is_not_used(read_counts: list[tuple[str, int]]):
    """The leader epochs tell.

    Events: a bookmark is set under leader epoch 0; an election that is not clean takes the log back to before its end;
    others write past the bookmark under a higher epoch. Here the broker only restarts in between, which raises the
    epoch just so, and the bookmark is set as it would have been.
    """
    kafka = KafkaBroker.start()
    try:
        create_topic(kafka.bootstrap, "offsets", 1, {"cleanup.policy": "compact"})
        write(kafka, "offsets", [("c", 0, 5), *others()])
        settings, place = {"bootstrap.servers": kafka.bootstrap}, TopicPartition("offsets", 0)
        before = log_ends(admin_client(settings), [place])[place]
        kafka.restart()
        write(kafka, "offsets", others())
        admin = admin_client(settings)
        after = log_ends(admin, [place])[place]
        assert before.epoch is not None and after.epoch is not None and before.epoch < after.epoch
        topic_id = new_topics.topic_id(admin, "offsets")

        def marked(mark: LogMark) -> dict[int, int]:
            bookmarks.save_marks(settings, "c", topic_id, {place: mark})
            read_counts.clear()
            return read(kafka.bootstrap, "c", "offsets", keeps=False)

        assert marked(LogMark(before.offset + 1, before.offset + 2, before.epoch)) == {0: 5}
        assert marked(LogMark(before.offset - 1, before.offset + 2, before.epoch)) == {0: 5}
        assert marked(LogMark(5, after.offset + 1, after.epoch)) == {0: 5}, "the log ends before"
        assert len(read_counts) >= 1 and max(size for _, size in read_counts) == after.offset
        # In the same log the bookmark counts, although the leader has changed since.
        assert marked(LogMark(before.offset - 1, before.offset, before.epoch)) == {}
        assert max(size for _, size in read_counts) < after.offset
    finally:
        kafka.stop()


def let_the_newest_count(model: list[dict[int, int]], written: dict[tuple[int, int], int]) -> None:
    """What the first of two topics has counts unless the other was written, or deleted there, later; then in both."""
    for p in list(model[0]):
        if written.get((1, p), 0) <= written[0, p]:
            model[1] |= {p: model[0][p]} if p in model[1] else {}
        elif p in model[1]:
            model[0][p] = model[1][p]
        else:
            del model[0][p]


def test_any_history_is_read_from_bookmarks_as_from_the_beginning(
    kafka: KafkaBroker, unique_name: str, monkeypatch: pytest.MonkeyPatch
):
    """Writers of all kinds, runs that write offsets again, runs that only look; while the cleaner is at work."""
    for name, value in (("LONG", 30), ("OFFSETS_A_RECORD", 5)):
        monkeypatch.setattr(own_records, name, value)
    monkeypatch.setattr(offsets_view, "WORTH_A_BOOKMARK", 20)
    often = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "200"}
    topics = [f"{unique_name}-own", f"{unique_name}-shared"]
    for topic in topics:
        create_topic(kafka.bootstrap, topic, 3, {**often, "delete.retention.ms": "100"})
    settings = {"bootstrap.servers": kafka.bootstrap}
    producer, chance = Producer({**settings, "partitioner": "murmur2_random"}), random.Random(7)
    model: list[dict[int, int]] = [{}, {}]
    written: dict[tuple[int, int], int] = {}
    clock = itertools.count(int(time.time() * 1000))
    rewritten = 0
    for _ in range(60):
        for _ in range(chance.randrange(60)):
            at, p, n = chance.randrange(2), int(chance.paretovariate(0.7)) % 40, chance.randrange(1000)
            is_own, is_gone = chance.random() < 0.3, chance.random() < 0.2
            key = json.dumps(["c" if is_own else "other", {"p": p}], separators=(",", ":"))
            now_ms = next(clock)
            producer.produce(topics[at], None if is_gone else json.dumps({"n": n}), key, timestamp=now_ms)
            if is_own:
                written[at, p] = now_ms
            if is_own and is_gone:
                model[at].pop(p, None)
            elif is_own:
                model[at][p] = n
        assert producer.flush(30) == 0
        admin, view = admin_client(settings), OffsetsView("c", topics)
        found = {p["p"]: o["n"] for p, o in view.read(admin, settings).items()}
        let_the_newest_count(model, written)
        assert found == {**model[1], **model[0]}
        for topic, partition, key_bytes, value in view.misplaced():
            producer.produce(topic, value, key_bytes, partition=partition, timestamp=next(clock))
        assert producer.flush(30) == 0
        view.read(admin, settings)
        if chance.random() < 0.5:
            for topic, partition, key_bytes, value in view.holding_back():
                producer.produce(topic, value, key_bytes, partition=partition, timestamp=next(clock))
                rewritten += 1
            assert producer.flush(30) == 0
            view.read(admin, settings)
            view.keep_bookmarks(settings)
    assert rewritten
