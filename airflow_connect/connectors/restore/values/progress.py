"""How far files of values are copied: what is committed for a partition of a backup, or for an imported file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

from airflow_connect.errors import OffsetError

BACKUP, FILE, ROWS = "backup", "file", "rows"
_RANGE = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)


class RowRange(NamedTuple):
    """Rows `[start, end)` of a divided file."""

    start: int
    end: int

    def __str__(self) -> str:
        """As in a source partition."""
        return f"{self.start}-{self.end}"


def partition_of_file(root: str, name: str, rows: RowRange | None = None) -> dict[str, Any]:
    """The source partition of an imported file, or of some rows of a divided one."""
    whole = {BACKUP: root, FILE: name}
    return whole if rows is None else {**whole, ROWS: str(rows)}


def whole_of(partition: Mapping[str, Any]) -> dict[str, Any]:
    """The source partition of a file, by one of a range of its rows."""
    return {BACKUP: partition[BACKUP], FILE: partition[FILE]}


def full_name_of(partition: Mapping[str, Any]) -> str | None:
    """The file of a source partition, whatever the root was; None if it is another one."""
    is_one = set(partition) in ({BACKUP, FILE}, {BACKUP, FILE, ROWS})
    return f"{partition[BACKUP]}/{partition[FILE]}" if is_one else None


def rows_of(partition: Mapping[str, Any]) -> RowRange | None:
    """The rows of a source partition of a file; None: all of them.

    Raises:
        OffsetError: they have another form.
    """
    if ROWS not in partition:
        return None
    parts = _RANGE.fullmatch(str(partition[ROWS]))
    if parts is None:
        raise OffsetError(
            f"{dict(partition)} is no range of rows, such as 0-120000.",
            code="restore.offset",
            suggestion="Delete this offset, and the others of the file: it is then imported from its beginning.",
        )
    return RowRange(int(parts[1]), int(parts[2]))


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


@dataclass(frozen=True, slots=True)
class RangeProgress(FileProgress):
    """The source offset of some rows of a divided file.

    Attributes:
        record: number in the file of the first row that is not imported.
        done: 1 if all rows of the range are.
        size: rows of the file.
    """

    size: int = 0
