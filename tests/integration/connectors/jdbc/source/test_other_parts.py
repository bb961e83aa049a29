"""A table is the same as at the last run, but a tracked column is another one, or it has another partition."""

from __future__ import annotations

import pytest

from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
MODES = ["incrementing", "timestamp", "timestamp+incrementing"]


def copies(database: Database, mode: str, **more: str) -> Copies:
    columns = {"incrementing.column.name": "id"} if "incrementing" in mode else {}
    if "timestamp" in mode:
        columns["timestamp.column.name"] = "changed"
    config = {"connection.url": database.jdbc_url, "mode": mode, **columns}
    return Copies({**config, **{k.replace("_", "."): v for k, v in more.items()}})


@pytest.mark.parametrize("mode", MODES)
def test_column_that_has_taken_the_name_of_a_tracked_one_is_named(postgresql_database: Database, mode: str) -> None:
    """The table is the same, and so are the names: rows below the offset were gone without a word."""
    postgresql_database.execute(
        "CREATE TABLE orders (id int NOT NULL PRIMARY KEY, changed timestamp NOT NULL)",
        "INSERT INTO orders VALUES (7, '2026-01-01 07:00'), (8, '2026-01-01 08:00'), (9, '2026-01-01 09:00')",
        "ALTER TABLE orders ADD COLUMN other_id int NOT NULL DEFAULT 1",
        "ALTER TABLE orders ADD COLUMN other_changed timestamp NOT NULL DEFAULT '2025-01-01'",
    )
    runs = copies(postgresql_database, mode)
    assert len(runs.run().ids()) == 3
    # What keeps the column, or what no offset depends on, is not named.
    postgresql_database.execute(
        "ALTER TABLE orders ALTER COLUMN id TYPE bigint",
        "ALTER TABLE orders RENAME COLUMN id TO n",
        "ALTER TABLE orders RENAME COLUMN n TO id",
        "ALTER TABLE orders DROP COLUMN other_id",
        "ALTER TABLE orders ADD COLUMN other_id int NOT NULL DEFAULT 1",
    )
    assert runs.run().notes == []
    name = "id" if mode == "incrementing" else "changed"
    postgresql_database.execute(
        f"ALTER TABLE orders RENAME COLUMN {name} TO earlier",
        f"ALTER TABLE orders RENAME COLUMN other_{name} TO {name}",
    )
    run = runs.run()
    assert run.records == []
    (note,) = [note for note in run.notes if "has the name" in note]
    assert f"another column has the name {name} now" in note and "orders: 3 rows." in note
    assert not [note for note in runs.run().notes if "has the name" in note]


@pytest.mark.parametrize("name", ["", "id"])
def test_numbered_column_that_was_made_again_is_named(postgresql_database: Database, name: str) -> None:
    postgresql_database.execute(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, v int)",
        "INSERT INTO orders (v) SELECT n FROM generate_series(1, 10) n",
    )
    runs = copies(postgresql_database, "incrementing")
    runs.config["incrementing.column.name"] = name
    assert len(runs.run().ids()) == 10
    postgresql_database.execute(
        "DELETE FROM orders WHERE v < 9",
        "ALTER TABLE orders DROP COLUMN id",
        "ALTER TABLE orders ADD COLUMN id bigserial PRIMARY KEY",
        "INSERT INTO orders (v) SELECT n FROM generate_series(11, 30) n",
    )
    run = runs.run()
    assert run.ids() == list(range(11, 23))
    (note,) = run.notes
    assert ("another column is the one that the database numbers" in note) == (not name)
    assert "orders: 10 rows." in note
    assert runs.run().notes == []


ADD_PART = {
    "partition": (
        "CREATE TABLE p (id bigint NOT NULL, changed timestamp NOT NULL) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (100) TO (200)",
        "ALTER TABLE p ATTACH PARTITION p0 FOR VALUES FROM (0) TO (100)",
    ),
    "heir": (
        "CREATE TABLE p (id bigint NOT NULL, changed timestamp NOT NULL)",
        "CREATE TABLE p1 () INHERITS (p)",
        "ALTER TABLE p0 INHERIT p",
    ),
}


