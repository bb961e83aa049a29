"""The connector's state record: what the last run planned and committed, and what it may have left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from airflow_connect.api.json_document import JsonDocument, from_plain, to_plain
from airflow_connect.api.offsets import OffsetRange, TopicPartition, is_other_topic
from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.documents.run_lag import LagOfHour
from airflow_connect.documents.run_tables import TableCommit
from airflow_connect.exactly_once import earlier
from airflow_connect.exactly_once.manifest import check_version
from airflow_connect.exactly_once.phases import CLOSED, COPYING

__all__ = ["CLOSED", "COPYING", "VERSION", "BegunTopic", "ConnectorState", "OffsetsLog"]

VERSION = 2
"""Since 2 the connector has a document of its own. Only a state with one has version 2: an older release refuses it,
because it would lose the document, and reads all others."""
MOST_ABSENT = 1_000
"""How many deleted topics are remembered by their id, so that one that is created again is not taken for a new one."""


class BegunTopic(NamedTuple):
    """A topic of which a run began to copy records, and of which no run has committed an offset.

    Attributes:
        topic_id: Kafka's id at that time.
        run_id: the first run that began.
        offsets: how many it was to copy.
    """

    topic_id: str
    run_id: str
    offsets: int


class OffsetsLog(NamedTuple):
    """How far a topic with offsets of a source was read when a run ended.

    Attributes:
        topic_id: Kafka's id at that time.
        ends: for each partition the high watermark; "0" is partition 0.
    """

    topic_id: str
    ends: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ConnectorState(JsonDocument):
    """What is known about a connector between runs, apart from its consumer group.

    Attributes:
        run_id: the run that was the last to copy, or to publish the manifest of an earlier run.
        phase: `copying` from the start of a copy until its commit, else `closed`. A run that finds `copying` and no
            open manifest knows that its predecessor died and may have left staged files.
        committed: mirror of the group's offsets; Kafka drops a group's offsets after `offsets.retention.minutes`.
        topic_ids: Kafka's topic ids when the topic was last seen; a different id means that the topic was recreated.
            Topics that the last run did not see come first, those that have been away longest before the others. Of a
            source: those of the topics to which it has written.
        begun: topics of which a run began to copy and nothing is committed, so that the next run can say what became of
            one that is gone.
        leftovers: what to sweep; empty when there cannot be any. While a run copies, the first one is its own.
        kept: the connector's own document (api/sink_state.py), which nothing here reads.
        gone, forgotten: see `PlannedRun`: what the connector must be told before it uses `kept`.
        announced, announced_to: documents of what the last commit completed, and the Airflow task that announces it
            ({} outside Airflow). A retry of that task announces it again, in case the first try died before it did.
        announced_tables: likewise, the snapshots that the last commit has added to tables.
        bounds: of a replay: `asked`, the range as people wrote it, and `chosen`, the offsets that its first run found.
        bytes_per_record: average of the last run, per topic: the cost estimate of the next one.
        lag_of_hours: of a sink, the lag that its runs have found during the last week. For pages: no run reads it.
        source_partitions: of a source, the number of source partitions that had an offset when the last run ended.
        routes: of a source, a hash for each key of the transformations that choose the topics of its records, or drop
            some, in the last run that ended; {}: unknown.
        offsets_logs: of a source, how far its offsets were read in each of their topics when the last run ended.
        unpublished: the last run, if it committed before it published (`at_most_once`): staged files that the next run
            finds are then records that are lost.
    """

    LEFT_OUT = frozenset(
        {
            "kept",
            "gone",
            "forgotten",
            "bounds",
            "begun",
            "lag_of_hours",
            "source_partitions",
            "offsets_logs",
            "routes",
            "unpublished",
            "announced_tables",
        }
    )
    MAY_LACK = frozenset({"announced", "announced_to"})

    connector: str
    run_id: str
    phase: str
    at_ms: int
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    leftovers: tuple[LeftoverPattern, ...] = ()
    bytes_per_record: Mapping[str, float] = field(default_factory=dict)
    announced: tuple[Mapping[str, Any], ...] = ()
    announced_to: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()
    bounds: Mapping[str, Any] = field(default_factory=dict)
    begun: Mapping[str, BegunTopic] = field(default_factory=dict)
    lag_of_hours: tuple[LagOfHour, ...] = ()
    source_partitions: int = 0
    offsets_logs: Mapping[str, OffsetsLog] = field(default_factory=dict)
    routes: Mapping[str, str] = field(default_factory=dict)
    unpublished: str = ""
    announced_tables: tuple[TableCommit, ...] = ()

    def seeing(self, topic_ids: Mapping[str, str], deleted: Collection[str] = ()) -> ConnectorState:
        """The state after a commit of a run that saw these topics: without what is known of topics that are gone.

        Offsets of a topic that was deleted mean nothing to a topic with the same name. A topic that the run did not see
        may be back in the next one, so it keeps what is known. The connector is told at the next plan.

        Args:
            topic_ids: every topic of the run, with Kafka's id.
            deleted: topics that Kafka no longer has. Of them only the id is kept, of the `MOST_ABSENT` latest ones.
        """
        gone = self.recreated(topic_ids).union(deleted)
        committed = {tp: offset for tp, offset in self.committed.items() if tp.topic not in gone}
        absent = [topic for topic in self.topic_ids if topic not in topic_ids]
        kept = {tp.topic for tp in committed}
        forgotten = [topic for topic in absent if topic not in kept][:-MOST_ABSENT]
        return replace(
            self,
            committed=committed,
            topic_ids={**{t: self.topic_ids[t] for t in absent if t not in set(forgotten)}, **topic_ids},
            bytes_per_record={t: size for t, size in self.bytes_per_record.items() if t not in gone},
            gone=self.gone.union(gone) if self.kept else frozenset(),
            forgotten=self.forgotten.union(forgotten) if self.kept else frozenset(),
            begun={t: one for t, one in self.begun.items() if t not in topic_ids and t not in deleted},
        )

    def recreated(self, topic_ids: Mapping[str, str]) -> frozenset[str]:
        """Those of the topics that have another id than when they were last seen."""
        return frozenset(t for t, i in topic_ids.items() if is_other_topic(self.topic_ids.get(t, ""), i))

    def beginning(self, run_id: str, topic_ids: Mapping[str, str], ranges: Iterable[OffsetRange]) -> ConnectorState:
        """The state of a run that begins to copy: with the topics that it is the first to copy.

        Args:
            run_id: the run.
            topic_ids: of all of its topics.
            ranges: what it copies.
        """
        offsets: Counter[str] = Counter()
        for planned in ranges:
            offsets[planned.topic] += len(planned)
        known = {tp.topic for tp in self.committed} | self.topic_ids.keys()
        new = {
            topic: BegunTopic(topic_ids.get(topic, ""), run_id, count)
            for topic, count in offsets.items()
            if topic not in known
        }
        # What an earlier run began counts: it may be gone since.
        return replace(self, run_id=run_id, phase=COPYING, begun={**new, **self.begun})

    def to_json(self) -> dict[str, Any]:
        """Versioned JSON form."""
        return {"v": VERSION if self.kept else 1, **to_plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ConnectorState:
        """Inverse of `to_json`.

        Raises:
            StateError: written by a newer version, or damaged.
        """
        check_version(data, VERSION, "state record")
        return from_plain(cls, {"kept": earlier.kept(data), **data})
