"""What the file source asks of a place where files are: which there are, how they look, and bytes of them.

A name is what the source partition holds: a path as it was configured, or a URL. Two implementations may stand behind
one configuration: files of a machine and objects of a bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from airflow_connect.api.errors import AccessError, UnavailableError


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as it is now.

    Attributes:
        name: as in the source partition.
        size: bytes.
        modified_ms: milliseconds since the epoch.
        identity: what stays when the file is renamed (the number of its inode) or changes with its content (an ETag);
            "" where the place has nothing like it.
    """

    name: str
    size: int
    modified_ms: int
    identity: str = ""


class GoneError(Exception):
    """The file is no longer there, or another one stands under its name."""


class FileBytes(Protocol):
    """An open file."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file.

        Raises:
            GoneError: the place cannot give bytes of this very file any more.
            UnavailableError, AccessError: it cannot be read.
        """

    def close(self) -> None:
        """Release it."""


class Place(Protocol):
    """Files below one root."""

    identity_is_content: bool
    """Whether an equal `identity` means equal bytes (an ETag), not only the same file (an inode)."""

    def find(self, name: str) -> FoundFile | None:
        """One file, None where there is none."""

    def walk(self, directory: str, *, recursive: bool) -> Iterator[FoundFile]:
        """The files of a directory, those below it too if `recursive`; none where there is no such directory."""

    def open(self, file: FoundFile) -> FileBytes:
        """Open a file that was found.

        Raises:
            GoneError: it is no longer there, or another one is.
        """

    def close(self) -> None:
        """Release connections."""


def unreadable(name: str, error: OSError) -> AccessError | UnavailableError:
    """The error of a file or directory that the system does not let read."""
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError):
        return AccessError(
            f"{name} cannot be read: {reason}.",
            code="file.denied",
            config_path="file",
            suggestion="Let the user that runs the executors read it.",
        )
    return UnavailableError(
        f"{name} cannot be read: {reason}.",
        code="file.unreadable",
        suggestion="The next run tries again from the committed offset.",
    )
