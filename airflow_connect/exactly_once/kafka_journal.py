"""The journal in Kafka: every write is one transaction of the connector's fenced producer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.exactly_once.journal import Commit, JournalView
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import ConnectorState
from airflow_connect.kafka.state import bookmarks, runs_topic
from airflow_connect.kafka.state.bookmarks import Bookmark
from airflow_connect.kafka.state.runs_topic import ConnectorRecords
from airflow_connect.kafka.state.state_documents import parse_key, record_key

if TYPE_CHECKING:
    from airflow_connect.kafka.admin.consumer_group import GroupMetadata
    from airflow_connect.kafka.clients.short_lived import Admin
    from airflow_connect.kafka.state.runs_topic import RunsTopic
    from airflow_connect.kafka.writing.transactions import OutgoingRecord, TransactionalWriter

STATE, MANIFEST, RUN = "state", "manifest", "run"
END = "end"
"""How the last run without an entry in the history has ended. For sensors: no run reads it."""
PROGRESS = "progress"
"""How far the run is that copies now. For pages: no run reads it, and it is not written in a transaction."""
HISTORY = 100
"""Runs kept in the history of a connector; older entries get tombstones."""
WORTH_A_BOOKMARK = 1_000
"""A partition with fewer offsets is read faster than its bookmark."""


@dataclass(frozen=True, slots=True)
class JournalClients:
    """The Kafka clients and topics of the journal.

    Attributes:
        admin: reads the end offset of the runs topic.
        reader_settings: librdkafka settings for reading the runs topic.
        writer: the connector's transactional producer.
        topic: the runs topic.
        group: the connector's consumer group.
    """

    admin: Admin
    reader_settings: Mapping[str, Any] = field(repr=False)
    writer: TransactionalWriter
    topic: RunsTopic
    group: GroupMetadata


class KafkaJournal:
    """`exactly_once.journal.Journal` on the runs topic."""

    def __init__(self, connector: str, clients: JournalClients) -> None:
        """`clients`: open clients; the caller closes them."""
        self._connector = connector
        self._clients = clients
        self._records: dict[str, bytes] = {}
        self._history: set[str] = set()
        self._may_tell = self._is_far = False
        self.position = 0

    def fence(self) -> None:
        """Take the transactional id away from earlier runs (invariant 2)."""
        self._clients.writer.fence()
        self._may_tell = True

    def read(self) -> JournalView:
        """Read the connector's partition of the runs topic. Call it after `fence`: nothing is written later."""
        clients = self._clients
        found, mark, low = read_state(clients.admin, clients.reader_settings, clients.topic, self._connector)
        self._records, self.position = found.values, found.end
        self._history = _history(found, mark)
        newer = _bookmark_of(found, self._history)
        self._is_far = newer is not None and found.end - newer.offset >= WORTH_A_BOOKMARK
        if newer is not None and newer.offset - (mark.offset if mark else low) >= WORTH_A_BOOKMARK:
            place = clients.topic.place_of(self._connector)
            bookmarks.save(clients.admin, clients.reader_settings, self._connector, place, newer)
        return view_of(self._connector, self._records)

    def begin(self, state: ConnectorState) -> None:
        """One transaction with the new state."""
        self._write([(STATE, "", state.to_json())])

    def write_manifest(self, manifest: Manifest) -> None:
        """All chunks in one transaction (invariant 3)."""
        self._write([(MANIFEST, "", manifest.to_json())])

    def commit(self, commit: Commit) -> None:
        """Offsets, dead letters, summary, state and the closing of the manifest in one transaction (invariant 5)."""
        documents: list[tuple[str, str, Mapping[str, Any] | None]] = [(STATE, "", commit.state.to_json())]
        if commit.closes_manifest:
            documents.append((MANIFEST, "", None))
        if commit.summary is not None:
            documents.append((RUN, str(commit.summary["run_id"]), {"v": 1, **commit.summary}))
            old = self._old_runs()
            documents += [(RUN, name, None) for name in old]
            self._history = self._history.union([str(commit.summary["run_id"])]).difference(old)
        self._write(documents, commit)

    def tell_end(self, end: Mapping[str, Any]) -> None:
        """Write how this run has ended, for sensors. It is not part of the protocol.

        Writes nothing if this run has fenced no other, or if an earlier write failed: its outcome may be unknown, and
        the state that this object knows may be older than the one in the topic.

        Raises:
            FencedError: a newer run has taken over.
            UnavailableError: it was not written, or the outcome is unknown.
        """
        if not self._may_tell:
            return
        documents: list[tuple[str, str, Mapping[str, Any] | None]] = [(END, "", {"v": 1, **end})]
        state = view_of(self._connector, self._records).state if self._is_far else None
        if state is not None:
            # Runs that find nothing write only this. With the same state again, the next bookmark lies behind them.
            documents.append((STATE, "", state.to_json()))
        self._write(documents)

    def progress_record(self, progress: Mapping[str, Any]) -> OutgoingRecord:
        """The record that tells pages how far this run is: one key for each connector, so compaction keeps one."""
        topic = self._clients.topic
        ((key, value),) = runs_topic.encode_document(PROGRESS, self._connector, progress)
        return topic.name, topic.partition_of(self._connector), key, value

    def close(self) -> None:
        """Release the producer."""
        self._clients.writer.close()

    def _write(self, documents: list[tuple[str, str, Mapping[str, Any] | None]], commit: Commit | None = None) -> None:
        topic = self._clients.topic
        partition = topic.partition_of(self._connector)
        # An entry below the bookmark was not read. It is a single piece: no report is large enough for two.
        unread = {record_key(kind, self._connector, 0, name) for kind, name, gone in documents if name and gone is None}
        encoded = [
            record
            for kind, name, document in documents
            for record in runs_topic.encode_document(kind, self._connector, document, name, {*self._records, *unread})
        ]
        outgoing = [(topic.name, partition, key, value) for key, value in encoded]
        letters = list(commit.dead_letters) if commit else []
        offsets = dict(commit.offsets) if commit and commit.offsets else None
        self._may_tell = False
        self._clients.writer.commit(outgoing, offsets, self._clients.group if offsets else None, letters)
        for key, value in encoded:
            if value is None:
                self._records.pop(key.decode(), None)
            else:
                self._records[key.decode()] = value
        self._may_tell = True

    def _old_runs(self) -> list[str]:
        """Names of history entries beyond the newest `HISTORY - 1`; run ids sort by time."""
        names = sorted(self._history)
        return names[: max(0, len(names) - (HISTORY - 1))]


