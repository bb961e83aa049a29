"""Driver side of the HDFS store: rename staged files idempotently, discard or list the others.

Failures that the order of checks handles:
1. The reply to a rename was lost, and it is repeated. The temporary file is gone, and the file with the final name has
the size and the time of the staged file: already published.
2. A user, or a sweep, deleted the temporary file, and there is no file with the final name: lost, must be copied again.
3. Another program wrote a file with the final name. FileExistsError, and the bytes differ: a conflict for people to
resolve; nothing is replaced.
4. The same bytes got there in another way (a file that was copied back): already published; the temporary file is
deleted.
5. A run that was presumed dead renames late: as in 1, its file is gone already, or gets its own final name.
Source for the rename that never replaces: ClientProtocol.rename2 without Options.Rename.OVERWRITE, which checks and
moves under one lock of the NameNode.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from airflow_connect.api.staging import LeftOver, Outcome, StagedFile
from airflow_connect.errors import ConnectError, PublishConflictError, UnavailableError
from airflow_connect.stores.hdfs.files import HdfsFiles
from airflow_connect.stores.hdfs.settings import FIRST_RETRY_S, HdfsSettings
from airflow_connect.stores.hdfs.staging import discard
from airflow_connect.stores.publishing import publish_each, refuse_equal_keys, try_out
from airflow_connect.stores.staged_names import (
    probe_paths,
    refuse_odd_directories,
    remove_emptied,
    staged_below,
    temporary_directories,
)

log = logging.getLogger(__name__)

"""A wrong address should not be retried for minutes; the run has not begun."""
NO_CONNECTION = frozenset(
    {"hdfs.conf_dir", "hdfs.jvm", "hdfs.jvm_missing", "hdfs.login", "hdfs.name_service", "hdfs.unreachable"}
)
"""Errors after which there is nothing to clean up, and no server to do it."""
RACES = 5
"""How often a directory may vanish between its creation and a rename into it."""
_READ_BYTES = 4 << 20


class HdfsPublisher:
    """Driver role of the HDFS store; safe to use from several threads and several processes at once."""

    possible_duplicates = False
    """Repeating a create request writes the same path, so there are no unknown staged files."""

    def __init__(
        self,
        settings: HdfsSettings,
        *,
        probe_prefix: str = "",
        overwrite: bool = False,
        files: HdfsFiles | None = None,
    ) -> None:
        """Nothing is sent yet. See `HdfsStore.publisher`; `files`: default: a new client of hdfs-native."""
        self._settings = settings
        self._files = files or HdfsFiles(settings)
        self._probe_prefix = probe_prefix
        self._overwrite = overwrite

    def preflight(self) -> None:
        """Write a file below `+tmp`, rename it there, delete it: NameNode, DataNodes, permissions, quota, safe mode.

        Raises:
            AccessError, ConfigError, UnavailableError: with what is missing.
        """
        self._files.contact()
        files = self._files.with_patience(min(FIRST_RETRY_S, self._settings.retry_s))
        try_out(lambda: self._try_out(files), deleted="hdfs.staged_file_gone")

    def _try_out(self, files: HdfsFiles) -> None:
        first, second = probe_paths(self._probe_prefix)
        try:
            files.write(self._path(first), lambda: [b"airflow-connect"])
            files.rename(self._path(first), self._path(second), overwrite=False)
        except ConnectError as error:
            if error.code not in NO_CONNECTION:
                self._discard_quietly(first)
            raise
        discard(files, self._settings, second)

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Rename `files`, in parallel; a conflict does not keep the others of the manifest from being published.

        Raises:
            PublishConflictError: names the first conflicting file and the number of conflicts.
            UnavailableError, AccessError: publishing again continues from here.
        """
        refuse_equal_keys(files)
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="hdfs-publish") as pool:
            for _ in pool.map(self._files.make_directory, sorted({_parent(self._path(f.key)) for f in files})):
                pass
            published = publish_each(files, self._publish_one, progress, pool)
            self._remove_empty_directories([str(f.token["path"]) for f in files], pool)
        return published.checked("names hold other files")

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Delete the temporary files of `files`, in parallel; idempotent; returns how many existed."""
        paths = [str(file.token["path"]) for file in files]
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="hdfs-abort") as pool:
            existed = sum(pool.map(lambda path: self._files.delete(self._path(path)), paths))
            self._remove_empty_directories(paths, pool)
        return existed

    def list_staged(self, prefixes: Iterable[str]) -> Iterator[LeftOver]:
        """See `staged_below`."""
        return staged_below(prefixes, self._walk)

    def mark(self, keys: Sequence[str]) -> None:
        """Make sure that a file exists under each key, in parallel; new files are empty."""
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="hdfs-mark") as pool:
            for _ in pool.map(lambda key: self._files.create_empty(self._path(key)), keys):
                pass

    def write(self, key: str, data: bytes) -> None:
        """Write below `+tmp`, and rename, so that a reader never finds a part of it."""
        refuse_odd_directories(key)
        staged, _ = probe_paths(self._probe_prefix)  # A sweep knows the name.
        self._files.write(self._path(staged), lambda: [data])
        self._files.make_directory(_parent(self._path(key)))
        self._files.rename(self._path(staged), self._path(key), overwrite=True)
        remove_emptied(staged, lambda directory: self._files.remove_empty_directory(self._path(directory)))

    def close(self) -> None:
        """Release connections; idempotent."""
        self._files.close()

    def _publish_one(self, file: StagedFile) -> Outcome:
        refuse_odd_directories(file.key)
        source, target = self._path(str(file.token["path"])), self._path(file.key)
        for _ in range(RACES):
            try:
                self._files.rename(source, target, overwrite=self._overwrite)
            except FileExistsError:
                if self._is_already_there(file):
                    self._files.delete(source)
                    return Outcome.ALREADY_PUBLISHED
                # It was deleted in the meantime.
            except FileNotFoundError:
                if self._is_already_there(file):
                    return Outcome.ALREADY_PUBLISHED
                if self._files.status(source) is None:
                    return Outcome.LOST
                self._files.make_directory(_parent(target))
            else:
                return Outcome.PUBLISHED
        raise UnavailableError(
            f"{self._files.place(target)} could not be published: something keeps deleting it or its directory.",
            code="hdfs.busy",
            suggestion="Find out which other program works in this directory; the next run publishes the same file.",
        )

    def _is_already_there(self, file: StagedFile) -> bool:
        """Whether the file is published; False if there is no file with its name.

        Raises:
            PublishConflictError: another file has its name.
        """
        target = self._path(file.key)
        found = self._files.status(target)
        if found is None:
            return False
        if found.isdir or found.length != file.size_bytes:
            holds = "a directory" if found.isdir else f"another file ({found.length} bytes)"
        elif found.modification_time == file.token["modified_ms"] or self._has_content(target, file):
            return True
        else:
            holds = f"another file of {found.length} bytes"
        if self._overwrite and not found.isdir:
            return False
        raise self._conflict(file, holds)

    def _has_content(self, path: str, file: StagedFile) -> bool:
        digest = hashlib.sha256()
        for chunk in self._files.read(path, _READ_BYTES):
            digest.update(chunk)
        return digest.hexdigest().startswith(str(file.token["sha256"]))

    def _conflict(self, file: StagedFile, holds: str) -> PublishConflictError:
        offsets = f"{file.topic}-{file.partition}[{file.start}, {file.end})"
        return PublishConflictError(
            f"{self._files.place(self._path(file.key))} holds {holds} than the one staged for {offsets} "
            f"({file.size_bytes} bytes, {self._files.place(self._path(str(file.token['path'])))}).",
            suggestion="Move that away and run again.",
        )

    def _remove_empty_directories(self, paths: Iterable[str], pool: ThreadPoolExecutor) -> None:
        """Remove the directories that held temporary files if they are empty, deepest first."""
        directories = {
            directory for path in set(map(_parent, paths)) for directory in temporary_directories(f"{path}/_")
        }
        by_depth = sorted(directories, key=lambda directory: -directory.count("/"))
        for _, level in groupby(by_depth, key=lambda directory: directory.count("/")):
            for _ in pool.map(lambda directory: self._files.remove_empty_directory(self._path(directory)), level):
                pass

    def _discard_quietly(self, path: str) -> None:
        """Clean up after a failed trial; only the trial's own error is reported."""
        try:
            discard(self._files.with_patience(0), self._settings, path)
        except ConnectError as error:
            log.debug("A preflight's file %s may stay until the next sweep: %s", path, error)

    def _walk(self, directory: str) -> Iterator[tuple[str, int]]:
        """Files below a directory of the store with the time of their last change; none if it does not exist."""
        for found in self._files.walk(self._path(directory)):
            if not found.isdir:
                yield self._settings.key(found.path), found.modification_time

    def _path(self, key: str) -> str:
        return self._settings.path(key)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
