"""The base of the servers written in Java: data folder, ports, command line, start and restart."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.jars import fetch_jars
from airflow_connect.devstack.launching.process import Command, ServerProcess, answers, free_ports, log_tail
from airflow_connect.devstack.launching.running import Running
from airflow_connect.runtime.engine.class_data import ClassDataArchive
from airflow_connect.runtime.engine.java import find_java

# With the first compiler only and the serial collector, servers start in half the time and use a third of
# the memory.
START_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
PORT_ATTEMPTS = 3
PORT_TAKEN = "devstack.port_taken"


class JavaServer(Running):
    """A Java program that listens on ports of 127.0.0.1 and keeps its data in one folder.

    A subclass defines `name`, `lock_name`, `port_count` and `_program()`. `restart()` keeps the ports and the data.
    """

    name: str
    lock_name: str
    port_count: int

    def __init__(self, data_dir: Path | None, heap_mb: int) -> None:
        """Choose ports and a data folder (a temporary one unless given); nothing runs yet."""
        self._owns_data = data_dir is None
        prefix = f"airflow-connect-{self.lock_name}-"
        self.data_dir = (data_dir or Path(tempfile.mkdtemp(prefix=prefix))).absolute()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_path = self.data_dir / "server.log"
        self.ports = free_ports(self.port_count)
        self._heap_mb = heap_mb
        self._process: ServerProcess | None = None
        self._archive: ClassDataArchive | None = None

    @abstractmethod
    def _program(self) -> Sequence[str]:
        """Write the configuration for `self.ports` into the data folder; return main class and arguments."""

    def _class_path(self) -> list[Path]:
        """Return the jars, always in the same order: an archive of class data is valid for one class path only."""
        return fetch_jars(self.lock_name)

    def _flags(self) -> list[str]:
        """Return flags of the JVM."""
        return [*START_FLAGS, f"-Xmx{self._heap_mb}m"]

    def _is_ready(self) -> bool:
        """Return whether the server can be used."""
        return answers(self.ports[0])

    @property
    def pid(self) -> int:
        """Return the process id of the running server."""
        if self._process is None:
            raise DevStackError(
                f"{self.name} is not running.", code="devstack.stopped", suggestion="Call restart() first."
            )
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Return whether the server is alive."""
        return self._process is not None and self._process.is_running

    def stop(self) -> None:
        """End the server; its data is removed too, unless the caller gave the folder."""
        self._end()
        if self._owns_data:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL); its data stays, `restart()` starts it again."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        if self._archive is not None:
            self._archive.discard()

    def discard(self) -> None:
        """End the server at once and remove its data, unless the caller gave the folder.

        Only a run that writes the archive of class data ends in an orderly way.
        """
        if self._archive is None or not self._archive.is_writing:
            self.kill()
        self.stop()

    def restart(self) -> None:
        """End the server, if it runs, and start it again with its ports and data; ready when this returns."""
        self._end()
        self._launch()

    def _end(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._archive is not None:
            self._archive.keep()
            self._archive = None

    def _start_on_free_ports(self) -> None:
        """Start; if another process took a port between choosing and binding it, choose again."""
        try:
            for attempt in range(PORT_ATTEMPTS):
                try:
                    return self._launch()
                except DevStackError as error:
                    log = log_tail(self.log_path) + error.message
                    is_taken = error.code == PORT_TAKEN or "already in use" in log or "BindException" in log
                    if not is_taken or attempt == PORT_ATTEMPTS - 1:
                        raise
                self.ports = free_ports(self.port_count)
        except BaseException:
            self.kill()
            if self._owns_data and not self.log_path.exists():
                shutil.rmtree(self.data_dir)  # it never ran; otherwise the error names the log in this folder
            raise

    def _launch(self) -> None:
        java = find_java()
        # Otherwise the answer of another program on the port would be taken for that of this server.
        if taken := [port for port in self.ports if answers(port)]:
            raise DevStackError(
                f"{self.name} cannot start: another program listens on port {taken[0]} of 127.0.0.1.",
                code=PORT_TAKEN,
                suggestion="End that program, or start the server on other ports.",
            )
        jars = self._class_path()
        flags = self._flags()
        archive = ClassDataArchive(java, jars, flags)
        archive_flags = archive.flags()
        # The class path lists every jar, always in the same order: Java rejects the archive with a wildcard.
        class_path = os.pathsep.join(map(str, jars))
        command = Command(
            name=self.name,
            argv=[str(java.executable), *flags, *archive_flags, "-cp", class_path, *self._program()],
            log_path=self.log_path,
            cleanup=[archive.draft, *([self.data_dir] if self._owns_data else [])],
        )
        self._process = ServerProcess.start(command, self._is_ready)
        self._archive = archive
