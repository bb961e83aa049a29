"""Driver side of FileStreamSink: staged segments become lines, in the order of topics and partitions.

A file is appended to under a lock, and the journal beside it makes that idempotent:

1. Before the first byte the journal says where the file ends and whose lines follow.
2. A publish that died is continued: what it has appended must be the beginning of what it had to append, byte by byte,
   and the rest follows. After a loss of power the end of it may be zeros; they are cut off.
3. When everything is on the disk the journal remembers the run. From then on publishing it again changes nothing.
4. Temporary files are removed last. A publisher that was thought dead and comes late finds its run in the journal, or
   its files gone; then it would have to copy again, and Kafka has fenced it.
5. What another run has left half appended is cut off: its manifest, if it has one, is still open and brings it again.
6. Anything else in the file behind that place is somebody else's: a conflict for people.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from airflow_connect.api.errors import AccessError, PublishConflictError, UnavailableError
from airflow_connect.api.run import StagedFile
from airflow_connect.api.staging import LeftOver, Outcome
from airflow_connect.connectors.file import output
from airflow_connect.connectors.file.append_journal import (
    AppendJournal,
    OpenPublish,
    journal_path,
    read_journal,
    write_journal,
)
from airflow_connect.connectors.file.config import FileSinkConfig
from airflow_connect.stores.local_directories import refusals, sync_directory
from airflow_connect.stores.local_errors import not_shared
from airflow_connect.stores.local_publish import LocalPublisher

PIECE_BYTES = 1 << 20
LOCK_WAIT_S = 60.0
_LOCK_POLL_S = 0.05


class SegmentPublisher:
    """What both kinds share: segments below `+tmp`, all of them there or all lost."""

    may_have_twins = False

    def __init__(self, config: FileSinkConfig) -> None:
        """Nothing is touched yet."""
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
        """Nothing is held."""

    def _path_of(self, file: StagedFile) -> str:
        return os.path.join(self._config.root, str(file.token["path"]))

    def _all_there(self, files: Sequence[StagedFile]) -> bool:
        """Whether every segment is where it was staged. If not, all of them are removed, to be copied again together.

        The order of lines is fixed, so that one segment cannot follow later.

        Raises:
            AccessError: that has happened before: this process does not see where executors stage.
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
        """Whether a segment is there, and as long as it was; one that somebody has changed is as good as lost."""
        path = self._path_of(file)
        with refusals("look at", path):
            try:
                return os.stat(path).st_size == file.size_bytes
            except FileNotFoundError:
                return False


class OutputPublisher(SegmentPublisher):
    """Writes lines to standard output. At least once: nothing remembers what was written."""

    def preflight(self) -> None:
        """Make the directory for segments, for this user alone.

        Raises:
            AccessError, UnavailableError: what the file system refuses.
        """
        root = self._config.root
        with refusals("create the directory", root):
            try:
                os.mkdir(root, 0o700)
            except FileExistsError:
                found = os.lstat(root)
                if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                    raise AccessError(
                        f"{root}, where lines are staged before they go to standard output, belongs to somebody else.",
                        code="file.staging_directory",
                        suggestion="Remove it, or set TMPDIR to another directory.",
                    ) from None
        self._store.preflight()

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Write every segment to standard output.

        Raises:
            OutputClosedError: nobody reads it any more.
            AccessError, UnavailableError: a segment cannot be read.
        """
        ordered = _in_order(files)
        if not self._all_there(ordered):
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
        """Nothing is touched yet."""
        super().__init__(config)
        self._target = config.target
        self._journal = journal_path(config.target)

    def preflight(self) -> None:
        """Look whether the directory is there and the file can be appended to; nothing of it stays.

        Raises:
            AccessError, UnavailableError: what is missing.
        """
        if not os.path.isdir(self._config.root):
            raise AccessError(
                f"The directory {self._config.root} of the file to append to does not exist.",
                code="file.no_directory",
                config_path="file",
                suggestion="Create it, or correct file.",
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
            PublishConflictError: somebody else has changed the file while it was appended to.
            AccessError, UnavailableError, StateError: publishing again continues where this ended.
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
            if not self._all_there(ordered):
                return dict.fromkeys((file.key for file in ordered), Outcome.LOST)
            begun = self._begin(descriptor, journal, run_id, ordered)
            self._append(descriptor, begun, ordered, progress)
            write_journal(self._journal, journal.finished(run_id))
        self.abort(ordered)
        return dict.fromkeys((file.key for file in ordered), Outcome.PUBLISHED)

    # --- one publish, under the lock ------------------------------------------------------------------------------

    def _begin(self, descriptor: int, journal: AppendJournal, run_id: str, files: Sequence[StagedFile]) -> OpenPublish:
        """Say where this publish begins; of one that has begun already, what is in the file is looked at."""
        total = sum(file.size_bytes for file in files)
        segments = tuple(str(file.token["path"]) for file in files)
        earlier = journal.open
        if earlier is None:
            begun = OpenPublish(run_id, os.fstat(descriptor).st_size, total, segments)
        elif earlier.segments == segments:
            return earlier
        else:  # Segments were lost and copied again: what is there of the lost ones cannot be compared, and goes.
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
        """Have `piece` at `position`, where the file has `there` bytes so far; returns its new length."""
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
                    written = os.write(descriptor, rest[done:])  # O_APPEND: never over something else.
                    done += written
                    there += written
        return there

    def _is_zero_from(self, descriptor: int, position: int) -> bool:
        """Whether only zeros follow: a file system that lost power may have kept a length and not the bytes."""
        while found := os.pread(descriptor, PIECE_BYTES, position):
            if found.strip(b"\0"):
                return False
            position += len(found)
        return True

    def _roll_back(self, descriptor: int, journal: AppendJournal, left: OpenPublish) -> AppendJournal:
        """Take away what a publish of another run, which is not about any more, has appended."""
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
            f"{self._target} has {there} bytes and was changed by somebody else while lines of run {begun.run_id} were "
            f"appended to it: they belong at byte {begun.base} and are up to {begun.limit} bytes.",
            code="file.changed_meanwhile",
            suggestion=f"Cut the file to its first {begun.base} bytes if nothing of somebody else follows; or, to have "
            f"the lines appended behind whatever is there now, remove the half lines of that run and {self._journal}. "
            "Then run again.",
        )

    # --- the file -------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """A descriptor of the file, which is made when it is missing, with the lock that every publisher takes."""
        self._refuse_odd_files()
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            with refusals("open", self._target):
                descriptor = os.open(self._target, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                if self._lock(descriptor, deadline) and self._is_current(descriptor):
                    sync_directory(self._config.root)
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def _lock(self, descriptor: int, deadline: float) -> bool:
        """Take the lock.

        Raises:
            UnavailableError: somebody else has kept it for too long.
        """
        while True:
            with refusals("lock", self._target):
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                except BlockingIOError:
                    if time.monotonic() < deadline:
                        time.sleep(_LOCK_POLL_S)
                        continue
            raise UnavailableError(
                f"Another process has been appending to {self._target} for {LOCK_WAIT_S:.0f} s.",
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
                f"{self._target} is no regular file, and cannot be appended to exactly once.",
                code="file.not_regular",
                config_path="file",
                suggestion="Name a file. Without file lines go to standard output.",
            )


def _in_order(files: Sequence[StagedFile]) -> list[StagedFile]:
    return sorted(files, key=lambda file: (file.topic, file.partition, file.start))


def _pieces(path: str) -> Iterator[bytes]:
    with refusals("read", path), open(path, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, each piece ending with a line: a reader of a pipe that is closed has no half lines."""
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
