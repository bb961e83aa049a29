"""The offset from which a connector's records in a state topic still matter, stored as the offset of its own group.

A bookmark is a hint. It may be old, because a log only grows at its end: what matters now mattered when the bookmark
was set, or was written after it. It may be missing (Kafka deletes groups without commits after
`offsets.retention.minutes`), belong to a topic that was recreated (the topic's id is stored with it), or be denied:
then the topic is read from its beginning. A reader that starts at it must find a record that always exists, or else
start from the beginning too: a log that lost its end in an unclean leader election may have grown past the bookmark
again. In a runs topic that record is the connector's state (`Bookmark`). An offsets topic has no such record, so the
leader epochs of its records are checked (`LogMark`, own_records.py).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin import new_topics
from airflow_connect.kafka.admin.consumer_group import read_committed
from airflow_connect.kafka.clients.short_lived import state_consumer

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.kafka.clients.short_lived import Admin

MOST_CHARACTERS = 4_000
"""`offset.metadata.max.bytes` of a broker is 4,096 by default."""
_LOG = logging.getLogger(__name__)


class Bookmark(NamedTuple):
    """Where to begin to read.

    Attributes:
        offset: nothing below it matters.
        names: data that the reader keeps about records below it, without spaces and commas.
    """

    offset: int
    names: tuple[str, ...] = ()


class LogMark(NamedTuple):
    """Where to begin to read a partition of an offsets topic.

    Attributes:
        start: nothing below it matters.
        end: the high watermark when the bookmark was set; `start` is below it.
        epoch: leader epoch of the log at `end`.
    """

    start: int
    end: int
    epoch: int


def group_of(connector: str) -> str:
    """The group that holds the bookmark of a connector; no client ever joins it."""
    return f"connect-{connector}-state"


def read(admin: Admin, connector: str, place: TopicPartition) -> Bookmark | None:
    """The bookmark of a connector in a partition, or None; about 20 ms."""
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
    """Set a bookmark if Kafka permits; without it the next run reads more."""
    note = f"{new_topics.topic_id(admin, place.topic)} {','.join(mark.names)}"
    if len(note) > MOST_CHARACTERS or any(set(" ,") & set(name) for name in mark.names):
        return
    _commit(settings, connector, [_Partition(place.topic, place.partition, mark.offset, note)])


def read_marks(
    admin: Admin, connector: str, places: Sequence[TopicPartition], topic_id: str
) -> dict[TopicPartition, LogMark]:
    """The bookmarks of a connector in partitions of the topic with this id; about 20 ms."""
    try:
        found = read_committed(admin, group_of(connector), places)
    except ConnectError as error:
        _LOG.debug("There are no bookmarks in %s: %s", places, error)
        return {}
    marks = {}
    for place, committed in found.items():
        kept, *numbers = committed.note.split(" ")
        if topic_id and kept == topic_id and len(numbers) == 2 and all(number.isdecimal() for number in numbers):
            marks[place] = LogMark(committed.offset, int(numbers[0]), int(numbers[1]))
    return marks


def save_marks(
    settings: Mapping[str, Any], connector: str, topic_id: str, marks: Mapping[TopicPartition, LogMark]
) -> None:
    """Set bookmarks if Kafka permits; without them the next run reads more."""
    _commit(
        settings,
        connector,
        [
            _Partition(place.topic, place.partition, mark.start, f"{topic_id} {mark.end} {mark.epoch}")
            for place, mark in marks.items()
        ],
    )


def _commit(settings: Mapping[str, Any], connector: str, positions: list[_Partition]) -> None:
    consumer = state_consumer(settings, group_id=group_of(connector))
    try:
        consumer.commit(offsets=positions, asynchronous=False)
    except KafkaException as error:
        _LOG.debug("Bookmarks in %s could not be stored: %s", [(p.topic, p.partition) for p in positions], error)
    finally:
        consumer.close()
