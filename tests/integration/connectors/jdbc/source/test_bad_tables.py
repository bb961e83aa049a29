"""One table that cannot be read does not stop the others, and the run says which one it left out."""

from __future__ import annotations

import pytest

from airflow_connect.errors import ConnectError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])


@pytest.fixture
def database(postgresql_database: Database) -> Database:
    postgresql_database.execute(
        *(f"CREATE TABLE {name} (id int NOT NULL PRIMARY KEY, n numeric(9,2))" for name in ("a", "bad", "c")),
        *(f"INSERT INTO {name} VALUES (1, 1), (2, 2)" for name in ("a", "bad", "c")),
    )
    return postgresql_database


def copies(database: Database, columnar: bool, **more: str) -> Copies:
    config = {
        "connection.url": database.jdbc_url, "mode": "incrementing", "incrementing.column.name": "id",
        "batch.max.rows": "2", **more,
    }  # fmt: skip
    return Copies(config, columnar=columnar)


def test_offsets_of_a_sink_in_the_same_database_are_copied_only_if_they_are_named(database: Database) -> None:
    database.execute("CREATE TABLE airflow_connect_offsets (place text NOT NULL PRIMARY KEY)")
    run = copies(database, False).run()
    assert run.topics == ["db-a", "db-bad", "db-c"] and run.left_out == {}
    assert any("airflow_connect_offsets is skipped, because it has the offsets of JDBC sinks" in n for n in run.notes)
    named = {"mode": "bulk", "table.whitelist": "airflow_connect_offsets"}
    assert not any("skipped" in note for note in copies(database, False, **named).run().notes)


CAUSES = {
    "column": ("ALTER TABLE bad RENAME id TO other", "ALTER TABLE bad RENAME other TO id", "does not exist"),
    "nullable": (
        "ALTER TABLE bad DROP CONSTRAINT bad_pkey, ALTER id DROP NOT NULL", "ALTER TABLE bad ALTER id SET NOT NULL",
        "nullable",
    ),
    "value": ("UPDATE bad SET n = 'NaN' WHERE id = 1", "UPDATE bad SET n = 1 WHERE id = 1", "finite"),
}  # fmt: skip


@BOTH_PATHS
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("cause", CAUSES)
def test_bad_table_is_left_out_and_the_others_are_copied(
    database: Database, cause: str, tasks: int, columnar: bool
) -> None:
    broken, mended, reason = CAUSES[cause]
    database.execute(broken)
    runs = copies(database, columnar)
    first = runs.run(tasks=tasks)
    assert first.topics == ["db-a", "db-c"] and first.ids() == [1, 2, 1, 2]
    [(name, error)] = first.left_out.items()
    assert name.endswith(".public.bad") and reason in error.message and error.suggestion
    again = runs.run(tasks=tasks)
    assert again.ids() == [] and list(again.left_out) == [name]
    database.execute(mended)
    last = runs.run(tasks=tasks)
    assert last.topics == ["db-bad"] and last.ids() == [1, 2] and not last.left_out


@BOTH_PATHS
def test_view_that_fails_while_it_is_read_and_a_name_that_is_no_topic_are_left_out(
    database: Database, columnar: bool
) -> None:
    database.execute(
        'CREATE TABLE "or ders" (id int NOT NULL PRIMARY KEY)', 'INSERT INTO "or ders" VALUES (1)', "DROP TABLE bad",
        "CREATE VIEW bad AS SELECT id, 1 / (id - 2) AS n FROM a",
    )  # fmt: skip
    more = {"table.types": "TABLE,VIEW", "validate.non.null": "false"}
    run = copies(database, columnar, **more).run(tasks=2)
    assert {topic for topic in run.topics if topic != "db-bad"} == {"db-a", "db-c"}
    assert {name.rpartition(".")[2] for name in run.left_out} == {"bad", "or ders"}


@BOTH_PATHS
@pytest.mark.parametrize("cause", CAUSES)
def test_only_table_fails_the_run_at_once(database: Database, cause: str, columnar: bool) -> None:
    broken, _, reason = CAUSES[cause]
    database.execute(broken)
    with pytest.raises(ConnectError, match=reason):
        copies(database, columnar, **{"table.whitelist": "bad"}).run()


@BOTH_PATHS
@pytest.mark.parametrize("mode", ["incrementing", "bulk"])
def test_table_without_the_right_to_read_is_left_out(database: Database, mode: str, columnar: bool) -> None:
    role = f"reader_{database.url.rpartition('/')[2]}"
    database.execute(f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON a, c TO {role}")
    try:
        runs = copies(database, columnar, mode=mode, **{"connection.user": role})
        found = [runs.run(tasks=tasks) for tasks in (1, 3)]
        assert [run.topics for run in found] == [["db-a", "db-c"], ["db-a", "db-c"] if mode == "bulk" else []]
        for run in found:
            [(name, error)] = run.left_out.items()
            assert name.endswith(".public.bad") and error.code == "database.permission"
    finally:
        database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
