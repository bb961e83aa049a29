"""Where a replay of a dead letter queue begins: the offsets of its group, and a copy of them in the runs topic.

Kafka deletes the offsets of a group that has not committed for `offsets.retention.minutes`, and those of a topic that
is deleted. The copy stays, and it has the id of the queue, so both cases can be told apart. Group and copy are written
in one transaction, so they differ only if somebody has altered the group.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition, is_other_topic
from airflow_connect.counting import names
from airflow_connect.exactly_once.manifest import check_version
from airflow_connect.kafka.admin import consumer_group, new_topics
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.state import runs_topic, worker_topics
from airflow_connect.kafka.state.replay_positions import ReplayPosition

if TYPE_CHECKING:
    from airflow_connect.kafka.state.runs_topic import RunsTopic
    from airflow_connect.kafka.writing.transactions import OutgoingRecord
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

_LOG = logging.getLogger(__name__)
DLQ_REPLAY = "dlq_replay"
"""Kind of the document in the runs topic; its name is that of the queue."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class KnownPositions:
    """What earlier replays of a queue have recorded.

    Attributes:
        by_partition: where this replay begins.
        topic_id: of the queue as it is now; "": the broker has no ids.
        notes: sentences for people.
    """

    by_partition: Mapping[TopicPartition, ReplayPosition]
    topic_id: str
    notes: tuple[str, ...] = ()


class RecordedPositions:
    """The copy of the positions of one connector and queue in the runs topic."""

    def __init__(self, configuration: SinkConfiguration, admin: Admin, queue: str) -> None:
        """Opens nothing."""
        self._configuration = configuration
        self._admin = admin
        self._queue = queue
        self._topic: RunsTopic | None = None
        self._present: set[str] = set()
        self._topic_id = ""
        self._positions: dict[TopicPartition, ReplayPosition] = {}

    def find(self, group: str, ranges: Sequence[OffsetRange], *, from_beginning: bool, create: bool) -> KnownPositions:
        """Where a replay begins. Call it after fencing.

        Args:
            group: the group of the replay.
            ranges: the current contents of the queue.
            from_beginning: replay everything again, whatever was replayed before.
            create: create the runs topic if it does not exist; otherwise nothing is written.

        Raises:
            StateError: what was recorded cannot be read.
            UnavailableError, AccessError, ConfigError: Kafka.
        """
        self._topic_id = new_topics.topic_id(self._admin, self._queue)
        known_id, recorded = self._read(create=create)
        tps = [r.topic_partition for r in ranges]
        committed = consumer_group.read_committed(self._admin, group, tps)
        of_group = {tp: ReplayPosition.parse(found.offset, found.note, tp) for tp, found in committed.items()}
        start = {r.topic_partition: ReplayPosition(r.start) for r in ranges}
        notes: list[str] = []
        found, self._positions = start, {}
        if is_other_topic(known_id, self._topic_id):
            notes = [_recreated(self._queue, known_id, self._topic_id, recorded)]
        else:
            kept = {tp: at for tp, at in recorded.items() if tp in start}
            self._positions = {**kept, **of_group}
            if not from_beginning:
                found, notes = {**start, **self._positions}, _compared(group, kept, of_group)
        return KnownPositions(found, self._topic_id, tuple(notes))

    def records(self, changed: Mapping[TopicPartition, ReplayPosition]) -> list[OutgoingRecord]:
        """What the transaction that moves the group to these positions also writes. Call it after `find`."""
        if self._topic is None:
            raise RuntimeError("The positions were not read, or there is no runs topic.")
        self._positions.update(changed)
        name, topic = self._configuration.name, self._topic
        document = {
            "v": VERSION,
            "topic_id": self._topic_id,
            "positions": [[tp.partition, at.offset, at.note(tp)] for tp, at in sorted(self._positions.items())],
        }
        encoded = runs_topic.encode_document(DLQ_REPLAY, name, document, self._queue, self._present)
        self._present = {key.decode() for key, value in encoded if value is not None}
        return [(topic.name, topic.partition_of(name), key, value) for key, value in encoded]

    def _read(self, *, create: bool) -> tuple[str, dict[TopicPartition, ReplayPosition]]:
        """The id of the queue and the positions, as the last replay has recorded them."""
        worker = self._configuration.resolved.worker
        self._topic = runs_topic.find(self._admin, worker.runs_topic)
        if create:
            self._topic = worker_topics.ensure_runs(self._admin, worker, _LOG.info)
        if self._topic is None:
            return "", {}
        found = runs_topic.read(
            self._admin, self._configuration.consumer.settings, self._topic, self._configuration.name
        )
        self._present = set(found)
        document: Mapping[str, Any] | None = runs_topic.decode_document(
            DLQ_REPLAY, self._configuration.name, found, self._queue
        )
        if document is None:
            return "", {}
        check_version(document, VERSION, "position of the replay")
        positions: dict[TopicPartition, ReplayPosition] = {}
        for partition, offset, note in document["positions"]:
            tp = TopicPartition(self._queue, partition)
            positions[tp] = ReplayPosition.parse(offset, note, tp)
        return str(document["topic_id"]), positions


def _recreated(queue: str, known_id: str, now: str, recorded: Mapping[TopicPartition, ReplayPosition]) -> str:
    ends = names([f"{tp}@{at.offset}" for tp, at in sorted(recorded.items())])
    return (
        f"The dead letter queue {queue} was recreated: its id is {now}, and the last replay saw {known_id}, of which it"
        f" had replayed up to {ends}. Letters of the former topic that were not replayed are gone. All letters of the"
        " topic that is there now are replayed."
    )


def _compared(
    group: str, recorded: Mapping[TopicPartition, ReplayPosition], of_group: Mapping[TopicPartition, ReplayPosition]
) -> list[str]:
    """What differs between the copy and the group."""
    expired = [f"{tp}@{at.offset}" for tp, at in sorted(recorded.items()) if tp not in of_group]
    altered = [
        f"{tp} from {at.offset} to {of_group[tp].offset}"
        for tp, at in sorted(recorded.items())
        if tp in of_group and of_group[tp] != at
    ]
    notes = []
    if expired:
        notes.append(
            f"Group {group} has lost its offsets: they have expired, or were deleted. The replay continues where the"
            f" last one ended: {names(expired)}. To replay every letter again, use"
            " airflow-connect dlq replay --from-beginning."
        )
    if altered:
        notes.append(
            f"The offsets of group {group} were altered since the last replay: {names(altered)}. The replay continues"
            " at those of the group."
        )
    return notes
