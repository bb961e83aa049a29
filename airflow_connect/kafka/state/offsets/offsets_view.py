"""The offsets of one source in its topics, and how far each topic was read, so that later reads start there.

The driver reads the topics once, from its bookmarks (`bookmarks.LogMark`) if they are long. Later in the run, and in
the tasks, reading continues from there: after the high watermark of that time there is only what was written since. A
task gets the offsets that it is expected to request. If it requests others, it reads the topics as the driver did.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.admin import new_topics
from airflow_connect.kafka.admin.watermarks import LogEnd, earliest_offsets, log_ends
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import bookmarks, compacted_topics
from airflow_connect.kafka.state.bookmarks import LogMark
from airflow_connect.kafka.state.murmur2 import partition_for
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets, identity
from airflow_connect.kafka.state.own_records import OwnRecords
from airflow_connect.retrying import Backoff, Retry

if TYPE_CHECKING:
    from confluent_kafka import Message

    from airflow_connect.api.source import SourceOffset, SourcePartition
    from airflow_connect.kafka.clients.short_lived import Admin

MOST_BYTES = 4 * 1024 * 1024
"""Offsets with a larger compressed size are not sent to tasks; each task reads them itself."""
BEHIND_TIMEOUT_S = 30.0
"""How long a broker may take to see that it does not lead a partition any more: it answers with an earlier end."""
MOST_MOVED = 5_000
"""Offsets of a connector with more source partitions are not moved before they have several copies."""
WORTH_A_BOOKMARK = 1_000
"""A topic with fewer offsets is read faster than its bookmarks."""

StateRecord = tuple[str, int, bytes, bytes | None]
"""Topic, partition, key and value."""


@dataclass(slots=True)
class _Known:
    """One topic.

    Attributes:
        offsets: of the connector.
        topic_id: Kafka's id of the topic when it was read.
        ends: how far each partition was read.
        starts: where reading began; nothing below matters.
        own: positions of the connector's records, by partition.
        partitions: of the topic, when it was last read.
        where: for each key of the connector the partition and the timestamp of the record that counts.
        strays: other partitions with a record of a key. They exist if partitions were added to the topic: since then
            the key belongs elsewhere, and the order in which partitions are read says nothing.
        outdated: keys whose offset in this topic is not the one that counts, with that one (None: deleted).
    """

    offsets: SourceOffsets
    topic_id: str = ""
    ends: dict[int, LogEnd] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    own: dict[int, OwnRecords] = field(default_factory=dict)
    partitions: int = 0
    where: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    strays: dict[bytes, set[int]] = field(default_factory=dict)
    outdated: dict[bytes, bytes | None] = field(default_factory=dict)

    def take(self, message: Message[Any, Any]) -> None:
        """Apply one record of the topic."""
        key, value, partition = message.key(), message.value(), int(message.partition() or 0)
        own = self.own.get(partition)
        if own is None:
            own = self.own[partition] = OwnRecords()
        offset, epoch = int(message.offset() or 0), message.leader_epoch()
        own.passed(offset, -1 if epoch is None else epoch)
        place = partition, message.timestamp()[1]
        if key in self.where and self.where[key][0] != partition:
            own.take(key, value, offset)
            self._choose(key, value, place)
        elif self.offsets.take(key, value) and key is not None:
            own.take(key, value, offset)
            self._remember(key, value, place)

    def _choose(self, key: bytes, value: bytes | None, place: tuple[int, int]) -> None:
        """Of two records of a key the newest counts, but a tombstone only where the key belongs."""
        before, home = self.where[key], partition_for(key, self.partitions)
        is_home = place[0] == home
        is_newer = place[1] >= before[1] if is_home else value is not None and place[1] > before[1]
        if is_newer:
            self.offsets.take(key, value)
            self._remember(key, value, place)
        stray = before[0] if is_newer else place[0]
        if is_newer or value is not None:
            self.strays.setdefault(key, set()).add(stray)
        else:
            self.strays.get(key, set()).discard(stray)

    def _remember(self, key: bytes, value: bytes | None, place: tuple[int, int]) -> None:
        if value is None and place[0] != partition_for(key, self.partitions):
            self.where.pop(key, None)
        else:
            self.where[key] = place

    def written_ms(self, key: bytes) -> int | None:
        """When the record of a key was written, which may be one that deletes; None: it was not read here."""
        return self.where[key][1] if key in self.where else None

    def deleted(self) -> dict[str, int]:
        """When offsets were deleted, by the identity of their source partition, as far as the topic still tells."""
        live = {stored.key for stored in self.offsets.stored()}
        gone = {identity(json.loads(key)[1]): place[1] for key, place in self.where.items() if key not in live}
        return {who: at for who, at in gone.items() if not self.offsets.holds(who)}

    def replace(self, key: bytes, value: bytes | None, at_ms: int) -> None:
        """Take what another topic has, until it is written to this one."""
        self.offsets.take(key, value)
        self.where[key] = self.where[key][0], at_ms
        self.outdated[key] = value

    def first_relevant_offset(self, partition: int) -> int:
        """The offset from which the connector's records in a partition matter, as far as it was read."""
        first = self.own[partition].first if partition in self.own else None
        return self.ends[partition].offset if first is None else first


