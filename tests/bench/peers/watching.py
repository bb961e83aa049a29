"""Watches a copy that another program makes: what it has written and committed, and what it needed for that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka._model import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

LONGEST_S = 1800.0
EVERY_S = 0.05
_REQUEST_S = 30


@dataclass(frozen=True, slots=True)
class PeerRun:
    """One copy by a peer.

    Attributes:
        copy_s: from its first record in the target to its last.
        run_s: from the request to copy until all is written, and, where the peer keeps offsets of what it has read,
            committed.
        cpu_s, peak_bytes: CPU time and memory of its processes during the run.
        size_bytes: what it has written.
        problem: what is wrong with it, "" if nothing.
    """

    copy_s: float
    run_s: float
    cpu_s: float
    peak_bytes: int
    size_bytes: int
    problem: str = ""


def arrival_times(count: Callable[[], int], wanted: int, what: str) -> tuple[float, float]:
    """When `count()` was above 0 first, and when it had reached `wanted`.

    Raises:
        RuntimeError: it did not within half an hour.
    """
    deadline, first, found = time.monotonic() + LONGEST_S, 0.0, 0
    while time.monotonic() < deadline:
        found = count()
        first = first or (time.monotonic() if found else 0.0)
        if found >= wanted:
            return first, time.monotonic()
        time.sleep(EVERY_S)
    raise RuntimeError(f"{what} has written {found} of {wanted} in {LONGEST_S:.0f} s.")


@contextmanager
def end_offsets(bootstrap: str, topic: str, partitions: int) -> Iterator[Callable[[], int]]:
    """A function that counts the offsets of a topic that are used; a few of them are markers of transactions.

    Offsets of open transactions count, too.
    """
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench-watches", "isolation.level": "read_uncommitted"}
    consumer = Consumer(settings)
    places = [TopicPartition(topic, number) for number in range(partitions)]
    try:
        yield lambda: sum(consumer.get_watermark_offsets(place, timeout=_REQUEST_S)[1] for place in places)
    finally:
        consumer.close()


def committed(bootstrap: str, group: str) -> int:
    """The sum of the offsets that a consumer group has committed."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 4})
    (asked,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return sum(place.offset for place in asked.result(_REQUEST_S).topic_partitions or ())
