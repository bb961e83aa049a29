"""An incrementing column that a query or a view counts for each run tells of no row whether it is new."""

from __future__ import annotations

import pytest

from airflow_connect.connectors.jdbc.source.checks.computed_numbers import counted_by, random_in_conditions
from airflow_connect.errors import ConfigError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
COUNTED = "SELECT CAST(row_number() OVER (ORDER BY a.name) AS integer) AS {0}, a.name FROM a"
QUOTES = {"postgresql": '"', "mysql": "`", "sqlite": '"'}


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    made.execute("CREATE TABLE a (name varchar(20) NOT NULL)", "INSERT INTO a VALUES ('b'), ('d')")
    return made


@pytest.mark.parametrize("what", ["query", "view"])
def test_rows_that_a_query_or_a_view_counts_are_named(database: Database, what: str) -> None:
    """The new row had the number of an older one, which was copied again in its place."""
    quote = QUOTES[database.dialect]
    statement = COUNTED.format(f"{quote}no{quote}")
    database.execute(f"CREATE VIEW counted AS {statement}")
    more = {"query": statement} if what == "query" else {"table.types": "VIEW"}
    config = {"connection.url": database.jdbc_url, "mode": "incrementing", "incrementing.column.name": "no", **more}
    runs = Copies({**config, "validate.non.null": "false"})
    if database.dialect == "sqlite" and what == "view":  # It does not tell the type of what a view computes.
        with pytest.raises(ConfigError, match="column no of table counted has no declared type, which is not a whole"):
            runs.run()
        return
    for name, found in (("b", ["b", "d"]), ("a", ["d"])):
        if name == "a":
            database.execute("INSERT INTO a VALUES ('a')")
        run = runs.run()
        assert [value["name"] for value in run.values] == found
        (note,) = [note for note in run.notes if "anew in each run" in note]
        assert "computes the incrementing column no with row_number" in note
        assert note.startswith("The query " if what == "query" else "The view ")


def test_view_whose_definition_the_user_may_not_see_is_named(mariadb_database: Database, unique_name: str) -> None:
    """Without SHOW VIEW the definition is an empty text, in each run the same one."""
    user = unique_name.replace("-", "_")[-32:]
    ((name,),) = mariadb_database.rows("SELECT database()")
    mariadb_database.execute(
        "CREATE TABLE a (id int NOT NULL PRIMARY KEY)",
        "INSERT INTO a VALUES (1)",
        "CREATE VIEW seen AS SELECT id FROM a",
        f"CREATE USER {user}@'%%'",
        f"GRANT SELECT ON {name}.seen TO {user}@'%%'",
    )
    config = {"connection.url": mariadb_database.jdbc_url.partition("?")[0], "connection.user": user}
    config |= {"mode": "incrementing", "incrementing.column.name": "id", "table.types": "VIEW"}
    try:
        run = Copies(config).run()
        assert run.ids() == [1] and [note for note in run.notes if "Grant SHOW VIEW." in note]
        mariadb_database.execute(f"GRANT SHOW VIEW ON {name}.seen TO {user}@'%%'")
        assert not [note for note in Copies(config).run().notes if "SHOW VIEW" in note]
    finally:
        mariadb_database.execute(f"DROP USER {user}@'%%'")


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SELECT row_number() OVER (ORDER BY name, x) AS id, name FROM a", "row_number"),
        ("SELECT name, rank() over w id FROM a WINDOW w AS (ORDER BY name)", "rank"),
        ("SELECT * FROM (SELECT name, 10 + (dense_rank() OVER (ORDER BY name)) AS id FROM a) x", "dense_rank"),
        ("SELECT DISTINCT nextval('s') AS \"id\" FROM a", "nextval"),
        ("SELECT (@n := @n + 1) AS `id` FROM a", "@n"),
        ("SELECT RAND() * 100 AS ID FROM a", "rand"),
        ("SELECT ROWNUM() AS id, name FROM a", "rownum"),
        ("SELECT name, count(*) OVER (ORDER BY name) AS id FROM a", "count"),
        ("SELECT sum(1) OVER (ORDER BY name) + 5 AS id FROM a", "sum"),
        ("SELECT count(*) AS id, day FROM a GROUP BY day", ""),
        ("SELECT row_number() OVER (ORDER BY name) AS n, id FROM a", ""),
        ("SELECT id, row_number() OVER (ORDER BY id) AS n FROM a", ""),
        ("SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY id) AS n FROM a) x WHERE n = 1", ""),
        ("SELECT 'row_number() OVER () AS id' AS t, id /* rank() AS id */ FROM a -- rank() AS id", ""),
        ("SELECT a.id, b.name FROM a JOIN b ON b.id = a.id", ""),
        ("SELECT max(a.id) AS id FROM a GROUP BY name", ""),
    ],
)
def test_column_that_is_counted_is_recognised(statement: str, found: str) -> None:
    assert counted_by(statement, "id") == found


RANDOM = {"postgresql": "random()", "mysql": "RAND()", "sqlite": "abs(random() / 9223372036854775808.0)"}


@pytest.mark.parametrize("what", ["query", "view"])
def test_rows_that_are_chosen_at_random_are_named(database: Database, what: str) -> None:
    """Those that a run does not get are before the offset: no later run got them, and no report said so."""
    database.execute("CREATE TABLE n (id int NOT NULL PRIMARY KEY)", "INSERT INTO n VALUES (1), (2), (3)")
    statement = f"SELECT id FROM n WHERE {RANDOM[database.dialect]} >= 0"
    database.execute(f"CREATE VIEW chosen AS {statement}")
    more = {"query": statement} if what == "query" else {"table.types": "VIEW", "table.whitelist": "chosen"}
    config = {"connection.url": database.jdbc_url, "incrementing.column.name": "id", **more}

    def run(mode: str) -> list[str]:
        found = Copies({**config, "mode": mode, "validate.non.null": "false"}).run()
        assert found.ids() == [1, 2, 3]
        return [note for note in found.notes if "random values in a condition" in note]

    (note,) = run("incrementing")
    assert f"({'rand' if database.dialect == 'mysql' else 'random'})" in note and "NOT copied later" in note
    assert run("bulk") == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SELECT * FROM a WHERE random() < 0.5", ["random"]),
        ("SELECT * FROM a JOIN b ON b.id = a.id AND RAND () < 0.1", ["rand"]),
        ("SELECT random() AS r, uuid() AS u, id FROM a", []),
        ("SELECT random() AS r FROM a WHERE id > 5 AND random > 3 AND name = 'random()' -- rand()", []),
        ("SELECT id FROM a WHERE operand(id) = 1 AND uuid = 'x'", []),
    ],
)
def test_random_values_in_conditions_are_found(statement: str, found: list[str]) -> None:
    assert list(random_in_conditions(statement)) == found
