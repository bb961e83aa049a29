"""Sets the offsets of consumer groups in restored topics: a step of its own, which can be repeated.

The offsets come from a document that a run of the sink has written. Each is translated by reading backup and topic side
by side (`matching`), and never beyond what was restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition, is_other_topic
from airflow_connect.connectors.restore.backup import Backup, BackupFile
from airflow_connect.connectors.restore.documents import RunDocument
from airflow_connect.connectors.restore.groups.matching import FOREIGN, Matching, dropped
from airflow_connect.connectors.restore.keys import TIMESTAMP
from airflow_connect.connectors.restore.progress import Progress
from airflow_connect.connectors.restore.read.chain import ChainReader, FileReader
from airflow_connect.connectors.restore.read.opening import Store
from airflow_connect.connectors.restore.read.records import Records
from airflow_connect.connectors.restore.work import Chain
from airflow_connect.counting import names
from airflow_connect.errors import AccessError, ConnectError, DataError, OffsetError
from airflow_connect.kafka.admin import consumer_group, watermarks
from airflow_connect.kafka.admin.consumer_group import Committed
from airflow_connect.kafka.admin.permissions import missing_on_group, missing_on_topics
from airflow_connect.kafka.admin.topics import all_names, resolve_topics
from airflow_connect.kafka.clients.settings import READ_COMMITTED
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.message_headers import no_headers

READ = "READ"
"""What Kafka asks for, on a group and on a topic, to commit an offset."""

if TYPE_CHECKING:
    from airflow_connect.connectors.restore.config import RestoreConfig


@dataclass(frozen=True, slots=True)
class Restored:
    """A backup, and what is restored of it.

    Attributes:
        typed: configuration of the restore.
        store: of the backup.
        backup: its files.
        progress: committed for each partition of the backup.
    """

    typed: RestoreConfig
    store: Store
    backup: Backup
    progress: Mapping[TopicPartition, Progress]


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset of a group in a partition.

    Attributes:
        group: its name.
        original: the partition that was backed up.
        offset: committed there when the document was written.
        restored: the partition of the restored topic.
        new_offset: what is to be committed there; None: it cannot be told.
        metadata: that the group had stored with it.
        note: what is special about it, a clause; "": nothing.
        is_done: whether the group has this offset already.
    """

    group: str
    original: TopicPartition
    offset: int
    restored: TopicPartition
    new_offset: int | None
    metadata: str
    note: str = ""
    is_done: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "group": self.group,
            "topic": self.original.topic,
            "partition": self.original.partition,
            "offset": self.offset,
            "restoredTopic": self.restored.topic,
            "newOffset": self.new_offset,
            "note": self.note,
            "isDone": self.is_done,
        }


@dataclass(slots=True)
class GroupOffsets:
    """What the step has found, and done.

    Attributes:
        document: name of the document.
        written_ms: when it was written; its offsets are those of that time.
        offsets: by group and partition.
        failures: by group, why its offsets were not set.
        notes: sentences.
    """

    document: str
    written_ms: int
    offsets: list[GroupOffset] = field(default_factory=list)
    failures: dict[str, ConnectError] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "document": self.document,
            "writtenMs": self.written_ms,
            "offsets": [one.to_json() for one in self.offsets],
            "failures": {group: error.to_json() for group, error in self.failures.items()},
            "notes": self.notes,
        }


