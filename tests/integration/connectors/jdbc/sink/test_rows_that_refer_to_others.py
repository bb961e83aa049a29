"""Rows that refer to others of the same transaction, in an order that a constraint would refuse."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import DataError
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, record, records

pytestmark = pytest.mark.integration

NODE = s.struct(("id", s.INT64), ("parent", s.OPTIONAL_INT64))
BY_ID = {"pk_mode": "record_value", "pk_fields": "id"}


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_deferred_constraint_refuses_only_the_record_that_breaks_it(postgresql_database, mode):
    """When the constraint is checked at once, to find the record, others refer to rows that come later."""
    postgresql_database.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, parent BIGINT REFERENCES orders DEFERRABLE INITIALLY DEFERRED)"
    )
    run = SinkRun(postgresql_database, errors_tolerance="all", insert_mode=mode, **BY_ID)
    pairs = [(3, 2), (2, 1), (1, None), (4, 99), (5, 1)]
    give(run.open(), records(*({"id": n, "parent": parent} for n, parent in pairs), schema=NODE))
    assert [offset for offset, _ in run.errors.letters] == [3]
    assert postgresql_database.rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,), (3,), (5,)]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_row_that_refers_to_a_table_that_is_written_later(request, kind):
    """Rows are written table by table: the second child came before its parent, in every run."""
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(
        "CREATE TABLE parents (id BIGINT PRIMARY KEY)",
        "INSERT INTO parents VALUES (1)",
        "CREATE TABLE children (id BIGINT PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES parents (id))",
    )
    rows = [("children", 1, 1), ("parents", 2, None), ("children", 2, 2), ("children", 3, 99)]
    parent = s.struct(("id", s.INT64))
    run = SinkRun(database, errors_tolerance="all", insert_mode="upsert", table_name_format="${topic}", **BY_ID)
    given = [
        record(offset, {"id": n, "parent": of} if of else {"id": n}, schema=NODE if of else parent, topic=topic)
        for offset, (topic, n, of) in enumerate(rows)
    ]
    for one in given:
        one.original_topic = "orders"  # a transformation has renamed it
    give(run.open(), given)
    assert [offset for offset, _ in run.errors.letters] == [3]
    assert database.rows("SELECT id FROM children ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
@pytest.mark.parametrize("has_more", [False, True])
def test_deletion_that_deletes_rows_of_another_table_keeps_its_place(request, kind, has_more):
    """Rows were written table by table: a child was written, and then deleted with the parent that it had before."""
    database = request.getfixturevalue(f"{kind}_database")
    refers = "FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE"
    database.execute(
        "CREATE TABLE parents (id BIGINT PRIMARY KEY, n BIGINT)",
        "INSERT INTO parents VALUES (1, 0)",
        f"CREATE TABLE children (id BIGINT PRIMARY KEY, parent BIGINT, {refers})",
    )
    parent, child = s.struct(("n", s.INT64)), s.struct(("parent", s.INT64))
    rows = [("children", 5, 1), ("parents", 1, None), ("parents", 1, 9), ("children", 5, 1)]
    if has_more:  # The deletion takes a child with it that was written before.
        rows = [("parents", 2, 0), ("children", 6, 2), ("parents", 2, None), *rows]
    run = SinkRun(
        database, errors_tolerance="all", insert_mode="upsert", table_name_format="${topic}", pk_mode="record_key",
        pk_fields="id", delete_enabled="true",
    )  # fmt: skip
    given = []
    for offset, (topic, key, n) in enumerate(rows):
        name, schema = ("parent", child) if topic == "children" else ("n", parent)
        value, kind_of_key = None if n is None else {name: n}, s.struct(("id", s.INT64))
        one = record(offset, value, key={"id": key}, schema=value and schema, key_schema=kind_of_key, topic=topic)
        one.original_topic = "orders"  # a transformation has renamed it
        given.append(one)
    give(run.open(), given)
    assert run.errors.letters == []
    assert database.rows("SELECT id, parent FROM children") == [(5, 1)]
    assert database.rows("SELECT id, n FROM parents") == [(1, 9)]


def test_later_record_of_a_row_is_not_undone_by_an_earlier_one(postgresql_database):
    postgresql_database.execute(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, parent BIGINT REFERENCES orders DEFERRABLE INITIALLY DEFERRED)"
    )
    run = SinkRun(postgresql_database, errors_tolerance="all", insert_mode="upsert", **BY_ID)
    pairs = [(2, 1), (2, None), (1, None), (4, 99)]
    give(run.open(), records(*({"id": n, "parent": parent} for n, parent in pairs), schema=NODE))
    assert postgresql_database.rows("SELECT id, parent FROM orders ORDER BY id") == [(1, None), (2, None)]
    assert [offset for offset, _ in run.errors.letters] == [0, 3]


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_row_without_the_one_it_refers_to_fails_with_what_to_do(request, kind):
    """Correcting the record does not help: the other row comes later, in each run."""
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(
        "CREATE TABLE parents (id BIGINT PRIMARY KEY)",
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES parents (id))",
    )
    with pytest.raises(DataError) as caught:
        SinkRun(database, insert_mode="upsert", **BY_ID).write(records({"id": 1, "parent": 2}, schema=NODE))
    assert caught.value.code == "database.constraint"
    assert "copy its topic first, with a connector of its own, or drop the foreign key" in caught.value.suggestion
    with pytest.raises(DataError) as caught:
        SinkRun(database, insert_mode="insert", **BY_ID).write(
            records({"id": 1, "parent": None}, {"id": 1, "parent": None}, schema=NODE)
        )
    assert "foreign key" not in caught.value.suggestion


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_advice_for_a_row_that_comes_later_works(request, kind):
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(
        "CREATE TABLE parents (id BIGINT PRIMARY KEY)",
        "CREATE TABLE children (id BIGINT PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES parents (id))",
    )
    children = [record(n, {"id": n, "parent": 9}, schema=NODE, topic="children") for n in range(3)]
    parents = [record(n, {"id": 9}, schema=s.struct(("id", s.INT64)), topic="parents") for n in range(1)]
    for one in (*children, *parents):
        one.original_topic = "orders"
    run = SinkRun(database, insert_mode="upsert", table_name_format="${topic}", **BY_ID)
    for _ in range(2):
        with pytest.raises(DataError) as refused:
            run.write(children)
        assert "copy its topic first, with a connector of its own" in refused.value.suggestion
    SinkRun(database, "first", table_name_format="${topic}").write(parents)
    run.write(children)
    assert database.rows("SELECT id, parent FROM children ORDER BY id") == [(0, 9), (1, 9), (2, 9)]
