"""Driver side of the local store: give staged files their names idempotently, discard or list the others.

Failures that the order of checks handles:
1. A crash between link and unlink left both names. They are one file: already published, the temporary name is removed.
2. The file was published before the crash. Its temporary name is gone, and the file under its key has its size and its
inode, or at least its bytes: already published.
3. Someone removed the temporary file, and there is no file under the key: lost, must be copied again.
4. Another program wrote the key: a conflict for people to resolve; nothing is replaced.
5. A run that was presumed dead publishes late: as in 1 or 2, the same file stays where it is.
6. Power fails after the commit. Files were synced when they were staged, directories before offsets are committed.
"""

from __future__ import annotations

import filecmp
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from airflow_connect.api.staging import LeftOver, Outcome, StagedFile
from airflow_connect.errors import PublishConflictError
from airflow_connect.stores.local.directories import (
    RACES,
    discard,
    make_directories,
    refusals,
    remove_empty,
    remove_file,
    sync_directory,
)
from airflow_connect.stores.local.errors import not_shared
from airflow_connect.stores.local.rename import rename_without_replacing
from airflow_connect.stores.publishing import publish_each, refuse_equal_keys, try_out
from airflow_connect.stores.staged_names import (
    probe_paths,
    refuse_odd_directories,
    remove_emptied,
    staged_below,
)

THREADS = 8
"""Local disks need few threads; a network file system handles several requests at once."""
_READ_BYTES = 1 << 20


