"""The driver's view of Kafka during one run of a source: journal, offsets topic, config topic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.counting import names, plural
from airflow_connect.errors import NotStoppedError
from airflow_connect.exactly_once.kafka_journal import JournalClients, KafkaJournal, read_state, view_of
from airflow_connect.exactly_once.state import OffsetsLog
from airflow_connect.kafka.admin import consumer_group
from airflow_connect.kafka.admin.worker_group import live_workers
from airflow_connect.kafka.state import compacted_topics, config_topic, runs_topic, worker_topics
from airflow_connect.kafka.state.compacted_topics import CompactedTopic
from airflow_connect.kafka.state.murmur2 import partition_for
from airflow_connect.kafka.state.offsets import offsets_topic, offsets_view
from airflow_connect.kafka.state.offsets.offsets_file import OffsetsFile
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets
from airflow_connect.kafka.state.offsets.offsets_view import OffsetsView
from airflow_connect.kafka.writing import transactions
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.runtime.driver.cluster_session import ClusterSession
from airflow_connect.runtime.settings import KnownState

if TYPE_CHECKING:
    from airflow_connect.api.source import OffsetChanges, SourceOffset, SourcePartition
    from airflow_connect.exactly_once.journal import Journal
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.kafka.state.config_topic import SourceState
    from airflow_connect.runtime.driver.source.configuration import SourceConfiguration


class SourceSession(ClusterSession):
    """Clients of one run. One producer writes everything; a newer run takes over its transactional id."""

    def __init__(self, configuration: SourceConfiguration) -> None:
        """Opens nothing; `with` does."""
        super().__init__(configuration)
        self._config = configuration.resolved
        self._writer: TransactionalWriter | None = None
        self._offsets = OffsetsView(self._config.connector.name, self._config.offsets_topics)
        self._partitions: dict[str, int] = {}

    def open_writer(self) -> Journal:
        """The connector's journal; finds or creates every state topic that the run needs.

        Raises:
            ConfigError, AccessError, UnavailableError: a topic cannot be used or created.
        """
        runs = worker_topics.ensure_runs(self.admin, self._config.worker, self.notes.append)
        for topic in self._state_topics():
            self._partitions[topic.name] = compacted_topics.ensure(self.admin, topic)
        settings = self._producer_settings()
        self._group = consumer_group.group_metadata(f"connect-{self._config.connector.name}", settings)
        self._writer = TransactionalWriter(settings, self._config.transactional_id)
        clients = JournalClients(self.admin, self._reader_settings(), self._writer, runs, self._group)
        self._journal = KafkaJournal(self._config.connector.name, clients)
        return self._journal

    def read_state(self) -> SourceState:
        """The connector's state in the config topic."""
        name = self._config.connector.name
        return config_topic.read(self.admin, self._reader_settings(), self._config.worker.sources.config_topic, name)

    def peek_state(self) -> ConnectorState | None:
        """What the last run has left, without fencing other runs or creating anything; None: there was none."""
        topic = runs_topic.find(self.admin, self._config.worker.runs_topic)
        if topic is None:
            return None
        name = self._config.connector.name
        return view_of(name, read_state(self.admin, self._reader_settings(), topic, name)[0].values).state

    def ensure_group_empty(self, state: SourceState) -> None:
        """Refuse to continue while a live Kafka Connect worker may be running the connector.

        That is: the worker's group has members, and the config topic holds a connector of this name that is not
        stopped. A worker of another group, or with another config topic, cannot be detected.

        Raises:
            NotStoppedError: names the workers.
        """
        if not state.is_configured or state.target_state == config_topic.STOPPED:
            return
        workers = live_workers(self.admin, self._config.worker.group_id)
        if workers:
            name = self._config.connector.name
            raise NotStoppedError(
                f"Connector {name} is {state.target_state} on {plural(len(workers), 'live Kafka Connect worker')} of"
                f" group {self._config.worker.group_id}: {names(workers)}.",
                suggestion=f"Stop it there (PUT /connectors/{name}/stop), then run again. Nothing was changed.",
            )

    def fence_tasks(self, count: int) -> None:
        """Fence the tasks of the last generation, and abort their open transactions.

        Source: DistributedHerder.fenceZombieSourceTasks (KIP-618).

        Raises:
            UnavailableError, AccessError: Kafka refused, or did not answer.
        """
        ids = [self._config.task_transactional_id(task) for task in range(count)]
        transactions.fence(self._producer_settings(), ids)

    def write_task_count(self, count: int) -> None:
        """Record which tasks the next run must fence.

        Raises:
            FencedError: a newer run has taken over.
        """
        topic = self._config.worker.sources.config_topic
        key, value = config_topic.task_count_record(self._config.connector.name, count)
        self._open_writer.commit([(topic, config_topic.PARTITION, key, value)])

    def expect_offsets(self, logs: Mapping[str, OffsetsLog]) -> None:
        """Take how far the last run has read the topics with offsets."""
        self._offsets.expect(
            {topic: (log.topic_id, {int(p): end for p, end in log.ends.items()}) for topic, log in logs.items()}
        )

    def offsets_logs(self) -> dict[str, OffsetsLog]:
        """How far this run has read them."""
        return {
            topic: OffsetsLog(topic_id, {str(p): end for p, end in sorted(ends.items())})
            for topic, (topic_id, ends) in self._offsets.reached().items()
        }

    def lost_ends(self) -> list[str]:
        """Sentences about topics with offsets that have lost their end, each once."""
        lost = self._offsets.take_lost()
        if not lost:
            return []
        where = names([f"{tp} from {before} to {now}" for tp, (before, now) in sorted(lost.items())])
        sentence = (
            f"Topics with offsets have lost their end since it was read: {where}. Offsets of the connector may be older"
            " than what it has copied, so records may be copied again. Kafka loses what it has confirmed if a replica"
            " that lacks it becomes the leader (unclean.leader.election.enable), or if its disks do. If records must"
            " not be copied again, stop the connector and set its offsets before the next run."
        )
        return [sentence]

    def differing_copies(self) -> list[str]:
        """A sentence about offsets that two topics have, and not the same."""
        differing = self._offsets.take_differing()
        if not differing:
            return []
        one = differing[0]
        counts = "it was deleted there" if one.counts is None else f"{json.dumps(one.counts)} there"
        shown = "" if len(differing) == 1 else "for example, "
        sentence = (
            f"The topics {one.newer} and {one.older} have different offsets of"
            f" {plural(len(differing), 'source partition')}: {shown}that of {json.dumps(one.partition)}"
            f" was last written to {one.newer} ({counts}), and {one.older} has {json.dumps(one.not_used)}. The newer"
            " one counts, by the time of its record, and is written to both. If it is not the right one, stop the"
            " connector and set its offsets."
        )
        return [sentence]

    def read_offsets(self) -> SourceOffsets:
        """Committed offsets of the connector."""
        return self._offsets.read(self.admin, self._reader_settings())

    def take_offsets(self) -> SourceOffsets:
        """Committed offsets at the start of a run. Also moves the bookmarks, so that the next run reads little.

        Offsets that have not moved for a long time lie far before all others. If they are few, they are written again
        unchanged; then bookmarks are set. Call it only when no task can write any more.

        Raises:
            FencedError: a newer run has taken over.
        """
        offsets = self.read_offsets()
        if misplaced := self._offsets.misplaced():
            self._open_writer.commit(misplaced)
            offsets = self.read_offsets()
        again = self._offsets.holding_back()
        while again:
            self._open_writer.commit(again)
            offsets = self.read_offsets()
            again = self._offsets.covered()
        self._offsets.keep_bookmarks(self._reader_settings())
        return offsets

    def known_state(self, wanted: Sequence[frozenset[str] | None]) -> KnownState:
        """What tasks need not read again: the offsets as last read, and the position of this run's claim.

        Args:
            wanted: for each task the identities of the source partitions whose offsets it needs; None: unknown.
        """
        claim = self._journal.position if self._journal else 0
        everything = self._offsets.packed() if None in wanted else b""
        own = tuple(b"" if identities is None else self._offsets.packed(identities) for identities in wanted)
        if len(everything) + sum(map(len, own)) > offsets_view.MOST_BYTES:
            return KnownState(claim, self._offsets.packed_starts())
        return KnownState(claim, everything, own)

    def changes_in_file(self, offsets: SourceOffsets) -> list[tuple[SourcePartition, SourceOffset | None]]:
        """Changes that turn `offsets` into those of a standalone worker that continued after us; none without its file.

        Raises:
            ConfigError, UnavailableError: the file is something else, or cannot be read.
        """
        file = self._offsets_file
        return [] if file is None else file.changes(offsets)

    def copy_to_file(self, offsets: SourceOffsets) -> None:
        """Write the connector's offsets to the offsets file, along with those of other connectors.

        Raises:
            ConfigError, UnavailableError: the file is something else, or cannot be written.
        """
        file = self._offsets_file
        if file is not None:
            file.copy(offsets)

    @property
    def _offsets_file(self) -> OffsetsFile | None:
        path = self._config.worker.sources.offsets_file
        return OffsetsFile(path, self._config.connector.name) if path else None

    def write_offsets(self, offsets: SourceOffsets, changes: OffsetChanges) -> int:
        """Change offsets in every offsets topic, in one transaction; returns how many changed.

        Raises:
            FencedError: a newer run has taken over.
        """
        records = offsets_topic.offset_changes(offsets, changes)
        self._write_records(records)
        return len(records)

    def _write_records(self, records: Sequence[offsets_topic.OffsetRecord]) -> None:
        if records:
            self._open_writer.commit(
                [
                    (topic, partition_for(key, self._partitions[topic]), key, value)
                    for topic in self._config.offsets_topics
                    for key, value in records
                ]
            )

    @property
    def _open_writer(self) -> TransactionalWriter:
        if self._writer is None:
            raise RuntimeError("Nothing may be written before the run has fenced older runs.")
        return self._writer

    def _state_topics(self) -> list[CompactedTopic]:
        shared = self._config.worker.sources
        configs = self._upkeep(shared.config_topic_settings)
        return [
            *(
                worker_topics.offsets(self._config.worker, name, self.notes.append)
                for name in self._config.offsets_topics
            ),
            CompactedTopic(shared.config_topic, 1, shared.config_replication_factor, "config.storage.topic", configs),
        ]

    def _producer_settings(self) -> dict[str, Any]:
        return self._clients.producer.settings

    def _reader_settings(self) -> dict[str, Any]:
        return self._clients.consumer.settings
