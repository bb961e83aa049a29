"""What a run reads is not what the last run has read: nothing at or below the offset is left out without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.connectors.jdbc.source.checks import origin
from airflow_connect.connectors.jdbc.source.read.identities import Identities
from airflow_connect.errors import ConfigError, OffsetError, StateError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration
MODES = ["incrementing", "timestamp", "timestamp+incrementing"]
ROWS = "INSERT INTO orders VALUES {}"


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


def copies(database: Database, mode: str, **more: str) -> Copies:
    columns = {"incrementing.column.name": "id"} if "incrementing" in mode else {}
    if "timestamp" in mode:
        columns["timestamp.column.name"] = "changed"
    config = {"connection.url": database.jdbc_url, "mode": mode, "connection.backoff.ms": "50", **columns}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}})


def make(database: Database, *ids: int, table: str = "orders") -> None:
    """A table whose rows have the second of their id as time."""
    stamp = {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "timestamp"}[database.dialect]
    database.execute(
        f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, changed {stamp} NOT NULL)",
        f"INSERT INTO {table} VALUES " + ", ".join(f"({n}, '2026-01-01 00:00:{n:02d}')" for n in ids),
    )


@pytest.mark.parametrize("mode", MODES)
def test_table_that_was_made_again_fails_with_the_number_of_rows_up_to_the_offset(
    postgresql_database: Database, mode: str
) -> None:
    make(postgresql_database, 1, 2, 3, 9)
    runs = copies(postgresql_database, mode)
    assert len(runs.run().ids()) == 4
    postgresql_database.execute("DROP TABLE orders")
    make(postgresql_database, 5, 6, 12)
    for _ in range(2):
        with pytest.raises(OffsetError) as failed:
            runs.run()
        assert failed.value.code == "database.recreated"
        assert "orders was dropped and created again since the last run, and 2 of its rows are" in str(failed.value)
    runs.stored.clear()
    run = runs.run()
    assert sorted(run.ids()) == [5, 6, 12]
    assert run.notes == []
    assert runs.run().records == []


def test_table_that_was_made_again_does_not_stop_others(postgresql_database: Database) -> None:
    make(postgresql_database, 1, 2)
    make(postgresql_database, 1, 2, table="lines")
    runs = copies(postgresql_database, "incrementing")
    assert len(runs.run().records) == 4
    postgresql_database.execute("DROP TABLE orders", "INSERT INTO lines VALUES (3, now())")
    assert [record.topic for record in runs.run().records] == ["db-lines"]
    make(postgresql_database, 1, 3)
    postgresql_database.execute("INSERT INTO lines VALUES (4, now())")
    for found in ([4], []):
        run = runs.run()
        assert run.ids() == found
        ((name, error),) = run.left_out.items()
        assert name.endswith("orders")
        assert error.code == "database.recreated"
        assert "1 of its rows is at or below the offset" in str(error)


def test_table_that_was_made_again_is_continued_if_the_configuration_says_so(postgresql_database: Database) -> None:
    make(postgresql_database, 1, 2, 3)
    runs = copies(postgresql_database, "incrementing", table_recreated="continue")
    runs.run()
    postgresql_database.execute("DROP TABLE orders")
    make(postgresql_database, 1, 2, 3, 4)
    run = runs.run()
    assert run.ids() == [4]
    (note,) = run.notes
    assert "orders: 3 rows" in note
    del runs.config["table.recreated"]
    assert runs.run().notes == []


def test_table_that_was_made_again_with_later_rows_only_is_copied(postgresql_database: Database) -> None:
    make(postgresql_database, 1, 2, 3)
    runs = copies(postgresql_database, "incrementing")
    runs.run()
    postgresql_database.execute("DROP TABLE orders")
    make(postgresql_database, 4, 5)
    assert runs.run().ids() == [4, 5]


@pytest.mark.parametrize("query", ["", "SELECT * FROM orders"], ids=["table", "query"])
def test_table_that_was_made_again_and_gets_its_rows_later_is_noticed(database: Database, query: str) -> None:
    """As where a dump is restored: runs see it empty for a while."""
    make(database, 1, 2, 3)
    runs = copies(database, "timestamp", **({"query": query} if query else {}))
    runs.run()
    wait_for_another_second(database)
    database.execute("DROP TABLE orders")
    make(database, 9)
    database.execute("DELETE FROM orders")
    for _ in range(2):
        run = runs.run()
        assert (run.records, run.notes) == ([], [])
    database.execute(ROWS.format("(2, '2026-01-01 00:00:02'), (3, '2026-01-01 00:00:03'), (4, '2026-01-01 00:00:04')"))
    if database.dialect == "postgresql" and not query:
        with pytest.raises(OffsetError, match="2 of its rows are at or below the offset"):
            runs.run()
        return
    run = runs.run()
    assert run.ids() == [4]
    if database.dialect != "mysql" or not query:  # MariaDB says nothing of the tables behind a query.
        (note,) = [found for found in run.notes if "created again" in found]
        assert f"{'query' if query else 'orders'}: 2 rows" in note
    assert runs.run().notes == []


def test_table_that_was_made_again_and_goes_on_with_its_numbers_is_copied_also_by_a_run_that_dies(
    postgresql_database: Database,
) -> None:
    make(postgresql_database, 1, 2, 3)
    runs = copies(postgresql_database, "incrementing", batch_max_rows="2")
    runs.run()
    postgresql_database.execute("DROP TABLE orders")
    make(postgresql_database, 9)
    postgresql_database.execute("DELETE FROM orders")
    assert runs.run().records == []
    postgresql_database.execute(ROWS.format("(4, now()), (5, now()), (6, now()), (7, now())"))
    found = runs.run(batches=1).ids()
    assert found
    assert found + runs.run().ids() == [4, 5, 6, 7]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE orders ADD COLUMN note text DEFAULT 'x'",
        "ALTER TABLE orders ALTER COLUMN id TYPE bigint",
        "TRUNCATE orders",
        "CREATE INDEX ON orders (changed)",
        "ALTER TABLE orders SET UNLOGGED",
    ],
)
def test_table_of_postgresql_that_was_rewritten_is_the_same(postgresql_database: Database, change: str) -> None:
    make(postgresql_database, 1, 2)
    runs = copies(postgresql_database, "timestamp+incrementing")
    runs.run()
    postgresql_database.execute(change)
    with postgresql_database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM FULL orders")
    postgresql_database.execute("INSERT INTO orders (id, changed) VALUES (3, '2026-01-01 00:00:03')")
    run = runs.run()
    assert run.ids() == [3]
    assert run.notes == []


def test_table_that_may_have_been_made_again_is_named_with_its_rows(database: Database) -> None:
    """MariaDB and SQLite do not say whether a table was made again or altered."""
    make(database, 1, 2, 3)
    runs = copies(database, "timestamp", table_recreated="continue")
    runs.run()
    wait_for_another_second(database)
    database.execute("DROP TABLE orders")
    make(database, 2, 3, 4)
    run = runs.run()
    assert run.ids() == [4]
    (note,) = run.notes
    assert "orders: 2 rows" in note
    assert runs.run().notes == []


def wait_for_another_second(database: Database) -> None:
    """MariaDB knows in which second a table was made."""
    if database.dialect == "mysql":
        database.rows("SELECT SLEEP(1.05)")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", "SELECT * FROM orders"], ids=["table", "query"])
def test_other_database_with_rows_up_to_the_offset_is_named_with_their_number(
    database: Database, tmp_path: Path, mode: str, query: str
) -> None:
    make(database, 1, 2, 9)
    runs = copies(database, mode, **({"query": query, "validate_non_null": "false"} if query else {}))
    runs.run()
    other = other_database(database, tmp_path)
    make(other, 4, 5, 10)
    runs.config["connection.url"] = other.jdbc_url
    run = runs.run()
    if query == "" and database.dialect != "sqlite":
        assert run.ids() == [4, 5, 10]  # The name of the database is part of the offset's.
        return
    assert run.ids() == [10]
    (note,) = run.notes
    assert ("query: 2 rows" if query else "orders: 2 rows") in note
    assert "connection.url" in note
    assert runs.run().notes == []


def other_database(database: Database, tmp_path: Path) -> Database:
    if database.dialect == "sqlite":
        path = tmp_path / "other.db"
        return Database("sqlite", f"sqlite:///{path}", f"jdbc:sqlite:{path}")
    name = database.url.rpartition("/")[2].partition("?")[0]
    with database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}_other")
    return Database(
        database.dialect, database.url.replace(name, f"{name}_other"), database.jdbc_url.replace(name, f"{name}_other")
    )


def test_other_query_and_other_column_are_named_with_the_rows_that_are_not_copied(database: Database) -> None:
    make(database, 1, 2, 3)
    make(database, 1, 4, table="parts")
    runs = copies(database, "incrementing", query="SELECT * FROM orders", validate_non_null="false")
    runs.run()
    runs.config["query"] = "SELECT * FROM parts"
    run = runs.run()
    assert run.ids() == [4]
    (note,) = run.notes
    assert "query was changed" in note
    assert "query: 1 row" in note
    runs.config |= {"query": "SELECT id, id + 1 AS other FROM parts", "incrementing.column.name": "other"}
    run = runs.run()
    assert run.ids("other") == [5]
    (note,) = run.notes
    assert "the tracked column was changed from id to other" in note
    assert "query: 1 row" in note
    assert runs.run().notes == []


def test_other_spelling_of_a_query_or_a_column_is_no_change(database: Database) -> None:
    """Each was named as a change, with the number of all rows."""
    make(database, 1, 2)
    runs = copies(
        database, "incrementing", query="SELECT * FROM orders WHERE 'a  b' <> 'a b'", validate_non_null="false"
    )
    runs.run()
    runs.config["query"] = " SELECT *\n  FROM orders\tWHERE 'a  b' <> 'a b'"
    assert runs.run().notes == []
    runs.config["query"] = "SELECT * FROM orders WHERE 'a   b' <> 'a b'"
    assert "query was changed" in " ".join(runs.run().notes)
    runs = copies(database, "timestamp+incrementing")
    runs.run()
    runs.config |= {"incrementing.column.name": "ID", "timestamp.column.name": "Changed"}
    assert runs.run().notes == []


def test_column_that_differs_in_case_only_is_another_one_of_postgresql(postgresql_database: Database) -> None:
    postgresql_database.execute(
        'CREATE TABLE orders (id int PRIMARY KEY, "ID" int NOT NULL)', "INSERT INTO orders VALUES (2, 1), (3, 2)"
    )
    runs = copies(postgresql_database, "incrementing")
    runs.run()
    runs.config["incrementing.column.name"] = "ID"
    assert "the tracked column was changed from id to ID" in " ".join(runs.run().notes)


def test_server_that_goes_by_another_name_is_the_same(postgresql_database: Database) -> None:
    make(postgresql_database, 1, 2)
    runs = copies(postgresql_database, "incrementing")
    runs.run()
    runs.config["connection.url"] = postgresql_database.jdbc_url.replace("127.0.0.1", "localhost")
    assert runs.config["connection.url"] != postgresql_database.jdbc_url
    postgresql_database.execute("INSERT INTO orders VALUES (3, now())")
    run = runs.run()
    assert run.ids() == [3]
    assert run.notes == []


def test_other_server_at_the_same_address_is_named(postgresql_database: Database) -> None:
    make(postgresql_database, 1, 2)
    runs = copies(postgresql_database, "incrementing")
    runs.run()
    runs.kept = {**runs.kept, "server": "7000000000000000000"}
    run = runs.run()
    (note,) = run.notes
    assert "has become another server" in note
    assert "orders: 2 rows" in note
    assert runs.run().notes == []
    postgresql_database.execute("DELETE FROM orders")
    runs.kept = {**runs.kept, "server": "7000000000000000000"}
    (note,) = [found for found in runs.run().notes if "another server" in found]
    assert "orders: no row yet" in note


def test_unfinished_first_copy_of_a_table_that_was_made_again_fails(postgresql_database: Database) -> None:
    make(postgresql_database, *range(60))
    runs = copies(postgresql_database, "incrementing", table_split_min_rows="20", batch_max_rows="10")
    runs.run(tasks=3, batches=1)
    postgresql_database.execute("DROP TABLE orders")
    make(postgresql_database, *range(60))
    with pytest.raises(OffsetError, match="complete ranges of an unfinished first copy would not be read again"):
        runs.run(tasks=3)
    runs.stored.clear()
    assert len(runs.run().ids()) == 60


def test_view_with_another_definition_is_named_and_one_that_was_made_again_is_not(
    postgresql_database: Database,
) -> None:
    make(postgresql_database, 1, 2, 3)
    postgresql_database.execute("CREATE VIEW later AS SELECT * FROM orders WHERE id <> 1")
    more = {"table_types": "VIEW", "validate_non_null": "false"}
    runs = copies(postgresql_database, "incrementing", **more)
    assert runs.run().ids() == [2, 3]
    postgresql_database.execute("DROP VIEW later", "CREATE VIEW later AS SELECT * FROM orders WHERE id <> 1")
    assert runs.run().notes == []
    postgresql_database.execute("CREATE OR REPLACE VIEW later AS SELECT * FROM orders")
    (note,) = runs.run().notes
    assert "another definition" in note
    assert "later: 3 rows" in note


def test_table_that_was_made_again_is_noticed_after_a_run_that_could_not_ask(
    postgresql_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run had kept that it knows nothing, so that no later run compared anything."""
    make(postgresql_database, 1, 2, 3)
    runs = copies(postgresql_database, "incrementing")
    runs.run()
    postgresql_database.execute("DROP TABLE orders")
    make(postgresql_database, 1, 2, 7)
    with monkeypatch.context() as patch:
        patch.setattr(origin, "identities", lambda *_: Identities("", "", {}))
        assert runs.run().ids() == [7]
    with pytest.raises(OffsetError, match="was dropped and created again since the last run, and 3 of its rows"):
        runs.run()


