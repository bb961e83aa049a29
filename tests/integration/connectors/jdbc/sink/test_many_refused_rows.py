"""Many refused rows, or many statements, in one transaction: PostgreSQL keeps a lock for each savepoint with rows."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink import pieces
from tests.devstack.postgresql import PostgresServer
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, record, records
from tests.support.servers.databases import Database, database_on

pytestmark = pytest.mark.integration
UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}


@pytest.fixture(scope="module")
def small_server() -> Iterator[PostgresServer]:
    """A server with little room for locks."""
    with PostgresServer.start(max_locks_per_transaction="10", max_connections="20") as server:
        yield server


@pytest.fixture
def small(small_server: PostgresServer, unique_name: str) -> Iterator[Database]:
    """An empty database there."""
    with database_on(small_server, unique_name) as made:
        yield made


@pytest.mark.budget(20)
def test_rows_that_are_refused_by_thousands_do_not_exhaust_the_server(small: Database) -> None:
    """The run failed with `database.out_of_resources`, and so did each later one."""
    small.execute("CREATE TABLE orders (n BIGINT PRIMARY KEY, v SMALLINT CHECK (v < 10))")
    sink = SinkRun(small, errors_tolerance="all", max_retries="0", **UPSERT)
    report = give(sink.open(), records(*({"n": n, "v": n % 2 * 10} for n in range(3_000))))
    assert [offset for offset, _ in sink.errors.letters] == list(range(1, 3_000, 2))
    assert small.rows("SELECT COUNT(*), COUNT(*) FILTER (WHERE v = 0) FROM orders") == [(1_500, 1_500)]
    assert report.written == 1_500


@pytest.mark.budget(20)
def test_deletes_between_upserts_do_not_exhaust_the_server(small: Database) -> None:
    small.execute("CREATE TABLE orders (k BIGINT PRIMARY KEY, n BIGINT)")
    key, value = s.struct(("k", s.INT64)), s.struct(("n", s.INT64))
    run = SinkRun(
        small, insert_mode="upsert", pk_mode="record_key", pk_fields="k", delete_enabled="true", max_retries="0"
    )
    rows = [
        record(n, None if n % 2 else {"n": n}, key={"k": n // 2 % 10}, key_schema=key, schema=None if n % 2 else value)
        for n in range(4_001)
    ]
    assert give(run.open(), rows).written == 4_001
    assert small.rows("SELECT k, n FROM orders") == [(0, 4_000)]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "sqlite"])
@pytest.mark.parametrize("most", [1, 3])
def test_result_does_not_depend_on_the_number_of_savepoints(request, kind, most) -> None:
    """Rounds of few savepoints: rows of one key, refused between others, have the value of the last good record."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    database.execute("CREATE TABLE orders (n BIGINT PRIMARY KEY, v SMALLINT CHECK (v < 10))")
    sink = SinkRun(database, errors_tolerance="all", batch_size="4", **UPSERT)
    values = [{"n": n % 7, "v": 10 if n % 3 == 1 else n % 10} for n in range(40)]
    with patch.object(pieces, "MOST_SAVEPOINTS", most):
        report = give(sink.open(), records(*values))
    good = [(offset, value) for offset, value in enumerate(values) if value["v"] < 10]
    assert [offset for offset, _ in sink.errors.letters] == [n for n in range(40) if n % 3 == 1]
    assert report.written == len(good)
    expected = {value["n"]: value["v"] for _, value in good}
    assert dict(database.rows("SELECT n, v FROM orders")) == expected
