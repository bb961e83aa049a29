"""Driver side of FileStreamSink: appends the lines of staged segments, in the order of topics and partitions.

Appending happens under a lock on the file, and the journal next to it makes it idempotent:

1. Before the first byte is appended, the length of the file and the run are written to the journal.
2. A publish that died is continued: what it has appended must be, byte by byte, the beginning of what it had to
   append; the rest is then appended. After a power failure the file may end with zeros; they are cut off.
3. When everything is on disk, the run is added to the journal. From then on, publishing it again changes nothing.
4. Temporary files are removed last. A late publisher that was believed dead finds its run in the journal, or its files
   missing. In the second case it would have to copy again, but Kafka has fenced it.
5. What another run has appended incompletely is cut off: if that run has a manifest, it is still open, and its
    recovery appends the lines again.
6. Any other data after that point was written by another program. This is a conflict that a person must resolve.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from airflow_connect.api.staging import LeftOver, Outcome, StagedFile
from airflow_connect.connectors.file_stream.sink import output
from airflow_connect.connectors.file_stream.sink.append_journal import (
    AppendJournal,
    OpenPublish,
    journal_path,
    read_journal,
    write_journal,
)
from airflow_connect.connectors.file_stream.sink.config import FileSinkConfig
from airflow_connect.errors import AccessError, PublishConflictError, UnavailableError
from airflow_connect.retrying import Backoff, Retry
from airflow_connect.stores.local.directories import refusals, sync_directory
from airflow_connect.stores.local.errors import not_shared, staged_file_gone
from airflow_connect.stores.local.publish import LocalPublisher

PIECE_BYTES = 1 << 20
LOCK_WAIT_S = 60.0
_LOCK_POLL_S = 0.05


class SegmentPublisher:
    """What both publishers share: segments below `+tmp`, which are either all present or all lost."""

    possible_duplicates = False

    def __init__(self, config: FileSinkConfig) -> None:
        """Accesses nothing yet."""
        self._config = config
        self._store = LocalPublisher(config.root)
        self._was_lost = False

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Remove segments; idempotent. Returns how many existed."""
        return self._store.abort(files)

    def list_staged(self, prefixes: Iterable[str]) -> Iterator[LeftOver]:
        """Segments whose keys start with one of `prefixes`."""
        return self._store.list_staged(prefixes)

    def close(self) -> None:
        """Has no resources to release."""

    def _path_of(self, file: StagedFile) -> str:
        return os.path.join(self._config.root, str(file.token["path"]))

    def _all_staged(self, files: Sequence[StagedFile]) -> bool:
        """Whether every segment still exists. If not, all of them are removed, to be copied again together.

        The order of lines is fixed, so a single segment cannot be appended later.

        Raises:
            AccessError: this has happened before, so this process does not see the directory where executors stage.
        """
        missing = [file for file in files if not self._is_there(file)]
        if not missing:
            return True
        if self._was_lost:
            raise not_shared(self._path_of(missing[0]), str(missing[0].token.get("host", "")))
        self._was_lost = True
        self.abort(files)
        return False

    def _is_there(self, file: StagedFile) -> bool:
        """Whether a segment exists with its original size; a segment that was changed counts as lost."""
        path = self._path_of(file)
        with refusals("look at", path):
            try:
                return os.stat(path).st_size == file.size_bytes
            except FileNotFoundError:
                return False


