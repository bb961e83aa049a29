"""A task is handed the offsets of its own source partitions; whatever else it needs, the answer is right."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.state.offsets import offsets_view
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets
from airflow_connect.kafka.state.offsets.offsets_view import OffsetsView
from airflow_connect.runtime.driver.entry import reset_offsets
from airflow_connect.testing.topics import Topics
from tests.integration.runtime.source.conftest import Numbers

pytestmark = pytest.mark.integration


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many offsets each task was handed."""
    counts: list[int] = []
    real = OffsetsView.of_packed.__func__  # type: ignore[attr-defined]

    def of_packed(cls: type[OffsetsView], connector: str, topics: list[str], packed: bytes) -> OffsetsView:
        view: OffsetsView = real(cls, connector, topics, packed)
        counts.append(sum(len(known.offsets) for known in view._topics.values()))
        return view

    monkeypatch.setattr(OffsetsView, "of_packed", classmethod(of_packed))
    return counts


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> list[OffsetsView]:
    """Views of tasks that had to read everything."""
    found: list[OffsetsView] = []
    real = OffsetsView.read_all

    def read_all(view: OffsetsView, *args: object) -> SourceOffsets:
        found.append(view)
        return real(view, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(OffsetsView, "read_all", read_all)
    return found


def own_topic(numbers: Numbers, unique_name: str) -> str:
    name = f"{unique_name}-offsets"
    numbers.worker_config = {"offset.storage.topic": name, "offset.storage.partitions": "1"}
    return name


def test_task_is_handed_its_own_offsets_only(numbers: Numbers, handed: list[int], lookups: list[OffsetsView]):
    numbers.config = {"numbers.names": "own", "tasks.max": "3"}
    numbers.feed(20, 20, 20, 20, 20)
    numbers.run()
    assert handed == [0, 0, 0]
    handed.clear()
    numbers.feed(25, 20, 25, 30, 20, 7)

    assert numbers.run().records == 27

    assert handed == [2, 2, 1]
    assert lookups == []
    numbers.assert_exactly_once(25, 20, 25, 30, 20, 7)


def test_connector_that_cannot_say_gets_all_offsets_in_every_task(numbers: Numbers, handed: list[int]):
    numbers.feed(10, 10, 10)
    numbers.run()
    handed.clear()
    numbers.feed(12, 12, 12)
    numbers.run()
    assert handed == [3, 3]
    numbers.assert_exactly_once(12, 12, 12)


def test_offsets_that_are_too_many_are_read_by_the_tasks(
    numbers: Numbers, handed: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(offsets_view, "MOST_BYTES", 10)
    numbers.config = {"numbers.names": "own"}
    for counts in ((10, 10), (13, 12)):
        numbers.feed(*counts)
        numbers.run()
    assert handed == [0] * 4
    numbers.assert_exactly_once(13, 12)


@pytest.mark.parametrize("asks", ["", "everything"])
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "at_most_once"])
def test_task_that_needs_other_offsets_than_were_named_finds_them(
    numbers: Numbers, lookups: list[OffsetsView], asks: str, guarantee: str
):
    numbers.config = {"numbers.names": "wrong", "numbers.asks": asks, "delivery.guarantee": guarantee}
    for counts in ((20, 9, 5), (30, 9, 15), (30, 10, 16, 4)):
        numbers.feed(*counts)
        numbers.run()
    assert len(lookups) == 4, "two tasks of two runs; in the first there is nothing to be found"
    numbers.assert_exactly_once(30, 10, 16, 4)


@pytest.mark.parametrize("asks", ["", "nothing"])
def test_offset_that_was_not_handed_is_written_under_the_key_that_it_has(
    kafka: KafkaBroker, numbers: Numbers, unique_name: str, asks: str
):
    """A worker, or a person, may have written the key with other bytes: two keys would be two offsets."""
    topic = own_topic(numbers, unique_name)
    numbers.feed(1, 1)
    numbers.run()
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for p in (0, 1):
        ours = json.dumps([numbers.name, {"p": p}], separators=(",", ":"))
        producer.produce(topic, None, ours, partition=0)
        producer.produce(topic, json.dumps({"n": 5}), json.dumps([numbers.name, {"p": p}]), partition=0)
    assert producer.flush(30) == 0
    numbers.config = {"numbers.names": "wrong", "numbers.asks": asks}
    numbers.feed(8, 8)

    assert numbers.run().records == (16 if asks else 6)

    last = {message.key(): message.value() for message in Topics(kafka.bootstrap).read(topic)}
    live = {key: value for key, value in last.items() if numbers.name.encode() in (key or b"") and value is not None}
    assert live == {json.dumps([numbers.name, {"p": p}]).encode(): b'{"n":8}' for p in (0, 1)}
    again = [*range(8)] if asks else [5, 6, 7]
    assert numbers.values() == {0: [0, *again], 1: [0, *again]}


def test_newer_offset_counts_if_the_connector_ran_without_its_own_topic(numbers: Numbers, unique_name: str):
    own = f"{unique_name}-own"
    numbers.feed(2, 2)
    assert numbers.run(offsets_storage_topic=own).notes == ()
    numbers.feed(5, 2)
    numbers.run()
    numbers.feed(6, 2)

    report = numbers.run(offsets_storage_topic=own)

    assert report.records == 1
    [note] = [note for note in report.notes if "have different offsets" in note]
    assert f'was last written to connect-offsets ({{"n": 5}} there), and {own} has {{"n": 2}}' in note
    numbers.feed(7, 2)
    assert "different offsets" not in str(numbers.run(offsets_storage_topic=own).notes)
    numbers.assert_exactly_once(7, 2)


def test_offset_that_was_deleted_without_the_own_topic_does_not_come_back(numbers: Numbers, unique_name: str):
    own = f"{unique_name}-own"
    numbers.feed(2, 2)
    numbers.run(offsets_storage_topic=own)
    reset_offsets(numbers.spec())

    report = numbers.run(offsets_storage_topic=own)

    assert report.records == 4
    assert "it was deleted there" in str(report.notes)