@pytest.mark.parametrize("mode", ["incrementing", "timestamp"])
@pytest.mark.parametrize("kind", ADD_PART)
def test_rows_of_a_partition_that_is_attached_are_counted(postgresql_database: Database, kind: str, mode: str) -> None:
    make_parent, make_part, attach = ADD_PART[kind]
    rows = "INSERT INTO {} SELECT n, timestamp '2026-01-01' + n * interval '1 second' FROM generate_series({}, {}) n"
    postgresql_database.execute(make_parent, make_part, rows.format("p1", 100, 110))
    runs = copies(postgresql_database, mode, table_types="TABLE,PARTITIONED TABLE", table_whitelist="p")
    assert len(runs.run().ids()) == 11
    create = "CREATE TABLE p{} (id bigint NOT NULL, changed timestamp NOT NULL)"
    postgresql_database.execute(create.format(0), rows.format("p0", 1, 50), attach, rows.format("p1", 111, 112))
    run = runs.run()
    assert sorted(run.ids()) == [111, 112]
    (note,) = run.notes
    assert ".public.p: 50 rows in " in note
    postgresql_database.execute(
        create.format(2),
        attach.replace("p0", "p2").replace("(0) TO (100)", "(200) TO (300)"),
        rows.format("p2", 200, 202),
    )
    run = runs.run()
    assert sorted(run.ids()) == [200, 201, 202]
    assert run.notes == []


@pytest.mark.parametrize("kind", ADD_PART)
@pytest.mark.parametrize("what", ["view", "query", "renamed"])
def test_rows_of_a_partition_behind_a_view_or_a_query_are_counted(
    postgresql_database: Database, kind: str, what: str
) -> None:
    """A view has the same definition then, and a query the same text: the rows were gone without a word."""
    make_parent, make_part, attach = ADD_PART[kind]
    rows = "INSERT INTO {} SELECT n, timestamp '2026-01-01' + n * interval '1 second' FROM generate_series({}, {}) n"
    create = "CREATE TABLE p{} (id bigint NOT NULL, changed timestamp NOT NULL)"
    postgresql_database.execute(make_parent, make_part, rows.format("p1", 100, 110))
    columns = "id + 0 AS id, changed AS at" if what == "renamed" else "id, changed"
    postgresql_database.execute(f"CREATE VIEW inner_view AS SELECT {columns} FROM p")
    postgresql_database.execute("CREATE VIEW v AS SELECT * FROM inner_view")
    more = {"query": "SELECT * FROM p"} if what == "query" else {"table_types": "VIEW", "table_whitelist": "v"}
    runs = copies(postgresql_database, "timestamp", validate_non_null="false", **more)
    runs.config["timestamp.column.name"] = "at" if what == "renamed" else "changed"
    assert len(runs.run().ids()) == 11
    assert runs.run().notes == []
    postgresql_database.execute(create.format(0), rows.format("p0", 1, 50), attach, rows.format("p1", 111, 112))
    run = runs.run()
    assert sorted(run.ids()) == [111, 112]
    (note,) = [note for note in run.notes if "were added" in note]
    assert ("an unknown number of rows in " if what == "renamed" else ": 50 rows in ") in note
    assert note.endswith(".public.p0.")
    assert not [note for note in runs.run().notes if "were added" in note]


def test_rows_of_a_partition_are_counted_if_a_mapping_names_its_table_only(postgresql_database: Database) -> None:
    """The columns are those of the whole table: a partition that no pattern matches stopped every later run."""
    make_parent, make_part, attach = ADD_PART["partition"]
    rows = "INSERT INTO {} SELECT n, timestamp '2026-01-01' + n * interval '1 second' FROM generate_series({}, {}) n"
    postgresql_database.execute(make_parent, make_part, rows.format("p1", 100, 110))
    chosen = {"table_types": "PARTITIONED TABLE", "timestamp_columns_mapping": r".*\.p:[changed]"}
    runs = copies(postgresql_database, "timestamp", **chosen)
    del runs.config["timestamp.column.name"]
    assert len(runs.run().ids()) == 11
    create = "CREATE TABLE p0 (id bigint NOT NULL, changed timestamp NOT NULL)"
    postgresql_database.execute(create, rows.format("p0", 1, 50), attach)
    (note,) = runs.run().notes
    assert ".public.p: 50 rows in " in note


