"""Opens a file of the plan, in exactly the state in which it was planned."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.errors import AccessError, DataError, UnavailableError
from airflow_connect.stores.file_system import FileBytes, FileSystem, FoundFile, GoneError

ARCHIVED = "restore.archived"
WHOLE_BYTES = 8 << 20
"""A file that is not larger is fetched with one request."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where the files are.

    Attributes:
        files: the file system.
        root: of the backup.
    """

    files: FileSystem
    root: str

    def full_name(self, file: BackupFile) -> str:
        """As users see it."""
        return f"{self.root}/{file.name}"

    def open(self, file: BackupFile) -> FileContent:
        """Open a file.

        Raises:
            DataError: it is gone, or was changed since the plan.
            UnavailableError, AccessError: it cannot be read.
        """
        self.ensure_unchanged(file)
        try:
            opened = self.files.open(self._found(file))
        except GoneError as error:
            raise self.changed(file) from error
        try:
            return FileContent(self, file, opened)
        except BaseException:
            opened.close()
            raise

    def ensure_unchanged(self, file: BackupFile) -> None:
        """Look at a file once more, where reading it does not tell whether it has changed.

        Raises:
            DataError: it has.
        """
        if self.files.identity_is_content:
            return
        now = self.files.find(self.full_name(file))
        if now is None or now != self._found(file):
            raise self.changed(file)

    def changed(self, file: BackupFile) -> DataError:
        """The error for a file that is not the planned one, with both states."""
        now = self.files.find(self.full_name(file))
        is_content = self.files.identity_is_content
        planned = _state(self._found(file), is_content=is_content)
        state = "it is gone" if now is None else f"it is {_state(now, is_content=is_content)} now"
        return DataError(
            f"{self.full_name(file)} was changed or deleted since this run listed the backup: it was {planned}, and"
            f" {state}.",
            code="restore.changed_meanwhile",
            suggestion="Put the planned file back, and run again. What was restored of the partition before stays.",
        )

    def archived(self, file: BackupFile, error: AccessError) -> DataError:
        """The error for an object that can only be read when it is back from an archive: others can be read."""
        return DataError(
            f"{self.full_name(file)} is in an archive: {error.message}",
            code="restore.archived",
            suggestion="Restore the object from its archive (RestoreObject), then run again.",
        )

    def _found(self, file: BackupFile) -> FoundFile:
        return FoundFile(self.full_name(file), file.size, file.modified_ms, file.identity, file.nanoseconds)


def _state(found: FoundFile, *, is_content: bool) -> str:
    version = f", ETag {found.identity}" if is_content else f", modified at {found.modified_ms} ms"
    return f"{found.size} bytes{version}"


class FileContent(io.RawIOBase):
    """The bytes of a file, for readers of formats."""

    def __init__(self, store: Store, file: BackupFile, opened: FileBytes) -> None:
        """`opened`: closed by `close`."""
        self._store, self._file, self._opened = store, file, opened
        self._at = 0
        self._whole = self._fetch(0, file.size) if file.size <= WHOLE_BYTES else None
        self.error: Exception | None = None

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def seekable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def tell(self) -> int:
        """See `io.RawIOBase`."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.RawIOBase`."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """See `io.RawIOBase`; all that was requested, unless the file ends.

        Raises:
            ConnectError: see `Store.open`. It is also kept as `error`, because readers of formats may hide it.
        """
        left = max(0, self._file.size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        try:
            data = self._fetch(self._at, wanted)
        except Exception as error:
            self.error = error
            raise
        self._at += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Release the file."""
        if not self.closed:
            self._opened.close()
        super().close()

    def _fetch(self, position: int, size: int) -> bytes:
        whole: Any = getattr(self, "_whole", None)
        if whole is not None:
            return bytes(whole[position : position + size])
        parts, end = [], position + size
        while position < end:
            try:
                part = self._opened.read_at(position, end - position)
            except GoneError as error:
                raise self._store.changed(self._file) from error
            except UnavailableError as error:
                if error.code == "file.changed_meanwhile":
                    raise self._store.changed(self._file) from error
                raise
            except AccessError as error:
                if error.code == "s3.archived":
                    raise self._store.archived(self._file, error) from error
                raise
            if not part:
                raise self._store.changed(self._file)
            parts.append(part)
            position += len(part)
        return b"".join(parts)
