"""Servers that are full, frozen or have no connection left, and tasks that are frozen themselves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from airflow_connect.connectors.jdbc.sink import sessions
from airflow_connect.databases.connecting import Database as Connected
from airflow_connect.errors import FencedError, UnavailableError
from tests.devstack.mariadb import MariaDbServer
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, put, records, stored, written
from tests.support.processes.proc import freeze
from tests.support.servers.databases import Database, database_on
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.crash]

ROOT = Path(__file__).parents[5]
CREATE = "CREATE TABLE orders (n INTEGER NOT NULL)"


def numbers(first: int, end: int) -> list[Any]:
    return records(*({"n": n} for n in range(first, end)), first=first)


# --- a full disk ------------------------------------------------------------------------------------------------------


def test_full_tablespace_of_postgresql_keeps_rows_and_offsets_together(tmp_path: Path) -> None:
    disk = Path("/tmp") / f"{tmp_path.parent.name}-{tmp_path.name}"  # the server runs as nobody, who must reach it
    disk.mkdir()
    try:
        found = on_a_small_disk(disk)
    finally:
        disk.rmdir()
    assert 0 < found.pop("offset") < 12_000
    assert found == {"first": "database.disk_full", "kept": True, "second": "", "all": True}


def on_a_small_disk(disk: Path) -> dict[str, Any]:
    """Run the program in a mount namespace of its own, with a disk of some megabytes."""
    who = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    inside = f"exec {sys.executable} -m tests.integration.connectors.jdbc.sink.full_disk {disk}"
    command = ["unshare", "--mount", *who, "sh", "-c", f"mount -t tmpfs -o size=6m tmpfs {disk} && {inside}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=ROOT)  # noqa: PLW1510
    assert done.returncode == 0, f"The small disk could not be mounted, or the program failed: {done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- no connection left -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_sink_without_a_free_connection_names_the_key_and_goes_on_when_there_is_one(
    kind: str, request: pytest.FixtureRequest, unique_name: str
) -> None:
    database: Database = request.getfixturevalue(f"{kind}_database")
    user = unique_name.replace("-", "_")[:30]
    if kind == "postgresql":
        database.execute(CREATE, f"CREATE ROLE {user} LOGIN CONNECTION LIMIT 1",
                         f"GRANT ALL ON SCHEMA public TO {user}", f"GRANT ALL ON orders TO {user}")  # fmt: skip
        url = database.url.replace("postgres@", f"{user}@")
        drop = (f"REVOKE ALL ON SCHEMA public FROM {user}", f"DROP OWNED BY {user}", f"DROP ROLE {user}")
    else:
        name = database.rows("SELECT DATABASE()")[0][0]
        database.execute(CREATE, f"CREATE USER {user} IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1",
                         f"GRANT ALL ON {name}.* TO {user}")  # fmt: skip
        scheme, _, rest = database.url.partition("://")
        url = f"{scheme}://{user}:x@{rest.partition('@')[2]}"
        drop = (f"DROP USER {user}",)
    limited = Database(database.dialect, url, url)
    config = {"connection_attempts": "1", "max_retries": "0"}
    with ExitStack() as held:
        held.enter_context(limited.connected())
        with pytest.raises(UnavailableError) as caught:
            SinkRun(limited, **config).open()
    assert (caught.value.code, caught.value.config_path) == ("database.too_many_connections", "tasks.max")
    assert caught.value.retriable
    wait_until(lambda: _accepts(limited), "the server has closed the other connection")
    SinkRun(limited, **config).write(numbers(0, 150))
    assert written(database) == list(range(150))
    wait_until(lambda: _accepts(limited), "the sink's connection is closed")
    if kind == "postgresql":
        database.execute("DROP TABLE airflow_connect_offsets")
    database.execute(*drop)


def _accepts(database: Database) -> bool:
    from sqlalchemy.exc import OperationalError

    try:
        return database.rows("SELECT 1") == [(1,)]
    except OperationalError:
        return False


# --- frozen -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "mysql"])
def test_frozen_task_loses_its_transaction_and_the_next_run_does_not_wait_for_it(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB also plays MySQL, which ends idle connections instead of idle transactions."""
    database: Database = request.getfixturevalue({"mysql": "mariadb"}.get(kind, kind) + "_database")
    monkeypatch.setattr(sessions, "IDLE_TRANSACTION_S", 1 if kind != "mysql" else 1000)
    monkeypatch.setattr(sessions, "IDLE_CONNECTION_S", 1 if kind == "mysql" else 1000)
    database.execute(CREATE)
    if kind == "mysql":
        begin = Connected.connect

        def connect(self: Connected, *arguments: Any) -> Any:
            connection = begin(self, *arguments)
            connection.dialect.is_mariadb = False
            return connection

        monkeypatch.setattr(Connected, "connect", connect)
    frozen, thawed, found = threading.Event(), threading.Event(), []
    task = SinkRun(database, max_retries="0").open()

    def freeze(connection: Any) -> None:
        frozen.set()
        assert thawed.wait(30)

    def work() -> None:
        try:
            give(task, numbers(0, 150))
        except (FencedError, UnavailableError) as error:
            found.append(error.code)

    event.listen(task._task._database.engine, "commit", freeze)
    thread = threading.Thread(target=work)
    thread.start()
    assert frozen.wait(30)
    SinkRun(database, max_retries="30").write(numbers(0, 160))
    thawed.set()
    thread.join()
    task.abort()
    assert len(found) == 1, found
    assert written(database) == list(range(160)) and stored(database)[0] == 160


