"""What taking over needs of a file system, in HDFS and in directories. Paths are absolute, without address."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from airflow_connect.api.errors import ConnectError
from airflow_connect.stores.hdfs_files import HdfsFiles
from airflow_connect.stores.hdfs_settings import FIRST_RETRY_S, HdfsSettings
from airflow_connect.stores.hdfs_store import HdfsStore
from airflow_connect.stores.local_directories import refusals, remove_file
from airflow_connect.stores.local_rename import rename_without_replacing
from airflow_connect.stores.local_store import LocalStore
from airflow_connect.stores.store import Store

_READ_BYTES = 4 << 20
LEASE_S = 60.0
"""How long the file of a writer that died may take to be closed; the NameNode asks the DataNodes for its length."""


class Found(NamedTuple):
    """A file: its path and its size in bytes."""

    path: str
    size: int


class FileTree(Protocol):
    """Files and directories; every method raises ConnectError where the file system refuses."""

    def path(self, key: str) -> str:
        """Where a name below `store.url` is."""

    def walk(self, directory: str) -> Iterator[Found]:
        """All files below a directory; none where it is missing."""

    def read(self, path: str) -> bytes | None:
        """A whole file; None where there is none."""

    def read_part(self, path: str, start: int, length: int) -> bytes | None:
        """`length` bytes of a file from `start` on, which are there; None where there is no file."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""

    def move(self, source: str, target: str) -> bool:
        """Rename a file, with the directories it needs; False where the target is there, or the source is not."""

    def remove(self, path: str) -> bool:
        """Delete a file; whether it was there."""

    def settle(self, path: str) -> None:
        """Have a file that a dead writer left open be closed, so that all its bytes can be read."""

    def close(self) -> None:
        """Release connections."""


def open_tree(store: Store) -> FileTree:
    """The files of the HDFS sink's stores.

    Raises:
        UnavailableError: the address does not answer. It is the first thing that a first run asks there, so it is not
            repeated for as long as a request in the middle of a run.
    """
    if isinstance(store, LocalStore):
        return LocalTree(store.root)
    if isinstance(store, HdfsStore):
        tree = HdfsTree(store.settings, store.driver_files())
        tree.find()
        return tree
    raise TypeError(f"{type(store).__name__} is no file system.")


class HdfsTree:
    """An HDFS."""

    def __init__(self, settings: HdfsSettings, files: HdfsFiles) -> None:
        """No request yet."""
        self._settings = settings
        self._files = files

    def find(self) -> None:
        """Ask the NameNode for anything, with little patience.

        Raises:
            UnavailableError: the address does not answer.
        """
        try:
            self._files.with_patience(min(FIRST_RETRY_S, self._settings.retry_s)).status("/")
        except ConnectError:
            self.close()
            raise

    def path(self, key: str) -> str:
        """See `FileTree`."""
        return self._settings.path(key)

    def walk(self, directory: str) -> Iterator[Found]:
        """See `FileTree`."""
        return (Found(status.path, status.length) for status in self._files.walk(directory) if not status.isdir)

    def read(self, path: str) -> bytes | None:
        """See `FileTree`."""
        try:
            return b"".join(self._files.read(path, _READ_BYTES))
        except FileNotFoundError:
            return None

    def read_part(self, path: str, start: int, length: int) -> bytes | None:
        """See `FileTree`."""
        try:
            return self._files.read_part(path, start, length)
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        """See `FileTree`."""
        return self._files.status(path) is not None

    def move(self, source: str, target: str) -> bool:
        """See `FileTree`."""
        self._files.make_directory(target.rpartition("/")[0])
        try:
            self._files.rename(source, target, overwrite=False)
        except (FileNotFoundError, FileExistsError):
            return False
        return True

    def remove(self, path: str) -> bool:
        """See `FileTree`."""
        return self._files.delete(path)

    def settle(self, path: str) -> None:
        """See `FileTree`."""
        deadline = time.monotonic() + LEASE_S
        while not self._files.recover_lease(path) and time.monotonic() < deadline:
            time.sleep(0.5)

    def close(self) -> None:
        """See `FileTree`."""
        self._files.close()


class LocalTree:
    """A directory."""

    def __init__(self, root: str) -> None:
        """`root`: absolute path."""
        self._root = root

    def path(self, key: str) -> str:
        """See `FileTree`."""
        return f"{self._root.rstrip('/')}/{key}"

    def walk(self, directory: str) -> Iterator[Found]:
        """See `FileTree`."""
        with refusals("list", directory):
            for folder, _, names in os.walk(directory):
                for name in names:
                    path = os.path.join(folder, name)
                    yield Found(path, os.path.getsize(path))

    def read(self, path: str) -> bytes | None:
        """See `FileTree`."""
        with refusals("read", path):
            try:
                with open(path, "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def read_part(self, path: str, start: int, length: int) -> bytes | None:
        """See `FileTree`."""
        with refusals("read", path):
            try:
                with open(path, "rb") as file:
                    file.seek(start)
                    return file.read(length)
            except FileNotFoundError:
                return None

    def exists(self, path: str) -> bool:
        """See `FileTree`."""
        return os.path.exists(path)

    def move(self, source: str, target: str) -> bool:
        """See `FileTree`."""
        with refusals("rename", source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            try:
                rename_without_replacing(source, target)
            except (FileNotFoundError, FileExistsError):
                return False
        return True

    def remove(self, path: str) -> bool:
        """See `FileTree`."""
        return remove_file(path)

    def settle(self, path: str) -> None:
        """See `FileTree`; nobody leaves files open here."""

    def close(self) -> None:
        """See `FileTree`."""
