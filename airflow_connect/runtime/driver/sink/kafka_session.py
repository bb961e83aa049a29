"""The driver's view of Kafka during one run: topics, watermarks, group and journal, through short-lived clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.offsets import TopicPartition, is_other_topic
from airflow_connect.counting import plural
from airflow_connect.errors import OffsetError, UnavailableError
from airflow_connect.exactly_once.journal import Commit, Journal, JournalView
from airflow_connect.exactly_once.kafka_journal import JournalClients, KafkaJournal, read_state, view_of
from airflow_connect.kafka.admin import consumer_group, dead_letter_queue, topics, watermarks
from airflow_connect.kafka.state import runs_topic, worker_topics
from airflow_connect.kafka.writing.refused_records import LARGEST_MESSAGE_BYTES
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.planning.planner import LogState
from airflow_connect.runtime.driver.cluster_session import ClusterSession
from airflow_connect.runtime.driver.sink.own_commits import moved_by_tasks, wait_for_killed_tasks

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow_connect.documents.run import Plan
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.kafka.admin.dead_letter_queue import QueueLimits
    from airflow_connect.kafka.admin.topics import TopicInfo
    from airflow_connect.planning.limits import RunLimits
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration


class SinkSession(ClusterSession):
    """Clients of one run. Only `journal` writes; everything else reads."""

    def __init__(self, configuration: SinkConfiguration) -> None:
        """Opens nothing; `with` does."""
        super().__init__(configuration)
        self._config = configuration.resolved
        self._commits_offsets = configuration.commits_offsets
        self._planned_from: dict[TopicPartition, int] = {}

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
        if self._commits_offsets:
            wait_for_killed_tasks(self.admin, self._config.consumer_group, self._clients.consumer.settings)
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

    def commit_starts(self, offsets: Mapping[TopicPartition, int], state: ConnectorState) -> None:
        """Commit offsets at which the run begins, before it copies.

        Raises:
            FencedError: a newer run has taken over.
            ConnectError: Kafka refused them, or did not answer.
        """
        self.journal.commit(Commit(offsets=offsets, state=state))
        self._planned_from.update(offsets)

    def refuse_changed_offsets(self, plan: Plan, state: ConnectorState) -> None:
        """Refuse to overwrite offsets that another client has set while the run copied.

        Kafka's tools may change them then, because the group has no members. Offsets that are gone are written again.

        Raises:
            FencedError: a newer run has changed them.
            UnavailableError: names the first partition. The next run starts at its new offset.
        """
        group = self._config.consumer_group
        expected = self._planned_from
        wanted = sorted({TopicPartition(r.topic, r.partition) for r in plan.ranges})
        now = consumer_group.read_committed_offsets(self.admin, group, wanted)
        own = moved_by_tasks(plan.ranges, now) if self._commits_offsets else frozenset()
        changed = [tp for tp, offset in now.items() if offset != expected.get(tp) and tp not in own]
        if changed:
            self.journal.begin(state)  # The same again: a newer run would have fenced this one.
            first = changed[0]
            before = f"was {expected[first]}" if first in expected else "did not exist"
            more = f" So were those of {plural(len(changed) - 1, 'other partition')}." if len(changed) > 1 else ""
            raise UnavailableError(
                f"The offset of {first} in group {group} {before} when this run was planned, and is {now[first]} now:"
                f" another client has changed it while the run copied.{more} This run committed no offset.",
                code="offset.changed_meanwhile",
                suggestion="Run again: the next run starts at the offsets that the group has now. Change offsets while"
                " no run copies, or with SetOffsetsOperator, which ends such a run. If another consumer uses this"
                " group, give the connector a group of its own (consumer.override.group.id).",
            )

    def overwritten_offsets(
        self, known: Mapping[TopicPartition, int], new: Mapping[TopicPartition, int], gone: Collection[str]
    ) -> tuple[str, ...]:
        """A sentence about each offset that another client has set, and that is overwritten to close a manifest.

        Args:
            known: what the connector has committed last.
            new: what is committed now.
            gone: topics that Kafka no longer has.
        """
        group = self._config.consumer_group
        found = consumer_group.read_committed_offsets(
            self.admin, group, sorted(tp for tp in new if tp.topic not in gone)
        )
        return tuple(
            f"Another client had set the offset of {tp} in group {group} to {offset} after the run that was interrupted"
            f" began at {known[tp]}. That run's files are visible, so the offset after them, {new[tp]}, replaces it. To"
            " begin elsewhere, set the offset again."
            for tp, offset in found.items()
            if offset not in (known.get(tp, offset), new[tp])
            and not (self._commits_offsets and known.get(tp, offset) <= offset <= new[tp])
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
        self._planned_from = dict(committed)
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
