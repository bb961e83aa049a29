"""The jars of a lock file, fetched once, checked, and kept in the cache.

A lock has one line for each artifact, `org:name:version[:classifier[:extension]] sha256`. Artifacts are fetched
without reading any POM: this takes 8 s for Kafka's 46 jars; resolving takes 44 s.

Invariant: a folder of jars in the cache is complete and checked, or it does not exist.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from airflow_connect.counting import plural
from airflow_connect.errors import JarsError
from airflow_connect.jvm.cache import cache_dir, locked
from airflow_connect.jvm.jars import ivy

LOCKS = Path(__file__).with_name("locks")


def read_lock(lock: Path) -> list[ivy.Artifact]:
    """Return the artifacts of a lock file."""
    return [ivy.Artifact.parse(line) for line in lock.read_text().splitlines() if line.strip()]


def fetch_jars(lock_name: str, locks: Path = LOCKS) -> list[Path]:
    """Return the files of the lock `<lock_name>.lock`, sorted by name; fetch them on first use.

    Several processes may call it at once: one fetches, the others wait.

    Raises:
        JarsError: `jars.fetch` (no network, no such artifact) or `jars.checksum`.
    """
    lock = locks / f"{lock_name}.lock"
    artifacts = read_lock(lock)
    key = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    folder = cache_dir() / "jars" / f"{lock_name}-{key}"
    if not folder.is_dir():
        with locked(folder.name):
            if not folder.is_dir():
                _fetch_into(folder, lock_name, artifacts)
    return [folder / name for name in sorted(artifact.file_name for artifact in artifacts)]


def _fetch_into(folder: Path, lock_name: str, artifacts: Sequence[ivy.Artifact]) -> None:
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{lock_name}-") as scratch:
        drafts = Path(scratch) / "jars"
        drafts.mkdir()
        progress = _Progress(lock_name, drafts, len(artifacts))
        try:
            ivy.download(artifacts, drafts, Path(scratch), progress.show)
        finally:
            progress.end()
        for artifact in artifacts:
            _check(drafts / artifact.file_name, artifact, lock_name)
        os.rename(drafts, folder)


def _check(path: Path, artifact: ivy.Artifact, lock_name: str) -> None:
    if not path.is_file():
        raise JarsError(
            f"{lock_name}: the repository does not have {artifact.file_name}; nothing was kept.",
            code="jars.fetch",
            suggestion="Compare the lock with the repository.",
        )
    with path.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if found != artifact.sha256:
        raise JarsError(
            f"{lock_name}: {path.name} has sha256 {found}, not {artifact.sha256}; nothing was kept.",
            code="jars.checksum",
            suggestion="The file was changed in transit or in the repository: find out why before you try again.",
        )


class _Progress:
    """On a terminal, one line that counts the files; otherwise one line at the start."""

    def __init__(self, lock_name: str, drafts: Path, total: int) -> None:
        self._what = f"Fetching {lock_name} from Maven Central (once; kept in {cache_dir()})"
        self._drafts = drafts
        self._total = total
        self._is_terminal = sys.stderr.isatty()
        if not self._is_terminal:
            print(f"{self._what}: {plural(total, 'file')}", file=sys.stderr, flush=True)

    def show(self) -> None:
        if self._is_terminal:
            done = sum(1 for _ in self._drafts.iterdir())
            line = f"{self._what}: {done} of {plural(self._total, 'file')}"
            print(f"\r{line[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_terminal:
            self.show()
            print(file=sys.stderr, flush=True)
