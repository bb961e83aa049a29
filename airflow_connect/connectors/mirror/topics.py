"""Topics of the target cluster: created, grown and configured like their originals.

Source: MirrorSourceConnector.createNewTopics, createNewPartitions, syncTopicConfigs, targetConfig (Kafka 4.3). Nothing
is ever removed: neither topics, nor partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_connect.connectors.mirror.config import MirrorConfig
from airflow_connect.connectors.mirror.keys import MirrorKeys
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin import copied_settings, new_topics
from airflow_connect.kafka.admin.copied_settings import TopicSetting
from airflow_connect.kafka.admin.topic_settings import settings_of_topics
from airflow_connect.kafka.admin.topics import TopicInfo, all_names, resolve_topics
from airflow_connect.kafka.clients.short_lived import Admin

TIMESTAMP_TYPE = "message.timestamp.type"


@dataclass(frozen=True, slots=True)
class RemoteTopics:
    """The target cluster's copies of some topics.

    Attributes:
        config: of the connector.
        source, target: admin clients of both clusters.
    """

    config: MirrorConfig
    source: Admin
    target: Admin

    def ensure(self, originals: Mapping[str, TopicInfo]) -> list[str]:
        """Create missing topics, add missing partitions, and set what the originals set.

        Args:
            originals: topics of the source cluster.

        Returns:
            Those whose copy was missing.

        Raises:
            ConnectError: one of the clusters refused, or did not answer.
        """
        names = {topic: self.config.policy.remote_topic(topic) for topic in originals}
        there = resolve_topics(self.target, self._existing(names.values()), None)
        missing = [topic for topic, remote in names.items() if remote not in there]
        described = list(originals) if self.config.syncs_settings else missing
        wanted = copied_settings.topic_settings(self.source, described)
        for topic in missing:
            new_topics.create(
                self.target,
                names[topic],
                originals[topic].partitions,
                self.config.replication_factor,
                self._of_new_topic(wanted[topic]),
                config_path=MirrorKeys.replication_factor.name,
            )
        grown = {
            remote: originals[topic].partitions
            for topic, remote in names.items()
            if remote in there and there[remote].partitions < originals[topic].partitions
        }
        copied_settings.add_partitions(self.target, grown)
        for remote in [*(names[topic] for topic in missing), *grown]:
            new_topics.wait_until_visible(self.target, remote)
        if self.config.syncs_settings:
            self._synchronise({names[topic]: wanted[topic] for topic in originals if topic not in missing})
        return missing

    def ids(self, originals: Iterable[str]) -> dict[str, str]:
        """The ids of existing copies, by their originals."""
        names = {self.config.policy.remote_topic(topic): topic for topic in originals}
        return {names[remote]: info.topic_id for remote, info in resolve_topics(self.target, list(names), None).items()}

    def with_times_of_brokers(self, originals: Iterable[str]) -> list[str]:
        """Copies that replace timestamps by the clock of their brokers, as far as their settings may be read."""
        found = settings_of_topics(self.target, sorted(self.config.policy.remote_topic(topic) for topic in originals))
        return [
            remote
            for remote, settings in found.items()
            if not isinstance(settings, ConnectError) and settings.get(TIMESTAMP_TYPE) == "LogAppendTime"
        ]

    def _existing(self, names: Iterable[str]) -> list[str]:
        known = set(all_names(self.target))
        return sorted(name for name in set(names) if name in known)

    def _of_new_topic(self, settings: Iterable[TopicSetting]) -> dict[str, str]:
        """Settings of a new topic; defaults of the source cluster only if `use.defaults.from` names it."""
        chosen = self._copied(settings)
        return {
            one.name: one.value
            for one in chosen
            if one.value is not None and (not one.is_default or self.config.defaults_from_source)
        }

    def _synchronise(self, wanted: Mapping[str, Iterable[TopicSetting]]) -> None:
        current = copied_settings.topic_settings(self.target, wanted)
        changes = {
            remote: self._differences(settings, {one.name: one for one in current[remote]})
            for remote, settings in wanted.items()
        }
        copied_settings.alter_settings(self.target, changes)

    def _differences(
        self, settings: Iterable[TopicSetting], current: Mapping[str, TopicSetting]
    ) -> dict[str, str | None]:
        """Settings of the original that its copy does not have; None: the copy must not set it."""
        changes: dict[str, str | None] = {}
        for one in self._copied(settings):
            now = current.get(one.name)
            if now is None:
                continue  # a newer source cluster has settings that the target cluster does not know
            if one.is_default and not self.config.defaults_from_source:
                if not now.is_default and now.is_copyable:
                    changes[one.name] = None
            elif now.value != one.value:
                changes[one.name] = one.value
        return changes

    def _copied(self, settings: Iterable[TopicSetting]) -> list[TopicSetting]:
        return [one for one in settings if one.is_copyable and one.name not in self.config.excluded_settings]
