"""The order in which a `java.util.HashMap` of strings lists its keys.

Kafka Connect writes the configurations of tasks in this order, so that the bytes of our records are equal. Valid for
maps without long chains of colliding keys, as configurations are. Source: java.util.HashMap of JDK 17.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

_V = TypeVar("_V")
_LEAST_BUCKETS = 1
_LOAD = 0.75


def in_java_order(properties: Mapping[str, _V]) -> dict[str, _V]:
    """The same map in the order of a HashMap that was created as a copy of another (`HashMap.putMapEntries`)."""
    buckets = _LEAST_BUCKETS
    while int(len(properties) / _LOAD + 1) > buckets:
        buckets *= 2
    # A stable sort: entries of one bucket stay in the order in which they came, also when the table grows.
    return dict(sorted(properties.items(), key=lambda item: _spread(item[0]) & (buckets - 1)))


def _spread(key: str) -> int:
    code = 0
    units = key.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return code ^ code >> 16
