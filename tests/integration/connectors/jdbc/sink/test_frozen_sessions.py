"""A task or driver that is frozen before any of its statements holds up no other run for long.

Other connectors do not wait at all; the next run of the same connector ends the database session that it waits for.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.jdbc.sink import sessions
from airflow_connect.connectors.jdbc.sink.connector import JdbcSinkConnector
from airflow_connect.errors import ConnectError, FencedError, UnavailableError
from tests.devstack.mariadb import MariaDbServer
from tests.support.copies.jdbc_sink_tasks import TOPIC, SinkRun, give, records
from tests.support.servers.databases import Database, database_on
from tests.support.session.searching import IS_SOAK, seed_day
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.crash]

LIMIT_S = 100
UNLIMITED_S = 4.0
"""The limit of these tests is `LOCK_WAIT_S`, 1 s: a statement that has waited for so long has none."""
STEP = 1 if IS_SOAK else 5
"""`make test` freezes before every fifth statement."""
MOST_STATEMENTS, FEWEST_STATEMENTS = 100, 20


class FrozenRun:
    """A run in a thread of its own, which stops before one of its statements until it is thawed."""

    def __init__(
        self, run: SinkRun, rows: list[Any], *, before: int = 0, before_text: str = "", after_text: str = ""
    ) -> None:
        """Where it stops: COMMIT and ROLLBACK are statements, too.

        Args:
            run: the run.
            rows: what it writes.
            before: number of the statement, from 0.
            before_text, after_text: how it begins, and how one before it begins, instead of a number.
        """
        self._run, self._rows = run, rows
        self._before, self._before_text, self._after_text = before, before_text, after_text
        self._stopped, self._thawed = threading.Event(), threading.Event()
        self._seen = 0
        self.statement = ""
        self.error: ConnectError | None = None
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> FrozenRun:
        self._listen(event.listen)
        self._thread.start()
        assert self._stopped.wait(LIMIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._thawed.set()
        self._thread.join(LIMIT_S)
        self._listen(event.remove)
        assert not self._thread.is_alive()

    def _listen(self, change: Any) -> None:
        change(Engine, "before_cursor_execute", self._statement)
        change(Engine, "commit", self._commit)
        change(Engine, "rollback", self._rollback)

    def _statement(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self._pass(statement)

    def _commit(self, _connection: Any) -> None:
        self._pass("COMMIT")

    def _rollback(self, _connection: Any) -> None:
        self._pass("ROLLBACK")

    def _pass(self, statement: str) -> None:
        if threading.current_thread() is not self._thread:
            return
        if self._after_text:
            stops = self._seen > 0 and statement.startswith(self._before_text)
            self._seen += statement.startswith(self._after_text)
        else:
            stops = self._seen == self._before
            self._seen += 1
        if stops and not self._stopped.is_set():
            self.statement = statement
            self._stopped.set()
            assert self._thawed.wait(LIMIT_S)

    def _work(self) -> None:
        try:
            task = self._run.claim().open()
            try:
                give(task, self._rows)
            finally:
                task.abort()
        except (FencedError, UnavailableError) as error:
            self.error = error
        finally:
            self._stopped.set()


@pytest.mark.budget(60)  # Sleeps for some of the time: a run waits for each lock that it meets.
@pytest.mark.parametrize("is_known", [False, True], ids=["first-run", "later-run"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_run_that_is_frozen_before_any_statement_holds_up_no_other(
    kind: str, is_known: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    database: Database = request.getfixturevalue(f"{kind}_database")
    without_timeouts(monkeypatch)
    for number in range(seed_day().toordinal() % STEP, MOST_STATEMENTS, STEP):
        fresh_tables(database)
        known = 3 if is_known else 0
        if is_known:
            SinkRun(database).write(numbers(0, known))
        with FrozenRun(SinkRun(database, max_retries="0"), numbers(known, 6), before=number) as frozen:
            other = SinkRun(database, "other", max_retries="0", table_name_format="others")
            other.write(numbers(0, 2))
            assert JdbcSinkConnector().alter_offsets(other.config, {TopicPartition(TOPIC, 0): 1}, {})
            SinkRun(database, max_retries="0").write(numbers(known, 8))
        assert database.rows("SELECT n FROM orders ORDER BY n") == [(n,) for n in range(8)], frozen.statement
        assert database.rows("SELECT n FROM others ORDER BY n") == [(0,), (1,)], frozen.statement
        if not frozen.statement:
            break
    else:
        raise AssertionError("the run has not ended")
    assert number > FEWEST_STATEMENTS


def test_delete_of_a_key_that_is_missing_does_not_hold_up_who_inserts_beside_it(
    mariadb_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With MySQL's own isolation level, it would lock the gap where the key would be."""
    database = mariadb_database
    without_timeouts(monkeypatch)
    fresh_tables(database, "n INTEGER PRIMARY KEY")
    config = {"pk_mode": "record_key", "pk_fields": "n", "delete_enabled": "true", "max_retries": "0"}
    deleting = records(None, keys=[{"n": 100}])
    with FrozenRun(SinkRun(database, **config), deleting, before_text="COMMIT", after_text="DELETE") as frozen:
        other = SinkRun(database, "other", max_retries="0")
        other.write(records({"n": 99}, {"n": 100}, {"n": 101}))
    assert (frozen.statement, frozen.error) == ("COMMIT", None)
    assert database.rows("SELECT n FROM orders ORDER BY n") == [(99,), (100,), (101,)]