def translate(
    restored: Restored, document: RunDocument, selects: Callable[[str], bool], admin: Admin, consumer: Mapping[str, Any]
) -> GroupOffsets:
    """Find the offsets that groups have to get; changes nothing.

    Args:
        restored: what was restored.
        document: with the offsets of groups in the cluster that was backed up.
        selects: whether a group is wanted.
        admin: of the cluster of the restored topics.
        consumer: settings of a consumer there.

    Raises:
        OffsetError: a topic is not the one that was restored.
        DataError: a topic holds other records than the backup, or a file cannot be read.
        ConnectError: Kafka or the store refused, or does not answer.
    """
    found = GroupOffsets(document.name, document.written_ms)
    wanted: dict[TopicPartition, list[tuple[str, int, str]]] = {}
    absent: set[TopicPartition] = set()
    for group, offsets in sorted(document.groups.items()):
        for topic, number, offset, metadata in offsets if selects(group) else ():
            tp = TopicPartition(topic, number)
            if restored.typed.selects(topic) and tp in restored.progress:
                wanted.setdefault(tp, []).append((group, offset, metadata))
            elif restored.typed.selects(topic):
                absent.add(tp)
    if absent:
        found.notes.append(f"Nothing of {names(sorted(absent))} was restored, so no group gets an offset there.")
    _refuse_other_topics(restored, wanted, admin)
    for tp, entries in sorted(wanted.items()):
        found.offsets += _of_partition(restored, tp, entries, admin, consumer)
    found.offsets.sort(key=lambda one: (one.group, one.original))
    return found


def _refuse_other_topics(restored: Restored, wanted: Mapping[TopicPartition, object], admin: Admin) -> None:
    targets = {restored.progress[tp].target: restored.progress[tp].topic_id for tp in wanted}
    there = set(all_names(admin))
    now = resolve_topics(admin, [target for target in sorted(targets) if target in there], None)
    for target, topic_id in sorted(targets.items()):
        if target not in now or is_other_topic(topic_id, now[target].topic_id):
            state = "does not exist any more" if target not in now else "was recreated"
            raise OffsetError(
                f"{target} {state} since records were restored to it.",
                code="restore.other_topic",
                suggestion="Restore it again, with the connector's offsets deleted; then set the offsets of groups.",
            )


def _of_partition(
    restored: Restored,
    tp: TopicPartition,
    entries: Sequence[tuple[str, int, str]],
    admin: Admin,
    consumer: Mapping[str, Any],
) -> Iterator[GroupOffset]:
    progress = restored.progress[tp]
    target = TopicPartition(progress.target, tp.partition)
    low = watermarks.earliest_offsets(admin, [target])[target]
    end = watermarks.latest_offsets(admin, [target], READ_COMMITTED)[target]
    capped = [min(offset, progress.position) for _, offset, _ in entries]
    log = OffsetRange(target.topic, target.partition, low, end)
    after, offsets = _translated(restored, tp, capped, consumer, log)
    for (group, offset, metadata), at in zip(entries, capped, strict=True):
        new = offsets[at]
        note = ""
        if offset > progress.position:
            note = f"it was {offset - progress.position} offsets ahead of what is restored"
        if new is None:
            new = low if after is None else after
        yield GroupOffset(group, tp, offset, target, new, metadata, note)


def _translated(
    restored: Restored, tp: TopicPartition, offsets: Sequence[int], consumer: Mapping[str, Any], log: OffsetRange
) -> tuple[int | None, dict[int, int | None]]:
    """Offsets of the backup in the log of the topic; with the offset after the last record that was compared."""
    position, compares_times = restored.progress[tp].position, TIMESTAMP not in restored.typed.accepted

    def without_first(gone: int) -> tuple[Matching, dict[int, int | None]]:
        matching = Matching(TopicPartition(log.topic, log.partition), compares_times=compares_times)
        originals = dropped(_originals(restored, tp, position), gone)
        return matching, matching.translated(offsets, originals, _copies(consumer, log))

    if log.start:
        # Retention deletes from the beginning, and records there may be equal to those that are left.
        gone = sum(map(len, _originals(restored, tp, position))) - sum(map(len, _copies(consumer, log)))
        try:
            matching, found = without_first(max(0, gone))
        except DataError as error:
            if error.code != FOREIGN:
                raise
        else:
            if not matching.passed_over:
                return matching.after, found
    matching, found = without_first(0)
    return matching.after, found


