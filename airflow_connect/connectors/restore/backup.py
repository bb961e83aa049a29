"""The files of a backup, found by one listing and ordered by what their names tell.

A name is `<topic>/<directories>/<topic>+<partition>+<start>.<extension>`, below the root of the backup; in file systems
the last offset follows the start (see `airflow_connect.layout.names.object_names`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.files.shared.publishing.backup_document import RUNS
from airflow_connect.counting import counted, names
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.kafka.admin.topics import INTERNAL_TOPICS
from airflow_connect.layout.names.object_names import HEADERS, KEYS, is_legal_topic
from airflow_connect.stores.file_system import FoundFile
from airflow_connect.stores.staged_names import TEMPORARY

SHOWN = 5
_LARGEST = (1 << 63) - 1


class BackupFile(NamedTuple):
    """A file as it was listed.

    Attributes:
        name: below the root.
        size: bytes.
        modified_ms: milliseconds since the epoch.
        nanoseconds: of the modification time, after its milliseconds.
        identity: an ETag, an inode, or "".
        start: offset of its first record.
        end: offset of its last record, -1 if its name does not tell.
    """

    name: str
    size: int
    modified_ms: int
    nanoseconds: int
    identity: str
    start: int
    end: int = -1

    def version(self, *, identity_is_content: bool) -> str:
        """What differs if the content does."""
        return self.identity if identity_is_content else f"{self.size} bytes, modified at {self.modified_ms} ms"


def after_topic(pattern: re.Pattern[str], topic: str, delimiter: str, base: str) -> re.Match[str] | None:
    """What follows the topic in the name of a file; None: it is another name.

    Only the directory tells where the topic ends: it may have the delimiter and numbers in its name.
    """
    begin = f"{topic}{delimiter}"
    return pattern.fullmatch(base, len(begin)) if topic and base.startswith(begin) else None


class FileNames:
    """The grammar of the names."""

    def __init__(self, root: str, delimiter: str, extension: str) -> None:
        """`extension`: the last part of the names of the chosen format, with its dot."""
        self.root, self._prefix, self._delimiter = root, f"{root}/", delimiter
        mark = re.escape(delimiter)
        self._pattern = re.compile(
            rf"(?P<partition>\d{{1,10}}){mark}(?P<start>\d{{1,19}})"
            rf"(?:{mark}(?P<end>\d{{1,19}}))?(?P<more>(?:\.\w+)*){re.escape(extension)}",
            re.ASCII,
        )

    def read(self, found: FoundFile) -> tuple[TopicPartition, BackupFile] | None:
        """The partition whose records a file holds, and the file; None if its name is another."""
        name = found.name.removeprefix(self._prefix)
        above, _, base = name.rpartition("/")
        topic = above.partition("/")[0]
        parts = after_topic(self._pattern, topic, self._delimiter, base)
        if parts is None or KEYS in parts["more"] or HEADERS in parts["more"]:
            return None
        start, end = int(parts["start"]), int(parts["end"] or -1)
        is_sound = is_legal_topic(topic) and start <= _LARGEST and int(parts["partition"]) < 1 << 31
        if not is_sound or (parts["end"] and end < start):
            return None
        file = BackupFile(name, found.size, found.modified_ms, found.nanoseconds, found.identity, start, end)
        return TopicPartition(topic, int(parts["partition"])), file


@dataclass(slots=True)
class Listing:
    """What a listing has found besides records.

    Attributes:
        documents: that sinks have written beside the records, one for each of their runs.
        others: files with other names.
        shown: some of them.
        directories: first parts of their names, which are topics in a backup.
        unfinished: temporary files of sinks.
    """

    documents: list[BackupFile] = field(default_factory=list)
    others: int = 0
    shown: list[str] = field(default_factory=list)
    directories: set[str] = field(default_factory=set)
    unfinished: int = 0

    def pass_over(self, found: FoundFile, root: str) -> None:
        """Take a file that holds no records."""
        name = found.name.removeprefix(f"{root}/")
        if f"/{TEMPORARY}/" in found.name:
            self.unfinished += 1
        elif name.startswith(f"{RUNS}/") and name.endswith(".json"):
            file = BackupFile(name, found.size, found.modified_ms, found.nanoseconds, found.identity, 0)
            self.documents.append(file)
        else:
            self.others += 1
            self.directories.add(name.partition("/")[0])
            if len(self.shown) < SHOWN:
                self.shown.append(found.name)

    def notes(self, root: str) -> list[str]:
        """Sentences about what is not restored."""
        found = []
        if self.others:
            rest = self.others - len(self.shown)
            shown = names(self.shown, SHOWN) + (f" and {rest} more" if rest else "")
            what = counted(self.others, "file has a name", "files have names")
            found.append(f"{what} that no file of the chosen format has, and none is read: {shown}.")
        if self.unfinished:
            what = counted(self.unfinished, "temporary file of a sink is", "temporary files of sinks are")
            found.append(f"{what} below {root}, and not read.")
        return found


@dataclass(slots=True)
class Backup(Listing):
    """The files of whole records that a listing has found.

    Attributes:
        chains: files of the chosen topics by partition, in the order of their start offsets.
    """

    chains: dict[TopicPartition, list[BackupFile]] = field(default_factory=dict)

    @classmethod
    def of(cls, listed: Iterable[FoundFile], grammar: FileNames, selects: Callable[[str], bool]) -> Backup:
        """Take each file of a listing.

        Raises:
            ConfigError: an internal topic of Kafka is chosen.
            DataError: two files begin with the same record.
        """
        backup = cls()
        for found in listed:
            read = grammar.read(found)
            if read is not None:
                if selects(read[0].topic):
                    backup.chains.setdefault(read[0], []).append(read[1])
            else:
                backup.pass_over(found, grammar.root)
        backup.chains = dict(sorted(backup.chains.items()))
        for tp, files in backup.chains.items():
            refuse_internal(tp.topic)
            files.sort(key=lambda file: (file.start, file.name))
            _refuse_equal_starts(tp, files)
        return backup


def refuse_internal(topic: str) -> None:
    """Refuse to restore an internal topic of Kafka.

    Raises:
        ConfigError: the topic is one.
    """
    if topic in INTERNAL_TOPICS:
        raise ConfigError(
            f"{topic} is a topic of Kafka itself, which is not restored.",
            code="restore.internal_topic",
            config_path="topics",
            suggestion="Choose the topics to restore with topics or topics.regex.",
        )


def _refuse_equal_starts(tp: TopicPartition, files: list[BackupFile]) -> None:
    for one, other in pairwise(files):
        if one.start == other.start:
            raise DataError(
                f"Two files of the backup begin with {tp}@{one.start}: {one.name} and {other.name}.",
                code="restore.overlap",
                suggestion="Keep one of them below topics.dir. The same record is not restored twice.",
            )
