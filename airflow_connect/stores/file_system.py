"""The file system interface of the file source: list files, describe them, and read bytes of them.

A name is the one in the source partition: a path as configured, or a URL. One configuration may use several
implementations, such as local files and objects in a bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from airflow_connect.errors import AccessError, ConnectError, UnavailableError


@dataclass(frozen=True, slots=True)
class FoundFile:
    """The current state of a file.

    Attributes:
        name: as in the source partition.
        size: bytes.
        modified_ms: milliseconds since the epoch.
        identity: a value that survives renaming (the inode number) or changes with the content (an ETag); "" if the
            file system has neither.
        nanoseconds: of the modification time, after its milliseconds; 0 if the file system does not tell them.
    """

    name: str
    size: int
    modified_ms: int
    identity: str = ""
    nanoseconds: int = 0


class GoneError(Exception):
    """The file no longer exists, or another file has its name."""


class FileChangedError(UnavailableError):
    """The content of a file is not what it was when the run was planned. Another run finds out what is there now."""

    code = "file.changed_meanwhile"
    ends_task = True


class FileBytes(Protocol):
    """An open file."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file.

        Raises:
            GoneError: the bytes of this very file are no longer available.
            UnavailableError, AccessError: it cannot be read.
        """

    def close(self) -> None:
        """Release it."""


class FileSystem(Protocol):
    """Files below one root."""

    identity_is_content: bool
    """Whether an equal `identity` means equal bytes (an ETag), not just the same file (an inode)."""

    linked_directories: list[str]
    """Links to directories that `walk` did not follow, so far."""

    others: dict[str, str]
    """What `walk` left out so far because it is not a file: by name what it is, such as "a pipe"."""

    unreadable_links: dict[str, ConnectError]
    """Links that `walk` left out so far because it is unknown where they lead; most are of no interest to a caller."""

    def find(self, name: str) -> FoundFile | None:
        """The file with this name; None if it does not exist."""

    def walk(self, directory: str, *, recursive: bool) -> Iterator[FoundFile]:
        """The files of a directory, including subdirectories if `recursive`; none if the directory does not exist."""

    def has_directory(self, directory: str) -> bool:
        """Whether a directory exists; always true where directories are only parts of names."""

    def place(self, name: str) -> tuple[str, bool]:
        """What is equal for all names of one file, and whether this name is a symbolic link."""

    def open(self, file: FoundFile) -> FileBytes:
        """Open a file that was found.

        Raises:
            GoneError: it no longer exists, or another file has its name.
        """

    def close(self) -> None:
        """Release connections."""


def changed_meanwhile(what: str) -> FileChangedError:
    """The error for a file that was truncated or replaced while a run used it; `what`: a clause that names it."""
    return FileChangedError(
        f"A file changed while this run used it: {what}. Either a program has rotated it, and what was not read is in"
        " the rotated file, or its content was deleted, and what was not read is lost.",
        code="file.changed_meanwhile",
        suggestion="Run again: the next run looks for the content under other names, resumes from the committed offset,"
        " and reports what it does not find.",
    )


def unreadable(name: str, error: OSError) -> AccessError | UnavailableError:
    """The error for a file or directory that cannot be read."""
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError):
        return AccessError(
            f"{name} cannot be read: {reason}.",
            code="file.denied",
            config_path="file",
            suggestion="Give the user that runs the executors permission to read it.",
        )
    return UnavailableError(
        f"{name} cannot be read: {reason}.",
        code="file.unreadable",
        suggestion="The next run resumes from the committed offset.",
    )
