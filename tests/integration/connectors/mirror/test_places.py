"""A task of a mirror is told which offset each copy got: the base of everything that translates offsets."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from airflow_connect.api.source import SourceColumns
from airflow_connect.connectors.mirror.task import MirrorSourceTask
from airflow_connect.kafka.clients.librdkafka import NotDirectError
from airflow_connect.kafka.writing import task_producer
from tests.integration.connectors.mirror.conftest import Mirror
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.integration
VALUES_AND_OFFSETS = list[tuple[int, bytes | None, int]]


def values_at(mirror: Mirror, count: int) -> VALUES_AND_OFFSETS:
    """Partition, value and offset of every copy."""
    consumer = Consumer({"bootstrap.servers": mirror.target, "group.id": "places", "isolation.level": "read_committed"})
    try:
        consumer.assign([TopicPartition(mirror.remote, number, OFFSET_BEGINNING) for number in range(3)])
        found: VALUES_AND_OFFSETS = []
        while len(found) < count:
            messages = consumer.consume(count - len(found), TIMEOUT_S)
            assert messages, f"{len(found)} of {count} copies came"
            found += [(int(m.partition() or 0), m.value(), int(m.offset() or 0)) for m in messages]
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("way", ["direct", "client", "transformed"])
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_offset_of_every_copy_is_told_after_its_commit(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, way: str, guarantee: str
) -> None:
    told: VALUES_AND_OFFSETS = []

    def commit_columns(_task: MirrorSourceTask, columns: SourceColumns, offsets: Any) -> None:
        assert columns.partition is not None and len(columns.values) == len(offsets)
        pairs = zip(columns.values.to_pylist(), offsets.tolist(), strict=True)
        told.extend((columns.partition, value, offset) for value, offset in pairs if offset >= 0)

    def refuse(*_: object) -> None:
        raise NotDirectError("it is another version")

    monkeypatch.setattr(MirrorSourceTask, "commit_columns", commit_columns, raising=False)
    more = {"delivery_guarantee": guarantee}
    if way == "client":
        monkeypatch.setattr(task_producer, "direct_produce", refuse)
    if way == "transformed":
        more |= {
            "transforms": "drop",
            "transforms_drop_type": "org.apache.kafka.connect.transforms.Filter",
            "transforms_drop_predicate": "empty",
            "predicates": "empty",
            "predicates_empty_type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        }
    values = [None if n % 7 == 0 else str(n) for n in range(3_000)]
    expected = sum(value is not None for value in values) if way == "transformed" else len(values)
    for _ in range(2):
        mirror.write(mirror.topic, [(n % 3, None, value, 1000 + n) for n, value in enumerate(values)])
        mirror.run(**more)

    assert sorted(told, key=lambda one: (one[0], one[2])) == sorted(
        values_at(mirror, 2 * expected), key=lambda one: (one[0], one[2])
    )
