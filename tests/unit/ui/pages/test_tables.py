"""The newest snapshot of each table, from the history of a connector."""

from __future__ import annotations

from airflow_connect.documents.run_tables import TableCommit
from airflow_connect.ui.overview.model import Run
from airflow_connect.ui.pages.views.tables import in_table, table_rows


def commit(snapshot: str, run_id: str, table: str = "a.b", branch: str = "main") -> TableCommit:
    return TableCommit("iceberg", table, branch, snapshot, run_id)


def run(run_id: str, *tables: TableCommit) -> Run:
    return Run(run_id, "done", 1, 2, tables=tables)


def test_newest_snapshot_of_each_branch_comes_with_its_run_and_how_many_there_are() -> None:
    runs = [
        run("r4"),
        run("r3", commit("13", "r3"), commit("23", "r3", branch="audit")),
        run("r2", commit("12", "r2"), commit("9", "r2", "a.a")),
        run("r1", commit("11", "r1")),
    ]
    found = [(row.newest.table, row.newest.branch, row.newest.snapshot_id, row.run.run_id, row.snapshots)
             for row in table_rows(runs)]  # fmt: skip
    assert found == [("a.a", "main", "9", "r2", 1), ("a.b", "audit", "23", "r3", 1), ("a.b", "main", "13", "r3", 3)]


def test_snapshot_that_a_later_run_has_added_or_told_again_belongs_to_the_run_that_has_copied_it() -> None:
    dead, own = commit("1", "dead"), commit("2", "r2")
    (row,) = table_rows([run("r2", dead, own), run("dead", dead)])
    assert (row.newest, row.run.run_id, row.snapshots) == (own, "r2", 2)
    (row,) = table_rows([run("retry", dead), run("dead", dead)])
    assert (row.newest, row.run.run_id, row.snapshots) == (dead, "dead", 1)
    (row,) = table_rows([run("retry", dead)])  # The history does not have its run any more.
    assert row.run.run_id == "retry"


def test_connector_without_tables_has_no_rows() -> None:
    assert table_rows([run("r1"), run("r2")]) == []


def test_file_is_shown_with_its_path_inside_of_its_table() -> None:
    tables = [
        TableCommit("iceberg", f"a.{name}", "main", "1", "r", location=f"s3://lake/wh/{name}")
        for name in ("orders", "orders_old")
    ]
    shown = {path: in_table(path, tables) for path in ("s3://lake/wh/orders_old/data/1.parquet", "topics/t/1.json")}
    assert list(shown.values()) == ["a.orders_old: data/1.parquet", "topics/t/1.json"]
    assert in_table("topics/t/1.json", [TableCommit("iceberg", "a.b", "main", "1", "r")]) == "topics/t/1.json"
