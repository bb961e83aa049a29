"""The base of the servers written in Java: class path, flags, archive of class data."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from airflow_connect.devstack.launching.port_server import PortServer
from airflow_connect.devstack.launching.process import Command
from airflow_connect.jvm.class_data import ClassDataArchive
from airflow_connect.jvm.jars.locked_jars import fetch_jars
from airflow_connect.jvm.java import MIN_VERSION, find_java

# With the first compiler only and the serial collector, servers start in half the time and use a third of
# the memory.
LOCKS = Path(__file__).with_name("locks")
START_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class JavaServer(PortServer):
    """A Java program that listens on ports of 127.0.0.1 and keeps its data in one folder.

    A subclass defines `name`, `lock_name` in the folder `locks`, `port_count` and `_program()`. `restart()`
    keeps the ports and the data.
    """

    lock_name: str
    locks: Path = LOCKS
    min_java: int = MIN_VERSION

    def __init__(self, data_dir: Path | None, heap_mb: int) -> None:
        """Choose ports and a data folder (a temporary one unless given); nothing runs yet."""
        super().__init__(data_dir, self.lock_name)
        self._heap_mb = heap_mb
        self._archive: ClassDataArchive | None = None
        self._next_archive: ClassDataArchive | None = None

    @abstractmethod
    def _program(self) -> Sequence[str]:
        """Write the configuration for `self.ports` into the data folder; return main class and arguments."""

    def _class_path(self) -> list[Path]:
        """Return the jars, always in the same order: an archive of class data is valid for one class path only."""
        return fetch_jars(self.lock_name, self.locks)

    def _flags(self) -> list[str]:
        """Return flags of the JVM."""
        return [*START_FLAGS, f"-Xmx{self._heap_mb}m"]

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL); its data stays, `restart()` starts it again."""
        super().kill()
        if self._archive is not None:
            self._archive.discard()

    def discard(self) -> None:
        """End the server at once and remove its data, unless the caller gave the folder.

        Only a run that writes the archive of class data ends in an orderly way.
        """
        if self._archive is None or not self._archive.is_writing:
            self.kill()
        self.stop()

    def _end(self) -> None:
        super()._end()
        if self._archive is not None:
            self._archive.keep()
            self._archive = None

    def _launch(self) -> None:
        try:
            super()._launch()
        except BaseException:
            if self._next_archive is not None:
                self._next_archive.discard()
            raise
        self._archive = self._next_archive  # Not earlier: what a failed start has written is not kept.

    def _command(self) -> Command:
        java = find_java(self.min_java)
        jars = self._class_path()
        flags = self._flags()
        self._next_archive = archive = ClassDataArchive(java, jars, flags)
        archive_flags = archive.flags()
        # The class path lists every jar, always in the same order: Java rejects the archive with a wildcard.
        class_path = os.pathsep.join(map(str, jars))
        return Command(
            name=self.name,
            argv=[str(java.executable), *flags, *archive_flags, "-cp", class_path, *self._program()],
            log_path=self.log_path,
            cleanup=[archive.draft, *self._removed_with_parent()],
        )
