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
    folder = cache_dir() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


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