def read_state(
    admin: Admin, settings: Mapping[str, Any], topic: RunsTopic, connector: str
) -> tuple[ConnectorRecords, Bookmark | None, int]:
    """Records of a connector from its bookmark on, the bookmark that was used, and the start offset of the log.

    Raises:
        UnavailableError: another connector's transaction stays open in the partition, or Kafka does not answer.
    """
    place = topic.place_of(connector)
    low, end = runs_topic.extent(admin, place)
    mark = bookmarks.read(admin, connector, place) if end - low >= WORTH_A_BOOKMARK else None
    if mark is not None and mark.offset <= end:
        found = runs_topic.read_from(admin, settings, topic, connector, max(low, mark.offset))
        # A state record is never deleted. If it is missing, this is not the log that the bookmark was set in.
        if record_key(STATE, connector, 0) in found.values:
            return found, mark, low
    return runs_topic.read_from(admin, settings, topic, connector, low), None, low


def _history(found: ConnectorRecords, mark: Bookmark | None) -> set[str]:
    """Names of the history entries, including those below the bookmark."""
    deleted = {str(parts[2]) for parts in map(parse_key, found.deleted) if parts[0] == RUN and len(parts) == 4}
    return {*(mark.names if mark else ()), *runs_topic.document_names(found.values, RUN)} - deleted


def _bookmark_of(found: ConnectorRecords, history: set[str]) -> Bookmark | None:
    """Where the next run may begin to read: at the first record of the state or of an open manifest."""
    mattering = [offset for key, offset in found.offsets.items() if parse_key(key)[0] in (STATE, MANIFEST)]
    return Bookmark(min(mattering), tuple(sorted(history))) if mattering else None


def view_of(connector: str, records: Mapping[str, bytes]) -> JournalView:
    """State and open manifest among the connector's records.

    Raises:
        StateError: a document is damaged or was written by a newer release.
    """
    state = runs_topic.decode_document(STATE, connector, records)
    manifest = runs_topic.decode_document(MANIFEST, connector, records)
    return JournalView(
        state=ConnectorState.from_json(state) if state else None,
        manifest=Manifest.from_json(manifest) if manifest else None,
    )