def _originals(restored: Restored, tp: TopicPartition, position: int) -> Iterator[Records]:
    """The restored records of the backup, in order."""
    import numpy as np

    files: list[BackupFile] = [file for file in restored.backup.chains.get(tp, []) if file.start < position]
    if not files:
        return
    # What is before the beginning may have equal records, which would be taken for those of the topic.
    first = files[0].start
    begin = max(first, restored.progress[tp].begin)
    chain = Chain(tp.topic, tp.partition, Progress(begin, first), files)
    reader = FileReader(restored.store, restored.typed.file_format, tp)
    for piece in ChainReader(chain, reader).pieces():
        count = int(np.searchsorted(piece.records.offsets, position))
        yield _comparable(piece.records.slice(0, count))
        if count < len(piece.records):
            return


def _copies(consumer: Mapping[str, Any], wanted: OffsetRange) -> Iterator[Records]:
    """The records of a partition, in order."""
    import pyarrow as pa

    if wanted.start >= wanted.end:
        return
    settings = {**consumer, "isolation.level": READ_COMMITTED}
    for batch in RangeReader(settings, [wanted]).columns():
        headers = batch.headers()
        columns: dict[str, Any] = {
            "timestamp": pa.array(batch.timestamps, pa.int64()),
            "key": batch.keys,
            "value": batch.values,
            "headers": no_headers(len(batch)) if headers is None else headers,
        }
        yield _comparable(Records(batch.offsets, columns))


def _comparable(records: Records) -> Records:
    """The same with columns of types that can be compared."""
    import pyarrow as pa

    large = {name: records.columns[name].cast(pa.large_binary()) for name in ("key", "value")}
    return replace(records, columns={**records.columns, **large})


def apply(found: GroupOffsets, admin: Admin, *, overwrite: bool) -> None:
    """Set the offsets of each group; a group that cannot be set is named in `failures`, and the others go on.

    Args:
        found: what `translate` has returned; offsets that are set are marked in it.
        admin: of the cluster.
        overwrite: whether a group may have another offset in a restored topic already.
    """
    for group in sorted({one.group for one in found.offsets}):
        own = [one for one in found.offsets if one.group == group]
        try:
            _apply_to(group, own, admin, overwrite=overwrite)
        except ConnectError as error:
            found.failures[group] = error
            continue
        found.offsets = [replace(one, is_done=True) if one.group == group else one for one in found.offsets]


def foresee(found: GroupOffsets, admin: Admin) -> None:
    """Name groups in `failures` that `apply` is not permitted to set; sets nothing."""
    topics = missing_on_topics(admin, {one.restored.topic for one in found.offsets}, (READ,))
    for group in sorted({one.group for one in found.offsets}):
        its = sorted({one.restored.topic for one in found.offsets if one.group == group})
        try:
            places = [f"group {group}"] if missing_on_group(admin, group, (READ,)) else []
        except ConnectError as error:
            found.failures[group] = error
            continue
        places += [f"topic {topic}" for topic in its if topics.get(topic)]
        if places:
            found.failures[group] = AccessError(
                f"This client is not permitted {READ} on {names(places)}, which is needed to set offsets of {group}.",
                code="kafka.denied",
                suggestion="Grant it, or set the offsets of this group with another principal.",
            )


def _apply_to(group: str, wanted: Sequence[GroupOffset], admin: Admin, *, overwrite: bool) -> None:
    new = {one.restored: Committed(one.new_offset, one.metadata) for one in wanted if one.new_offset is not None}
    known = consumer_group.read_committed(admin, group, new)
    left = {tp: committed for tp, committed in new.items() if known.get(tp) != committed}
    others = sorted(tp for tp in left if tp in known and known[tp].offset != left[tp].offset)
    if others and not overwrite:
        shown = names(f"{tp} {known[tp].offset} (translated: {left[tp].offset})" for tp in others)
        raise OffsetError(
            f"Group {group} has committed other offsets already: {shown}.",
            code="restore.group_has_offsets",
            suggestion="If consumers have not used the restored topics yet, allow it with --overwrite, or with"
            " overwrite=True of RestoreGroupsOperator.",
        )
    if left:
        consumer_group.ensure_no_live_members(admin, group)
        consumer_group.alter_offsets(admin, group, left)
