"""How far a sink of a live Kafka Connect cluster is behind the ends that its topics had at a moment.

Offsets alone cannot tell: a sink commits the offset after the last record that it got, so transaction markers and
aborted records at the end of a partition look like lag forever. So where an offset is missing, the log is read from
there: if no record comes before the end, nothing is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.resolved.client_layers import consumer_group
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.kafka.admin import consumer_group as groups
from airflow_connect.kafka.admin import topics, watermarks
from airflow_connect.kafka.clients import settings as client_config
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.first_timestamps import first_records

if TYPE_CHECKING:
    from airflow_connect.kafka.clients.settings import ClientConfig
    from airflow_connect.kafka.clients.short_lived import Admin

ISOLATION = "isolation.level"
Ends = dict[str, dict[str, int]]
"""Topic to partition number, as text, to the end: plain JSON."""


class ClusterSink:
    """A sink that a Kafka Connect cluster runs, seen from Kafka; joins no group."""

    def __init__(self, config: Mapping[str, str], kafka: Mapping[str, Any]) -> None:
        """Connect.

        Args:
            config: its configuration, as the cluster stores it.
            kafka: how to reach the brokers: worker keys. Its `isolation.level` is what the cluster's consumers have,
                unless the connector overrides it.

        Raises:
            ConfigError: a setting is wrong, or its group is known to the cluster only.
            UnavailableError, AccessError: Kafka cannot be used.
        """
        own = {key: config[key] for key in (_GROUP, _ISOLATION) if key in config}
        self._config = config
        self._group = consumer_group({}, own, config.get(keys.NAME, ""))
        if "${" in self._group:
            raise ConfigError(
                f"The group of connector {config.get(keys.NAME)} is {self._group}, which only its cluster can resolve.",
                config_path=_GROUP,
                suggestion="Write the group itself into the connector's configuration.",
            )
        isolation = config.get(_ISOLATION) or kafka.get(ISOLATION) or client_config.READ_UNCOMMITTED
        worker = {**kafka, f"consumer.{ISOLATION}": isolation}
        self._consumer: ClientConfig = client_config.consumer_config(worker, {})
        self._admin: Admin = admin_client(client_config.admin_config(kafka, {}).settings)

    def ends(self) -> Ends:
        """The current ends of its topics.

        Raises:
            ConfigError: a topic does not exist.
            UnavailableError, AccessError: Kafka cannot be read.
        """
        named = [topic.strip() for topic in self._config.get(keys.TOPICS, "").split(",") if topic.strip()]
        found = topics.resolve_topics(self._admin, named or None, self._config.get(keys.TOPICS_REGEX) or None)
        places = [TopicPartition(name, n) for name, info in found.items() for n in range(info.partitions)]
        ends: Ends = {name: {} for name in found}
        for place, end in watermarks.latest_offsets(self._admin, places, self._consumer.isolation_level).items():
            ends[place.topic][str(place.partition)] = end
        return ends

    def remaining(self, ends: Ends) -> dict[TopicPartition, int]:
        """Offsets before `ends` that are not committed, by partition; without partitions that hold no record there.

        Raises:
            UnavailableError, AccessError: Kafka cannot be read.
        """
        wanted = {TopicPartition(topic, int(n)): end for topic, of in ends.items() for n, end in of.items() if end}
        committed = groups.read_committed_offsets(self._admin, self._group, wanted)
        earliest = watermarks.earliest_offsets(self._admin, [place for place in wanted if place not in committed])
        starts = {place: committed.get(place, earliest.get(place, 0)) for place in wanted}
        missing = {place: start for place, start in starts.items() if start < wanted[place]}
        firsts = first_records(self._consumer.settings, missing, self._consumer.isolation_level)
        left = {}
        for place, start in missing.items():
            first = firsts.get(place)
            if isinstance(first, ConnectError):
                raise first
            if first is None or first.offset < wanted[place]:
                left[place] = wanted[place] - start
        return left


_GROUP, _ISOLATION = "consumer.override.group.id", f"consumer.override.{ISOLATION}"
