"""Topics that are deleted while a task writes to them: found long before the client gives up.

librdkafka waits for a topic that the cluster does not know, because it may be new, up to the end of the transaction. A
task writes only to topics that it has seen, so it may ask sooner.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from airflow_connect.counting import names, plural
from airflow_connect.errors import AccessError
from airflow_connect.kafka.clients.short_lived import NO_TOPIC, QuickProducer

LOOK_AFTER_S = 5.0
"""Time without progress before the first look at the metadata, and between two looks."""


_ANSWER_TIMEOUT_S = 3.0
"""Short, because delivery reports wait meanwhile."""


def is_missing(producer: QuickProducer, topic: str, timeout_s: float) -> bool:
    """Whether a broker says that a topic does not exist. False if none answers in time."""
    try:
        found: Any = producer.list_topics(topic, timeout_s).topics.get(topic)
    except KafkaException:
        return False  # Unknown: the error that is there already says what has failed.
    return found is not None and found.error is not None and found.error.code() in NO_TOPIC


def missing_topics(producer: QuickProducer, topics: Collection[str]) -> list[str]:
    """Those of these topics that a broker says do not exist."""
    return [topic for topic in sorted(topics) if is_missing(producer, topic, _ANSWER_TIMEOUT_S)]


class TopicWatch:
    """Looks for topics while something waits for them. Its time starts when it is created."""

    def __init__(self, producer: QuickProducer) -> None:
        """`producer`: asks for the metadata."""
        self._producer = producer
        self._next_look = time.monotonic() + LOOK_AFTER_S
        self._missing: set[str] = set()

    def refuse_missing(self, topics: Collection[str]) -> None:
        """Fail if two looks in a row have not found a topic: a broker that has just started may not know all of them.

        Looks only when it is time, so this may be called often.

        Raises:
            AccessError: it was deleted.
        """
        if found := self.missing(topics):
            raise deleted_while_written(found)

    def missing(self, topics: Collection[str]) -> list[str]:
        """The topics that two looks in a row have not found; none if it is not time for a look."""
        if time.monotonic() < self._next_look:
            return []
        now = set(missing_topics(self._producer, topics))
        found = sorted(now & self._missing)
        self._missing = now
        self._next_look = time.monotonic() + LOOK_AFTER_S
        return found


def deleted_while_written(topics: Sequence[str]) -> AccessError:
    """The error about topics that were deleted while records were written to them."""
    return AccessError(
        f"Kafka no longer has topic {names(topics)}, to which a task writes records. It was deleted during the run."
        " No offset was committed for the records that were not written.",
        code="kafka.no_topic",
        suggestion="What earlier transactions wrote to the topic is gone with it, and is not copied again: the offsets"
        " of the source say that it was copied. Set them back if the topic is to have these records again.",
    )


def what_is_missing(producer: QuickProducer, highest: Mapping[str, int], doing: str) -> AccessError | None:
    """The error that names topics or partitions that do not exist; arguments as for `without_partition`."""
    if missing := missing_topics(producer, highest):
        return deleted_while_written(missing)
    return without_partition(producer, highest, doing)


def without_partition(producer: QuickProducer, highest: Mapping[str, int], doing: str) -> AccessError | None:
    """The error that names partitions which their topics do not have; None: all are there, or no broker answers.

    Args:
        producer: asks for the metadata.
        highest: the highest partition that was written to, by topic.
        doing: as for `translate`.
    """
    found = []
    for topic, partition in sorted(highest.items()):
        try:
            known: Any = producer.list_topics(topic, _ANSWER_TIMEOUT_S).topics.get(topic)
        except KafkaException:
            return None  # Unknown: the error that is there already says what has failed.
        count = 0 if known is None or known.error is not None else len(known.partitions)
        if 0 < count <= partition:
            found.append(f"{topic}-{partition} (the topic has {plural(count, 'partition')})")
    if not found:
        return None
    return AccessError(
        f"Kafka does not have {names(found)}, which has records to be written: found while {doing}. Nothing of this"
        " transaction was committed.",
        code="kafka.no_topic",
        suggestion="The topic may have been recreated with fewer partitions. Add partitions to it, and run again.",
    )
