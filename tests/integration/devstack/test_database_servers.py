"""The real database servers: crash, restart, take-over of data; nothing is left when their parent is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from airflow_connect.devstack.launching.errors import DevStackError
from tests.devstack import unprivileged
from tests.devstack.mariadb import MariaDbServer
from tests.devstack.postgresql import PostgresServer
from tests.support.servers.databases import Database, database_on
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(30)]  # The first use unpacks a server; a start is a second.

REPOSITORY = Path(__file__).parents[3]
SERVERS = [PostgresServer, MariaDbServer]
PARENT = """
import sys
from tests.devstack.{module} import {name} as Server
server = Server.start()
print(server.pid, server.data_dir, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("kind", SERVERS)
def test_commits_survive_kill_and_restart_under_the_same_url(kind):
    with kind.start() as server, database_on(server, "kept") as database:
        database.execute("CREATE TABLE numbers (n INTEGER)", "INSERT INTO numbers VALUES (1)")
        url, pid = server.url, server.pid
        for end in (server.kill, lambda: None):
            end()
            server.restart()
            assert (server.url, database.rows("SELECT n FROM numbers")) == (url, [(1,)])
        assert server.pid != pid
        server.kill()
        with pytest.raises(DevStackError, match="is not running"):
            assert server.pid
        server.restart()
        folder = server.data_dir
    assert not folder.exists()


@pytest.mark.parametrize("kind", SERVERS)
def test_server_ends_and_leaves_nothing_when_its_parent_is_killed(kind):
    program = PARENT.format(module=kind.__module__.rpartition(".")[2], name=kind.__name__)
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    pid, data_dir = parent.stdout.readline().split()
    parent.kill()
    parent.communicate()
    wait_until(lambda: not psutil.pid_exists(int(pid)), "the server ended")
    wait_until(lambda: not Path(data_dir).exists(), "its data was removed")


def test_postgresql_does_not_run_as_root(postgresql):
    expected = unprivileged.NOBODY if os.geteuid() == 0 else os.geteuid()
    assert psutil.Process(postgresql.pid).uids().effective == expected


def test_postgresql_of_a_closed_folder_is_copied(tmp_path, monkeypatch):
    """An installation in root's home cannot be reached by nobody."""
    monkeypatch.setattr("tests.devstack.postgresql.is_open_to_nobody", lambda folder: False)
    with PostgresServer.start() as server:
        program = Path(psutil.Process(server.pid).exe())
        assert program.is_relative_to(server.data_dir)
        with database_on(server, "there") as database:
            assert database.rows("SELECT 1") == [(1,)]


def test_mariadb_for_another_system_is_refused(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(DevStackError, match="aarch64") as refused:
        MariaDbServer.start()
    assert refused.value.code == "devstack.platform"


def test_a_mariadb_that_starts_leaves_the_temporary_tables_of_another_one(mariadb_database):
    """Queries of its information schema need such tables: without them they end with an error, or end the server."""
    with mariadb_database.connected() as connection:
        connection.exec_driver_sql("CREATE TEMPORARY TABLE kept (n INT) ENGINE=MyISAM")
        with MariaDbServer.start() as another:
            assert another.is_running
        connection.exec_driver_sql("INSERT INTO kept VALUES (1)")
        connection.exec_driver_sql("ALTER TABLE kept ADD COLUMN m INT")
        assert connection.exec_driver_sql("SELECT n FROM kept").all() == [(1,)]
        connection.exec_driver_sql("DROP TEMPORARY TABLE kept")


def test_databases_of_a_test_are_empty(postgresql_database, mariadb_database, sqlite_database):
    for database in (postgresql_database, mariadb_database, sqlite_database):
        assert isinstance(database, Database)
        database.execute("CREATE TABLE one (n INTEGER)", "INSERT INTO one VALUES (1)")
        assert database.rows("SELECT n FROM one") == [(1,)]
        assert database.jdbc_url.startswith("jdbc:")
