"""Directories of a local store: created when needed, synced to disk for durability, removed when empty."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from airflow_connect.stores.local.errors import error_for
from airflow_connect.stores.staged_names import remove_emptied

_NO_SYNC = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOSYS})
"""File systems that cannot sync a directory (some FUSE and network ones) make names durable in other ways."""

RACES = 16
"""How often a directory is created again if another process has just removed it because it was empty."""


def make_directories(path: str) -> list[str]:
    """Create a directory and its missing parents; returns the directories that got a new entry.

    Raises:
        AccessError, UnavailableError: the file system refused.
    """
    changed: list[str] = []
    for _ in range(RACES):
        missing = _missing(path)
        try:
            for directory in reversed(missing):
                _make(directory)
                changed.append(os.path.dirname(directory))
        except FileNotFoundError as error:  # Another process removed the empty parent, or nothing can be created there.
            refused = error
        else:
            return changed
    raise error_for(refused, "create the directory", path) from refused


def _missing(path: str) -> list[str]:
    """The directory and its parents that do not exist, deepest first."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        if os.path.dirname(path) == path:
            break
        path = os.path.dirname(path)
    return missing


def _make(directory: str) -> None:
    """Create one directory; FileNotFoundError: its parent does not exist."""
    try:
        os.mkdir(directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        if isinstance(error, FileExistsError):
            if os.path.isdir(directory):
                return
            error = NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        raise error_for(error, "create the directory", directory) from error


def sync_directory(path: str) -> None:
    """Sync a directory, so that the names in it survive a power failure.

    Raises:
        AccessError, UnavailableError: the file system refused.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise error_for(error, "sync the directory", path) from error


def remove_empty(path: str) -> bool:
    """Remove a directory if it is empty; returns whether it is gone now."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:  # Not empty, or not ours to remove: it may stay in either case.
        return False
    return True


def remove_file(path: str) -> bool:
    """Remove a file; returns whether it existed.

    Raises:
        AccessError, UnavailableError: the file system refused.
    """
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise error_for(error, "remove", path) from error
    return True


def discard(root: str, path: str) -> bool:
    """Remove a temporary file of the store at `root`, and directories that become empty; whether it existed.

    Raises:
        AccessError, UnavailableError: the file system refused.
    """
    was_there = remove_file(os.path.join(root, path))
    remove_emptied(path, lambda directory: remove_empty(os.path.join(root, directory)))
    return was_there


@contextmanager
def refusals(operation: str, path: str) -> Iterator[None]:
    """Translate errors of the operating system to messages for users."""
    try:
        yield
    except OSError as error:
        raise error_for(error, operation, path) from error
