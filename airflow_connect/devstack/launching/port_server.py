"""The base of single servers: data folder, ports, start, restart, crash and end."""

from __future__ import annotations

import shutil
import tempfile
from abc import abstractmethod
from pathlib import Path

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.process import Command, ServerProcess, answers, free_ports, log_tail
from airflow_connect.devstack.launching.running import Running

PORT_ATTEMPTS = 3
PORT_TAKEN = "devstack.port_taken"
# What servers write into their logs when they find their port in use: Java, PostgreSQL, MariaDB.
PORT_IN_USE = ("already in use", "BindException")


class PortServer(Running):
    """A program that listens on ports of 127.0.0.1 and keeps its data in one folder.

    A subclass defines `name`, `port_count` and `_command()`. `restart()` keeps the ports and the data.
    """

    name: str
    port_count: int = 1

    def __init__(self, data_dir: Path | None, prefix: str) -> None:
        """Choose ports and a data folder; nothing runs yet.

        Args:
            data_dir: the folder; a temporary one unless given.
            prefix: of a temporary folder's name.
        """
        self._owns_data = data_dir is None
        self.data_dir = (data_dir or Path(tempfile.mkdtemp(prefix=f"airflow-connect-{prefix}-"))).absolute()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_path = self.data_dir / "server.log"
        self.ports = self._choose_ports()
        self._process: ServerProcess | None = None

    def _choose_ports(self) -> list[int]:
        """Return ports that nothing listens on now."""
        return free_ports(self.port_count)

    @abstractmethod
    def _command(self) -> Command:
        """Write the configuration for `self.ports` into the data folder; return the command line."""

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

    def discard(self) -> None:
        """End the server at once and remove its data, unless the caller gave the folder."""
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

    def _start_on_free_ports(self) -> None:
        """Start; if another process took a port between choosing and binding it, choose again."""
        try:
            for attempt in range(PORT_ATTEMPTS):
                try:
                    return self._launch()
                except DevStackError as error:
                    log = log_tail(self.log_path) + error.message
                    is_taken = error.code == PORT_TAKEN or any(sign in log for sign in PORT_IN_USE)
                    if not is_taken or attempt == PORT_ATTEMPTS - 1:
                        raise
                self.ports = self._choose_ports()
        except BaseException:
            self.kill()
            if self._owns_data and not self.log_path.exists():
                shutil.rmtree(self.data_dir)  # it never ran; otherwise the error names the log in this folder
            raise

    def _launch(self) -> None:
        # Otherwise the answer of another program on the port would be taken for that of this server.
        if taken := [port for port in self.ports if answers(port)]:
            raise DevStackError(
                f"{self.name} cannot start: another program listens on port {taken[0]} of 127.0.0.1.",
                code=PORT_TAKEN,
                suggestion="End that program, or start the server on other ports.",
            )
        self._process = ServerProcess.start(self._command(), self._is_ready)

    def _removed_with_parent(self) -> list[Path]:
        """What is removed if the parent dies without stopping the server."""
        return [self.data_dir] if self._owns_data else []
