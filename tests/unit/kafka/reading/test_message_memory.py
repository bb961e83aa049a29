"""Bytes that are read where they lie, and librdkafka as it is called directly."""

from __future__ import annotations

import ctypes

import confluent_kafka
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.kafka.clients.librdkafka import open_consumer, required_library
from airflow_connect.kafka.reading.foreign_memory import copied_values

VALUES = st.lists(st.none() | st.binary(max_size=30) | st.binary(min_size=200, max_size=300), min_size=1, max_size=60)


@given(VALUES)
def test_values_anywhere_in_memory_become_a_column(values: list[bytes | None]) -> None:
    held = [None if v is None else ctypes.create_string_buffer(v, len(v) + 1) for v in values]
    addresses = np.array([0 if b is None else ctypes.addressof(b) for b in held], dtype=np.int64)
    lengths = np.array([0 if v is None else len(v) for v in values], dtype=np.int64)
    column = copied_values(addresses, lengths)
    held.clear()
    assert column.to_pylist() == values


def test_library_is_the_one_of_the_python_client() -> None:
    library = required_library()
    assert library.call("version") == confluent_kafka.libversion()[1]


def test_consumer_that_lent_nothing_can_be_closed() -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "enable.auto.commit": False}
    consumer = open_consumer(required_library(), settings)
    pointers = np.zeros(1, dtype=np.int64)
    assert consumer.consume(pointers.ctypes.data, 1, 10) == 0
    consumer.close()
