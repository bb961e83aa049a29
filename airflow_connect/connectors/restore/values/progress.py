"""How far files of values are copied: what is committed for a partition of a backup, or for an imported file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

from airflow_connect.errors import OffsetError

BACKUP, FILE = "backup", "file"


def partition_of_file(root: str, name: str) -> dict[str, Any]:
    """The source partition of an imported file."""
    return {BACKUP: root, FILE: name}


def full_name_of(partition: Mapping[str, Any]) -> str | None:
    """The file of a source partition, whatever the root was; None if it is another one."""
    return f"{partition[BACKUP]}/{partition[FILE]}" if set(partition) == {BACKUP, FILE} else None


@dataclass(frozen=True, slots=True)
class _Offset:
    """A source offset as an object."""

    _ADDED: ClassVar[Mapping[str, str]] = {}

    def to_offset(self) -> dict[str, Any]:
        """The source offset."""
        return asdict(self)

    def after(self, **changes: Any) -> Self:
        """The same with other values."""
        return replace(self, **changes)

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Self:
        """What a source offset means.

        Raises:
            OffsetError: it has another form.
        """
        kinds = {one.name: int if one.type == "int" else str for one in fields(cls)}
        offset = {**cls._ADDED, **offset}  # offsets of the first builds do not have them
        if set(offset) != set(kinds) or not all(type(offset[name]) is kind for name, kind in kinds.items()):
            raise OffsetError(
                f"{dict(offset)} is not an offset of files of values.",
                code="restore.offset",
                suggestion="A connector that has restored whole records, and Confluent's S3 source, have other offsets."
                " Give the connector another name, or delete the offset: the files are then copied from the beginning.",
            )
        return cls(**offset)


@dataclass(frozen=True, slots=True)
class ValueProgress(_Offset):
    """The source offset of a partition of a backup.

    Attributes:
        start: start offset of the file that was read last; -1: none was.
        file: its name.
        version: its ETag, or size and time; of its keys and headers, too.
        record: how many of its records are restored.
        done: 1 if these are all.
        passed: files that begin at `start` or before.
        newest_ms: the last modification of those, milliseconds since the epoch.
        names: fingerprint of their names, see `airflow_connect.connectors.restore.passed`.
        target, topic_id, run, later: as in `airflow_connect.connectors.restore.progress.Progress`.
    """

    _ADDED: ClassVar[Mapping[str, str]] = {"names": ""}

    start: int = -1
    file: str = ""
    version: str = ""
    record: int = 0
    done: int = 1
    passed: int = 0
    newest_ms: int = 0
    target: str = ""
    topic_id: str = ""
    run: str = ""
    later: str = ""
    names: str = ""


@dataclass(frozen=True, slots=True)
class FileProgress(_Offset):
    """The source offset of an imported file.

    Attributes:
        version: its ETag, or size and time.
        record: how many of its records are imported.
        done: 1 if these are all.
    """

    version: str = ""
    record: int = 0
    done: int = 0