@pytest.mark.parametrize("depth", [1, 2])
def test_view_of_a_table_that_was_made_again_is_named(database: Database, depth: int) -> None:
    """Its definition is the same, and its rows are others."""
    make(database, 1, 2, 3)
    views = ["CREATE VIEW inner_view AS SELECT * FROM orders", "CREATE VIEW later AS SELECT * FROM inner_view"]
    if depth == 1:
        views = ["CREATE VIEW later AS SELECT * FROM orders"]
    database.execute(*views)
    runs = copies(database, "incrementing", table_types="VIEW", table_whitelist="later", validate_non_null="false")
    assert runs.run().ids() == [1, 2, 3]
    assert runs.run().notes == []
    if database.dialect == "mysql":  # It knows the second in which a table was made.
        # Files have the time of a clock that is some milliseconds behind.
        made = "SELECT create_time < now(3) - INTERVAL 1100000 MICROSECOND FROM information_schema.tables"
        made += " WHERE table_name = 'orders'"
        wait_until(lambda: database.rows(f"{made} AND table_schema = database()") == [(1,)], "a later second")
    database.execute(*(f"DROP VIEW {name}" for name in ("later", "inner_view")[:depth]), "DROP TABLE orders")
    make(database, 1, 2, 7)
    database.execute(*views)
    run = runs.run()
    assert run.ids() == [7]
    (note,) = run.notes
    assert "or tables behind them were dropped and created again" in note
    assert "later: 2 rows" in note
    assert runs.run().notes == []


