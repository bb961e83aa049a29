"""Keys that are changed in a run that does not read each table: what is said when a later one reads the others."""

from __future__ import annotations

import pytest

from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration


def of_two_tables(database: Database) -> Copies:
    """Of the tables a and b, with the rows 1 and 2."""
    for table in ("a", "b"):
        database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)", f"INSERT INTO {table} VALUES (1), (2)")
    incrementing = {"mode": "incrementing", "incrementing.column.name": "id"}
    return Copies({"connection.url": database.jdbc_url, **incrementing})


@pytest.mark.parametrize(("key", "value"), [("topic.prefix", "other-"), ("db.timezone", "Europe/Berlin")])
def test_change_is_named_for_a_table_that_the_run_after_it_did_not_read(
    sqlite_database: Database, key: str, value: str
) -> None:
    """Only the first run after a change named it: the rows of a table that it did not read never came."""
    runs = of_two_tables(sqlite_database)
    runs.run()
    runs.config |= {key: value, "table.whitelist": "a"}
    assert [note.partition("offsets: ")[2] for note in runs.run().notes] == ["a: 2 rows."]
    assert runs.run().notes == []
    del runs.config["table.whitelist"]
    (note,) = runs.run().notes
    assert note.startswith(f"Since the last run that read them, {key} was changed.") and note.endswith("b: 2 rows.")
    assert runs.run().notes == []


def test_query_is_compared_with_the_one_before_runs_without_one(sqlite_database: Database) -> None:
    """A run of tables in between, and rows of another query up to the offset were not copied, without a note."""
    runs = of_two_tables(sqlite_database)
    first, other = {"query": "SELECT * FROM a"}, {"query": "SELECT * FROM b"}
    plain = dict(runs.config)
    for config in (first, {}, first):
        runs.config = {**plain, **config}
        assert not [note for note in runs.run().notes if "was changed" in note]
    runs.config = plain
    runs.run()
    runs.config = {**plain, **other}
    (note,) = [note for note in runs.run().notes if "was changed" in note]
    assert note.startswith("Since the last run that read them, query was changed.") and note.endswith("query: 2 rows.")


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
@pytest.mark.parametrize("nested", [False, True], ids=["view", "view behind a view"])
def test_view_behind_a_query_with_another_definition_is_named(
    request: pytest.FixtureRequest, kind: str, nested: bool
) -> None:
    """Only views that are copied as tables were looked at: rows up to the offset were not copied, without a note."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    database.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, country VARCHAR(2))")
    database.execute("INSERT INTO a VALUES (1, 'de'), (2, 'fr'), (3, 'de')")
    outer = "SELECT * FROM inner_ones" if nested else "SELECT * FROM a WHERE country = 'de'"
    database.execute("CREATE VIEW inner_ones AS SELECT * FROM a WHERE country = 'de'", f"CREATE VIEW ones AS {outer}")
    incrementing = {"mode": "incrementing", "incrementing.column.name": "id", "validate.non.null": "false"}
    runs = Copies({"connection.url": database.jdbc_url, **incrementing, "query": "SELECT id FROM Ones"})
    if kind == "mariadb":
        runs.config["query"] = "SELECT id FROM ones"
    assert runs.run().ids() == [1, 3]
    assert runs.run().notes == []
    changed = "inner_ones" if nested else "ones"
    database.execute(f"CREATE OR REPLACE VIEW {changed} AS SELECT * FROM a")
    (note,) = runs.run().notes
    assert "views that the query names got another definition" in note
    assert "ones). Its rows" in note and note.endswith("query: 3 rows.")
    assert runs.run().notes == []
