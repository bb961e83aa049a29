"""With `file`: rotated files whose names do not tell that they are: app.1.log or app-old.log of app.log.

Such a name may as well be that of another program's log, as app-errors.log is. A file is read if its inode or its
content proves that it is the file that was read. So are files that were written later and whose names have a number
or date at the same place, because app.log is now known to be rotated that way. Anything else is not read. If the file
that was read is gone, and one of these files may be what became of it, or of a later one, the run fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_connect.connectors.file_stream.source.discover.listing import Listing
from airflow_connect.connectors.file_stream.source.discover.rotation import is_rotated, numbered_scheme
from airflow_connect.connectors.file_stream.source.file_offsets import FINGERPRINT_BYTES, FileOffset, FileState
from airflow_connect.connectors.file_stream.source.offsets.known_content import KnownContent
from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FoundFile


class UnprovenFiles:
    """The files beside `file` of which it is to be found out whether they are rotated ones."""

    def __init__(self, name: str, listing: Listing, committed: Iterable[str], content: KnownContent) -> None:
        """`name`: the file; `committed`: names with an offset, which were proven before."""
        self._name, self._content = name, content
        self._beside = beside = listing.beside
        known = set(committed)
        self._selected = {n: f for n, f in listing.files.items() if n != name and name and not is_rotated(n, name)}
        self._has_successor = name in listing.files
        self._adds_to_the_end = any(is_rotated(other, name) for other in (*listing.files, *known))
        self._schemes = {scheme for n in known if (scheme := numbered_scheme(n, name))}
        self._unknown = {n: f for n, f in beside.items() if n not in known and not self._has_known_scheme(n)}

    def candidates(self, name: str, known: FileOffset) -> list[FoundFile]:
        """Files with any name that hold what was read of the file."""
        if name != self._name:
            return []
        return [f for f in (*self._unknown.values(), *self._selected.values()) if self._content.holds(f, known)]

    def is_proven(self, name: str, known: FileOffset, file: FoundFile, *, is_renamed: bool) -> bool:
        """Whether a file is the known one; `is_renamed`: it would be, if its name were one that rotation gives."""
        may_be_same = self._content.may_be_same(name, file)
        is_same_inode = may_be_same and bool(file.identity) and file.identity == known.identity
        if file.name in self._selected and name == self._name:
            return is_same_inode or self._has_successor or known.is_unmodified(file)
        if file.name not in self._unknown or name != self._name:
            return is_renamed
        if known.position >= FINGERPRINT_BYTES:
            return True
        has_number = bool(numbered_scheme(file.name, self._name))
        return (is_same_inode and has_number) or (is_renamed and known.is_unmodified(file))

    def later(self, states: Mapping[str, FileState], before: Mapping[str, FileState]) -> list[FoundFile]:
        """Files without an offset that were written after a proven one with such a name was read.

        Args:
            states: of this run.
            before: as they were committed.
        """
        proven = {numbered_scheme(name, self._name) for name in states} - {""}
        family = [state.known for name, state in before.items() if name == self._name or self._has_number(name)]
        times = [known.modified_ms for known in family if known and known.modified_ms is not None]
        oldest = min(times, default=0)
        return [
            file
            for name, file in self._beside.items()
            if name not in states and file.modified_ms >= oldest and numbered_scheme(name, self._name) in proven
        ]

    def check_gone(self, name: str, known: FileOffset) -> None:
        """The file that was read is nowhere: fail if it may have become one of these files, or a later one may.

        Raises:
            OffsetError: with both readings.
        """
        if name != self._name or self._adds_to_the_end:
            return  # It is known how the file is rotated.
        possible = [file.name for file in self._unknown.values() if file.size and self._may_be_rotated(known, file)]
        if possible:
            raise _rotated_or_foreign(name, known, sorted(possible))

    def not_begun(self, known: FileOffset) -> FoundFile | None:
        """The file of which nothing was read yet, by its inode, under another name."""
        for file in self._unknown.values():
            is_same_inode = file.identity == known.identity and self._content.may_be_same(self._name, file)
            if is_same_inode and numbered_scheme(file.name, self._name):
                return file
        return None

    def is_unknown(self, file: FoundFile) -> bool:
        """Whether nothing is known about a file."""
        return file.name in self._unknown

    def _may_be_rotated(self, known: FileOffset, file: FoundFile) -> bool:
        if numbered_scheme(file.name, self._name):
            return file.modified_ms >= (known.modified_ms or 0)
        return known.describes_content and file.identity == known.identity and self._content.holds(file, known)

    def _has_number(self, name: str) -> bool:
        return bool(numbered_scheme(name, self._name))

    def _has_known_scheme(self, name: str) -> bool:
        return numbered_scheme(name, self._name) in self._schemes


def _rotated_or_foreign(name: str, known: FileOffset, possible: list[str]) -> OffsetError:
    names = ", ".join(possible)
    return OffsetError(
        f"{name} may have been rotated since {known.position} bytes of it were read: that file is not found, or not"
        f" with certainty. Beside it are {names}, written since, and never read. Either they were rotated from {name},"
        " and hold lines that are not copied yet; or they belong to another program, and must not be read.",
        code="file.rotated_or_foreign",
        suggestion="Set file.rotated to a regular expression: files whose names match it are read as rotated ones,"
        " others are not. To read none of them, let it match only the name of the file itself.",
    )