def test_session_of_another_user_is_waited_for(
    mariadb_database: Database, monkeypatch: pytest.MonkeyPatch, unique_name: str
) -> None:
    database = mariadb_database
    without_timeouts(monkeypatch)
    fresh_tables(database)
    user, name = unique_name.replace("-", "_")[:30], database.rows("SELECT DATABASE()")[0][0]
    database.execute(f"CREATE USER {user} IDENTIFIED BY 'x'", f"GRANT ALL ON {name}.* TO {user}")
    scheme, _, rest = database.url.partition("://")
    limited = Database("mysql", *[f"{scheme}://{user}:x@{rest.partition('@')[2]}"] * 2)
    with FrozenRun(SinkRun(database), numbers(0, 3), before_text="COMMIT", after_text="INSERT INTO `orders`") as frozen:
        later = threading.Thread(target=lambda: SinkRun(limited, max_retries="30").write(numbers(0, 4)))
        later.start()
        # Longer than a statement with a limit can wait.
        wait_until(
            lambda: database.has_statement_waiting_for(UNLIMITED_S),
            "the later run to wait without a limit of its own",
            LIMIT_S,
            every_s=0.3,
        )
    later.join(LIMIT_S)
    database.execute(f"DROP USER {user}")
    assert frozen.error is None, "the other user's session was ended"
    assert database.rows("SELECT n FROM orders ORDER BY n") == [(0,), (1,), (2,), (3,)]


def test_server_that_refuses_user_locks_is_written_without_them(
    mariadb_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_tables(mariadb_database)
    monkeypatch.setattr(sessions.Marks, "_lock_name", lambda *_: "x" * 200)
    SinkRun(mariadb_database, max_retries="0").write(numbers(0, 4))
    assert mariadb_database.rows("SELECT n FROM orders ORDER BY n") == [(0,), (1,), (2,), (3,)]


def test_server_with_a_binary_log_of_statements_keeps_its_isolation_level(tmp_path: Path) -> None:
    flags = ("--log-bin", "--binlog-format=STATEMENT", "--server-id=1")
    with MariaDbServer.start(tmp_path / "data", *flags) as server, database_on(server, "logged") as database:
        fresh_tables(database)
        run = SinkRun(database, max_retries="0")
        task = run.open()
        connection = task._task._writer._connected()
        assert connection.exec_driver_sql("SELECT @@log_bin, @@tx_isolation").one() == (1, "REPEATABLE-READ")
        connection.rollback()
        give(task, numbers(0, 4))
        assert database.rows("SELECT n FROM orders ORDER BY n") == [(0,), (1,), (2,), (3,)]


def numbers(first: int, end: int) -> list[Any]:
    return records(*({"n": n} for n in range(first, end)), first=first)


def without_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only marks end sessions, and soon."""
    monkeypatch.setattr(sessions, "IDLE_TRANSACTION_S", 1000)
    monkeypatch.setattr(sessions, "IDLE_CONNECTION_S", 1000)
    monkeypatch.setattr(sessions, "LOCK_WAIT_S", 1)


def fresh_tables(database: Database, column: str = "n INTEGER NOT NULL") -> None:
    database.execute(
        "DROP TABLE IF EXISTS airflow_connect_offsets, orders, others",
        f"CREATE TABLE orders ({column})",
        f"CREATE TABLE others ({column})",
    )
