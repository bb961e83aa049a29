"""Topics that are deleted while a task writes to them: found long before the client gives up.

librdkafka waits for a topic that the cluster does not know, because it may be new, up to the end of the transaction. A
task writes only to topics that it has seen, so it may ask sooner.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from confluent_kafka import KafkaException

from airflow_connect.errors import AccessError
from airflow_connect.kafka.clients.short_lived import NO_TOPIC, QuickProducer, names

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
        if time.monotonic() < self._next_look:
            return
        now = set(missing_topics(self._producer, topics))
        found = sorted(now & self._missing)
        if found:
            raise deleted_while_written(found)
        self._missing = now
        self._next_look = time.monotonic() + LOOK_AFTER_S


def deleted_while_written(topics: Sequence[str]) -> AccessError:
    """The error about topics that were deleted while records were written to them."""
    return AccessError(
        f"Kafka no longer has topic {names(topics)}, to which a task writes records. It was deleted during the run."
        " No offset was committed for the records that were not written.",
        code="kafka.no_topic",
        suggestion="What earlier transactions wrote to the topic is gone with it, and is not copied again: the offsets"
        " of the source say that it was copied. Set them back if the topic is to have these records again.",
    )
