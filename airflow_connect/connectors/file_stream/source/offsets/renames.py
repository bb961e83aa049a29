"""Which file is a known one under a new name.

Content alone does not decide: deliveries that begin alike, such as CSV files with one header, are different files. The
same inode is the same file if rotation gives such a name or if the file was not modified; otherwise the inode may have
been used again. A file with another inode is a copy (`copytruncate`, compression) only under a name that rotation
gives, and only if the old name was vacated the way rotation does it. In doubt a file is a new one: lines may be
repeated, and the report says so, but none are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from airflow_connect.connectors.file_stream.source.discover.rotation import (
    counted,
    earlier_names,
    is_rotated,
    unpacked_name,
)
from airflow_connect.connectors.file_stream.source.file_offsets import FileOffset, FileState
from airflow_connect.connectors.file_stream.source.offsets.known_content import KnownContent
from airflow_connect.stores.file_system import FoundFile


class Nearness(IntEnum):
    """What a file has in common with a known one: inode and time, one of them, or the name but for an extension."""

    UNMODIFIED, SAME_INODE, SAME_TIME, SAME_NAME, ANY_NAME = range(5)


class Renames:
    """An index over the files that exist: each known file is compared with the few that it may be now."""

    def __init__(self, files: Mapping[str, FoundFile], states: Mapping[str, FileState], content: KnownContent) -> None:
        """`states`: of files with a committed offset, whether they exist or not."""
        self._files, self._known_names, self._content = files, states, content
        self._known_by_identity: dict[str, list[tuple[str, FileOffset]]] = {}
        for known_name, state in states.items():
            if (known := state.known) is not None and known.identity:
                self._known_by_identity.setdefault(known.identity, []).append((known_name, known))
        self._by_identity: dict[str, list[FoundFile]] = {}
        self._by_earlier_name: dict[str, list[FoundFile]] = {}
        self._by_counter: dict[str, list[tuple[int, FoundFile]]] = {}
        self._numbers: set[tuple[str, int] | None] = set()
        for file in files.values():
            if file.identity:
                self._by_identity.setdefault(file.identity, []).append(file)
            for name in earlier_names(file.name):
                self._by_earlier_name.setdefault(name, []).append(file)
            if (number := counted(file.name)) is not None:
                self._by_counter.setdefault(number[0], []).append((number[1], file))
                self._numbers.add(number)

    def with_inode(self, name: str, known: FileOffset) -> FoundFile | None:
        """The file that has the inode and the content of an offset under another name; None if there is none."""
        return next(
            (file for file in self._by_identity.get(known.identity, ())
             if file.name != name and self._content.may_be_same(name, file) and self._content.holds(file, known)),
            None,
        )  # fmt: skip

    def candidates(self, name: str, known: FileOffset) -> Iterator[FoundFile]:
        """Files with the content of a known one that it may be now, the likeliest first."""
        same_inode = self._by_identity.get(known.identity, ())
        found = {file.name: file for file in same_inode if self._content.may_be_same(name, file)}
        found |= {file.name: file for file in self._by_earlier_name.get(name, ()) if file.name not in found}
        unpacked = self._files.get(unpacked_name(name))
        for file in (*self._shifted(name, known), *((unpacked,) if unpacked else ())):
            found.setdefault(file.name, file)
        return (file for file in found.values() if file.name != name and self._content.holds(file, known))

    def nearness(self, name: str, known: FileOffset, file: FoundFile) -> Nearness:
        """What a candidate has in common with a known file, besides its content."""
        if file.identity and file.identity == known.identity and self._content.may_be_same(name, file):
            return Nearness.UNMODIFIED if known.is_unmodified(file) else Nearness.SAME_INODE
        if known.is_unmodified(file):
            return Nearness.SAME_TIME
        is_same_name = name == unpacked_name(file.name) or file.name == unpacked_name(name)
        return Nearness.SAME_NAME if is_same_name else Nearness.ANY_NAME

    def is_another(self, name: str, file: FoundFile) -> bool:
        """Whether a file has the inode and the content of an offset of another name."""
        return any(
            other != name
            and known.describes_content
            and self._content.may_be_same(other, file)
            and self._content.holds(file, known)
            for other, known in self._known_by_identity.get(file.identity, ())
        )

    def is_renamed(self, name: str, known: FileOffset, file: FoundFile) -> bool:
        """Whether a candidate is the known file, or a copy of it."""
        has_inode = self.nearness(name, known, file) <= Nearness.SAME_INODE
        is_rotation = name in earlier_names(file.name) or self._is_shift(name, file.name, has_inode=has_inode)
        if file.name == unpacked_name(name):
            return True  # somebody has decompressed it
        if self._content.is_packed_name(name) and not self._content.is_packed(file):
            return False  # rotation compresses, and never decompresses
        if has_inode:
            return is_rotation or known.is_unmodified(file)
        if not is_rotation:
            return False
        if self._has_successor(name) or known.is_unmodified(file):
            return True  # rotation made room for the next file, or kept the time
        return self._content.is_packed(file) and is_rotated(file.name, name) and not _is_dated(file.name, name)

    def _shifted(self, name: str, known: FileOffset) -> list[FoundFile]:
        """Rotated files with a higher number, the nearest first, if the file was there when it was last looked for.

        Nothing need have its number now: the file that would have got it may have been deleted before.
        """
        number = counted(name)
        if number is None or not self._is_known(number[0]):
            return []
        if known.missing_ms is not None and not self._has_successor(name):
            return []
        higher = [pair for pair in self._by_counter.get(number[0], ()) if pair[0] > number[1]]
        return [file for _, file in sorted(higher, key=lambda pair: pair[0])]

    def _is_shift(self, name: str, now: str, *, has_inode: bool) -> bool:
        """Whether rotation counts on from `name` to `now`; some programs count down, and rename then."""
        old, new = counted(name), counted(now)
        if old is None or new is None or old[0] != new[0] or not self._is_known(old[0]):
            return False
        return has_inode or new[1] > old[1]

    def _has_successor(self, name: str) -> bool:
        """Whether rotation has given the name, or its number, to the next file."""
        return name in self._files or counted(name) in self._numbers

    def _is_known(self, name: str) -> bool:
        return name in self._files or name in self._known_names


def _is_dated(name: str, of: str) -> bool:
    """Whether rotation added more than a compression suffix: app.log-20261125.gz."""
    return name[len(of) + 1 : len(of) + 2].isdigit()
