"""Kafka's murmur2 and partition choice, equal to the Java client's DefaultPartitioner."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995


def murmur2(data: bytes) -> int:
    """32-bit murmur2 of `data` with Kafka's seed, as an unsigned number (Java prints the same bits signed).

    Source: org.apache.kafka.common.utils.Utils.murmur2; vectors of its unit test are in tests/unit/kafka/state.
    """
    h = (0x9747B28C ^ len(data)) & _MASK
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    tail = data[whole:]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """Partition of `key` in a topic of `partitions` partitions: `toPositive(murmur2(key)) % partitions`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
