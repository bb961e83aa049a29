"""Executor side of the HDFS store: temporary files below `+tmp`. Nothing here can rename one.

Bytes of an open file are buffered in memory or on the executor's disk. When it is closed, a thread of the pool writes
the whole file to HDFS. So a task with thousands of open directories does not hold thousands of leases, and after a
failure a file is written again from its first byte. Closing takes up to half a second (the client polls every 500 ms
whether the block was reported), so many files are closed at once. Only a file that grows beyond `piece_bytes` is
written while it grows, as one of `max_streams`.

`HdfsStagingFile` belongs to the task's thread; `_Transfer` is shared with the pool's threads and guarded by its lock.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import ConnectError
from airflow_connect.formats.spill import SpillBuffer
from airflow_connect.stores.byte_gate import ByteGate
from airflow_connect.stores.hdfs.errors import Refusal, error_for
from airflow_connect.stores.hdfs.files import HdfsFiles
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.staged_names import remove_emptied, staged_path
from airflow_connect.stores.staging import BufferedFile, StagingThreads, check_size, resolve
from airflow_connect.stores.store import FileIdentity

if TYPE_CHECKING:
    from airflow_connect.stores.hdfs.request_timeouts import TimeoutWriter

log = logging.getLogger(__name__)

CHUNK_BYTES = 512 << 10
"""Bytes passed to the client at once: it copies them, and every thread holds one chunk."""
CLIENT_BYTES = 100 * (64 << 10)
"""The most that the client holds of one file: a hundred packets that its DataNode has not accepted yet."""


class Last(NamedTuple):
    """Known when a file is closed: last offset plus one, number of records, size in bytes."""

    end: int
    records: int
    size_bytes: int


class _Transfer:
    """HDFS's side of one staged file: its path, its stream if it has one, and the first failure."""

    def __init__(self, stager: HdfsStager, identity: FileIdentity) -> None:
        self._stager = stager
        self._files = stager.files
        self._identity = identity
        self.key = staged_path(identity)
        self._path = stager.settings.path(self.key)
        self._lock = threading.Lock()
        self._bodies: deque[tuple[SpillBuffer, int]] = deque()
        self._is_running = False
        self._is_aborted = False
        self._last: Last | None = None
        self._digest = hashlib.sha256()
        self._writer: TimeoutWriter | None = None
        self._may_exist = False
        self.holds_slot = False
        self.failure: BaseException | None = None
        self.result: Future[StagedFile] = Future()

    def add(self, body: SpillBuffer, size: int, last: Last | None = None) -> None:
        """Queue bytes in order; `last` means that no more follow, so a small file is written at once."""
        with self._lock:
            self._bodies.append((body, size))
            self._last = last
        self._wake()

    def finish(self, last: Last) -> None:
        """Everything was queued before."""
        with self._lock:
            self._last = last
        self._wake()

    def abort(self) -> None:
        """Abandon the file; a thread of the pool deletes what was written."""
        with self._lock:
            self._is_aborted = True
            self.result.cancel()
        self._wake()

    def _wake(self) -> None:
        """Let one thread, never two, work on this file, because its bytes have an order."""
        with self._lock:
            if self._is_running:
                return
            self._is_running = True
        self._stager.submit(self._run)

    def _run(self) -> None:
        """Work until nothing is left to do, on a thread of the pool."""
        while True:
            with self._lock:
                is_over = self.failure is not None or self._is_aborted
                body, size = self._bodies.popleft() if self._bodies else (None, 0)
                has_all = self._last is not None and not self._bodies
                if body is None and not (has_all or is_over):
                    self._is_running = False
                    return
            try:
                if body is not None and not is_over:
                    self._take(body, is_whole=has_all and self._writer is None)
            except BaseException as error:  # noqa: BLE001 (raised again in the task's thread, by `result`)
                self.failure = self.failure or error
            finally:
                if body is not None:
                    body.close()
                self._stager.gate.leave(size)
            if (has_all or is_over or self.failure is not None) and self._settle():
                return

    def _take(self, body: SpillBuffer, *, is_whole: bool) -> None:
        for chunk in body.iter_chunks(CHUNK_BYTES):
            self._digest.update(chunk)
        self._may_exist = True
        if is_whole:
            self._files.write(self._path, lambda: body.iter_chunks(CHUNK_BYTES))
            return
        if self._writer is None:
            self._writer = self._files.open(self._path)
        for chunk in body.iter_chunks(CHUNK_BYTES):
            self._files.append(self._writer, self._path, chunk)

    def _settle(self) -> bool:
        """Resolve the result, or clean up; returns whether this thread is done with the file."""
        with self._lock:
            is_aborted = self._is_aborted
        if not is_aborted and not self.result.done():
            self._resolve()
        if is_aborted:
            self._discard()
        with self._lock:
            if self._bodies or (self._is_aborted and not is_aborted):
                return False
            self._is_running = False
            return True

    def _resolve(self) -> None:
        """Give the waiting task its result."""
        self.failure = resolve(self.result, self._staged)

    def _staged(self) -> StagedFile:
        """Describe the staged file.

        Raises:
            AuditError: HDFS has a different number of bytes than was written (invariant 7).
        """
        try:
            if self.failure is None and self._writer is not None:
                self._files.finish(self._writer, self._path)
        finally:
            self._release_slot()
        if self.failure is not None:
            raise self.failure
        assert self._last is not None
        last = self._last
        found = self._files.status(self._path)
        place = self._files.place(self._path)
        if found is None:
            raise error_for(Refusal("FileNotFoundError", "it was deleted"), "write", place)
        check_size(place, last.size_bytes, found.length)
        token: dict[str, Any] = {
            "path": self.key,
            # Renaming changes neither: a file with this size and time is the staged one, whatever its name is.
            "modified_ms": found.modification_time,
            "sha256": self._digest.hexdigest()[:32],
        }
        identity = self._identity
        return identity.staged(identity.final_key(last.end), last.end, last.records, last.size_bytes, token)

    def _release_slot(self) -> None:
        self._writer = None
        if self.holds_slot:
            self.holds_slot = False
            self._stager.slots.release()

    def _discard(self) -> None:
        self._release_slot()
        if not self._may_exist:
            return
        self._may_exist = False
        try:
            discard(self._files, self._stager.settings, self.key)
        except ConnectError as error:
            # The task is failing already, and this error must not hide why; the next run's sweep finds the file.
            log.warning("The temporary file %s stays until the next sweep: %s", self._path, error)


