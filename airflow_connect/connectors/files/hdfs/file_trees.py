"""The file system operations that taking over needs, in HDFS and directories. Paths are absolute, without host."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from airflow_connect.errors import ConnectError
from airflow_connect.stores.hdfs.files import HdfsFiles
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.hdfs.store import HdfsStore
from airflow_connect.stores.local.directories import refusals, remove_file
from airflow_connect.stores.local.rename import rename_without_replacing
from airflow_connect.stores.local.store import LocalStore
from airflow_connect.stores.store import Store

_READ_BYTES = 4 << 20
LEASE_S = 60.0
"""How long closing the file of a dead writer may take; the NameNode asks the DataNodes for its length."""


class Found(NamedTuple):
    """A file: its path and its size in bytes."""

    path: str
    size: int


class FileTree(Protocol):
    """Files and directories; every method raises ConnectError where the file system refuses."""

    def path(self, key: str) -> str:
        """The path of a name below `store.url`."""

    def walk(self, directory: str) -> Iterator[Found]:
        """All files below a directory; none if it does not exist."""

    def read(self, path: str) -> bytes | None:
        """A whole file; None if it does not exist."""

    def read_part(self, path: str, start: int, length: int) -> bytes | None:
        """`length` existing bytes of a file from `start`; None if the file does not exist."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""

    def move(self, source: str, target: str) -> bool:
        """Rename a file, creating directories as needed; False if the target exists, or the source does not."""

    def remove(self, path: str) -> bool:
        """Delete a file; returns whether it existed."""

    def settle(self, path: str) -> None:
        """Close a file that a dead writer left open, so that all its bytes can be read."""

    def close(self) -> None:
        """Release connections."""


def open_tree(store: Store) -> FileTree:
    """The files of the HDFS sink's stores.

    Raises:
        UnavailableError: the address does not answer. This is the first request of a first run, so it is retried for
            less time than a request in the middle of a run.
    """
    if isinstance(store, LocalStore):
        return LocalTree(store.root)
    if isinstance(store, HdfsStore):
        tree = HdfsTree(store.settings, store.driver_files())
        tree.find()
        return tree
    raise TypeError(f"{type(store).__name__} is not a file system.")


class HdfsTree:
    """An HDFS."""

    def __init__(self, settings: HdfsSettings, files: HdfsFiles) -> None:
        """No request yet."""
        self._settings = settings
        self._files = files

    def find(self) -> None:
        """Send any request to the NameNode, with a short timeout.

        Raises:
            UnavailableError: the address does not answer.
        """
        try:
            self._files.contact()
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
        """See `FileTree`; local files are never left open."""

    def close(self) -> None:
        """See `FileTree`."""