class LocalPublisher:
    """Driver role of the local store; safe to use from several threads and several processes at once."""

    possible_duplicates = False
    """System calls are not repeated, so there are no unknown staged files."""

    def __init__(self, root: str, *, probe_prefix: str = "", overwrite: bool = False) -> None:
        """Nothing is touched yet. See `LocalStore.publisher`."""
        self._root = root
        self._probe_prefix = probe_prefix
        self._overwrite = overwrite
        self._lost: set[str] = set()

    def preflight(self) -> None:
        """Create the root if it does not exist, and try a run's operations below `+tmp`; nothing is left there.

        Raises:
            AccessError, UnavailableError: what the file system refuses.
        """
        make_directories(self._root)
        try_out(self._try_out, deleted="local.not_found")

    def _try_out(self) -> None:
        above = self._absolute(self._probe_prefix.rpartition("/")[0]) if "/" in self._probe_prefix else self._root
        paths = probe_paths(self._probe_prefix)
        first, second = map(self._absolute, paths)
        try:
            self._write_probe(first)
            with refusals("rename files without replacing others in", os.path.dirname(first)):
                rename_without_replacing(first, second)
            remove_file(second)
            with refusals("create files in", above):
                if os.path.isdir(above) and not os.access(above, os.W_OK | os.X_OK):
                    raise PermissionError(13, os.strerror(13))
        finally:
            for path in paths:
                self._discard(path)

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Give `files` their names, in parallel; a conflict does not keep the others from being published.

        Raises:
            PublishConflictError: names the first conflicting file and the number of conflicts.
            UnavailableError, AccessError: publishing again continues from here.
        """
        refuse_equal_keys(files)
        changed = self._make_parents(files)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="local-publish") as pool:
            published = publish_each(files, self._publish_one, progress, pool)
            for _ in pool.map(sync_directory, sorted(d for d in changed if os.path.isdir(d))):
                pass
        self._remove_empty_directories(files)
        return published.checked("names belong to other files")

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Remove temporary files; idempotent. Published files stay. Returns how many existed."""
        return sum(self._discard(str(file.token["path"])) for file in files)

    def list_staged(self, prefixes: Iterable[str]) -> Iterator[LeftOver]:
        """See `staged_below`."""
        return staged_below(prefixes, self._walk)

    def mark(self, keys: Sequence[str]) -> None:
        """Create an empty file under each key that has none.

        Raises:
            AccessError, UnavailableError: the file system refused.
        """
        changed: set[str] = set()
        for key in keys:
            path = self._absolute(key)
            changed.update(make_directories(os.path.dirname(path)), [os.path.dirname(path)])
            with refusals("create", path):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
        for directory in sorted(changed):
            sync_directory(directory)

    def write(self, key: str, data: bytes) -> None:
        """Write below `+tmp`, and rename, so that a reader never finds a part of it."""
        staged, _ = probe_paths(self._probe_prefix)  # A sweep knows the name.
        source, target = self._absolute(staged), self._absolute(key)
        changed = {*make_directories(os.path.dirname(target)), os.path.dirname(target)}
        make_directories(os.path.dirname(source))
        with refusals("write", source), open(source, "xb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        with refusals("publish", target):
            os.replace(source, target)
        for directory in sorted(changed):
            sync_directory(directory)
        remove_emptied(staged, lambda directory: remove_empty(self._absolute(directory)))

    def close(self) -> None:
        """Nothing is held."""

    # --- parts ----------------------------------------------------------------------------------------------------

    def _publish_one(self, file: StagedFile) -> Outcome:
        staged, final = self._absolute(str(file.token["path"])), self._absolute(file.key)
        if self._overwrite:
            return self._replace(file, staged, final)
        with refusals("publish", final):
            for _ in range(RACES):
                try:
                    rename_without_replacing(staged, final)
                    return Outcome.PUBLISHED
                except FileExistsError:
                    return self._compare(file, staged, final)
                except FileNotFoundError:
                    if not os.path.lexists(staged):
                        break
                make_directories(os.path.dirname(final))  # Another process removed it while it was empty.
            return self._look_for(file, staged, final)

    def _replace(self, file: StagedFile, staged: str, final: str) -> Outcome:
        with refusals("publish", final):
            try:
                os.replace(staged, final)
                return Outcome.PUBLISHED
            except FileNotFoundError:
                return Outcome.ALREADY_PUBLISHED if _holds(file, final) else self._is_lost(file, staged)

    def _compare(self, file: StagedFile, staged: str, final: str) -> Outcome:
        """The key exists: it is the same file (a crash before unlink), an equal file, or a foreign file."""
        try:
            is_same = os.path.samefile(staged, final) or filecmp.cmp(staged, final, shallow=False)
        except FileNotFoundError:
            return self._look_for(file, staged, final)
        if not is_same:
            raise self._conflict(file, staged, final)
        remove_file(staged)
        return Outcome.ALREADY_PUBLISHED

    def _look_for(self, file: StagedFile, staged: str, final: str) -> Outcome:
        """The temporary file is gone: it was published or lost."""
        if not os.path.lexists(final):
            return self._is_lost(file, staged)
        if not _holds(file, final):
            raise self._conflict(file, staged, final)
        return Outcome.ALREADY_PUBLISHED

    def _is_lost(self, file: StagedFile, staged: str) -> Outcome:
        # The run copies a lost file once more. If it is lost again, nothing was deleted: it was never in this
        # directory.
        if file.key in self._lost:
            raise not_shared(staged, str(file.token.get("host", "")))
        self._lost.add(file.key)
        return Outcome.LOST

    def _conflict(self, file: StagedFile, staged: str, final: str) -> PublishConflictError:
        offsets = f"{file.topic}-{file.partition}[{file.start}, {file.end})"
        there = os.path.getsize(final) if os.path.isfile(final) else 0
        return PublishConflictError(
            f"{final} ({there} bytes) is not the file {staged} ({file.size_bytes} bytes) that was staged for "
            f"{offsets}.",
            suggestion=f"Move {final} away and run again: the staged file is kept and will be published.",
        )

    def _make_parents(self, files: Sequence[StagedFile]) -> set[str]:
        """Create directories for the final names; returns every directory that gets a new entry."""
        parents = {os.path.dirname(self._absolute(file.key)) for file in files}
        changed = set(parents)
        for parent in sorted(parents):
            for _ in range(RACES):
                changed.update(make_directories(parent))
                if os.path.isdir(parent):
                    break
        return changed

    def _discard(self, path: str) -> bool:
        refuse_odd_directories(path)
        return discard(self._root, path)

    def _remove_empty_directories(self, files: Sequence[StagedFile]) -> None:
        deepest = {str(file.token["path"]).rpartition("/")[0] for file in files}
        for path in sorted(deepest, reverse=True):
            remove_emptied(f"{path}/", lambda directory: remove_empty(self._absolute(directory)))

    def _write_probe(self, path: str) -> None:
        make_directories(os.path.dirname(path))
        with refusals("write", path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                os.write(descriptor, b"airflow-connect")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _walk(self, directory: str) -> Iterator[tuple[str, int]]:
        """Files below a directory of the store with the time of their last change; none if it does not exist."""
        waiting = [directory]
        while waiting:
            current = waiting.pop()
            for entry in _entries(self._absolute(current)):
                path = f"{current}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif (modified_ms := _modified_ms(entry)) is not None:
                    yield path, modified_ms

    def _absolute(self, path: str) -> str:
        refuse_odd_directories(path)
        return os.path.join(self._root, path)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    """The entries of a directory; none if it does not exist."""
    with refusals("list", directory):
        try:
            with os.scandir(directory) as found:
                return sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):  # A parent may be a file, depending on the keys.
            return []


def _modified_ms(entry: os.DirEntry[str]) -> int | None:
    """Time of the last change in milliseconds; None if the file was deleted in the meantime."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def _holds(file: StagedFile, path: str) -> bool:
    """Whether `path` is this staged file under its final name, or has the same bytes."""
    try:
        facts = os.stat(path)
        if facts.st_size != file.size_bytes or not os.path.isfile(path):
            return False
        if (facts.st_ino, facts.st_mtime_ns) == (file.token["inode"], file.token["mtime_ns"]):
            return True
        crc32 = 0
        with open(path, "rb") as opened:
            while piece := opened.read(_READ_BYTES):
                crc32 = zlib.crc32(piece, crc32)
    except FileNotFoundError:
        return False
    return crc32 == int(file.token["crc32"])
