"""Files of values: those that belong together, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import BackupFile, Listing, after_topic, refuse_internal
from airflow_connect.connectors.restore.keys import HEADER_TYPES, HEADERS, KEY, ORDER, TIMESTAMP
from airflow_connect.connectors.restore.options import (
    AVRO,
    BYTES,
    GZIP,
    JSON,
    ORC,
    PARQUET,
    TEXT,
    ZSTD,
)
from airflow_connect.connectors.restore.value_keys import NAME_GROUPS
from airflow_connect.errors import DataError
from airflow_connect.layout.names.object_names import HEADERS as HEADERS_MARK
from airflow_connect.layout.names.object_names import KEYS as KEYS_MARK
from airflow_connect.layout.names.object_names import is_legal_topic
from airflow_connect.stores.file_system import FoundFile

if TYPE_CHECKING:
    from airflow_connect.connectors.restore.config import RestoreConfig
    from airflow_connect.java.patterns.compiled import JavaPattern

SHOWN = 5
_LARGEST = (1 << 63) - 1
_BY_EXTENSION = {".avro": AVRO, ".parquet": PARQUET, ".orc": ORC, ".json": JSON, ".txt": TEXT, ".bin": BYTES}


class ValueFile(NamedTuple):
    """The files that hold the same records.

    Attributes:
        start: offset of the first record.
        values: the file of values; None: the records are tombstones.
        keys: the file of keys; None: the records have none, or they were not kept.
        headers: the same for headers.
    """

    start: int
    values: BackupFile | None
    keys: BackupFile | None = None
    headers: BackupFile | None = None

    @property
    def parts(self) -> Iterator[BackupFile]:
        """Its files."""
        return (part for part in (self.values, self.keys, self.headers) if part is not None)

    @property
    def first(self) -> BackupFile:
        """The file by which the others are known."""
        return next(self.parts)

    @property
    def size(self) -> int:
        """Bytes of all."""
        return sum(part.size for part in self.parts)

    @property
    def modified_ms(self) -> int:
        """Of the newest."""
        return max(part.modified_ms for part in self.parts)

    def version(self, *, is_content: bool) -> str:
        """What differs if the content of one does."""
        return " + ".join(part.version(identity_is_content=is_content) for part in self.parts)


def format_of_part(name: str) -> str:
    """The format of a file of keys or headers, by its extension; "": unknown."""
    plain = name.removesuffix(GZIP).removesuffix(ZSTD)
    return _BY_EXTENSION.get(plain[plain.rfind(".") :], "")


class ValueNames:
    """The grammar of names: `<topic>/<directories>/<topic>+<partition>+<start>[.keys|.headers].<extension>`."""

    def __init__(self, root: str, delimiter: str, extensions: Sequence[str], tombstones: str) -> None:
        """`extensions`: of values, with the dot; `tombstones`: the directory of keys of records without a value."""
        self.tombstones = tombstones
        self.root, self._prefix, self._extensions = root, f"{root}/", tuple(extensions)
        self._delimiter = delimiter
        mark = re.escape(delimiter)
        self._pattern = re.compile(
            rf"(?P<base>(?P<partition>\d{{1,10}}){mark}(?P<start>\d{{1,19}})"
            rf"(?:{mark}(?P<end>\d{{1,19}}))?)(?P<part>\.keys|\.headers)?(?P<rest>(?:\.\w+)+)",
            re.ASCII,
        )

    def read(self, found: FoundFile) -> tuple[TopicPartition, str, str, BackupFile] | None:
        """Partition, name without extensions, part (`.keys`, `.headers` or "") and the file; None: another name."""
        name = found.name.removeprefix(self._prefix)
        above, _, base = name.rpartition("/")
        topic = above.partition("/")[0]
        parts = after_topic(self._pattern, topic, self._delimiter, base)
        if parts is None or not is_legal_topic(topic):
            return None
        start, partition, part = int(parts["start"]), int(parts["partition"]), parts["part"] or ""
        is_known = bool(format_of_part(base)) if part else parts["rest"].endswith(self._extensions)
        end = int(parts["end"] or -1)
        if start > _LARGEST or partition >= 1 << 31 or not is_known or (parts["end"] and end < start):
            return None
        file = BackupFile(name, found.size, found.modified_ms, found.nanoseconds, found.identity, start, end)
        return TopicPartition(topic, partition), f"{above}/{base[: parts.end('base')]}", part, file


class PatternNames:
    """Names of other sinks: regular expressions find topic, partition and offset in the path below the root.

    Attributes:
        tombstones: no directory: files hold tombstones beside other records.
    """

    tombstones = ""

    def __init__(self, root: str, patterns: Sequence[JavaPattern]) -> None:
        """`patterns`: the first that matches counts; each has the groups of `NAME_GROUPS`."""
        self.root, self._prefix, self._patterns = root, f"{root}/", tuple(patterns)

    def read(self, found: FoundFile) -> tuple[TopicPartition, str, str, BackupFile] | None:
        """See `ValueNames.read`."""
        name = found.name.removeprefix(self._prefix)
        for pattern in self._patterns:
            match = pattern.fullmatch(name)
            if match is None:
                continue
            topic, partition, offset = (match[pattern.names[group]] or "" for group in NAME_GROUPS)
            is_sound = is_legal_topic(topic) and partition.isdecimal() and offset.isdecimal()
            if is_sound and int(partition) < 1 << 31 and int(offset) <= _LARGEST:
                at = int(offset)
                file = BackupFile(name, found.size, found.modified_ms, found.nanoseconds, found.identity, at)
                return TopicPartition(topic, int(partition)), name, "", file
        return None


def names_of(typed: RestoreConfig) -> ValueNames | PatternNames:
    """The grammar of a configuration."""
    if typed.name_patterns:
        return PatternNames(typed.root, typed.name_patterns)
    return ValueNames(typed.root, typed.file_delim, typed.extensions, typed.tombstones)


@dataclass(slots=True)
class ValueBackup(Listing):
    """The files of values that a listing has found.

    Attributes:
        chains: by partition, in the order of start offsets.
    """

    chains: dict[TopicPartition, list[ValueFile]] = field(default_factory=dict)

    @classmethod
    def of(cls, listed: Iterable[FoundFile], grammar: ValueNames | PatternNames, selects: object) -> ValueBackup:
        """Take each file of a listing, and put those together that hold the same records.

        Raises:
            ConfigError: an internal topic of Kafka is chosen.
            DataError: two files begin with the same record, or a file of keys or headers stands alone.
        """
        backup = cls()
        found: dict[TopicPartition, dict[str, dict[str, BackupFile]]] = {}
        for one in listed:
            read = grammar.read(one)
            if read is None:
                backup.pass_over(one, grammar.root)
            elif selects(read[0].topic):  # type: ignore[operator]
                tp, base, part, file = read
                known = found.setdefault(tp, {}).setdefault(base, {})
                if part in known:
                    raise _twice(known[part].name, file.name)
                known[part] = file
        for tp, bases in sorted(found.items()):
            refuse_internal(tp.topic)
            backup.chains[tp] = _chain(tp, bases, grammar.tombstones)
        return backup


def _chain(tp: TopicPartition, bases: dict[str, dict[str, BackupFile]], tombstones: str) -> list[ValueFile]:
    files = []
    for base, parts in bases.items():
        values, keys, headers = parts.get(""), parts.get(KEYS_MARK), parts.get(HEADERS_MARK)
        is_tombstone = keys is not None and base.rpartition("/")[0].rpartition("/")[2] == tombstones
        if values is None and not is_tombstone:
            # Records without a value delete: a file that is gone must not look like them.
            alone = next(iter(parts.values()))
            raise DataError(
                f"{alone.name} has keys or headers, and there is no file with the values of the same records.",
                code="restore.parts",
                suggestion="Put the file of values back beside it, or move the file away from topics.dir.",
            )
        files.append(ValueFile(next(iter(parts.values())).start, values, keys, headers))
    files.sort(key=lambda file: (file.start, file.first.name))
    for one, other in pairwise(files):
        if one.start == other.start:
            raise _twice(one.first.name, other.first.name)
    _refuse_overlaps(tp, files)
    for mark, kept in ((KEYS_MARK, [file.keys for file in files]), (HEADERS_MARK, [file.headers for file in files])):
        there = [one for one in kept if one is not None]
        if there and len(there) < len(files):
            missing = next(file for file, one in zip(files, kept, strict=True) if one is None)
            raise DataError(
                f"{missing.first.name} has no file {mark} beside it, and other files of {tp} have one:"
                f" {there[0].name}.",
                code="restore.parts",
                suggestion="Put the missing file back. A sink that began to store keys or headers later wrote two"
                " backups: move the files of one to another topics.dir, and restore them one after the other.",
            )
    return files


def _refuse_overlaps(tp: TopicPartition, files: Sequence[ValueFile]) -> None:
    """Those of one directory hold other records each; names in file systems have the last offset, too.

    Raises:
        DataError: two of them hold the same record.
    """
    before: dict[str, BackupFile] = {}
    for file in (one.first for one in files):
        directory = file.name.rpartition("/")[0]
        known = before.get(directory)
        if known is not None and known.end >= file.start:
            raise DataError(
                f"{tp}@{file.start} is in more than one file of the backup: {known.name} and {file.name}.",
                code="restore.overlap",
                suggestion="Keep one of them below topics.dir. The same record is not restored twice.",
            )
        before[directory] = file


def _twice(one: str, other: str) -> DataError:
    return DataError(
        f"Two files begin with the same record: {one} and {other}.",
        code="restore.overlap",
        suggestion="Keep one of them below topics.dir. The same record is not restored twice.",
    )


def losses(chains: Iterable[Sequence[ValueFile]], *, has_envelope: bool) -> list[str]:
    """What files of values cannot give back, as `accept.loss` names it.

    Args:
        chains: the files of each partition.
        has_envelope: whether values hold keys, headers and timestamps.
    """
    found = {HEADER_TYPES} if has_envelope else {TIMESTAMP}
    for files in chains:
        if not has_envelope:
            found.add(HEADER_TYPES if files[0].headers is not None else HEADERS)
        if files[0].keys is None and not has_envelope:
            found.add(KEY)
        if len({file.first.name.rpartition("/")[0] for file in files}) > 1:
            found.add(ORDER)
    return sorted(found)