class Differing(NamedTuple):
    """An offset of which two topics had different copies; `counts` None: it was deleted."""

    partition: SourcePartition
    newer: str
    counts: SourceOffset | None
    older: str
    not_used: SourceOffset


class OffsetsView:
    """Committed offsets of a connector, of all its topics together."""

    def __init__(self, connector: str, topics: Sequence[str]) -> None:
        """Reads nothing yet. `topics`: in order of precedence."""
        self._connector = connector
        self._topics = {topic: _Known(SourceOffsets(connector)) for topic in topics}
        self._handed: frozenset[str] | None = None
        self._reached: dict[str, tuple[str, Mapping[int, int]]] = {}
        self._lost: dict[TopicPartition, tuple[int, int]] = {}
        self._differing: list[Differing] = []

    def expect(self, reached: Mapping[str, tuple[str, Mapping[int, int]]]) -> None:
        """Take how far each topic was read by the last run: its id, and the high watermark of each partition."""
        self._reached = {topic: one for topic, one in reached.items() if topic in self._topics}

    def reached(self) -> dict[str, tuple[str, dict[int, int]]]:
        """How far each topic was read, in the form that `expect` takes."""
        return {
            topic: (known.topic_id, {partition: end.offset for partition, end in known.ends.items()})
            for topic, known in self._topics.items()
            if known.topic_id
        }

    def take_lost(self) -> dict[TopicPartition, tuple[int, int]]:
        """Partitions that have lost their end since they were read: where that was, and where it is now."""
        taken, self._lost = self._lost, {}
        return taken

    def read(self, admin: Admin, settings: Mapping[str, Any]) -> SourceOffsets:
        """The current offsets; in a task those that it was given, and those written since.

        The first topic takes precedence; offsets that only later topics have are added (ConnectorOffsetBackingStore).
        Where both have one, the newer counts: the connector may have run without its own topic meanwhile.

        Raises:
            UnavailableError, AccessError: a topic cannot be read.
        """
        together = SourceOffsets(self._connector)
        for topic in self._topics:
            self._refresh(admin, settings, topic)
        first, *others = self._topics
        for other in others:
            self._settle(first, other)
        for known in self._topics.values():
            together.take_missing(known.offsets)
        return together

    def _settle(self, first: str, other: str) -> None:
        """Let the newer one of two offsets count in both topics. Without both times, the first topic has precedence."""
        ours, theirs = self._topics[first], self._topics[other]
        deleted = theirs.deleted()
        for stored in ours.offsets.stored():
            who = identity(stored.partition)
            at, copy = ours.written_ms(stored.key), next(iter(theirs.offsets.stored([who])), None)
            copied_at = deleted.get(who) if copy is None else theirs.written_ms(copy.key)
            if at is None or copied_at is None or (copy is not None and copy.offset == stored.offset):
                continue
            if copied_at > at:
                value = None if copy is None else json.dumps(copy.offset, separators=(",", ":")).encode()
                ours.replace(stored.key, value, copied_at)
                counts = None if copy is None else copy.offset
                self._differing.append(Differing(stored.partition, other, counts, first, stored.offset))
            elif copy is not None:
                theirs.replace(copy.key, json.dumps(stored.offset, separators=(",", ":")).encode(), at)
                self._differing.append(Differing(stored.partition, first, stored.offset, other, copy.offset))

    def take_differing(self) -> list[Differing]:
        """Offsets of which two topics had different copies, since this was last called."""
        taken, self._differing = self._differing, []
        return taken

    @property
    def is_complete(self) -> bool:
        """Whether `read` returns every offset of the connector."""
        return self._handed is None

    def tells(self, who: str) -> bool:
        """Whether `read` returns the offset of the source partition with this identity, or there is none."""
        return self._handed is None or who in self._handed

    def read_all(self, admin: Admin, settings: Mapping[str, Any]) -> SourceOffsets:
        """Offsets of all source partitions of the connector, also in a task that was given only its own."""
        if self._handed is not None:
            self._handed = None
            self._topics = {topic: self._unread(known) for topic, known in self._topics.items()}
        return self.read(admin, settings)

    def _unread(self, known: _Known) -> _Known:
        """An empty view of a topic that only contains where to start reading."""
        ends = {partition: LogEnd(start, None) for partition, start in known.starts.items()}
        return _Known(SourceOffsets(self._connector), known.topic_id, ends, dict(known.starts))

    def _refresh(self, admin: Admin, settings: Mapping[str, Any], topic: str) -> None:
        topic_id, known = new_topics.topic_id(admin, topic), self._topics[topic]
        places = [TopicPartition(topic, number) for number in range(new_topics.partition_count(admin, topic) or 0)]
        ends, is_other_log = self._ends(admin, topic, topic_id, places)
        if known.topic_id != topic_id or is_other_log:
            known = self._topics[topic] = _Known(SourceOffsets(self._connector), topic_id)
        known.partitions = len(places)
        unread = [place for place in places if place.partition not in known.ends]
        lows = earliest_offsets(admin, unread) if unread else {}
        marks = self._marks(admin, topic, topic_id, lows, ends)
        starts = {**lows, **{place: max(lows[place], mark.start) for place, mark in marks.items()}}
        known.starts.update({place.partition: start for place, start in starts.items()})
        starts.update({p: known.ends[p.partition].offset for p in places if p.partition in known.ends})
        watermarks = {place: end.offset for place, end in ends.items()}
        for place, mark in marks.items():
            known.own[place.partition] = OwnRecords(mark)
        compacted_topics.read_to(settings, starts, watermarks, known.take)
        again = {place: lows[place] for place in marks if not known.own[place.partition].confirms_mark}
        for place, low in again.items():
            known.own[place.partition], known.starts[place.partition] = OwnRecords(), low
        compacted_topics.read_to(settings, again, {place: watermarks[place] for place in again}, known.take)
        known.ends = {place.partition: end for place, end in ends.items()}

    def _ends(
        self, admin: Admin, topic: str, topic_id: str, places: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, LogEnd], bool]:
        """High watermarks, and whether one is below what was read before, by this run or by the last one.

        A broker that hung, or that has lost the controller, may take itself for the leader for a while: then its end is
        an old one, and offsets that were committed since would be missing. If it stays below, the log has lost its end.
        """
        known = self._topics[topic]
        floors = {p: end.offset for p, end in known.ends.items()} if known.topic_id == topic_id else {}
        kept_id, kept = self._reached.get(topic, ("", {}))
        if kept_id == topic_id:
            floors = {p: max(floors.get(p, 0), kept.get(p, 0)) for p in {*floors, *kept}}
        tries = Retry(Backoff(0.05, longest_s=1.0), within_s=BEHIND_TIMEOUT_S)
        while True:
            ends = log_ends(admin, places)
            behind = {tp: floors[tp.partition] for tp, end in ends.items() if end.offset < floors.get(tp.partition, 0)}
            if not behind or not tries.pause():
                break
            admin = admin_client(admin.settings)
        self._lost |= {tp: (floor, ends[tp].offset) for tp, floor in behind.items()}
        if behind:
            self._reached.pop(topic, None)  # It is named once.
        return ends, bool(behind)

    def _marks(
        self,
        admin: Admin,
        topic: str,
        topic_id: str,
        lows: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, LogEnd],
    ) -> dict[TopicPartition, LogMark]:
        """Bookmarks of partitions that were not read yet, if these are long."""
        if sum(ends[place].offset - low for place, low in lows.items()) < WORTH_A_BOOKMARK:
            return {}
        found = bookmarks.read_marks(admin, self._connector, list(lows), topic_id)
        # A log that ends before the point up to which it was read has lost its end.
        return {place: mark for place, mark in found.items() if mark.end <= ends[place].offset}

    # --- for the next run -----------------------------------------------------------------------------------------

    def keep_bookmarks(self, settings: Mapping[str, Any]) -> None:
        """Set bookmarks where the connector's records begin to matter, if that saves much reading."""
        for topic, known in self._topics.items():
            marks = {}
            for partition, end in known.ends.items():
                own = known.own.get(partition)
                if own is None or own.last is None or end.epoch is None:
                    continue
                start = min(known.first_relevant_offset(partition), own.last)
                marks[TopicPartition(topic, partition)] = LogMark(start, end.offset, end.epoch)
            gained = sum(mark.start - known.starts[place.partition] for place, mark in marks.items())
            if gained >= WORTH_A_BOOKMARK:
                bookmarks.save_marks(settings, self._connector, known.topic_id, marks)

    def misplaced(self) -> list[StateRecord]:
        """Records that move offsets where their keys belong, after partitions were added to a topic.

        And those that write an offset to a topic that has an older one.
        """
        records: list[StateRecord] = []
        for topic, known in self._topics.items():
            records += [(topic, partition_for(k, known.partitions), k, value) for k, value in known.outdated.items()]
            known.outdated = {}
            # Of many offsets, only those with several copies: to look where a key belongs takes ten microseconds.
            keys = known.where if len(known.where) <= MOST_MOVED else known.strays
            for key in list(keys):
                home, wrong = partition_for(key, known.partitions), set(known.strays.get(key, ()))
                record = known.offsets.record_of(key)
                if record is not None and known.where[key][0] != home:
                    records.append((topic, home, record.key, record.value))
                    wrong.add(known.where[key][0])
                records += [(topic, partition, key, None) for partition in sorted(wrong - {home})]
        return records

    def holding_back(self) -> list[StateRecord]:
        """Records to write again, unchanged, so the next run can start reading much later in the log."""
        records: list[StateRecord] = []
        for topic, known in self._topics.items():
            for partition, own in known.own.items():
                for key, value in own.holding_back(known.ends[partition].offset):
                    own.write_again(key, value)
                    records.append((topic, partition, key, value))
        return records

    def covered(self) -> list[StateRecord]:
        """Records that others wrote just before a rewritten record; they must count, so they are written again."""
        return [
            (topic, partition, key, value)
            for topic, known in self._topics.items()
            for partition, own in known.own.items()
            for key, value in own.take_covered().items()
        ]

    # --- for tasks ------------------------------------------------------------------------------------------------

    def packed(self, wanted: frozenset[str] | None = None) -> bytes:
        """The offsets for a task, as text for `of_packed`.

        Args:
            wanted: identities of the source partitions that it is expected to request; None: all.
        """
        handed = wanted
        if handed is not None and not any(self._left_out(handed)):
            handed = None
        document = []
        for topic, known in self._topics.items():
            # Key and value as text; members of the key are in the order in which they were written.
            stored = known.offsets.stored(handed)
            records = [(offset.key.decode("latin-1"), json.dumps(offset.offset)) for offset in stored]
            ends = [(partition, *end) for partition, end in known.ends.items()]
            starts = [(partition, known.first_relevant_offset(partition)) for partition in known.ends]
            document.append((topic, known.topic_id, ends, starts, records))
        return _pack((document, None if handed is None else sorted(handed)))

    def packed_starts(self) -> bytes:
        """For tasks that read the offsets themselves: where to start."""
        document = []
        for topic, known in self._topics.items():
            starts = [(partition, known.first_relevant_offset(partition)) for partition in known.ends]
            ends = [(partition, start, None) for partition, start in starts]
            document.append((topic, known.topic_id, ends, starts, ()))
        return _pack((document, None))

    def _left_out(self, handed: frozenset[str]) -> Iterable[str]:
        """Source partitions with an offset that are not in `handed`."""
        return (who for known in self._topics.values() for who in known.offsets.identities() if who not in handed)

    @classmethod
    def of_packed(cls, connector: str, topics: Sequence[str], packed: bytes) -> OffsetsView:
        """Inverse of `packed`; b"" contains no offsets."""
        view = cls(connector, topics)
        if not packed:
            return view
        document, handed = json.loads(zlib.decompress(packed))
        view._handed = None if handed is None else frozenset(handed)
        for topic, topic_id, ends, starts, records in document:
            known_ends = {partition: LogEnd(offset, epoch) for partition, offset, epoch in ends}
            known = view._topics[topic] = _Known(SourceOffsets(connector), topic_id, known_ends, dict(starts))
            for key, value in records:
                known.offsets.take(key.encode("latin-1"), value.encode())
        return view


def _pack(document: Any) -> bytes:
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode())
