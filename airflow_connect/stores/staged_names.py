"""Names of temporary files in stores that publish by renaming: HDFS and directories.

A file with the final name `topics/t/partition=0/t+0+0000000000.avro` below the root `topics/` is staged as
`topics/+tmp/t/partition=0/t+0+0000000000.avro.<16 hexadecimal digits>_tmp`: the same name one directory aside, so that
a listing of what is staged never meets what is published, and a listing of what is published meets one entry more.
The digits tell attempts apart. The name holds the key whole, because a sweep knows files by their keys; where names
hold the last offset it is the key without it, which is all that is known when the file is opened.
Source of the directory: Confluent's HDFS sink (HdfsSinkConnectorConstants.TEMPFILE_DIRECTORY, `/+tmp/`).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from airflow_connect.api.errors import DataError
from airflow_connect.api.staging import LeftOver
from airflow_connect.stores.leftovers import PROBE_NAME
from airflow_connect.stores.store import FileIdentity

TEMPORARY = "+tmp"
"""The directory, below `FileIdentity.root`, that holds everything staged. No topic is called so: Kafka forbids `+`."""

_NAME = re.compile(r"(?s)(?P<name>.+)\.[0-9a-f]{16}_tmp")


class StagedPlace(NamedTuple):
    """Where staged files can lie whose keys have a given prefix.

    Attributes:
        above: directory that holds the temporary one, with its slash, or "".
        directory: what to walk, with its slash; it need not exist. Every temporary file below it is asked for by
            `key_of`, and its key held against the prefix.
    """

    above: str
    directory: str

    def key_of(self, path: str) -> str | None:
        """`FileIdentity.key` of a temporary file below `directory`, or None where its name is no such file's.

        Args:
            path: path inside the store, as `staged_path` made it.
        """
        root = f"{self.above}{TEMPORARY}/"
        found = _NAME.fullmatch(path.removeprefix(root)) if path.startswith(root) else None
        return None if found is None or found["name"].endswith("/") else self.above + found["name"]


def staged_path(identity: FileIdentity) -> str:
    """A new path inside the store for the file's bytes until it is published; no two calls return the same.

    Raises:
        DataError: a directory of the key is empty, `.` or `..`; such names mean other places in a file system.
    """
    refuse_odd_directories(identity.key)
    above = _directory(identity.root) if identity.key.startswith(identity.root) else ""
    return f"{above}{TEMPORARY}/{identity.key.removeprefix(above)}.{uuid.uuid4().hex[:16]}_tmp"


def probe_paths(prefix: str) -> tuple[str, str]:
    """Two paths of one file that a preflight stages, renames and deletes, to see whether it may.

    Args:
        prefix: what keys of the run begin with; the sweep of a run finds the file by it.
    """
    key = f"{prefix}{PROBE_NAME}-{uuid.uuid4().hex[:8]}"
    identity = FileIdentity(key, "", 0, 0, root=prefix)
    return staged_path(identity), staged_path(identity)


def refuse_odd_directories(key: str) -> None:
    """Refuse keys that a file system would read as another place.

    Raises:
        DataError: a part between slashes is empty, `.` or `..`, or the key holds a NUL.
    """
    if {"", ".", ".."} & set(key.split("/")) or "\0" in key:
        raise DataError(
            f"The file name {key!r} has a part that is empty, '.' or '..', which file systems take for other places.",
            code="data.odd_path",
            suggestion="Let the partitioner return directories with names, and write topics.dir without doubled,"
            " leading or trailing slashes.",
        )


def staged_places(prefix: str) -> Iterator[StagedPlace]:
    """Every place where files can be staged whose keys start with `prefix`, whatever their root is.

    A root ends where a directory of the key ends, so each ancestor of the prefix is one place: a handful, and none of
    them holds a published file.
    """
    parts = prefix.split("/")
    for depth in range(len(parts)):
        above = "".join(f"{part}/" for part in parts[:depth])
        rest = "".join(f"{part}/" for part in parts[depth:-1])
        yield StagedPlace(above, f"{above}{TEMPORARY}/{rest}")


def staged_below(prefixes: Iterable[str], walk: Callable[[str], Iterable[tuple[str, int]]]) -> Iterator[LeftOver]:
    """Temporary files whose keys start with one of `prefixes`, each once; published directories are not read.

    Args:
        prefixes: of keys.
        walk: directory inside the store, without slash at the end -> every file below it, as path inside the store
            and milliseconds of its last change; nothing where the directory is missing.
    """
    seen: set[str] = set()
    for prefix in prefixes:
        for place in staged_places(prefix):
            for path, modified_ms in walk(place.directory.rstrip("/")):
                key = place.key_of(path)
                if key is not None and key.startswith(prefix) and path not in seen:
                    seen.add(path)
                    yield LeftOver(key, {"path": path}, modified_ms)


def remove_emptied(path: str, remove_if_empty: Callable[[str], bool]) -> None:
    """Remove the directories that a temporary file leaves empty, up to the first that is not.

    Args:
        path: of the file, inside the store.
        remove_if_empty: removes a directory if it is empty; returns whether it is gone.
    """
    for directory in temporary_directories(path):
        if not remove_if_empty(directory):
            break


def temporary_directories(path: str) -> Iterator[str]:
    """Directories that are there for a temporary file, the deepest first, `+tmp` last; without slash at the end.

    A store removes those that are empty once the file is gone.
    """
    directory = path.rpartition("/")[0]
    while directory:
        yield directory
        if directory.rpartition("/")[2] == TEMPORARY:
            return
        directory = directory.rpartition("/")[0]


def _directory(root: str) -> str:
    """`root` up to its last slash: where `directory.delim` is another character, it ends inside a name."""
    return root[: root.rfind("/") + 1]