class HdfsStagingFile(BufferedFile):
    """An open file. Used by one thread; bytes go to HDFS on the stager's threads."""

    def __init__(self, stager: HdfsStager, identity: FileIdentity) -> None:
        """Created by `HdfsStager.open`."""
        super().__init__(identity)
        self._stager = stager
        self._transfer = _Transfer(stager, identity)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes; a large file is written while it grows. Blocks while too much is queued.

        Raises:
            UnavailableError, AccessError, ConfigError: earlier bytes could not be written.
        """
        self._check_open(self._transfer.failure)
        before = len(self._buffer)
        self._buffer.append(data)
        self._written += len(self._buffer) - before
        if len(self._buffer) >= self._stager.settings.piece_bytes:
            if self._may_stream():
                self._hand_over()
            elif self._buffer.buffered_bytes >= self._stager.settings.piece_bytes:
                self.spill()

    def close(self, end: int, records: int) -> Future[StagedFile]:
        """Write the rest; the future completes when the file is closed in HDFS, or with the first error."""
        self._check_open(self._transfer.failure)
        self._is_closed = True
        last = Last(end, records, self._written)
        if len(self._buffer) or not self._written:
            self._hand_over(last)
        else:
            self._transfer.finish(last)
        return self._transfer.result

    def abort(self) -> None:
        """Discard everything, even after `close`; does not wait (`HdfsStager.close` does). Idempotent."""
        self._drop()
        self._transfer.abort()

    def _may_stream(self) -> bool:
        """Whether this file is, or becomes, one of those written while they grow."""
        if not self._transfer.holds_slot:
            self._transfer.holds_slot = self._stager.slots.acquire(blocking=False)
        return self._transfer.holds_slot

    def _hand_over(self, last: Last | None = None) -> None:
        body = self._take()
        # Bytes on disk take no memory until they are sent; the client copies what it sends.
        size = body.buffered_bytes + min(len(body), CLIENT_BYTES)
        self._stager.gate.enter(size)
        self._transfer.add(body, size, last)


class HdfsStager:
    """Executor role of the HDFS store. `open` and the files are used by one thread."""

    def __init__(self, settings: HdfsSettings, files: HdfsFiles | None = None) -> None:
        """Nothing is sent before the first file is closed, or large.

        Args:
            settings: the HDFS.
            files: default: a new client from `settings`.
        """
        self.settings = settings
        self.files = files or HdfsFiles(settings)
        self.gate = ByteGate(settings.write_buffer_bytes)
        self.slots = threading.Semaphore(settings.max_streams)
        self._threads = StagingThreads(settings.write_threads, "hdfs-write")

    def open(self, identity: FileIdentity) -> HdfsStagingFile:
        """Start a file; no request.

        Raises:
            DataError: its name is ambiguous or invalid as a path.
        """
        return HdfsStagingFile(self, identity)

    def close(self) -> None:
        """Wait for pending writes and deletions, with a time limit, then release everything; idempotent."""
        self._threads.close()
        self.files.close()

    def submit(self, work: Callable[[], None]) -> None:
        """Run `work` on a thread of the pool."""
        self._threads.submit(work)


def discard(files: HdfsFiles, settings: HdfsSettings, key: str) -> bool:
    """Delete a temporary file and the directories that become empty; returns whether it existed."""
    existed = files.delete(settings.path(key))
    remove_emptied(key, lambda directory: files.remove_empty_directory(settings.path(directory)))
    return existed
