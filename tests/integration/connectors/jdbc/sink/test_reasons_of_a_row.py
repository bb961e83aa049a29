"""A row that the database refuses for its own sake is a dead letter, whatever code the refusal has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import DatabaseError, DataError
from tests.support.servers.databases import Database
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration
ORDER = s.struct(("n", s.INT64), ("note", s.OPTIONAL_STRING))
ROWS_AND_COLUMNS = pytest.mark.parametrize("count", [3, 700])


@ROWS_AND_COLUMNS
@pytest.mark.parametrize(
    "refusal", ["RAISE EXCEPTION 'no' USING ERRCODE = 'SHOP1'", "ASSERT false", "RAISE no_data_found"]
)
def test_trigger_of_postgresql_with_an_error_code_of_its_own(
    postgresql_database: Database, refusal: str, count: int
) -> None:
    body = f"BEGIN IF NEW.n = 1 THEN {refusal}; END IF; RETURN NEW; END"
    postgresql_database.execute(
        "CREATE TABLE orders (n BIGINT, note TEXT)",
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    copied = ColumnRun(postgresql_database, ORDER, errors_tolerance="all").copy([{"n": n} for n in range(count)])
    assert (copied.letters, copied.report.written) == ([1], count - 1)


@ROWS_AND_COLUMNS
@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_text_with_a_syntax_of_its_own_is_no_error_of_the_statement(
    postgresql_database: Database, mode: str, count: int
) -> None:
    """It ended each run, without the place of the record, also if errors are tolerated."""
    postgresql_database.execute("CREATE TABLE orders (n BIGINT PRIMARY KEY, note tsquery)")
    values = [{"n": n, "note": "hush hush" if n == 1 else "a & b"} for n in range(count)]
    more = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"} if mode == "upsert" else {}
    copied = ColumnRun(postgresql_database, ORDER, errors_tolerance="all", **more).copy(values)
    assert (copied.letters, copied.report.written) == ([1], count - 1)
    with pytest.raises(DataError, match=r"orders-0@1: PostgreSQL cannot read one of its texts as the type") as caught:
        ColumnRun(
            postgresql_database, ORDER, "again", insert_mode="update", pk_mode="record_value", pk_fields="n"
        ).copy(values[:3])
    assert caught.value.code == "database.value" and "hush" not in str(caught.value)


@ROWS_AND_COLUMNS
def test_row_without_a_partition_of_mariadb(mariadb_database: Database, count: int) -> None:
    mariadb_database.execute(
        f"CREATE TABLE orders (n BIGINT, note TEXT) PARTITION BY RANGE (n) (PARTITION p VALUES LESS THAN ({count - 1}))"
    )
    copied = ColumnRun(mariadb_database, ORDER, errors_tolerance="all").copy([{"n": n} for n in range(count)])
    assert (copied.letters, copied.report.written) == ([count - 1], count - 1)


@ROWS_AND_COLUMNS
def test_row_that_is_larger_than_a_packet_of_mariadb(mariadb_database: Database, count: int) -> None:
    """The server closes the connection, in each try, of each run: it names no row."""
    mariadb_database.execute("CREATE TABLE orders (n BIGINT, note LONGTEXT)")
    ((most_bytes,),) = mariadb_database.rows("SELECT @@max_allowed_packet")
    values = [{"n": n, "note": "x" * (most_bytes if n == 1 else n)} for n in range(count)]
    copied = ColumnRun(mariadb_database, ORDER, errors_tolerance="all").copy(values)
    assert (copied.letters, copied.report.written) == ([1], count - 1)


def test_constraint_of_sqlite_that_ends_the_transaction_is_named(sqlite_database: Database) -> None:
    sqlite_database.execute("CREATE TABLE orders (n BIGINT, note TEXT UNIQUE ON CONFLICT ROLLBACK)")
    values = [{"n": n, "note": f"{n % 2}"} for n in range(3)]
    with pytest.raises(DatabaseError, match="ended the transaction, because it is declared with ROLLBACK") as caught:
        ColumnRun(sqlite_database, ORDER, errors_tolerance="all").copy(values)
    assert caught.value.code == "database.constraint" and "orders-0@0 to orders-0@2" in caught.value.message
    assert sqlite_database.rows("SELECT n FROM orders") == []


@pytest.mark.parametrize("count", [3, 130, 700])
@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_row_that_a_policy_refuses(postgresql_database: Database, mode: str, count: int) -> None:
    """PostgreSQL has the code of a missing privilege for it: each run failed without the place of the record."""
    ((name,),) = postgresql_database.rows("SELECT current_database()")
    role = f"limited_{name}"
    postgresql_database.execute(
        "CREATE TABLE orders (n BIGINT PRIMARY KEY, note TEXT)",
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY most ON orders USING (true) WITH CHECK (n <> 1)",
        f"CREATE ROLE {role} LOGIN",
        f"GRANT ALL ON SCHEMA public TO {role}",
        f"GRANT SELECT, INSERT, UPDATE ON orders TO {role}",
    )
    user = replace(postgresql_database, jdbc_url=postgresql_database.jdbc_url.replace("user=postgres", f"user={role}"))
    more = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"} if mode == "upsert" else {}
    try:
        copied = ColumnRun(user, ORDER, errors_tolerance="all", **more).copy([{"n": n} for n in range(count)])
        assert (copied.letters, copied.report.written) == ([1], count - 1)
        with pytest.raises(DataError, match=r"orders-0@1: .*row-level security policy") as caught:
            ColumnRun(user, ORDER, "again", **more).copy([{"n": 1001 + n if n != 1 else 1} for n in range(count)])
        assert caught.value.code == "database.constraint"
    finally:
        postgresql_database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
