"""Keys of rows and keys in Kafka: what a task returns about the records that it has looked at."""

from __future__ import annotations

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.converters.keys_in_kafka import LOOKED_AT, KeysInKafka

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize("key", ["a", ("a", 1), {"id": "a"}, (["a"],)], ids=["text", "columns", "struct", "list"])
def test_key_of_another_partition_of_the_task_is_compared_too(key):
    seen = KeysInKafka()
    seen.see(FIRST, 7, key, b"x")
    seen.see(FIRST, 8, key, b"x")
    seen.see(SECOND, 3, key, b"y")
    assert (seen.details(FIRST), seen.details(SECOND)) == ({}, {"several_keys": "orders-1@3"})
    assert seen.wanted(SECOND) == 0  # One is enough.


def test_records_without_keys_are_no_different_keys():
    seen = KeysInKafka()
    seen.see(FIRST, 0, "a", None)
    seen.see(FIRST, 1, "a", b"x")
    assert seen.details(FIRST) == {"unkeyed": True}


def test_only_the_first_records_are_looked_at():
    seen = KeysInKafka()
    records = [KafkaRecord("orders", 0, n, b"%d" % n, b"") for n in range(LOOKED_AT + 5)]
    seen.see_columns(FIRST, range(len(records)), [n if n < LOOKED_AT else 0 for n in range(len(records))], records)
    assert (seen.wanted(FIRST), seen.details(FIRST)) == (0, {})