def test_rows_of_a_partition_that_is_attached_during_an_unfinished_load_are_named(
    postgresql_database: Database,
) -> None:
    """Ranges that were complete are not read again, and the document of the run had the partition already."""
    make_parent, make_part, attach = ADD_PART["partition"]
    rows = "INSERT INTO {} SELECT n, timestamp '2026-01-01' + n * interval '1 second' FROM generate_series({}, {}) n"
    create = "CREATE TABLE p{} (id bigint NOT NULL, changed timestamp NOT NULL)"
    postgresql_database.execute(make_parent, make_part, rows.format("p1", 100, 199), "ANALYZE p")
    chosen = {"table_types": "PARTITIONED TABLE", "table_split_min_rows": "20", "batch_max_rows": "10"}
    runs = copies(postgresql_database, "incrementing", **chosen)
    assert len(runs.run(tasks=3, batches=1).tasks) == 3
    empty = attach.replace("p0", "p2").replace("(0) TO (100)", "(200) TO (300)")
    postgresql_database.execute(create.format(2), empty, create.format(0), rows.format("p0", 1, 50), attach)
    (note,) = [note for note in runs.run(tasks=3).notes if "were added" in note]
    assert ".public.p: complete ranges of an unfinished first copy in " in note and note.endswith(".public.p0.")


@pytest.mark.parametrize("known", [3, 5], ids=["without parts", "without numbers"])
@pytest.mark.parametrize("what", ["table", "view", "query"])
def test_document_of_an_earlier_release_is_no_reason_for_a_note(
    postgresql_database: Database, what: str, known: int
) -> None:
    make_parent, make_part, _ = ADD_PART["partition"]
    rows = "INSERT INTO p1 SELECT n, timestamp '2026-01-01' + n * interval '1 second' FROM generate_series(100, 110) n"
    postgresql_database.execute(make_parent, make_part, rows, "CREATE VIEW v AS SELECT * FROM p")
    chosen = {"query": "SELECT * FROM p"} if what == "query" else {"table_types": "PARTITIONED TABLE,VIEW"}
    if what != "query":
        chosen["table_whitelist"] = what.replace("table", "p").replace("view", "v")
    runs = copies(postgresql_database, "incrementing", validate_non_null="false", **chosen)
    assert len(runs.run().ids()) == 11
    tables = {name: [*found[:3], *([""] * (known - 3))] for name, found in runs.kept["tables"].items()}
    runs.kept = {**runs.kept, "tables": tables}
    if what == "table" and known > 3:
        tables[next(iter(tables))][4] = ",".join(
            oid for (oid,) in postgresql_database.rows("SELECT inhrelid::text FROM pg_inherits")
        )
    assert runs.run().notes == []
    assert runs.run().notes == []


@pytest.mark.parametrize("what", ["table", "view", "query"])
def test_partition_that_the_user_may_not_read_by_itself_is_named_and_stops_nothing(
    postgresql_database: Database, unique_name: str, what: str
) -> None:
    """Who may read a table may read all of its partitions through it: every new partition had ended the runs."""
    role = unique_name.replace("-", "_")
    make_parent, make_part, attach = ADD_PART["partition"]
    rows = "INSERT INTO {} SELECT n, timestamp '2026-01-01' + n * interval '1 second' FROM generate_series({}, {}) n"
    create = "CREATE TABLE p{} (id bigint NOT NULL, changed timestamp NOT NULL)"
    seen = {"table": "p", "view": "v", "query": "p"}[what]
    postgresql_database.execute(
        make_parent,
        make_part,
        rows.format("p1", 100, 110),
        "CREATE VIEW v AS SELECT * FROM p",
        f"CREATE ROLE {role} LOGIN",
        f"GRANT SELECT ON {seen} TO {role}",
    )
    chosen = {"query": "SELECT * FROM p"} if what == "query" else {"table_whitelist": seen}
    runs = copies(postgresql_database, "incrementing", table_types="PARTITIONED TABLE,VIEW", **chosen)
    runs.config |= {"validate.non.null": "false", "connection.user": role}
    runs.config["connection.url"] = postgresql_database.jdbc_url.partition("?")[0]
    try:
        assert len(runs.run().ids()) == 11
        empty = attach.replace("p0", "p2").replace("(0) TO (100)", "(200) TO (300)")
        postgresql_database.execute(create.format(2), empty, create.format(0), rows.format("p0", 1, 50), attach)
        postgresql_database.execute(rows.format("p1", 111, 112))
        run = runs.run()
        assert run.ids() == [111, 112]
        (note,) = [note for note in run.notes if "were added" in note]
        assert ": an unknown number of rows in " in note and note.endswith(".public.p0.")
        assert not [note for note in runs.run().notes if "were added" in note]
    finally:
        postgresql_database.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")