class OutputPublisher(SegmentPublisher):
    """Writes lines to standard output. At least once: nothing records what was written."""

    def preflight(self) -> None:
        """Create the directory for segments, accessible to this user only.

        Raises:
            AccessError, UnavailableError: the file system refused.
        """
        root = self._config.root
        with refusals("create the directory", root):
            try:
                os.mkdir(root, 0o700)
            except FileExistsError:
                found = os.lstat(root)
                if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                    raise AccessError(
                        f"{root}, where lines are staged before they go to standard output, belongs to another user.",
                        code="file.staging_directory",
                        suggestion="Remove it, or set TMPDIR to another directory.",
                    ) from None
        self._store.preflight()

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Write every segment to standard output.

        Raises:
            OutputClosedError: its reader has closed it.
            AccessError, UnavailableError: a segment cannot be read.
        """
        ordered = _in_order(files)
        if not self._all_staged(ordered):
            return dict.fromkeys((file.key for file in ordered), Outcome.LOST)
        for done, file in enumerate(ordered, start=1):
            for piece in _whole_lines(_pieces(self._path_of(file))):
                output.write(piece)
            progress(done)
        self.abort(ordered)
        return dict.fromkeys((file.key for file in ordered), Outcome.PUBLISHED)


class FilePublisher(SegmentPublisher):
    """Appends lines to a file, exactly once."""

    def __init__(self, config: FileSinkConfig) -> None:
        """Accesses nothing yet."""
        super().__init__(config)
        self._target = config.target
        self._journal = journal_path(config.target)

    def preflight(self) -> None:
        """Check that the directory exists and that the file can be appended to; leaves nothing behind.

        Raises:
            AccessError, UnavailableError: the file cannot be appended to.
        """
        if not os.path.isdir(self._config.root):
            raise AccessError(
                f"The directory {self._config.root} of the file to append to does not exist.",
                code="file.no_directory",
                config_path="file",
                suggestion="Create it, or correct the key file.",
            )
        self._refuse_odd_files()
        read_journal(self._journal)
        self._store.preflight()
        with refusals("append to", self._target):
            if os.path.exists(self._target) and not os.access(self._target, os.R_OK | os.W_OK):
                raise PermissionError(13, os.strerror(13))

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Append every segment, in order.

        Raises:
            PublishConflictError: another program changed the file while it was appended to.
            AccessError, UnavailableError, StateError: publishing again continues at this point.
        """
        if not files:
            return {}
        ordered = _in_order(files)
        run_id = str(ordered[0].token["run_id"])
        with self._locked() as descriptor:
            journal = read_journal(self._journal)
            if run_id in journal.done:
                self.abort(ordered)
                return dict.fromkeys((file.key for file in ordered), Outcome.ALREADY_PUBLISHED)
            if journal.open is not None and journal.open.run_id != run_id:
                journal = self._roll_back(descriptor, journal, journal.open)
            if not self._all_staged(ordered):
                return dict.fromkeys((file.key for file in ordered), Outcome.LOST)
            begun = self._begin(descriptor, journal, run_id, ordered)
            self._append(descriptor, begun, ordered, progress)
            write_journal(self._journal, journal.finished(run_id))
        self.abort(ordered)
        return dict.fromkeys((file.key for file in ordered), Outcome.PUBLISHED)

    # --- one publish, under the lock ------------------------------------------------------------------------------

    def _begin(self, descriptor: int, journal: AppendJournal, run_id: str, files: Sequence[StagedFile]) -> OpenPublish:
        """Record where this publish begins; if it has begun before, check what is in the file."""
        total = sum(file.size_bytes for file in files)
        segments = tuple(str(file.token["path"]) for file in files)
        earlier = journal.open
        if earlier is None:
            begun = OpenPublish(run_id, os.fstat(descriptor).st_size, total, segments)
        elif earlier.segments == segments:
            return earlier
        else:  # Segments were lost and copied again; appended lines of the lost ones cannot be compared.
            self._cut(descriptor, earlier)
            begun = OpenPublish(run_id, earlier.base, total, segments)
        write_journal(self._journal, journal.begun(begun))
        return begun

    def _append(
        self, descriptor: int, begun: OpenPublish, files: Sequence[StagedFile], progress: Callable[[int], None]
    ) -> None:
        expected = begun.base
        there = os.fstat(descriptor).st_size
        if not begun.base <= there <= begun.base + begun.limit:
            raise self._conflict(begun, there)
        for done, file in enumerate(files, start=1):
            for piece in _pieces(self._path_of(file)):
                there = self._append_piece(descriptor, begun, expected, there, piece)
                expected += len(piece)
            progress(done)
        if expected != begun.base + begun.limit or there != expected:
            raise self._conflict(begun, there)
        with refusals("sync", self._target):
            os.fsync(descriptor)

    def _append_piece(self, descriptor: int, begun: OpenPublish, position: int, there: int, piece: bytes) -> int:
        """Ensure that `piece` is at `position`; the file has `there` bytes so far. Returns its new length."""
        with refusals("append to", self._target):
            found = os.pread(descriptor, len(piece), position) if there > position else b""
            if piece.startswith(found):
                same = len(found)
            else:
                same = next(n for n, (a, b) in enumerate(zip(found, piece, strict=False)) if a != b)
                if not self._is_zero_from(descriptor, position + same):
                    raise self._conflict(begun, there)
                os.ftruncate(descriptor, position + same)
                there = position + same
            with memoryview(piece)[same:] as rest:
                done = 0
                while done < len(rest):
                    if os.fstat(descriptor).st_size != there:
                        raise self._conflict(begun, os.fstat(descriptor).st_size)
                    written = os.write(descriptor, rest[done:])  # O_APPEND: never overwrites anything.
                    done += written
                    there += written
        return there

    def _is_zero_from(self, descriptor: int, position: int) -> bool:
        """Whether only zeros follow: after a power failure, a file may have its new length but not its bytes."""
        while found := os.pread(descriptor, PIECE_BYTES, position):
            if found.strip(b"\0"):
                return False
            position += len(found)
        return True

    def _roll_back(self, descriptor: int, journal: AppendJournal, left: OpenPublish) -> AppendJournal:
        """Cut off what a publish of another run, which is no longer active, has appended."""
        self._cut(descriptor, left)
        rolled_back = journal.rolled_back()
        write_journal(self._journal, rolled_back)
        return rolled_back

    def _cut(self, descriptor: int, begun: OpenPublish) -> None:
        there = os.fstat(descriptor).st_size
        if not begun.base <= there <= begun.base + begun.limit:
            raise self._conflict(begun, there)
        with refusals("truncate", self._target):
            os.ftruncate(descriptor, begun.base)
            os.fsync(descriptor)

    def _conflict(self, begun: OpenPublish, there: int) -> PublishConflictError:
        return PublishConflictError(
            f"{self._target} has {there} bytes. Another program changed it while lines of run {begun.run_id} were "
            f"appended to it. They belong at byte {begun.base} and are up to {begun.limit} bytes.",
            code="file.changed_meanwhile",
            suggestion=f"If no other program's data follows, cut the file to its first {begun.base} bytes. To have "
            f"the lines appended to the present data instead, remove that run's incomplete lines and {self._journal}. "
            "Then run again.",
        )

    # --- the file -------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """A descriptor of the file, which is created if it is missing, with the lock that every publisher takes."""
        self._refuse_odd_files()
        tries = Retry(Backoff(_LOCK_POLL_S, longest_s=_LOCK_POLL_S), within_s=LOCK_WAIT_S)
        while True:
            with refusals("open", self._target):
                descriptor = os.open(self._target, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                if self._lock(descriptor, tries) and self._is_current(descriptor):
                    sync_directory(self._config.root)
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def _lock(self, descriptor: int, tries: Retry) -> bool:
        """Take the lock.

        Raises:
            UnavailableError: another process has held it for too long.
        """
        while True:
            with refusals("lock", self._target):
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                except BlockingIOError:
                    if tries.pause():
                        continue
            raise UnavailableError(
                f"Another process has held the lock on {self._target} for {LOCK_WAIT_S:.0f} s.",
                code="file.locked",
                suggestion="Wait for it, or end it if it is frozen, and run again.",
            )

    def _is_current(self, descriptor: int) -> bool:
        """Whether the locked file still has its name; a log rotation may have moved it away."""
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._target))
        except FileNotFoundError:
            return False

    def _refuse_odd_files(self) -> None:
        with refusals("look at", self._target):
            try:
                mode = os.stat(self._target).st_mode
            except FileNotFoundError:
                return
        if not stat.S_ISREG(mode):
            raise AccessError(
                f"{self._target} is not a regular file, so it cannot be appended to exactly once.",
                code="file.not_regular",
                config_path="file",
                suggestion="Name a regular file. Without the key file, lines go to standard output.",
            )


def _in_order(files: Sequence[StagedFile]) -> list[StagedFile]:
    return sorted(files, key=lambda file: (file.topic, file.partition, file.start))


def _pieces(path: str) -> Iterator[bytes]:
    with refusals("read", path):
        try:
            file = open(path, "rb")  # noqa: SIM115 (closed below)
        except FileNotFoundError:
            raise staged_file_gone(path, "read") from None
        with file:
            while piece := file.read(PIECE_BYTES):
                yield piece


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that end with a line: the reader of a pipe that is closed gets no partial lines."""
    rest = b""
    for piece in pieces:
        head, newline, tail = piece.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += piece
    if rest:
        yield rest
