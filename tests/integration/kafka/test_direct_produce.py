"""Records handed over as arrays are the records that the Python client would have written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.writing.produced import ProducedColumns
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.testing.topics import Topics

pytestmark = pytest.mark.integration

VALUES = ["", "a", None, "é日本😀", "x" * 5000, *map(str, range(30_000))]


def written(kafka: KafkaBroker, topic: str, *, direct: bool, keys: Any, values: Any, txn: str = "") -> list[Any]:
    producer = TaskProducer({"bootstrap.servers": kafka.bootstrap}, txn, 60_000)
    assert producer._direct is not None, "The wheel's own library is one that is not known."
    if not direct:
        producer._direct = None
    producer.fence()
    try:
        producer.send_columns(ProducedColumns(topic, keys, values))
        producer.commit() if txn else producer.flush()
    finally:
        producer.close()
    return [(m.partition(), m.key(), m.value()) for m in Topics(kafka.bootstrap).read(topic)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_values_arrive_as_they_are_and_in_order(kafka: KafkaBroker, make_topic: Any, kind: Any):
    values = pa.array(VALUES, pa.string()).cast(kind)

    found = written(kafka, make_topic(), direct=True, keys=None, values=values.slice(1))

    assert [value for _, _, value in found] == [None if v is None else v.encode() for v in VALUES[1:]]


def test_keys_go_to_the_partitions_of_the_python_client(kafka: KafkaBroker, make_topic: Any):
    values = pa.array([None if n % 7 == 0 else f"v{n}" for n in range(2000)])
    keys = pa.array([f"k{n % 50}" for n in range(2000)])

    quick = written(kafka, make_topic(partitions=5), direct=True, keys=keys, values=values)
    slow = written(kafka, make_topic(partitions=5), direct=False, keys=keys, values=values)

    assert quick == slow
    assert len({partition for partition, _, _ in quick}) == 5


def test_transaction_that_is_not_committed_shows_nothing(kafka: KafkaBroker, make_topic: Any, unique_name: str):
    topic, values = make_topic(), pa.array(["a", "b"])
    producer = TaskProducer({"bootstrap.servers": kafka.bootstrap}, unique_name, 60_000)
    producer.fence()
    producer.send_columns(ProducedColumns(topic, None, values))
    producer.abort()
    producer.send_columns(ProducedColumns(topic, None, pa.array(["c"])))
    producer.commit()
    producer.send_columns(ProducedColumns(topic, None, values))
    producer.close()

    assert [m.value() for m in Topics(kafka.bootstrap).read(topic)] == [b"c"]
    assert written(kafka, topic, direct=True, keys=None, values=values, txn=unique_name)[1:] == [
        (0, None, b"a"),
        (0, None, b"b"),
    ]


def test_small_queue_is_waited_for(kafka: KafkaBroker, make_topic: Any):
    topic = make_topic()
    settings = {"bootstrap.servers": kafka.bootstrap, "queue.buffering.max.messages": 40_100}
    producer = TaskProducer(settings, "", 60_000)
    for start in range(0, 100_000, 20_000):
        producer.send_columns(ProducedColumns(topic, None, pa.array([str(n) for n in range(start, start + 20_000)])))
    producer.flush()
    producer.close()

    assert [int(m.value() or b"-1") for m in Topics(kafka.bootstrap).read(topic)] == list(range(100_000))
