from __future__ import annotations

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.kafka.state.murmur2 import murmur2, partition_for


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_of_java_vectors_gives_the_same_bits(data: bytes, signed: int) -> None:
    assert murmur2(data) == signed & 0xFFFFFFFF


@given(st.binary(max_size=80), st.integers(1, 500))
def test_partition_for_any_key_agrees_with_librdkafka(key: bytes, partitions: int) -> None:
    # librdkafka's murmur2 partitioner is its own port of the Java client's.
    assert partition_for(key, partitions) == confluent_kafka.murmur2(key, partitions)