def test_query_of_sqlite_whose_tables_were_made_again_is_named(sqlite_database: Database) -> None:
    make(sqlite_database, 1, 2, 3)
    runs = copies(sqlite_database, "incrementing", query="SELECT * FROM orders")
    assert runs.run().ids() == [1, 2, 3]
    sqlite_database.execute("DROP TABLE orders")
    make(sqlite_database, 2, 7)
    run = runs.run()
    assert run.ids() == [7]
    (note,) = run.notes
    assert note.startswith("Since the last run, tables were altered, or dropped") and "query: 1 row" in note


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("mode", ["timestamp", "timestamp+incrementing"])
def test_rows_of_a_day_that_is_far_away_are_counted(database: Database, mode: str, columnar: bool) -> None:
    make(database, 1)
    database.execute("INSERT INTO orders VALUES (2, '2099-01-01 00:00:00'), (3, '2098-01-01 00:00:00')")
    runs = copies(database, mode)
    runs.columnar = columnar
    run = runs.run()
    assert run.ids() == [1]
    (note,) = run.notes
    assert note.startswith("2 rows of ") and "have a timestamp in changed that is more than 10 minutes ahead" in note


def test_role_that_may_not_ask_for_the_server_still_notices_a_table_that_was_made_again(
    postgresql_database: Database,
) -> None:
    make(postgresql_database, 1, 2)
    role = postgresql_database.url.rpartition("/")[2]
    grants = (f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON orders TO {role}")
    postgresql_database.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public", *grants)
    runs = copies(postgresql_database, "incrementing", connection_user=role)
    assert runs.run().ids() == [1, 2]
    assert runs.kept["server"] == ""
    postgresql_database.execute("DROP TABLE orders")
    make(postgresql_database, 1, 2)
    postgresql_database.execute(grants[1])
    with pytest.raises(OffsetError, match="was dropped and created again"):
        runs.run()


def test_document_of_a_newer_release_is_refused(sqlite_database: Database) -> None:
    make(sqlite_database, 1)
    runs = copies(sqlite_database, "incrementing")
    runs.kept = {"v": 2, "settings": {}, "tables": {}}
    with pytest.raises(StateError, match="has version 2"):
        runs.run()
    runs.kept = {"v": 1, "written": 7}  # of a sink that had this name
    assert runs.run().ids() == [1]


def test_many_tables_that_moved_are_one_note(sqlite_database: Database) -> None:
    for n in range(12):
        make(sqlite_database, 1, table=f"t{n:02d}")
    runs = copies(sqlite_database, "incrementing")
    runs.run()
    runs.config["topic.prefix"] = "other-"
    (note,) = runs.run().notes
    assert "Since the last run, topic.prefix was changed." in note
    assert note.endswith("t09: 1 row and 2 more.")


def test_sequence_that_gives_numbers_below_the_offset_is_refused(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (id serial PRIMARY KEY, v text)", "INSERT INTO orders VALUES (1, 'a'), (100, 'b')"
    )
    runs = copies(postgresql_database, "incrementing")
    for n in (101, 102):  # Ids come from elsewhere, and the sequence is not used.
        runs.run()
        postgresql_database.execute(f"INSERT INTO orders VALUES ({n}, 'c')")
    assert runs.run().ids() == [102]
    postgresql_database.execute("SELECT setval('orders_id_seq', 50)", "INSERT INTO orders (v) VALUES ('d')")
    with pytest.raises(OffsetError, match="has moved from its beginning to 51, but rows up to 102 were copied"):
        runs.run()
    ((partition, _),) = [one for one in runs.committed() if "gaps" not in one[0]]
    runs.commit(partition, {"incrementing": 50})
    assert runs.run().ids() == [51, 100, 101, 102]


def test_sequence_whose_numbers_are_taken_in_blocks_is_named(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY (CACHE 50) PRIMARY KEY, v text)",
        "INSERT INTO orders (v) VALUES ('a')",
    )
    runs = copies(postgresql_database, "incrementing")
    run = runs.run()
    assert run.ids() == [1] and any(
        "has CACHE 50: a session takes so many numbers at once" in note for note in run.notes
    )
    postgresql_database.execute("ALTER SEQUENCE orders_id_seq CACHE 1", "INSERT INTO orders (v) VALUES ('b')")
    assert not [note for note in runs.run().notes if "CACHE" in note]


def test_sequence_that_counts_down_is_refused(postgresql_database: Database) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY (INCREMENT -1 MINVALUE 1 MAXVALUE 9 START 9))",
        "ALTER TABLE orders ADD PRIMARY KEY (id)",
    )
    with pytest.raises(ConfigError, match=r"counts down \(INCREMENT BY -1\)"):
        copies(postgresql_database, "incrementing").run()
