"""Names of temporary files in stores that publish by renaming: HDFS and directories.

A file with the final name `topics/t/partition=0/t+0+0000000000.avro` below the root `topics/` is staged as
`topics/+tmp/t/partition=0/t+0+0000000000.avro.<16 hexadecimal digits>_tmp`: the same name in a separate directory, so
that a listing of staged files never contains published ones, and a listing of published files contains one extra entry.
The digits distinguish attempts. The name contains the whole key, because a sweep identifies files by their keys. If
names contain the last offset, it is the key without that offset, which is unknown when the file is opened. Source of
the directory: Confluent's HDFS sink (HdfsSinkConnectorConstants.TEMPFILE_DIRECTORY, `/+tmp/`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from airflow_connect.api.staging import LeftOver
from airflow_connect.errors import DataError
from airflow_connect.stores.store import PROBE_NAME, FileIdentity, has_odd_directories

TEMPORARY = "+tmp"
"""The directory, below `FileIdentity.root`, for all staged files. No topic has this name: Kafka forbids `+`."""

_NAME = re.compile(r"(?s)(?P<name>.+)\.[0-9a-f]{16}_tmp")


class StagedPlace(NamedTuple):
    """A directory that can contain staged files whose keys have a given prefix.

    Attributes:
        above: parent of the temporary directory, with a trailing slash, or "".
        directory: the directory to walk, with a trailing slash; it need not exist. `key_of` returns the key of each
            temporary file below it, which is compared with the prefix.
    """

    above: str
    directory: str

    def key_of(self, path: str) -> str | None:
        """`FileIdentity.key` of a temporary file below `directory`; None if the name is not a temporary file's.

        Args:
            path: path inside the store, as `staged_path` made it.
        """
        root = f"{self.above}{TEMPORARY}/"
        found = _NAME.fullmatch(path.removeprefix(root)) if path.startswith(root) else None
        return None if found is None or found["name"].endswith("/") else self.above + found["name"]


def staged_path(identity: FileIdentity) -> str:
    """A new path inside the store for the file's bytes until it is published; every call returns a different one.

    Raises:
        DataError: a directory of the key is empty, `.` or `..`; a file system interprets such names.
    """
    refuse_odd_directories(identity.key)
    above = _directory(identity.root) if identity.key.startswith(identity.root) else ""
    return f"{above}{TEMPORARY}/{identity.key.removeprefix(above)}.{os.urandom(8).hex()}_tmp"


def probe_paths(prefix: str) -> tuple[str, str]:
    """Two paths for a file that a preflight stages, renames and deletes, to check permissions.

    Args:
        prefix: common prefix of the run's keys, by which a sweep finds the file.
    """
    key = f"{prefix}{PROBE_NAME}-{os.urandom(4).hex()}"
    identity = FileIdentity(key, "", 0, 0, root=prefix)
    return staged_path(identity), staged_path(identity)


def refuse_odd_directories(key: str) -> None:
    """Reject keys that a file system would interpret as a different path.

    Raises:
        DataError: a part between slashes is empty, `.` or `..`, or the key holds a NUL.
    """
    if has_odd_directories(key) or "\0" in key:
        raise DataError(
            f"The file name {key!r} has a part that is empty, '.' or '..', which file systems would interpret as"
            f" another path.",
            code="data.odd_path",
            suggestion="Let the partitioner return directories with names, and write topics.dir without doubled,"
            " leading or trailing slashes.",
        )


def staged_places(prefix: str) -> Iterator[StagedPlace]:
    """Every directory that can contain staged files whose keys start with `prefix`, whatever their root is.

    A root ends where a directory of the key ends, so each ancestor of the prefix is one candidate. There are only a
    few, and none contains a published file.
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
        walk: directory inside the store, without trailing slash -> every file below it, as path inside the store and
            milliseconds of its last change; nothing if the directory does not exist.
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
    """Remove the directories that become empty without a temporary file, up to the first that is not empty.

    Args:
        path: of the file, inside the store.
        remove_if_empty: removes a directory if it is empty; returns whether it is gone.
    """
    for directory in temporary_directories(path):
        if not remove_if_empty(directory):
            break


def temporary_directories(path: str) -> Iterator[str]:
    """Directories created for a temporary file, deepest first, `+tmp` last; without trailing slash.

    A store removes those that are empty once the file is gone.
    """
    directory = path.rpartition("/")[0]
    while directory:
        yield directory
        if directory.rpartition("/")[2] == TEMPORARY:
            return
        directory = directory.rpartition("/")[0]


def _directory(root: str) -> str:
    """`root` up to its last slash: if `directory.delim` is another character, it ends inside a name."""
    return root[: root.rfind("/") + 1]
