"""Follows the documents of connectors in the runs topic, without fencing anything: for those who only look.

The first look at a connector reads its partition from the beginning. Later ones read what was appended since. A look
ends at the last stable offset, so it never waits for an open transaction: what is behind it is seen by a later look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import Message

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin.many_offsets import LATEST, offset_of_each
from airflow_connect.kafka.admin.topics import TopicInfo
from airflow_connect.kafka.clients.settings import READ_COMMITTED
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.kafka.state.runs_topic import ConnectorRecords, RunsTopic
from airflow_connect.kafka.state.state_documents import parse_key


class RunsTail:
    """What one runs topic says about some connectors, as far as it was read."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        """Reads nothing. `settings`: librdkafka settings of a consumer."""
        self.name = name
        self._settings = settings
        self._records: dict[str, ConnectorRecords] = {}
        self._kinds: dict[str, frozenset[str]] = {}
        self._topic_id = ""

    def refresh(
        self, admin: Admin, topic: TopicInfo | None, wanted: Mapping[str, Collection[str]]
    ) -> dict[str, Mapping[str, bytes] | ConnectError]:
        """Read what is new; the latest values of each connector by key, {} as long as there is no runs topic.

        Args:
            admin: an admin client.
            topic: the runs topic as it is now; None if there is none.
            wanted: connectors, each with the kinds of documents to keep; others are forgotten.
        """
        self._forget(wanted)
        if topic is None:
            return {connector: {} for connector in wanted}
        if topic.topic_id != self._topic_id:  # It is new, or was deleted and created again.
            self._topic_id = topic.topic_id
            self._records.clear()
        by_place = defaultdict(list)
        for connector in wanted:
            by_place[RunsTopic(self.name, topic.partitions).place_of(connector)].append(connector)
        ends = offset_of_each(admin, dict.fromkeys(by_place, LATEST), READ_COMMITTED)
        found: dict[str, Mapping[str, bytes] | ConnectError] = {}
        for place, connectors in by_place.items():
            end = ends[place]
            try:
                if isinstance(end, ConnectError):
                    raise end
                self._read(place, connectors, end)
                found.update({connector: self._records[connector].values for connector in connectors})
            except ConnectError as error:
                found.update(dict.fromkeys(connectors, error))
        return found

    def _forget(self, wanted: Mapping[str, Collection[str]]) -> None:
        """Forget connectors that are not in `wanted`, and those of which more kinds are wanted than were read."""
        kinds = {connector: frozenset(of_it) for connector, of_it in wanted.items()}
        for connector in list(self._records):
            if connector not in kinds or not kinds[connector] <= self._kinds[connector]:
                del self._records[connector]
        kept = {connector: self._kinds[connector] for connector in self._records}
        self._kinds = {connector: kept.get(connector, of_it) for connector, of_it in kinds.items()}

    def _read(self, place: TopicPartition, connectors: Sequence[str], end: int) -> None:
        known = {c: self._records[c].end for c in connectors if c in self._records}
        start = 0 if len(known) < len(connectors) else min(known.values())
        readers = {c: self._records[c] if c in known else ConnectorRecords(c) for c in connectors}

        def take(message: Message[Any, Any]) -> None:
            parts = parse_key((message.key() or b"").decode("utf-8", "replace"))
            if len(parts) > 1 and parts[1] in readers and parts[0] in self._kinds[parts[1]]:
                readers[parts[1]].take(message.key(), message.value(), int(message.offset() or 0))

        compacted_topics.read_to(self._settings, {place: start}, {place: end}, take)
        for connector, records in readers.items():
            records.end = end
            self._records[connector] = records
