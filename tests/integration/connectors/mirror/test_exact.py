"""What a mirror keeps of each record, on both paths, between two real clusters."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror import task
from airflow_connect.connectors.mirror.task import MirrorSourceTask
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.admin.watermarks import latest_offsets
from airflow_connect.kafka.clients.librdkafka import NotDirectError
from airflow_connect.kafka.clients.settings import READ_COMMITTED
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading import batch_fetch
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.kafka.reading.message_headers import headers_array
from airflow_connect.kafka.writing import task_producer
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.retrying import Backoff
from airflow_connect.runtime.executor.source import loop
from tests.integration.connectors.mirror.conftest import Mirror, offsets_of
from tests.support.session.searching import seed_day
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [True, False], ids=["columnar", "records"])


def any_bytes(chance: random.Random) -> bytes | None:
    """Null, empty, short, or long."""
    size = chance.choice([None, 0, 1, 12, 13, 200, 5000])
    return None if size is None else chance.randbytes(size)


def any_records(chance: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Records of three partitions; in some stretches they have headers."""
    rows = []
    for number in range(count):
        names = [chance.choice(["a", "a", "trace-id", "ü€", ""]) for _ in range(chance.choice([0, 1, 3]))]
        headers = [(name, any_bytes(chance)) for name in names] if number // 100 % 2 else []
        stamp = chance.choice([1, 1_600_000_000_123, 1_795_000_000_000 - number])
        rows.append((chance.randrange(3), any_bytes(chance), any_bytes(chance), stamp, headers))
    return rows


@BOTH_PATHS
def test_every_record_is_copied_byte_for_byte(mirror: Mirror, columnar: bool) -> None:
    chance = random.Random(seed_day().isoformat())
    for _ in range(2):
        mirror.write(mirror.topic, any_records(chance, 700))
        report = mirror.run(columnar=columnar)
        assert report.records == 700

    assert mirror.copies() == mirror.originals()