def test_task_that_is_frozen_in_a_copy_loses_its_session_to_the_next_run(
    postgresql_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server waits for data of a COPY without any limit of time."""
    database = postgresql_database
    monkeypatch.setattr(sessions, "LOCK_WAIT_S", 1)
    database.execute(CREATE)
    frozen, thawed, found = threading.Event(), threading.Event(), []
    task = SinkRun(database, max_retries="0").open()

    def freeze(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if frozen.is_set() or not statement.startswith("SAVEPOINT"):
            return
        with connection.connection.driver_connection.cursor().copy("COPY orders (n) FROM STDIN") as copy:
            copy.write_row((0,))
            frozen.set()
            assert thawed.wait(60)

    def work() -> None:
        try:
            give(task, numbers(0, 150))
        except (FencedError, UnavailableError) as error:
            found.append(error.code)

    event.listen(task._task._database.engine, "before_cursor_execute", freeze)  # after the offset was moved
    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert frozen.wait(30)
        SinkRun(database, "another", topic="other").claim()  # ends no session of another connector
        SinkRun(database, max_retries="0").write(numbers(0, 160))
    finally:
        thawed.set()
        thread.join()
    task.abort()
    assert len(found) == 1, found
    assert written(database) == list(range(160)) and stored(database)[0] == 160


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_attempt_of_the_same_run_is_waited_for(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    database: Database = request.getfixturevalue(f"{kind}_database")
    monkeypatch.setattr(sessions, "LOCK_WAIT_S", 1)
    database.execute(CREATE)
    run = SinkRun(database, max_retries="0").claim()
    held, slow = threading.Event(), run.open()

    def wait_for_the_other(_connection: Any) -> None:
        if held.is_set():
            return
        held.set()
        # Until it waits without a limit: a statement with the limit, one second, never waits for four.
        wait_until(
            lambda: database.has_statement_waiting_for(4), "the other attempt to wait without a limit", every_s=0.3
        )

    event.listen(slow._task._database.engine, "commit", wait_for_the_other)
    first = threading.Thread(target=lambda: give(slow, numbers(0, 150)))
    first.start()
    assert held.wait(30)
    again = run.open()
    first.join()
    give(again, numbers(150, 160))
    assert written(database) == list(range(160)) and stored(database)[0] == 160


@pytest.mark.budget(30)  # a server of its own
def test_frozen_mariadb_is_left_after_the_socket_timeout_and_written_again_when_it_works() -> None:
    with MariaDbServer.start() as server, database_on(server, "frozen") as database:
        database.execute(CREATE)
        timeouts = {"connection_socketTimeout": "1000", "connection_connectTimeout": "1000"}
        config = {"connection_attempts": "1", "max_retries": "0", **timeouts}
        task = SinkRun(database, **config).open()
        put(task, numbers(0, 150))
        freeze(server.pid)
        try:
            with pytest.raises(UnavailableError):
                task.complete()
            task.abort()
            with pytest.raises(UnavailableError):
                SinkRun(database, **config).open()
        finally:
            os.kill(server.pid, signal.SIGCONT)
        SinkRun(database).write(numbers(0, 160))
        assert written(database) == list(range(160))


@pytest.mark.budget(30)  # a server of its own
def test_frozen_postgresql_refuses_new_connections_after_the_connect_timeout() -> None:
    with PostgresServer.start() as server, database_on(server, "frozen") as database:
        database.execute(CREATE)
        freeze(server.pid)
        try:
            with pytest.raises(UnavailableError) as caught:
                SinkRun(database, connection_attempts="1", connection_connectTimeout="2", max_retries="0").open()
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert caught.value.code == "database.unreachable"
        SinkRun(database).write(numbers(0, 10))
        assert written(database) == list(range(10))
