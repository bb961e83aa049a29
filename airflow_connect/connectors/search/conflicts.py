"""Documents that the server did not write because it holds them, or a newer one, already: counted and named.

A run that follows a crash writes records again, so a conflict is not a failure. But a server that refuses the only
record of a key looks the same: the topic got more partitions or was created again, or another program writes to the
index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from airflow_connect.api.offsets import TopicPartition

_AFTER_ID = "]: version conflict, "
_CURRENT = re.compile(r"current version \[(\d+)\](?: is higher or equal to the one provided \[(\d+)\])?")


DROPPED = -3
"""In the place of a version: a pipeline of the server has dropped the document. No version is negative."""
IN_FAILURE_STORE = -4
"""The same: the server has rejected the document, and keeps it in the failure store of the data stream."""
NOTHING_DELETED = -5
"""The same: a deletion has found no document."""
NOTHING_LEFT = -6
"""The same, by a request that was sent again: its first try may have deleted the document."""
MAYBE_TWICE = -7
"""The same: a request that was sent again has made a document, which its first try may have made elsewhere."""
SAME_VERSION = -8
"""The same: the document that the server holds has the version of the one that was sent."""
REPLACED = -9
"""The same: the document was written over one with the same id, although each id belongs to one record."""


class Versions(Enum):
    """What the documents of a topic have as versions."""

    NONE = "none"
    """Each id belongs to one record."""
    OFFSETS = "offsets"
    HEADER = "header"
    FIRST = "first"
    """A data stream with keys as ids: the first record of a key stays."""


class Place(NamedTuple):
    """Where a record was consumed, and the topic that transformations gave it."""

    topic: str
    partition: int
    offset: int
    renamed: str

    def __str__(self) -> str:
        """As messages name it."""
        return f"{self.topic}-{self.partition}@{self.offset}"


class Conflict(NamedTuple):
    """A document that is not what the request asked for.

    Attributes:
        target, place: where it should be, and its record.
        version: of the document that the server holds, None if it does not say; or one of the negative numbers above.
    """

    target: str
    place: Place
    version: int | None


_REPAIR = (
    "If the topic was created again, delete {target}, or use another index, and copy the topic again. If it got more"
    " partitions, that does not help, because keys have records in two of them: set external.version.header, and copy"
    " the topic into another index, or send the records to a new topic, and write that one to another index."
)


class _Meaning(Enum):
    DROPPED = (
        "{records} NOT written to {target}, and counted as filtered: an ingest pipeline of the server"
        " (index.default_pipeline or index.final_pipeline) has dropped the documents. The first was {place}. If that is"
        " not meant, correct the pipeline, and copy the records again."
    )
    IN_FAILURE_STORE = (
        "{records} NOT written to {target}, and counted as filtered: the server has rejected the documents, and keeps"
        " them in the failure store of the data stream, with the reasons ({target}::failures). The first was {place}."
        " Correct the mapping or the pipeline, and copy the records again."
    )
    NOTHING_DELETED = (
        "{records} without value, and deleted no document of {target}: there is none with the key. The first was"
        " {place}. They count as written. If {target} is an alias, the document may be in an index that it no longer"
        " writes to, and stays there."
    )
    NOTHING_LEFT = (
        "{records} without value, and sent again because an answer was lost, or was an error of the server (5xx):"
        " {target} had no document with the key then. Either the first try has deleted it, or there was none. The first"
        " was {place}. They count as written."
    )
    MAYBE_TWICE = (
        "{records} written to {target} by a request that was sent again because its answer was lost, or was an error of"
        " the server (5xx). If the server had executed the first try, these documents are there twice: it chooses their"
        " ids, or {target} may have moved to another index meanwhile. The first was {place}."
    )
    REPLACED = (
        "{records} written over documents that {target} had with the same ids, topic+partition+offset. An earlier run,"
        " or an earlier try of a request, has written them, unless a topic of the same name in another Kafka cluster or"
        " one that was deleted and created again, fills {target}, too: then its documents are lost. The first was"
        " {place}."
    )
    SAME_VERSION = (
        "{records} not written, because {target} has a document of the same key and version. An earlier run, or an"
        " earlier try of a request, has written it, or another record of the key has the same number in the header of"
        " external.version.header. The first was {place}."
    )
    REPEATED = (
        "{records} not written again, because {target} has the same version of the documents: an earlier run, or an"
        " earlier try of a request, has written them, unless records of a key are in several partitions, another topic,"
        " such as one of the same name in another Kafka cluster, fills {target}, too, or another program changes or"
        " deletes its documents, which counts their versions up by one: then these records are missing. The first was"
        " {place}. A repeated copy changes no document, even if the configuration is another one."
    )
    OLDER = (
        "{records} not written, because a record of the same key with a higher version was in {target} first, as"
        " happens after an interrupted run, when several requests are sent at the same time, and if"
        " external.version.header goes back. The first was {place}; its document has version {version}. These records"
        " may be missing if records of a key are in several partitions, if another topic fills {target}, too, or if"
        " another program changes or deletes its documents, which counts their versions up."
    )
    REFUSED = (
        "{records} NOT written to {target}, and counted as filtered: the documents with these keys have versions beyond"
        " the offsets of this run. The first was {place}; its document has version {version}. Either the topic has more"
        " partitions than before or was created again, or something else writes to {target}: then the documents are out"
        f" of date. {_REPAIR} Or an interrupted run had read further than this one: then the documents are newer, and"
        " nothing is missing."
    )
    MIXED = (
        "{records} NOT written to {target}, and counted as filtered, because it has documents of the same keys with the"
        " same or higher versions. The first was {place}; its document has version {version}. The topic has more"
        " partitions than before, or was created again, so that a document may be of another partition, or of an"
        " earlier topic:"
        f" then a newer record is missing. {_REPAIR} If a run was interrupted, or a request was sent again, some of"
        " these records may be the ones that are there."
    )
    CHANGED = (
        "{records} NOT written to {target}, and counted as filtered, because it has documents of the same keys with the"
        " same or higher versions. The first was {place}; its document has version {version}."
        " external.version.header or write.method was changed since documents were written to {target}, so that they"
        " may have versions of another kind, and a newer record is missing. Use another index, or delete {target}, and"
        " copy the topic again. If a run was interrupted, or a request was sent again, some of these records may be the"
        " ones that are there."
    )
    TAKEN = (
        "{records} NOT written to {target}, and counted as filtered, because the data stream has documents with these"
        " keys already. The first was {place}. A data stream keeps the first record of each id; set key.ignore=true to"
        " write every record. If an earlier run was interrupted, or a request was sent again because its answer was"
        " lost, some of these records may be the ones that were written then."
    )


_OF_SERVER: Mapping[int | None, _Meaning] = {
    DROPPED: _Meaning.DROPPED,
    IN_FAILURE_STORE: _Meaning.IN_FAILURE_STORE,
    NOTHING_DELETED: _Meaning.NOTHING_DELETED,
    NOTHING_LEFT: _Meaning.NOTHING_LEFT,
    MAYBE_TWICE: _Meaning.MAYBE_TWICE,
    REPLACED: _Meaning.REPLACED,
}
_OF_VERSIONS = frozenset({_Meaning.REPEATED, _Meaning.SAME_VERSION, _Meaning.OLDER, _Meaning.REFUSED, _Meaning.MIXED})
_NOT_WRITTEN = frozenset(
    {_Meaning.REFUSED, _Meaning.MIXED, _Meaning.CHANGED, _Meaning.TAKEN, _Meaning.DROPPED, _Meaning.IN_FAILURE_STORE}
)


def conflict_in(words: str) -> str:
    """What the server says after the id of a document, which may have any words itself; "": it says something else."""
    _, found, after = words.rpartition(_AFTER_ID)
    return after if found else ""


def conflicting_version(reason: str) -> int | None:
    """The version that the server holds, from the reason that it gives (`VersionConflictEngineException`)."""
    found = _CURRENT.search(reason)
    if found is None:
        return None
    return SAME_VERSION if found[1] == found[2] else int(found[1])


class Conflicts:
    """The conflicts of a task, by target and meaning."""

    def __init__(self, ends: Mapping[TopicPartition, int]) -> None:
        """No conflicts yet.

        Args:
            ends: for each partition of the task, the offset after its last record.
        """
        self._ends = ends
        self._counts: Counter[tuple[_Meaning, str]] = Counter()
        self._first: dict[tuple[_Meaning, str], Conflict] = {}

    def add(
        self, conflict: Conflict, versions: Versions, *, are_mixed: bool = False, are_changed: bool = False
    ) -> bool:
        """Count a conflict.

        Args:
            conflict: of a document.
            versions: what the documents of its topic have.
            are_mixed: whether versions that are offsets may be those of another partition, or of an earlier topic.
            are_changed: whether documents may have versions of another kind than the records.

        Returns:
            Whether the record may be in no document, so that it counts as left out.
        """
        meaning = self._meaning(conflict, versions)
        if are_mixed and versions is Versions.OFFSETS and meaning in (_Meaning.REPEATED, _Meaning.OLDER):
            meaning = _Meaning.MIXED
        if are_changed and versions in (Versions.OFFSETS, Versions.HEADER) and meaning in _OF_VERSIONS:
            meaning = _Meaning.CHANGED
        self._counts[meaning, conflict.target] += 1
        self._first.setdefault((meaning, conflict.target), conflict)
        return meaning in _NOT_WRITTEN

    def take_notes(self) -> Iterator[str]:
        """A sentence about each meaning and target since the last call."""
        for (meaning, target), count in self._counts.items():
            first = self._first[meaning, target]
            version = "that the server does not name" if first.version is None else first.version
            version = first.place.offset if version == SAME_VERSION else version
            records = "1 record was" if count == 1 else f"{count:,} records were"
            yield meaning.value.format(records=records, target=target, place=first.place, version=version)
        self._counts.clear()
        self._first.clear()

    def _meaning(self, conflict: Conflict, versions: Versions) -> _Meaning:
        place, version = conflict.place, conflict.version
        if version in _OF_SERVER:
            return _OF_SERVER[version]
        is_same = version == SAME_VERSION
        if versions is Versions.NONE or (versions is Versions.OFFSETS and (is_same or version == place.offset)):
            return _Meaning.REPEATED
        if versions is Versions.HEADER:
            return _Meaning.SAME_VERSION if is_same else _Meaning.OLDER
        if versions is Versions.FIRST:
            return _Meaning.TAKEN
        end = self._ends.get(TopicPartition(place.topic, place.partition), 0)
        # A version that this partition has not reached is the offset of another one, or of an earlier topic.
        return _Meaning.OLDER if version is not None and place.offset < version < end else _Meaning.REFUSED


class Elsewhere:
    """Documents that were written to indices with another name than their target's."""

    def __init__(self) -> None:
        """None yet."""
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], Place] = {}

    def add(self, target: str, index: str, count: int, first: Place) -> None:
        """Count documents of an index; `first`: the place of one of them."""
        self._counts[target, index] += count
        self._first.setdefault((target, index), first)

    def written(self, target: str) -> list[str]:
        """The indices of a target that have got documents."""
        return [index for of, index in self._counts if of == target]

    def notes(self, indices: Mapping[str, Collection[str]]) -> Iterator[str]:
        """A sentence about each index that is not one of its target. `indices`: of each target that could be seen."""
        for (target, index), count in self._counts.items():
            if indices.get(target) and index not in indices[target]:
                records = "1 record was" if count == 1 else f"{count:,} records were"
                yield (
                    f"{records} written to {index}, which is no index of {target}: an ingest pipeline of the server"
                    " (index.default_pipeline or index.final_pipeline) has sent the documents there. The first was"
                    f" {self._first[target, index]}. They count as written. A deletion does not find such a document,"
                    " and a record of the same key that stays is a second one."
                )
