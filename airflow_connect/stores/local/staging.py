"""Executor side of the local store: files that grow below `+tmp`. Nothing here can publish.

No file is kept open: bytes are buffered in memory and appended in large pieces, so thousands of open directories need a
single descriptor. Spilled bytes go to the temporary file itself, which is on disk anyway.
"""

from __future__ import annotations

import logging
import os
import zlib
from concurrent.futures import Future
from typing import Any

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import ConnectError, DataError
from airflow_connect.stores.local.directories import RACES, discard, make_directories, refusals
from airflow_connect.stores.local.errors import host, not_found_here, staged_file_gone
from airflow_connect.stores.staged_names import staged_path
from airflow_connect.stores.staging import StagingThreads, check_size
from airflow_connect.stores.store import FileIdentity

log = logging.getLogger(__name__)

PIECE_BYTES = 4 << 20
"""Bytes of one file that are buffered in memory before they are appended to it."""
SYNC_THREADS = 8
MAX_NAME_BYTES = 255
"""Longest file name on common file systems (NAME_MAX)."""


class LocalStagingFile:
    """An open file. Used by one thread; only the sync after closing runs on another."""

    def __init__(self, stager: LocalStager, identity: FileIdentity) -> None:
        """Created by `LocalStager.open`."""
        self._stager = stager
        self._identity = identity
        self._path = staged_path(identity)
        self._memory = bytearray()
        self._written = 0
        self._crc32 = 0
        self._exists = False
        self._is_closed = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes held in memory."""
        return len(self._memory)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes.

        Raises:
            UnavailableError, AccessError: the file system refused.
        """
        self._check_open()
        self._memory += data
        if len(self._memory) >= PIECE_BYTES:
            self.spill()

    def spill(self) -> None:
        """Append the buffered bytes to the temporary file.

        Raises:
            UnavailableError, AccessError: the file system refused.
        """
        if self._memory:
            self._append()

    def close(self, end: int, records: int) -> Future[StagedFile]:
        """Write the rest; the future completes when all bytes are on disk, or with the first error."""
        self._check_open()
        self._is_closed = True
        if self._memory or not self._exists:
            self._append()
        return self._stager.submit(self, end, records)

    def abort(self) -> None:
        """Discard everything, even after `close`. Idempotent."""
        self._is_closed = True
        self._memory = bytearray()
        if self._exists:
            self._exists = False
            self._stager.discard(self._path)

    def staged(self, end: int, records: int) -> StagedFile:
        """Sync the closed file and describe it; runs on a thread of the stager.

        Raises:
            AuditError: the disk has a different number of bytes than was written.
            UnavailableError, AccessError: the file system refused.
        """
        path = self._stager.absolute(self._path)
        with refusals("sync", path):
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                raise staged_file_gone(path, "synced to disk") from None
            try:
                os.fsync(descriptor)
                facts = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        check_size(path, self._written, facts.st_size)
        token: dict[str, Any] = {
            "path": self._path,
            "run_id": self._stager.run_id,
            "crc32": self._crc32,
            "inode": facts.st_ino,
            "mtime_ns": facts.st_mtime_ns,
            "host": host(),
        }
        return self._identity.staged(self._identity.final_key(end), end, records, self._written, token)

    def _append(self) -> None:
        path = self._stager.absolute(self._path)
        with refusals("write", path):
            descriptor = self._reopen(path) if self._exists else self._create(path)
            try:
                with memoryview(self._memory) as rest:
                    done = 0
                    while done < len(rest):
                        done += os.write(descriptor, rest[done:])
            finally:
                os.close(descriptor)
        self._crc32 = zlib.crc32(self._memory, self._crc32)
        self._written += len(self._memory)
        self._memory = bytearray()

    def _create(self, path: str) -> int:
        for _ in range(RACES):
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:
                self._stager.make_directory(os.path.dirname(path))
            else:
                self._exists = True
                return descriptor
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)

    def _reopen(self, path: str) -> int:
        try:
            return os.open(path, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            raise staged_file_gone(path, "complete") from None

    def _check_open(self) -> None:
        if self._is_closed:
            raise ValueError(f"The staged file {self._identity.key} is closed.")


class LocalStager:
    """Executor role of the local store. `open` and the files are used by one thread."""

    def __init__(self, root: str, run_id: str) -> None:
        """Nothing is written before the first file has bytes to write.

        Args:
            root: directory of the store.
            run_id: kept in the token of every staged file.
        """
        self.root = root
        self.run_id = run_id
        self._threads = StagingThreads(SYNC_THREADS, "local-sync")

    def open(self, identity: FileIdentity) -> LocalStagingFile:
        """Start a file; nothing is written.

        Raises:
            DataError: a name is too long for a file system, or ambiguous as a path.
        """
        file = LocalStagingFile(self, identity)
        # Offsets have at most 19 digits.
        for key in (identity.final_key(1 << 63), f"{identity.key}.0123456789abcdef_tmp"):
            _refuse_long_names(key)
        return file

    def close(self) -> None:
        """Wait for syncs, with a time limit, then release threads; idempotent."""
        self._threads.close()

    def absolute(self, path: str) -> str:
        """The absolute path of a path inside the store."""
        return os.path.join(self.root, path)

    def submit(self, file: LocalStagingFile, end: int, records: int) -> Future[StagedFile]:
        """Sync a closed file on another thread."""
        return self._threads.submit(lambda: file.staged(end, records))

    def make_directory(self, path: str) -> None:
        """Create a directory below the root, never the root itself: if it is missing here, the driver uses another one.

        Raises:
            AccessError, UnavailableError: the file system refused, or the root does not exist.
        """
        if not os.path.isdir(self.root):
            raise not_found_here(self.root)
        make_directories(path)

    def discard(self, path: str) -> None:
        """Remove a temporary file and directories that become empty; a file that cannot be removed stays."""
        try:
            discard(self.root, path)
        except ConnectError as error:
            # The task is failing already, and this error must not hide why; the next run's sweep finds the file.
            log.warning("The temporary file %s stays until the next sweep: %s", self.absolute(path), error)


def _refuse_long_names(key: str) -> None:
    if len(key) <= MAX_NAME_BYTES // 4:  # A character takes at most 4 bytes, so short keys need no check of each part.
        return
    if max(len(part.encode("utf-8", "surrogatepass")) for part in key.split("/")) > MAX_NAME_BYTES:
        raise DataError(
            f"A part of the file name {key[:300]} is longer than {MAX_NAME_BYTES} bytes, which file systems refuse.",
            code="data.key_too_long",
            suggestion="Partition by a shorter field.",
        )
