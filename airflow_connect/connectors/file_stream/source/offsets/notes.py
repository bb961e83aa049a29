"""What the report says about offsets: one sentence for each kind of event, with the files that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.file_offsets import FileOffset
from airflow_connect.counting import counted
from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FoundFile

_MOST_NAMES = 20


def listed(names: Sequence[str]) -> str:
    """Names for a sentence; of a long list the first ones and the number of the others."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


class ReconciliationNotes:
    """Collects the events of one reconciliation."""

    def __init__(self, config: FileSourceConfig) -> None:
        """Starts without events."""
        self._rereads = config.replaced == "read"
        self._sentences: list[str] = []
        self._moved: list[str] = []
        self._alike: list[str] = []
        self._back: list[str] = []
        self._rewritten: list[str] = []
        self._forgotten: list[str] = []
        self._forgotten_days = 0
        self._earlier: list[str] = []
        self._copies: list[str] = []
        self._packed_copies: list[str] = []

    def add(self, sentence: str) -> None:
        """An event that has a sentence of its own."""
        self._sentences.append(sentence)

    def moved(self, names: Mapping[str, str]) -> None:
        """Offsets follow files to new names."""
        self._moved = [f"{old} -> {new}" for old, new in names.items()]

    def alike(self, name: str, now: str, size: int) -> None:
        """An offset of a short file follows its content alone: the file may be a copy, or a new one."""
        self._alike.append(f"{name} -> {now} ({counted(size, 'byte')})")

    def moved_unread(self, name: str, now: str) -> None:
        """A file of which nothing was read yet has another name."""
        self._sentences.append(
            f"{now} has the inode of {name}, of which nothing was read yet: it is read as a rotated file."
        )

    def later(self, name: str, names: Sequence[str]) -> None:
        """Files with numbered names that are read, because `name` is known to be rotated to such names."""
        if names:
            what = counted(len(names), "file is", "files are")
            self._sentences.append(
                f"{what} read as rotated from {name}, because files with such names were, and these were written later:"
                f" {listed(names)}. If they belong to another program, set file.rotated."
            )

    def doubtful(self, name: str, position: int, candidates: Iterable[str]) -> None:
        """Files that begin with all that was read from `name`, but are not taken for it."""
        for candidate in candidates:
            self._sentences.append(
                f"{candidate} begins with the {position} bytes that were read from {name}, which is no longer under"
                " that name. It may be that file, renamed and written to, or a new one: it is read from its beginning."
                " If it was renamed, these bytes are copied twice."
            )

    def may_be_copy(self, other: FoundFile, file: FoundFile) -> None:
        """A new file holds nothing but the beginning of a known one, and is read."""
        self._sentences.append(
            f"{other.name} is new, and its {other.size} bytes are those with which {file.name} begins. It is read from"
            f" its beginning: if it is a copy of {file.name}, these bytes are copied twice."
        )

    def replaced(self, name: str, position: int) -> None:
        """Another file with the same beginning has a name, and `file.replaced` says what it is."""
        reading = (
            "is read from its beginning; if it is the same file, rewritten, these bytes are copied twice"
            if self._rereads
            else "is read on after them; if it is a new file, delete its offset to copy them too"
        )
        self._sentences.append(
            f"{name} was replaced by another file, which begins with the {position} bytes that were read. It {reading}."
        )

    def same_time(self, name: str, position: int) -> None:
        """Another file with the same beginning and time has a name: a copy with its time, or written at that moment."""
        self._sentences.append(
            f"{name} has another inode, but the same modification time, and begins with the {position} bytes that were"
            " read. It is taken for the same file, copied with its time, and read on after them; if it is a new file,"
            " written at the same moment, delete its offset to copy them too."
        )

    def back(self, name: str, position: int) -> None:
        """A missing file is there again."""
        self._back.append(f"{name} ({position} bytes)")

    def number_again(self, name: str, position: int) -> None:
        """A new file has the number of a missing one, and begins alike."""
        self._sentences.append(
            f"{name} was missing, and is there again with another inode and time. It begins with the {position} bytes"
            " that were read, but rotation reuses its number: it is read from its beginning. If it is"
            " the old file, these bytes are copied twice."
        )

    def rewritten(self, name: str) -> None:
        """A file was modified, but has the same content."""
        self._rewritten.append(name)

    def forgotten(self, name: str, *, days: int) -> None:
        """The offset of a missing file is deleted; `days`: how long it had to be missing."""
        self._forgotten.append(name)
        self._forgotten_days = days

    def earlier(self, names: Sequence[str]) -> None:
        """Rotated files that the first run leaves out."""
        self._earlier = list(names)

    def copies(self, names: Sequence[str]) -> None:
        """Rotated files that repeat the file."""
        self._copies = list(names)

    def packed_copies(self, names: Sequence[str]) -> None:
        """Compressed files that repeat a file that is still there."""
        self._packed_copies = list(names)

    def sentences(self) -> list[str]:
        """Complete sentences for the report."""
        found = list(self._sentences)
        if self._moved:
            what = counted(len(self._moved), "file was renamed; its offset", "files were renamed; their offsets")
            found.append(f"{what} moved along: {listed(self._moved)}.")
        if self._alike:
            what = counted(len(self._alike), "of these offsets follows a file", "of these offsets follow files")
            found.append(
                f"{what} by a short content alone, not by inode or time: {listed(self._alike)}. Either it is the file"
                " that was read, copied or compressed when it was rotated, or a new file that begins with the same"
                " bytes. They are not copied from there. If it is a new file, delete its offset to copy them too."
            )
        if self._back:
            what = counted(len(self._back), "missing file is there again", "missing files are there again")
            found.append(
                f"{what}, and what was read before is not read twice: {listed(self._back)}. Delete the offset of a file"
                " that is a new one."
            )
        if self._rewritten:
            reading = (
                "All of it is read again; if it is the same file, its lines are copied twice."
                if self._rereads
                else "Nothing is copied from there. Either the file was only rewritten, or a new file with the same"
                " content has its name: then its lines are missing, unless its offset is deleted."
            )
            what = counted(
                len(self._rewritten), "file was modified since it was", "files were modified since they were"
            )
            found.append(
                f"{what} read, but with the same size, beginning and end: {listed(self._rewritten)}. {reading} See"
                " file.replaced."
            )
        if self._forgotten:
            found.append(self._forgotten_sentence())
        if self._earlier:
            what = counted(len(self._earlier), "rotated file was", "rotated files were")
            found.append(
                f"{what} there before the first run: {listed(self._earlier)}. Nothing is read from there. To read"
                " rotated files of that time, select them with files instead of file."
            )
        if self._copies:
            what = counted(len(self._copies), "rotated file is a copy", "rotated files are copies")
            found.append(
                f"{what} of what the file itself still contains: {listed(self._copies)}. Nothing is read from there."
                " A log of its own that begins alike is read if files selects it, instead of file."
            )
        if self._packed_copies:
            what = counted(len(self._packed_copies), "compressed file has", "compressed files have")
            found.append(
                f"{what} the content of the file of the same name without the extension, which is still there:"
                f" {listed(self._packed_copies)}. Nothing is read from there."
            )
        return found

    def _forgotten_sentence(self) -> str:
        days, number = self._forgotten_days, len(self._forgotten)
        since = f" for {counted(days, 'day')}" if days else ""
        one, many = f"file that was missing{since} was deleted", f"files that were missing{since} were deleted"
        which = "The offset" if number == 1 else "The offsets"
        return (
            f"{which} of {counted(number, one, many)}: {listed(self._forgotten)}."
            " If such a file comes back, it is read from its beginning."
        )


def replaced_file(file: FoundFile, known: FileOffset) -> OffsetError:
    """The error for a file whose name another file has taken that begins with what was read."""
    return OffsetError(
        f"{file.name} was replaced by another file, which begins with the {known.position} bytes that were read. It may"
        " be the same file, rewritten by a program such as rsync or an editor, or a new file.",
        code="file.replaced",
        suggestion="Set file.replaced=continue if it is the same file: these bytes are not copied again. Set"
        " file.replaced=read, or delete its offset, if it is a new one: it is read from its beginning.",
    )
