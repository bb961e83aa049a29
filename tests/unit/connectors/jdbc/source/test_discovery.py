"""Which tables a run copies, on a real SQLite file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_connect.connectors.jdbc.source.discovery import selected
from airflow_connect.connectors.jdbc.source.offsets.positions import partition_of
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.work import Item, grouped
from airflow_connect.databases.connecting import Database as Connected
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import ConfigError, DatabaseError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database, sqlite_in

NAMES = ["a", "b", "b c", "größe", 'quo"te', "select", "100%:x", "x; DROP TABLE a; --"]

RENAMED = {"transforms": "route"}
"""Without a transformation, a table is left out whose name cannot be part of a topic's name."""


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = sqlite_in(tmp_path)
    with made.connected() as connection:
        for name in NAMES:
            quoted = '"' + name.replace('"', '""') + '"'
            connection.exec_driver_sql(f'CREATE TABLE {quoted} ({quoted} INTEGER PRIMARY KEY, "b:%c" TEXT)')
            connection.exec_driver_sql(f"INSERT INTO {quoted} VALUES (1, 'x')")
        connection.exec_driver_sql("CREATE VIEW seen AS SELECT a AS n FROM a")
    return made


def topics(database: Database, tasks: int = 1, **more: str) -> list[str]:
    config = {
        "connection.url": database.jdbc_url,
        "mode": "bulk",
        **RENAMED,
        **{k.replace("_", "."): v for k, v in more.items()},
    }
    return [topic.removeprefix("db-") for topic in Copies(config).run(tasks=tasks).topics]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"table.blacklist": "a, bb"}, "Names of table.blacklist are those of no table, so they leave out none: bb."),
        ({"table.blacklist": "a, seen"}, ""),
        (
            {"table.include.list": "a|b", "table.exclude.list": "b, c.*d"},
            "Patterns of table.exclude.list match no table, so they leave out none: c.*d.",
        ),
        ({"table.include.list": "a|b", "table.exclude.list": "b"}, ""),
    ],
)
def test_names_that_leave_out_no_table_are_named(database: Database, chosen: dict[str, str], said: str) -> None:
    """The table that was meant to be excluded is copied, perhaps with confidential rows."""
    run = Copies({"connection.url": database.jdbc_url, "mode": "bulk", **RENAMED, **chosen}).run()
    assert [note for note in run.notes if "leave out none" in note] == ([f"{said} Are they right?"] if said else [])


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"table.types": "table,views"}, "table.types has types that no table has, so they select none: VIEWS. "),
        ({"table.types": "table, VIEW"}, ""),
        ({"schema.pattern": "shop"}, "schema.pattern has no effect, because there are no schemas: SQLite has none."),
        ({"schema.pattern": "%"}, ""),
        ({"catalog.pattern": "shop"}, "catalog.pattern has no effect, because SQLite has no catalogs."),
    ],
)
def test_types_and_patterns_that_select_nothing_are_named(
    database: Database, chosen: dict[str, str], said: str
) -> None:
    """A view that was meant to be copied was not, and no note said so."""
    run = Copies({"connection.url": database.jdbc_url, "mode": "bulk", **RENAMED, **chosen}).run()
    found = [note for note in run.notes if note.startswith(("table.types", "schema.pattern", "catalog.pattern"))]
    assert len(found) == bool(said) and "".join(found).startswith(said)


@pytest.mark.parametrize("tasks", [1, 3, 50])
def test_whole_database_is_copied_by_default_whatever_the_names(database: Database, tasks: int) -> None:
    assert topics(database, tasks) == sorted(NAMES)


def test_every_name_works_in_a_condition(database: Database) -> None:
    config = {"connection.url": database.jdbc_url, "mode": "incrementing", **RENAMED}
    runs = Copies(config)
    assert sorted(record.value["b:%c"] for record in runs.run().records) == ["x"] * len(NAMES)
    assert runs.run().tasks == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"table_whitelist": "a, b c"}, ["a", "b c"]),
        ({"table_whitelist": '"b c"'}, ["b c"]),
        ({"table_blacklist": "a,b"}, sorted(set(NAMES) - {"a", "b"})),
        ({"table_include_list": "b.*"}, ["b", "b c"]),
        ({"table_include_list": "b.*,a", "table_exclude_list": ".* .*"}, ["a", "b"]),
        ({"table_types": "VIEW"}, ["seen"]),
        ({"table_types": "table,view", "table_whitelist": "a,seen"}, ["a", "seen"]),
    ],
)
def test_selection(database: Database, more: Mapping[str, str], expected: list[str]) -> None:
    assert topics(database, **more) == expected


def test_new_table_is_found_by_the_next_run_and_one_that_is_gone_is_named(database: Database) -> None:
    runs = Copies({"connection.url": database.jdbc_url, "mode": "incrementing", "table.include.list": "a|b|new"})
    assert runs.run().topics == ["db-a", "db-b"]
    database.execute("CREATE TABLE new (id INTEGER PRIMARY KEY)", "INSERT INTO new VALUES (1)", "DROP TABLE b")
    run = runs.run()
    assert run.topics == ["db-new"]
    assert any("do not exist any more and are skipped: b." in note for note in run.notes)


def test_table_of_the_list_that_does_not_exist_is_named(database: Database) -> None:
    run = Copies({"connection.url": database.jdbc_url, "mode": "bulk", "table.whitelist": "a,nosuch"}).run()
    assert run.topics == ["db-a"]
    assert any("table.whitelist do not exist in the database and are skipped: nosuch." in note for note in run.notes)


