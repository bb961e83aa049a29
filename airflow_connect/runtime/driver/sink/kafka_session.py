"""The driver's view of Kafka during one run: topics, watermarks, group and journal, through short-lived clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.offsets import TopicPartition, is_other_topic
from airflow_connect.errors import OffsetError
from airflow_connect.exactly_once.journal import Journal, JournalView
from airflow_connect.exactly_once.kafka_journal import JournalClients, KafkaJournal, read_state, view_of
from airflow_connect.kafka.admin import consumer_group, dead_letter_queue, topics, watermarks
from airflow_connect.kafka.state import runs_topic, worker_topics
from airflow_connect.kafka.writing.refused_records import LARGEST_MESSAGE_BYTES
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.planning.planner import LogState
from airflow_connect.runtime.driver.cluster_session import ClusterSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_connect.documents.run import Plan
    from airflow_connect.kafka.admin.dead_letter_queue import QueueLimits
    from airflow_connect.kafka.admin.topics import TopicInfo
    from airflow_connect.planning.limits import RunLimits
    from airflow_connect.runtime.driver.sink.configuration import RunConfiguration


class KafkaSession(ClusterSession):
    """Clients of one run. Only `journal` writes; everything else reads."""

    def __init__(self, configuration: RunConfiguration) -> None:
        """Opens nothing; `with` does."""
        super().__init__(configuration)
        self._config = configuration.resolved

    @property
    def journal(self) -> Journal:
        """The connector's journal; opened on first use, because that creates the runs topic."""
        if self._journal is None:
            producer = self._clients.producer.settings
            topic = worker_topics.ensure_runs(self.admin, self._config.worker, self.notes.append)
            self._group = consumer_group.group_metadata(self._config.consumer_group, producer)
            clients = JournalClients(
                admin=self.admin,
                reader_settings=self._clients.consumer.settings,
                writer=TransactionalWriter(producer, self._config.transactional_id),
                topic=topic,
                group=self._group,
            )
            self._journal = KafkaJournal(self._config.connector.name, clients)
        return self._journal

    def peek(self) -> JournalView:
        """State and open manifest, without fencing other runs or creating anything."""
        worker = self._config.worker
        topic = runs_topic.find(self.admin, worker.runs_topic)
        if topic is None:
            return JournalView()
        name = self._config.connector.name
        return view_of(name, read_state(self.admin, self._clients.consumer.settings, topic, name)[0].values)

    def ensure_group_empty(self) -> None:
        """Refuse to continue while another process runs the connector (invariant 9).

        Raises:
            NotStoppedError: the group has live members.
        """
        consumer_group.ensure_no_live_members(self.admin, self._config.consumer_group)

    def refuse_recreated_topics(self, plan: Plan) -> None:
        """Refuse to publish records that were read across a deletion and re-creation of their topic.

        Raises:
            OffsetError: names the topic.
            ConfigError: a topic is gone.
        """
        now = topics.resolve_topics(self.admin, sorted({r.topic for r in plan.ranges}), None)
        for name, info in now.items():
            if info.topic_id != plan.topic_ids[name]:
                raise OffsetError(
                    f"Topic {name} was recreated while it was copied: its id was {plan.topic_ids[name]} and is "
                    f"{info.topic_id} now.",
                    suggestion="Nothing was published. Run again with offsets.out.of.range=earliest to copy the topic "
                    "that is there now.",
                    config_path="offsets.out.of.range",
                )

    def gone_topics(self, topic_ids: Mapping[str, str]) -> dict[str, str]:
        """Those of these topics that Kafka has no more under these ids, each with a sentence about it.

        Raises:
            ConnectError: Kafka did not answer.
        """
        deleted = self.deleted_topics(sorted(topic_ids))
        there = topics.resolve_topics(self.admin, sorted(topic_ids.keys() - deleted), None)
        gone = {name: f"Kafka no longer has topic {name}." for name in sorted(deleted)}
        for name, info in there.items():
            if is_other_topic(topic_ids[name], info.topic_id):
                gone[name] = f"Topic {name} was recreated: its id was {topic_ids[name]} and is {info.topic_id} now."
        return gone

    def held(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """First offset and end of the log of each partition.

        Raises:
            ConnectError: Kafka did not answer, or does not have one of the partitions.
        """
        first = watermarks.earliest_offsets(self.admin, tps)
        end = watermarks.latest_offsets(self.admin, tps, self._clients.consumer.isolation_level)
        return {tp: (first[tp], end[tp]) for tp in tps}

    def deleted_topics(self, names: Sequence[str]) -> frozenset[str]:
        """Those of these topics that Kafka no longer has."""
        return topics.deleted_topics(self.admin, names)

    def queue_limits(self) -> QueueLimits | None:
        """What the connector's dead letter queue accepts; None: it has no queue.

        Raises:
            UnavailableError: Kafka does not answer.
        """
        queue = self._config.connector.errors.dead_letter_topic
        if not queue:
            return None
        settings = self._clients.producer.settings
        largest = int(settings.get("message.max.bytes", LARGEST_MESSAGE_BYTES))
        is_compressed = any(settings.get(key, "none") != "none" for key in ("compression.type", "compression.codec"))
        return dead_letter_queue.limits_of(self.admin, queue, largest, is_compressed=is_compressed)

    def ensure_dead_letter_queue(self) -> None:
        """Create the connector's dead letter queue if it is missing, as Kafka Connect does.

        Raises:
            AccessError, ConfigError, UnavailableError: it is missing and cannot be created.
        """
        errors = self._config.connector.errors
        if errors.dead_letter_topic:
            dead_letter_queue.ensure(self.admin, errors.dead_letter_topic, errors.dead_letter_replication_factor)

    def log_state(self, limits: RunLimits) -> LogState:
        """The current ends of the topics, and what the group has committed.

        Raises:
            AccessError: a topic does not exist or may not be read.
        """
        found = self._topics()
        tps = [TopicPartition(name, p) for name, info in sorted(found.items()) for p in range(info.partitions)]
        # Read first: what is below this high watermark and not below the stable end read later is an open transaction.
        written = watermarks.latest_offsets(self.admin, tps, watermarks.READ_UNCOMMITTED)
        end = watermarks.latest_offsets(self.admin, tps, self._clients.consumer.isolation_level)
        committed = consumer_group.read_committed_offsets(self.admin, self._config.consumer_group, tps)
        beyond = [tp for tp, offset in committed.items() if offset > end[tp]]
        first_later: dict[TopicPartition, int] = {}
        if limits.until_timestamp_ms is not None:
            later = watermarks.offsets_for_timestamp(self.admin, tps, limits.until_timestamp_ms)
            first_later = {tp: offset for tp, offset in later.items() if offset is not None}
        return LogState(
            topic_ids={name: info.topic_id for name, info in found.items()},
            earliest=watermarks.earliest_offsets(self.admin, tps),
            end=end,
            committed=committed,
            first_later=first_later,
            unstable=frozenset(tp for tp in tps if written[tp] > end[tp]),
            high=watermarks.latest_offsets(self.admin, beyond, watermarks.READ_UNCOMMITTED) if beyond else {},
        )

    def _topics(self) -> dict[str, TopicInfo]:
        connector = self._config.connector
        return topics.resolve_topics(
            self.admin, list(connector.topics) if connector.topics else None, connector.topics_regex or None
        )
