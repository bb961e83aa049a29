"""The folder that keeps what is slow to make, jars and class-data archives; processes may share it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder, made if missing.

    It is AIRFLOW_CONNECT_CACHE, else XDG_CACHE_HOME/airflow-connect, else ~/.cache/airflow-connect.
    """
    own = os.environ.get("AIRFLOW_CONNECT_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(own) if own else Path(shared) / "airflow-connect"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock `name` among all processes that share the cache; it ends with its process."""
    with _lock_file(name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class TryLock:
    """A lock among all processes that share the cache, for work that only one of them has to do."""

    def __init__(self, name: str) -> None:
        """`name`: of the lock, which nobody holds yet."""
        self._name = name
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> bool:
        """Take the lock unless another one has it; return whether this object holds it. It ends with its process."""
        if self._descriptor is None:
            descriptor = os.open(_lock_file(self._name), os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back; idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _lock_file(name: str) -> Path:
    folder = cache_dir() / "locks"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.lock"


def replace_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file so that others see the old content or the new, never a half; leave an equal file alone."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as out:
        out.write(text)
    os.chmod(draft, mode)
    os.replace(draft, path)
