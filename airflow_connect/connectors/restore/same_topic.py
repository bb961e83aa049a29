"""Whether the files of a partition are of one topic: one that was deleted and recreated begins at offset 0 again.

Names of files do not tell to which of several topics with the same name they belong. The documents of the backup do:
each has the id of the topic, and the offsets that were copied of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_connect.api.coverage import MOST_RANGES, Coverage, Covered
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.documents import Documents, RunDocument
from airflow_connect.connectors.restore.keys import RestoreKeys
from airflow_connect.connectors.restore.progress import Progress
from airflow_connect.connectors.restore.ranges import first_to_read
from airflow_connect.connectors.restore.work import Chain
from airflow_connect.counting import names
from airflow_connect.errors import DataError, OffsetError

MOST_WITHOUT = 10
"""Documents without the topic that are read where one of an earlier topic is looked for."""


@dataclass(slots=True)
class _Topics:
    """What was copied of each topic that has had a name.

    Attributes:
        written_ms: when the newest document of each was written, by its id.
        copied: by the same.
    """

    written_ms: dict[str, int] = field(default_factory=dict)
    copied: dict[str, Coverage] = field(default_factory=dict)

    def take(self, topic: str, document: RunDocument) -> None:
        """What a document tells about the name."""
        topic_id = document.topics[topic].topic_id
        its = {tp: one for tp, one in document.coverage.items() if tp.topic == topic}
        self.copied[topic_id] = self.copied.get(topic_id, Coverage()).and_also(its)
        self.written_ms[topic_id] = max(document.written_ms, self.written_ms.get(topic_id, 0))

    def with_file(self, tp: TopicPartition, file: BackupFile) -> set[str]:
        """The ids of those that a file may be of; none: no document tells."""
        return {one for one, copied in self.copied.items() if tp in copied and _has(copied[tp], file.start)}

    def in_order(self) -> list[str]:
        """The ids, that of the oldest topic first."""
        return sorted(self.written_ms, key=lambda one: self.written_ms[one])


def told_of_topics(documents: Documents, chains: Sequence[Chain]) -> list[str]:
    """Sentences about partitions whose files are of several topics, the older ones before the newer ones.

    Raises:
        DataError: they are not in this order: newer records would come before older ones.
    """
    by_topic: dict[str, list[Chain]] = {}
    for chain in chains:
        by_topic.setdefault(chain.topic, []).append(chain)
    found = []
    for topic, its in by_topic.items():
        left = {chain.topic_partition: _to_read(chain) for chain in its}
        known = _known(documents, topic, left)
        if len(known.copied) > 1:
            found += [told for tp, files in left.items() if (told := _told(known, tp, files))]
    return found


def ensure_same_topics(
    documents: Documents,
    by_topic: Mapping[str, RunDocument],
    chains: Mapping[TopicPartition, Sequence[BackupFile]],
    progress: Mapping[TopicPartition, Progress],
) -> None:
    """Check that documents are of the topics that were restored, not of others with their names.

    Args:
        documents: of the backup.
        by_topic: those whose offsets of groups are to be set.
        chains: the files of the backup.
        progress: what is restored of them.

    Raises:
        OffsetError: the offsets of one mean something else.
    """
    for topic, document in by_topic.items():
        topic_id = document.topics[topic].topic_id
        for tp, one in progress.items():
            if tp.topic != topic or not 0 <= one.begin < one.position or not (files := chains.get(tp)):
                continue
            ends = [files[max(0, bisect_right(files, at, key=_start) - 1)] for at in (one.begin, one.position - 1)]
            known = _known(documents, topic, {tp: ends})
            ids = set().union(*(known.with_file(tp, file) for file in ends))
            if ids and topic_id not in ids:
                raise OffsetError(
                    f"{document.name} has the offsets of groups in topic {topic} with id {topic_id}. What was restored"
                    f" of {tp} is of another topic with this name, with id {names(sorted(ids))}.",
                    code="restore.other_document",
                    suggestion="Name a run whose document has that id, with --document or the parameter document.",
                )


def _start(file: BackupFile) -> int:
    return file.start


def _known(documents: Documents, topic: str, left: Mapping[TopicPartition, Sequence[BackupFile]]) -> _Topics:
    """The topics that have had the name; older documents are read if the newest do not tell about each file."""
    known = _Topics()
    for files in documents.of_connectors():
        document = documents.read(files[0])
        if document is not None and topic in document.topics:
            known.take(topic, document)
    for files in documents.of_connectors():
        older = _earlier(documents, topic, files)
        while any(not known.with_file(tp, file) for tp, its in left.items() for file in its):
            document = next(older, None)
            if document is None:
                break
            known.take(topic, document)
    return known


def _earlier(documents: Documents, topic: str, files: Sequence[BackupFile]) -> Iterator[RunDocument]:
    """The newest document of a connector with each earlier topic of a name; an id never comes back."""

    def id_in(file: BackupFile) -> str:
        document = documents.read(file)
        return "" if document is None or topic not in document.topics else document.topics[topic].topic_id

    at, current = 0, id_in(files[0])
    while True:
        at += bisect_left(files[at:], True, key=lambda file: id_in(file) != current)
        other = next((n for n, file in enumerate(files[at : at + MOST_WITHOUT], at) if id_in(file)), None)
        document = None if other is None else documents.read(files[other])
        if other is None or document is None:
            return
        at, current = other, id_in(files[other])
        yield document


def _to_read(chain: Chain) -> Sequence[BackupFile]:
    return chain.files[chain.files.index(first_to_read(chain)) :]


def _has(covered: Covered, offset: int) -> bool:
    if len(covered.ranges) >= MOST_RANGES and offset < covered.start:
        return True  # Older ranges are not kept.
    return any(start <= offset < end for start, end in covered.ranges)


def _told(known: _Topics, tp: TopicPartition, files: Sequence[BackupFile]) -> str:
    of_files = [(file, ids) for file in files if (ids := known.with_file(tp, file))]
    if not of_files or set.intersection(*(ids for _, ids in of_files)):
        return ""
    parts, is_ordered = _parts(of_files, known.in_order())
    shown = names(f"from offset {start} on of the topic with id {topic_id}" for start, topic_id in parts)
    what = f"{tp} of the backup has records of several topics, because {tp.topic} was deleted and recreated: {shown}."
    if is_ordered:
        return f"{what} Offsets between them may be missing."
    raise DataError(
        f"{what} Newer records would come before older ones.",
        code="restore.recreated",
        suggestion=f"Restore one of them: choose its offsets with {RestoreKeys.from_offsets} and"
        f" {RestoreKeys.until_offsets}, or move the files of the others away. Let the backup of a recreated topic begin"
        " anew, with another name and topics.dir.",
    )


def _parts(
    of_files: Sequence[tuple[BackupFile, set[str]]], in_order: Sequence[str]
) -> tuple[list[tuple[int, str]], bool]:
    """Where the files of each topic begin, with its id; and whether those of older topics come first.

    A file that may be of several topics is taken for one of the topic before it, if that is possible.
    """
    found: list[tuple[int, str]] = []
    age, is_ordered = 0, True
    for file, ids in of_files:
        possible = sorted(in_order.index(one) for one in ids)
        is_ordered &= possible[-1] >= age
        age = next((one for one in possible if one >= age), possible[-1])
        if not found or found[-1][1] != in_order[age]:
            found.append((file.start, in_order[age]))
    return found, is_ordered