def test_table_that_vanishes_during_the_run_is_skipped(database: Database) -> None:
    runs = Copies({"connection.url": database.jdbc_url, "mode": "bulk", "table.whitelist": "a,b"})
    run = runs.run(meanwhile=lambda done: database.execute("DROP TABLE IF EXISTS b") if done == 1 else None)
    assert run.topics == ["db-a"]
    assert "The table b does not exist any more and is skipped." in run.notes


def test_table_of_the_list_that_has_another_type_is_named(database: Database) -> None:
    config = {"connection.url": database.jdbc_url, "mode": "bulk", "table.whitelist": "a,seen"}
    run = Copies(config).run()
    assert run.topics == ["db-a"]
    (note,) = run.notes
    assert "are of no type in table.types (TABLE) and are skipped: seen (VIEW). To copy them, add" in note
    assert Copies({**config, "table.types": "TABLE,VIEW"}).run().topics == ["db-a", "db-seen"]


def test_table_that_has_become_a_view_is_named(database: Database) -> None:
    runs = Copies({"connection.url": database.jdbc_url, "mode": "bulk"})
    runs.run()
    database.execute("ALTER TABLE a RENAME TO c", "CREATE VIEW a AS SELECT * FROM c")
    assert any("now of no type in table.types (TABLE) and are skipped: a (VIEW)" in note for note in runs.run().notes)


def test_view_of_a_table_that_is_gone_is_not_taken_for_gone_itself(database: Database) -> None:
    database.execute("CREATE VIEW left AS SELECT * FROM b", "DROP TABLE b")
    config = {"connection.url": database.jdbc_url, "table.types": "TABLE,VIEW"}
    runs = Copies({**config, "mode": "bulk", "table.whitelist": "a,left"})
    run = runs.run()
    assert run.topics == ["db-a"]
    (error,) = run.left_out.values()
    assert error.code == "database.missing_object" and run.notes == []
    runs = Copies({**config, "mode": "incrementing", "incrementing.column.name": "b", "table.whitelist": "left"})
    with pytest.raises(DatabaseError, match="no such table"):
        runs.run()


def test_of_tables_whose_topics_kafka_does_not_tell_apart_one_is_left_out(tmp_path: Path) -> None:
    made = sqlite_in(tmp_path)
    for name in ("o.1", "o_1", "p"):
        made.execute(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY)', f'INSERT INTO "{name}" VALUES (1)')
    config = {"connection.url": made.jdbc_url, "mode": "incrementing"}
    first = Copies(config).run()
    assert first.topics == ["db-o.1", "db-p"]
    (error,) = first.left_out.values()
    assert "Kafka does not tell from that of the table o.1" in error.message and error.suggestion
    # The one that was copied before stays.
    runs = Copies({**config, "table.blacklist": "o.1"})
    assert runs.run().topics == ["db-o_1", "db-p"]
    del runs.config["table.blacklist"]
    made.execute('INSERT INTO "o_1" VALUES (2)')
    again = runs.run()
    assert again.topics == ["db-o_1"] and list(again.left_out) == ["the table o.1"]
    # A transformation may give it another topic, but not one of keys.
    for kind, left in (("RegexRouter", 0), ("com.example.Own", 0), ("ValueToKey", 1)):
        run = Copies({**config, "transforms": "route", "transforms.route.type": kind}).run()
        assert (run.topics, len(run.left_out)) == (["db-o.1", *["db-o_1"] * (1 - left), "db-p"], left)


def test_nothing_selected_is_said(database: Database) -> None:
    run = Copies({"connection.url": database.jdbc_url, "mode": "bulk", "table.include.list": "nosuch"}).run()
    assert run.tasks == [] and any("No table of the database is selected" in note for note in run.notes)


def test_tables_of_the_same_name_are_refused() -> None:
    config = JdbcSourceConfig.from_config({"connection.url": "jdbc:sqlite:/x", "mode": "bulk", "topic.prefix": "p"})
    tables = {TableId("db", "one", "t"): "TABLE", TableId("db", "two", "t"): "TABLE"}
    with Connected(config.connection) as database, pytest.raises(ConfigError, match=r"db\.one\.t, db\.two\.t"):
        selected(tables, config, database.quoting.parse, lambda _: None)


def test_tables_whose_names_have_dots_do_not_share_an_offset() -> None:
    config = JdbcSourceConfig.from_config({"connection.url": "jdbc:sqlite:/x", "mode": "bulk", "topic.prefix": "p"})
    tables = {TableId("db", "a", "b.c"): "TABLE", TableId("db", "a.b", "c"): "TABLE"}
    with (
        Connected(config.connection) as database,
        pytest.raises(ConfigError, match=r'"db"\."a"\."b\.c" and "db"\."a\.b"'),
    ):
        selected(tables, config, database.quoting.parse, lambda _: None)


@pytest.mark.parametrize(
    ("count", "groups", "sizes"), [(0, 3, []), (2, 3, [1, 1]), (7, 3, [3, 2, 2]), (6, 3, [2, 2, 2]), (5, 1, [5])]
)
def test_tables_are_divided_evenly(count: int, groups: int, sizes: list[int]) -> None:
    items = [Item(TableId("", "", str(n)), partition_of(str(n))) for n in range(count)]
    parts = grouped(items, groups)
    assert [len(part) for part in parts] == sizes
    assert [item for part in parts for item in part] == items


def test_patterns_that_select_no_table_are_named(database: Database) -> None:
    """The others do, so the run does not fail, and nothing else tells."""
    config = {"connection.url": database.jdbc_url, "mode": "bulk", "table.include.list": "a,nosuch.*,se+n"}
    run = Copies(config).run()
    assert run.topics == ["db-a"]
    unmatched, others = run.notes
    assert unmatched.startswith("Patterns of table.include.list match no table: nosuch.*. They must match the full")
    assert "table.types (TABLE), which are skipped: se+n (VIEW)" in others
