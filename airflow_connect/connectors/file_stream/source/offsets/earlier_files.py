"""With `file`: which rotated files were there before the connector's first run. Only these are never read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.discover.rotation import earlier_names, is_of_family, is_rotated
from airflow_connect.connectors.file_stream.source.file_offsets import FINGERPRINT_BYTES, FileOffset, FileState
from airflow_connect.connectors.file_stream.source.offsets.known_content import KnownContent
from airflow_connect.connectors.file_stream.source.offsets.notes import ReconciliationNotes
from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FoundFile


class EarlierFiles:
    """Gives them an offset at their end in the first run. Every rotated file without an offset is then a later one."""

    def __init__(self, config: FileSourceConfig, content: KnownContent, files: Mapping[str, FoundFile]) -> None:
        """`files`: all that were found."""
        self._config, self._content, self._files = config, content, files
        self._later: dict[str, list[FoundFile]] = {}
        for file in files.values():
            for name in earlier_names(file.name):
                self._later.setdefault(name, []).append(file)

    def leave_out(
        self,
        states: dict[str, FileState],
        before: Mapping[str, FileState],
        foreign: Collection[str],
        moved: Mapping[str, str],
    ) -> list[str]:
        """Complete `states`, and return the names of the files that are left out.

        Args:
            states: of this run.
            before: as they were committed.
            foreign: files of which a Kafka Connect worker left the position.
            moved: see `ReconciledOffsets`.

        Raises:
            OffsetError: the file that a worker has read does not exist, but may be one of the rotated ones.
        """
        name = self._config.file
        if name is None:
            return []
        unknown = [file for file in self._files.values() if file.name not in (name, *states)]
        family = {n: state for n, state in before.items() if n == name or is_of_family(n, name)}
        if family:
            selected = self._selected_before(name, unknown, family)
            for file in unknown:
                if not is_rotated(file.name, name) and file not in selected:
                    # It is to be read, also if this run is killed, and the next one finds no older file.
                    states[file.name] = FileState(FileOffset(0, identity=file.identity).at_time_of(file), {})
            unknown = [*self._of_an_earlier_version(name, unknown, family, moved), *selected]
        elif name in foreign and name not in self._files and unknown:
            raise _rotated_away(name, unknown)
        elif name in self._files and name not in states:
            # Even if it is empty: what is rotated from now on is known to be later.
            file = self._files[name]
            states[name] = FileState(FileOffset(0, identity=file.identity).at_time_of(file), {})
        for file in unknown:
            states[file.name] = FileState(self._content.offset_at_end(file), {})
        return [file.name for file in unknown]

    def copies(self, states: Mapping[str, FileState], notes: ReconciliationNotes) -> list[str]:
        """Rotated files without an offset that are not read: all of them is in the file itself, which has one.

        `copytruncate` has not truncated that file yet; then the offset moves to the copy. Of short ones only
        `file.replaced` can say whether they are copies: the file may be a new one, with the old inode, that begins as
        the rotated one does. With `files` they are read, and the report says so.

        Raises:
            OffsetError: it is unknown which of both they are, and `file.replaced` does not say it.
        """
        found = [(other, file) for file in self._read_before(states) for other in self._repeating(file, states)]
        if self._config.file is None or self._config.replaced == "read":
            for other, file in found:
                notes.may_be_copy(other, file)
            return []
        short = [(other, file) for other, file in found if other.size < FINGERPRINT_BYTES]
        if short and self._config.replaced == "fail":
            raise _copy_or_log(*short[0])
        return [other.name for other, _ in found]

    def _read_before(self, states: Mapping[str, FileState]) -> Iterator[FoundFile]:
        """Files that rotation may copy: each is still the one, by its inode, of which a part was read."""
        names = [self._config.file] if self._config.file is not None else list(self._files)
        for name in names:
            file, state = self._files.get(name), states.get(name)
            known = state.known if state else None
            if file and known and file.identity and file.identity == known.identity and known.describes_content:
                yield file

    def _repeating(self, file: FoundFile, states: Mapping[str, FileState]) -> list[FoundFile]:
        """Rotated files without an offset that hold nothing but the beginning of a file."""
        return [
            other
            for other in self._later.get(file.name, ())
            if other.name not in states
            and other.size
            and not self._content.is_packed(other)
            and self._content.holds(file, self._content.offset_at_end(other))
        ]

    def _selected_before(
        self, name: str, unknown: Iterable[FoundFile], family: Mapping[str, FileState]
    ) -> list[FoundFile]:
        """Files that `file.rotated` selects, and that were written before the file was read first."""
        times = [state.known.modified_ms for state in family.values() if state.known]
        oldest = min((time for time in times if time is not None), default=0)
        return [file for file in unknown if not is_rotated(file.name, name) and file.modified_ms < oldest]

    def _of_an_earlier_version(
        self, name: str, unknown: list[FoundFile], family: Mapping[str, FileState], moved: Mapping[str, str]
    ) -> list[FoundFile]:
        """Earlier versions did not record the files of the first run: what was last written before the file was."""
        if any(state.known and state.known.modified_ms is not None for state in family.values()):
            return []
        known = [self._files[n] for n in (moved.get(n, n) for n in family) if n in self._files and n != name]
        if known:
            return [file for file in unknown if file.modified_ms < min(other.modified_ms for other in known)]
        # Nothing was rotated since, or all that is left was: the file that was read is gone.
        state, file = family.get(name), self._files.get(name)
        is_same = bool(state and state.known and file and self._content.holds(file, state.known))
        return unknown if is_same else []


def _rotated_away(name: str, rotated: list[FoundFile]) -> OffsetError:
    names = ", ".join(sorted(file.name for file in rotated))
    return OffsetError(
        f"A Kafka Connect worker left a position for {name}, which does not exist. The file that it read may be one of"
        f" the rotated files ({names}), or it was deleted.",
        code="file.rotated_before",
        suggestion="If it was rotated, alter the offset of the rotated file to that position and delete the one of"
        f" {name}; if it was deleted, delete the offset of {name}.",
    )


def _copy_or_log(other: FoundFile, file: FoundFile) -> OffsetError:
    return OffsetError(
        f"{other.name} is new, and its {other.size} bytes are those with which {file.name} begins. Either it is a copy"
        f" of {file.name}, and they were or will be read there, or it is the file that was read, or a later one, and"
        f" {file.name} is a new file that begins alike: then their lines would be lost.",
        code="file.may_be_copy",
        suggestion="Run again if a program was just copying it. Otherwise set file.replaced=continue if it is a copy:"
        " it is not read; or file.replaced=read if it is a log of its own: it is read from its beginning.",
    )
