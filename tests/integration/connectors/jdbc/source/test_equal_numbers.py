"""Rows with one number, as of a query with a JOIN: they are copied together, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.connectors.jdbc.source.arrow import reader
from airflow_connect.connectors.jdbc.source.read import reading
from airflow_connect.connectors.jdbc.source.read.criteria import Statement, last_group
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
MODES = pytest.mark.parametrize("mode", ["incrementing", "timestamp+incrementing"])


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    kind = {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "timestamp"}[made.dialect]
    lines = ", ".join(f"({order}, {line}, '2026-01-01')" for order in range(4) for line in range(3))
    made.execute(
        f"CREATE TABLE order_lines (order_id int NOT NULL, line int, changed {kind} NOT NULL)",
        f"INSERT INTO order_lines VALUES {lines}",
    )
    return made


def copies(database: Database, mode: str, columnar: bool, **more: str) -> Copies:
    config = {
        "connection.url": database.jdbc_url,
        "mode": mode,
        "incrementing.column.name": "order_id",
        "query": "SELECT * FROM order_lines",
        "validate.non.null": "false",
        **({"timestamp.column.name": "changed"} if "timestamp" in mode else {}),
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return Copies(config, columnar=columnar)


ALL = [(order, line) for order in range(4) for line in range(3)]


@BOTH_PATHS
@MODES
def test_suffix_that_limits_the_rows_never_cuts_a_group_of_equal_numbers(
    database: Database, mode: str, columnar: bool
) -> None:
    runs = copies(database, mode, columnar, query_suffix="LIMIT 4", batch_max_rows="3")
    found: list[tuple[int, int]] = []
    sizes = []
    while values := runs.run().values:
        found += [(value["order_id"], value["line"]) for value in values]
        sizes.append(len(values))
    assert sorted(found) == ALL and sizes == [6, 6]


@BOTH_PATHS
def test_last_group_of_a_limited_run_that_changes_before_it_is_read_again_is_for_the_next_run(
    postgresql_database: Database, columnar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, changed timestamptz NOT NULL)",
        "INSERT INTO orders VALUES (1, '2026-01-01')",
    )

    def later(*arguments: Any) -> Statement:
        postgresql_database.execute("UPDATE orders SET changed = '2026-01-02'")
        return last_group(*arguments)

    for module in (reading, reader):
        monkeypatch.setattr(module, "last_group", later)
    config = {"connection.url": postgresql_database.jdbc_url, "mode": "timestamp", "timestamp.column.name": "changed"}
    runs = Copies({**config, "query.suffix": "LIMIT 25"}, columnar=columnar)
    assert runs.run().ids() == []
    monkeypatch.undo()
    assert runs.run().ids() == [1]


@BOTH_PATHS
@MODES
@pytest.mark.parametrize("size", ["1", "2", "5"])
def test_killed_runs_never_end_inside_a_group_of_equal_numbers(
    database: Database, mode: str, columnar: bool, size: str
) -> None:
    runs = copies(database, mode, columnar, batch_max_rows=size)
    values = runs.run(batches=1).values + runs.run(batches=1).values + runs.run().values
    assert sorted((value["order_id"], value["line"]) for value in values) == ALL


@BOTH_PATHS
@pytest.mark.parametrize("size", ["2", "100"])
def test_view_whose_tables_share_numbers_is_named(postgresql_database: Database, columnar: bool, size: str) -> None:
    """A row that one of its tables gets later, with a number that the other one had before, is not found."""
    parts = [f"CREATE TABLE part{n} (id serial PRIMARY KEY, v text)" for n in (1, 2)]
    view = "CREATE VIEW parts AS SELECT * FROM part1 UNION ALL SELECT * FROM part2"
    rows = "INSERT INTO part1 (v) VALUES ('a'), ('b'), ('c')", "INSERT INTO part2 (v) VALUES ('A'), ('B')"
    postgresql_database.execute(*parts, view, *rows)
    config = {"table.types": "VIEW", "mode": "incrementing", "incrementing.column.name": "id"}
    runs = Copies(
        {
            "connection.url": postgresql_database.jdbc_url,
            "validate.non.null": "false",
            "batch.max.rows": size,
            **config,
        },
        columnar=columnar,
    )
    first = runs.run()
    ((sentence, count),) = first.numbers.items()
    assert len(first.values) == 5 and count == 2
    assert sentence.startswith("Rows of ") and "with a number in id that another row has, too" in sentence
    postgresql_database.execute("INSERT INTO part2 (v) VALUES ('C'), ('D')")
    assert [value["v"] for value in runs.run().values] == ["D"]


@BOTH_PATHS
def test_numbers_that_no_two_rows_share_are_not_named(database: Database, columnar: bool) -> None:
    database.execute("DELETE FROM order_lines WHERE line > 0")
    run = copies(database, "incrementing", columnar).run()
    assert len(run.values) == 4 and not run.numbers
