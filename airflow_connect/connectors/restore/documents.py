"""What the sink has written beside a backup: for each of its runs the settings of topics and the offsets of groups.

Written by `airflow_connect.connectors.files.shared.publishing.backup_document`; the newest document that names a topic
counts, because several sinks may write to one place. One that cannot be read does not keep records from being restored:
it is named, and an older one is used.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.cluster_facts import TopicFacts
from airflow_connect.api.coverage import Coverage
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.read.opening import Store
from airflow_connect.counting import names, plural
from airflow_connect.errors import DataError
from airflow_connect.registry.client import SchemaText, schema_of_json

VERSION = 1
MOST_GAPS = 3
MOST_READ = 50
"""Documents that are looked through for a topic: it may have been deleted before the last runs."""


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What a run of the sink has found in the cluster.

    Attributes:
        name: of the file, below the root of the backup.
        written_ms: when, milliseconds since the epoch.
        topics: that the sink consumes.
        groups: for each consumer group its offsets: topic, partition, offset, metadata.
        schemas: by id.
        schema_ids: for each topic those that its records contain, as far as the registry knew them.
        coverage: the offsets that runs of the sink have copied until then.
    """

    name: str
    written_ms: int
    topics: Mapping[str, TopicFacts]
    groups: Mapping[str, Sequence[tuple[str, int, int, str]]] = field(default_factory=dict)
    schemas: Mapping[int, SchemaText] = field(default_factory=dict)
    schema_ids: Mapping[str, Sequence[int]] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)

    @classmethod
    def read(cls, name: str, data: bytes) -> RunDocument:
        """The document in a file.

        Raises:
            ValueError: it is none, or one of a newer release.
        """
        try:
            found = json.loads(data)
            if found["v"] != VERSION:
                raise ValueError(f"its version is {found['v']!r}, and this release reads version {VERSION}")
            return cls(
                name=name,
                written_ms=int(found["written_ms"]),
                topics={topic: _facts(one) for topic, one in found["topics"].items()},
                groups={
                    group: [
                        (str(topic), int(number), int(offset), str(text)) for topic, number, offset, text in offsets
                    ]
                    for group, offsets in found["groups"].items()
                },
                schemas={int(one["id"]): schema_of_json(one) for one in found["schemas"]},
                schema_ids={
                    topic: sorted({number for ids in one["schema_ids"].values() for number in ids or ()})
                    for topic, one in found["topics"].items()
                },
                coverage=Coverage.of(found),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it has not the form of such a document: {error}") from error


def _facts(found: Mapping[str, Any]) -> TopicFacts:
    settings = {str(name): str(value) for name, value in found["settings"].items()}
    return TopicFacts(str(found["id"]), int(found["partitions"]), int(found["replication_factor"]), settings)


def _shown(gaps: Sequence[tuple[int, int]]) -> str:
    return names([f"{start} to {end - 1}" for start, end in gaps], MOST_GAPS)


class Documents:
    """The documents of a backup: the newest one of each connector, then all others; the newest of them first.

    Attributes:
        notes: sentences about those that could not be read.
    """

    def __init__(self, store: Store, files: Sequence[BackupFile]) -> None:
        """`files`: as they were listed."""
        self._store = store
        newest = sorted(files, key=lambda file: (file.name.rpartition("/")[2], file.modified_ms), reverse=True)
        firsts = set({file.name.rpartition("/")[0]: file for file in reversed(newest)}.values())
        self._connectors = len(firsts)
        # The newest of each connector first: others that write to the same place do not bury it.
        self._files = sorted(newest, key=lambda file: file not in firsts)
        self._read: list[RunDocument] = []
        self._known: dict[str, RunDocument | None] = {}
        self._next = 0
        self.notes: list[str] = []

    def __iter__(self) -> Iterator[RunDocument]:
        """Those that can be read; read when they are needed.

        Raises:
            UnavailableError, AccessError: the store does not answer, or refuses.
        """
        at = 0
        while True:
            while at >= len(self._read) and self._next < len(self._files):
                self._read_next()
            if at >= len(self._read):
                return
            yield self._read[at]
            at += 1

    def of_connectors(self) -> Iterable[Sequence[BackupFile]]:
        """The documents of each connector, the newest one first."""
        found: dict[str, list[BackupFile]] = {}
        for file in self._files:
            found.setdefault(file.name.rpartition("/")[0], []).append(file)
        return found.values()

    def newest(self) -> Mapping[str, TopicFacts]:
        """The topics of the newest document; {} if there is none."""
        document = next(iter(self), None)
        return {} if document is None else document.topics

    def of_topics(self, topics: Collection[str]) -> dict[str, RunDocument]:
        """The newest document with each topic; topics that none of them has are missing."""
        found: dict[str, RunDocument] = {}
        left = set(topics)
        for number, document in enumerate(self):
            found |= dict.fromkeys(left & document.topics.keys(), document)
            left -= document.topics.keys()
            if not left or number + 1 >= max(MOST_READ, self._connectors):
                break
        return found

    def facts_of(self, topics: Collection[str]) -> dict[str, TopicFacts]:
        """What the newest document with each topic says about it; topics that none of them has are missing."""
        return {topic: document.topics[topic] for topic, document in self.of_topics(topics).items()}

    def schemas_of(self, topics: Collection[str]) -> dict[int, SchemaText]:
        """The schemas that records of these topics name, from the newest document with each topic."""
        return {
            one: document.schemas[one]
            for topic, document in self.of_topics(topics).items()
            for one in document.schema_ids.get(topic, ())
            if one in document.schemas
        }

    def lacks(self, chains: Mapping[TopicPartition, Sequence[BackupFile]], topics: Collection[str]) -> list[str]:
        """Sentences about what runs have not copied, and about files that they have written and that are gone.

        Args:
            chains: the files that were listed.
            topics: that are restored.
        """
        covered = self._coverage(topics)
        found = []
        if gaps := [f"{tp} {_shown(one.gaps)}" for tp, one in sorted(covered.items()) if one.gaps]:
            found.append(f"No run of the backup has copied these offsets, so they are not restored: {names(gaps)}.")
        missing = [
            f"{tp} has {plural(there, 'file')}, and {one.files} were written"
            for tp, one in sorted(covered.items())
            if one.files is not None and (there := len(chains.get(tp, ()))) < one.files
        ]
        if missing:
            found.append(
                "Fewer files are here than runs have written, so what the others held is not restored:"
                f" {names(missing)}."
            )
        return found

    def _coverage(self, topics: Collection[str]) -> Coverage:
        """What the connectors that write to this place have copied: the newest document of each tells it."""
        found, seen = Coverage(), set()
        current = {topic: document.topics[topic].topic_id for topic, document in self.of_topics(topics).items()}
        for number, document in enumerate(self):
            if (connector := document.name.rpartition("/")[0]) not in seen:
                seen.add(connector)
                of_topics = {tp: one for tp, one in document.coverage.items() if tp.topic in current}
                same = {
                    tp: one for tp, one in of_topics.items() if document.topics[tp.topic].topic_id == current[tp.topic]
                }
                found = found.and_also(same)
            if number + 1 >= max(MOST_READ, self._connectors):
                break
        return found

    def read(self, file: BackupFile) -> RunDocument | None:
        """The document in a file, which is read once; None: it cannot be used, which `notes` tells.

        Raises:
            UnavailableError, AccessError: the store does not answer, or refuses.
        """
        if file.name not in self._known:
            self._known[file.name] = self._opened(file)
        return self._known[file.name]

    def _read_next(self) -> None:
        document = self.read(self._files[self._next])
        self._next += 1
        if document is not None:
            self._read.append(document)

    def _opened(self, file: BackupFile) -> RunDocument | None:
        try:
            content = self._store.open(file)
            try:
                return RunDocument.read(file.name, content.read())
            finally:
                content.close()
        except (DataError, ValueError) as error:
            reason = error.message if isinstance(error, DataError) else f"{error}."
            left = plural(len(self._files) - self._files.index(file) - 1, "older one")
            self.notes.append(f"{self._store.full_name(file)} cannot be used: {reason} There are {left}.")
            return None
