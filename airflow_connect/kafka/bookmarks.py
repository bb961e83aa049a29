"""From which offset on a connector's records in a state topic still matter: kept as the offset of a group of its own.

A bookmark is a hint. It may be old, because a log only grows at its end: whatever matters now mattered when the
bookmark was set, or was written after it. It may be gone (Kafka forgets groups without commits after
`offsets.retention.minutes`), be of a topic that was recreated (the topic's id is kept beside it), or be refused: then
the topic is read from its beginning. Whoever reads from it must find what is always there, else read from the beginning
too: a log that lost its end to an unclean leader election can have grown past the bookmark again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.errors import ConnectError
from airflow_connect.kafka import new_topics
from airflow_connect.kafka.clients import state_consumer
from airflow_connect.kafka.consumer_group import read_committed

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.kafka.clients import Admin

MOST_CHARACTERS = 4_000
"""`offset.metadata.max.bytes` of a broker is 4,096 by default."""
_LOG = logging.getLogger(__name__)


class Bookmark(NamedTuple):
    """Where to begin to read.

    Attributes:
        offset: nothing below it matters.
        names: what the reader wants to know of records below it, without spaces and commas.
    """

    offset: int
    names: tuple[str, ...] = ()


def group_of(connector: str) -> str:
    """The group that holds the bookmark of a connector; nobody ever joins it."""
    return f"connect-{connector}-state"


def read(admin: Admin, connector: str, place: TopicPartition) -> Bookmark | None:
    """The bookmark of a connector in a partition, or None; some 20 ms."""
    try:
        found = read_committed(admin, group_of(connector), [place]).get(place)
        topic_id = new_topics.topic_id(admin, place.topic)
    except ConnectError as error:
        _LOG.debug("There is no bookmark in %s: %s", place, error)
        return None
    kept, _, names = found.note.partition(" ") if found else ("", "", "")
    if found is None or not topic_id or kept != topic_id:
        return None
    return Bookmark(found.offset, tuple(name for name in names.split(",") if name))


def save(admin: Admin, settings: Mapping[str, Any], connector: str, place: TopicPartition, mark: Bookmark) -> None:
    """Set a bookmark, if Kafka lets us; without it the next run reads more."""
    note = f"{new_topics.topic_id(admin, place.topic)} {','.join(mark.names)}"
    if len(note) > MOST_CHARACTERS or any(set(" ,") & set(name) for name in mark.names):
        return
    consumer = state_consumer(settings, group_id=group_of(connector))
    try:
        position = _Partition(place.topic, place.partition, mark.offset, note)
        consumer.commit(offsets=[position], asynchronous=False)
    except KafkaException as error:
        _LOG.debug("The bookmark in %s was not kept: %s", place, error)
    finally:
        consumer.close()