@BOTH_PATHS
def test_source_that_does_not_answer_for_a_moment_loses_no_record(
    mirror: Mirror, columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each second question whether the topic is still the same fails, one after each batch of 50 records."""
    resolve, asked = task.resolve_topics, itertools.count()

    def sometimes(*args: Any) -> Any:
        if next(asked) % 2:
            raise UnavailableError("The source cluster did not answer.")
        return resolve(*args)

    mirror.write(mirror.topic, [(n % 3, str(n), f"value {n}", 1_000 + n) for n in range(600)])
    monkeypatch.setattr(batch_fetch, "MAX_MESSAGES", 50)
    monkeypatch.setattr(task, "RECORDS_AT_ONCE", 50)
    monkeypatch.setattr(task, "CHECK_TOPICS_S", 0.0)
    monkeypatch.setattr(task, "resolve_topics", sometimes)
    monkeypatch.setattr(loop, "POLL_BACKOFF", Backoff(0.001))

    report = mirror.run(columnar=columnar, tasks_max="1")

    assert next(asked) > 10
    copies, originals = mirror.copies(), mirror.originals()
    assert {number: len(copied) for number, copied in originals.items()} == {0: 200, 1: 200, 2: 200}
    assert copies == originals
    assert report.records == 600


def test_record_of_one_megabyte_is_copied(mirror: Mirror) -> None:
    large = random.Random(1).randbytes(1_048_000)
    for headers in ([], [("h", b"1")]):
        mirror.write(mirror.topic, [(0, b"k", large, 5, headers)], {"message.max.bytes": 1_048_588})
        mirror.run()

    assert [copy.value == large for copy in mirror.copies()[0]] == [True, True]


def test_records_are_sent_without_an_object_each(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("A record was sent by itself.")

    mirror.write(mirror.topic, [(n % 3, str(n), None if n % 7 == 0 else f"value {n}", 1000 + n) for n in range(9000)])
    mirror.write(mirror.topic, any_records(random.Random(7), 500))
    monkeypatch.setattr(TaskProducer, "_send_each", refuse)
    monkeypatch.setattr(MirrorSourceTask, "poll", refuse)

    assert mirror.run(tasks_max="1").records == 9500

    assert mirror.copies() == mirror.originals()


def test_client_that_cannot_be_called_directly_copies_the_same_and_tells(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotDirectError("it is another version")

    monkeypatch.setattr(task_producer, "direct_produce", refuse)
    monkeypatch.setattr(batch_fetch, "open_fetch", refuse)
    mirror.write(mirror.topic, any_records(random.Random(8), 500))

    notes = mirror.run().notes

    assert [note for note in notes if "it is another version" in note and "slower" in note] == list(notes)
    assert len(notes) == 2
    assert mirror.copies() == mirror.originals()


def test_only_committed_records_are_copied_and_the_run_ends_before_open_transactions(mirror: Mirror) -> None:
    mirror.write.transaction(mirror.topic, [(0, None, "committed", 1)])
    mirror.write.transaction(mirror.topic, [(0, None, "aborted", 2)], "abort")
    tp, admin = TopicPartition(mirror.topic, 0), admin_client({"bootstrap.servers": mirror.source})
    # A broker writes the marker of an aborted transaction after its answer.
    wait_until(lambda: latest_offsets(admin, [tp], READ_COMMITTED)[tp] == 4, "the transaction is aborted")
    mirror.write.transaction(mirror.topic, [(0, None, "open", 3)], "open")
    mirror.write(mirror.topic, [(0, None, "after", 4)])

    assert mirror.run().records == 1
    assert mirror.run().status == "empty"

    assert [copy.value for copy in mirror.copies()[0]] == [b"committed"]
    # Markers and aborted records hold no record, but are not read again.
    assert mirror.offsets()[0]["offset"] == 3


def test_uncommitted_records_are_copied_if_configured_but_not_exactly_once(mirror: Mirror) -> None:
    mirror.write.transaction(mirror.topic, [(0, None, "aborted", 2)], "abort")

    report = mirror.run(source_consumer_isolation_level="read_uncommitted")

    assert (report.records, report.delivery_guarantee) == (1, "at_least_once")


def test_reading_continues_after_an_error_of_the_source(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failures = RangeReader.columns, []

    def columns(reader: RangeReader) -> Iterator[ColumnBatch]:
        for batch in real(reader):
            yield batch
            if not failures:
                failures.append(batch)
                raise UnavailableError("The leader has moved.")

    monkeypatch.setattr(RangeReader, "columns", columns)
    mirror.write(mirror.topic, [(n % 3, str(n), str(n), 1000 + n) for n in range(3000)])

    assert mirror.run(tasks_max="1").records == 3000

    assert len(failures) == 1
    assert mirror.copies() == mirror.originals()


def test_timestamp_zero_is_told(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    real = RangeReader.columns

    def columns(reader: RangeReader) -> Iterator[ColumnBatch]:
        # The client that writes the records of this test cannot write such a timestamp either.
        return (replace(batch, timestamps=batch.timestamps * 0) for batch in real(reader))

    mirror.write(mirror.topic, [(0, None, "v", 1)])
    assert not any("timestamp 0" in note for note in mirror.run().notes)
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    monkeypatch.setattr(RangeReader, "columns", columns)
    assert any("timestamp 0" in note for note in mirror.run().notes)


def test_transformation_sees_bytes_partition_and_timestamp(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(2, b"k", None, 77, [("h", None)]), (1, b"k", b"v", 78)])

    report = mirror.run(
        transforms="drop,mark",
        transforms_drop_type="org.apache.kafka.connect.transforms.Filter",
        transforms_drop_predicate="empty",
        predicates="empty",
        predicates_empty_type="org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        transforms_mark_type="org.apache.kafka.connect.transforms.InsertHeader",
        transforms_mark_header="from",
        transforms_mark_value_literal="west",
        header_converter="org.apache.kafka.connect.storage.StringConverter",
    )

    assert (report.records, report.filtered) == (1, 1)
    (copy,) = mirror.copies()[1]
    assert copy == (1, b"k", b"v", 78, (("from", b"west"),))


@BOTH_PATHS
def test_header_name_that_the_client_cannot_write_fails_the_run(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, columnar: bool
) -> None:
    real = RangeReader.columns

    def columns(reader: RangeReader) -> Iterator[ColumnBatch]:
        # The client that writes the records of this test cannot write such a name either.
        def headers(start: int, stop: int) -> Any:
            rows = [[(b"a", b"1")], [], [(b"b", None), (b"c\0d", b"2")]]
            return headers_array(rows[start:stop])

        return (replace(batch, read_headers=headers) for batch in real(reader))

    mirror.write(mirror.topic, [(0, None, str(n), n + 1, [("a", b"1")]) for n in range(3)])
    monkeypatch.setattr(RangeReader, "columns", columns)
    report = mirror.try_run(columnar=columnar)

    assert report.status == "failed" and report.error is not None
    assert f"{mirror.topic}-0@2 has a header whose name contains a zero byte ('c\\x00d')" in report.error["message"]
    assert mirror.copies()[0] == []
    monkeypatch.undo()
    mirror.set_offsets({0: {"offset": 2}})
    assert mirror.run().status == "empty"


@pytest.mark.parametrize(("most", "is_one"), [(200_000, True), (1, False)])
def test_fetches_of_several_partitions_are_joined_to_one_transaction(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, most: int, is_one: bool
) -> None:
    monkeypatch.setattr(task, "SECONDS_OF_BATCH", 3600.0)
    monkeypatch.setattr(task, "RECORDS_OF_BATCH", most)
    monkeypatch.setattr(batch_fetch, "MAX_MESSAGES", 500)
    mirror.write(mirror.topic, [(n % 3, None, f"value {n}", 1000 + n) for n in range(9000)])

    mirror.run(tasks_max="1", consumer_max_partition_fetch_bytes="4000")

    # Each transaction ends with a marker, which takes an offset.
    found = offsets_of(mirror.target, mirror.remote)
    assert (found == {number: list(range(3000)) for number in range(3)}) is is_one
    assert mirror.copies() == mirror.originals()
