"""The offsets of one source in its topics, and up to where each topic was read: only what is new is read again.

The driver reads the topics from their beginning, once. Later in its run, and in its tasks, which get what the driver
knows, reading goes on from there: after the high watermark of then there is only what was written since.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka import compacted_topics, new_topics
from airflow_connect.kafka.offsets_topic import SourceOffsets
from airflow_connect.kafka.watermarks import READ_UNCOMMITTED, earliest_offsets, latest_offsets

if TYPE_CHECKING:
    from airflow_connect.kafka.clients import Admin

MOST_BYTES = 4 * 1024 * 1024
"""Offsets that take more room, compressed, are not handed to every task: each reads them itself."""


@dataclass(slots=True)
class _Known:
    """One topic: offsets of the connector, next offset to read of each partition, and the topic's id."""

    offsets: SourceOffsets
    topic_id: str = ""
    positions: dict[int, int] = field(default_factory=dict)


class OffsetsView:
    """Committed offsets of a connector, of all its topics together."""

    def __init__(self, connector: str, topics: Sequence[str]) -> None:
        """Knows nothing yet. `topics`: the one that counts first."""
        self._connector = connector
        self._topics = {topic: _Known(SourceOffsets(connector)) for topic in topics}

    def read(self, admin: Admin, settings: Mapping[str, Any]) -> SourceOffsets:
        """The offsets as they are now.

        The first topic counts; what only later ones hold is taken over (ConnectorOffsetBackingStore).

        Raises:
            UnavailableError, AccessError: a topic cannot be read.
        """
        together = SourceOffsets(self._connector)
        for topic in self._topics:
            self._refresh(admin, settings, topic)
            together.take_missing(self._topics[topic].offsets)
        return together

    def _refresh(self, admin: Admin, settings: Mapping[str, Any], topic: str) -> None:
        topic_id, known = new_topics.topic_id(admin, topic), self._topics[topic]
        places = [TopicPartition(topic, number) for number in range(new_topics.partition_count(admin, topic) or 0)]
        ends = latest_offsets(admin, places, READ_UNCOMMITTED)
        is_other_log = any(known.positions.get(place.partition, 0) > end for place, end in ends.items())
        if known.topic_id != topic_id or is_other_log:
            known = self._topics[topic] = _Known(SourceOffsets(self._connector), topic_id)
        unread = [place for place in places if place.partition not in known.positions]
        starts = earliest_offsets(admin, unread) if unread else {}
        starts.update({p: known.positions[p.partition] for p in places if p.partition in known.positions})
        take = known.offsets.take
        compacted_topics.read_to(settings, starts, ends, lambda key, value, _: take(key, value))
        known.positions = {place.partition: end for place, end in ends.items()}

    def packed(self) -> bytes:
        """What is known, for `of_packed`; b"" when that is too much."""
        document = []
        for topic, known in self._topics.items():
            # Key and value as text; members of the key are in the order in which they were written.
            records = [(stored.key.decode("latin-1"), json.dumps(stored.offset)) for stored in known.offsets.stored()]
            document.append((topic, known.topic_id, list(known.positions.items()), records))
        packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode())
        return packed if len(packed) <= MOST_BYTES else b""

    @classmethod
    def of_packed(cls, connector: str, topics: Sequence[str], packed: bytes) -> OffsetsView:
        """Inverse of `packed`; nothing is known of b""."""
        view = cls(connector, topics)
        for topic, topic_id, positions, records in json.loads(zlib.decompress(packed)) if packed else ():
            known = view._topics[topic] = _Known(SourceOffsets(connector), topic_id, dict(positions))
            for key, value in records:
                known.offsets.take(key.encode("latin-1"), value.encode())
        return view
