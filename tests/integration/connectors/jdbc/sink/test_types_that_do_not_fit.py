"""A type that no value of a column has is a matter of the table: no record of the topic could be written."""

from __future__ import annotations

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import DatabaseError
from tests.support.copies.jdbc_sink_tasks import SinkRun, records, written
from tests.support.servers.databases import Database
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration

MISMATCHES = [
    ("postgresql", "integer", s.BOOLEAN, True, "boolean", "BOOLEAN"),
    ("postgresql", "boolean", s.INT64, 1, "smallint", "INT64"),
    ("postgresql", "date", s.INT64, 20_455, "smallint", "INT64"),
    ("postgresql", "timestamp without time zone", s.INT64, 1_767_323_045_500, "bigint", "INT64"),
    ("postgresql", "money", s.FLOAT64, 1.5, "double precision", "FLOAT64"),
    ("postgresql", "jsonb", s.FLOAT64, 1.5, "double precision", "FLOAT64"),
    ("mariadb", "uuid", s.INT64, 5, "'int' as 'uuid'", "INT64"),
]


def order(schema: s.Schema) -> s.Schema:
    return s.struct(("n", s.INT64), ("v", schema))


@pytest.mark.parametrize(("count", "columnar"), [(2, False), (150, False), (700, True)], ids=["few", "many", "columns"])
@pytest.mark.parametrize(("kind", "declared", "schema", "value", "words", "named"), MISMATCHES)
def test_type_that_never_fits_its_column_ends_the_run(
    request, kind, declared, schema, value, words, named, count, columnar
):
    """With errors.tolerance=all, each record became a dead letter, and the run was a success."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    database.execute(f"CREATE TABLE orders (n bigint PRIMARY KEY, v {declared})")
    run = ColumnRun(database, order(schema), errors_tolerance="all")
    with pytest.raises(DatabaseError, match=words) as caught:
        run.copy([{"n": n, "v": value} for n in range(count)], columnar=columnar)
    assert caught.value.code == "jdbc.column_type"
    assert f"the field v is {named}, and its column v is {declared}" in caught.value.message
    assert "the field n" not in caught.value.message
    assert written(database) == []


@pytest.mark.parametrize(("kind", "declared"), [("postgresql", "integer"), ("mariadb", "uuid")])
def test_record_without_schema_is_refused_alone(request, kind, declared):
    """Its type comes from its own value: other records may fit."""
    database: Database = request.getfixturevalue(f"{kind}_database")
    database.execute(f"CREATE TABLE orders (n bigint PRIMARY KEY, v {declared})")
    run = SinkRun(database, errors_tolerance="all")
    fits = 7 if declared == "integer" else "c0ffee00-0000-4000-8000-00000000abcd"
    run.write(records({"n": 1, "v": fits}, {"n": 2, "v": True}, {"n": 3, "v": fits}))
    ((offset, message),) = run.errors.letters
    assert offset == 1 and "database refused orders-0@1: " in message
    assert written(database) == [1, 3]


def test_type_in_a_trigger_is_no_type_of_the_record(postgresql_database):
    postgresql_database.execute(
        "CREATE TABLE orders (n bigint)",
        "CREATE TABLE audit (n boolean)",
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN INSERT INTO audit VALUES (NEW.n); RETURN NEW; END $$",
        "CREATE TRIGGER keep BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION keep()",
    )
    with pytest.raises(DatabaseError, match="is of type boolean but expression is of type bigint") as caught:
        SinkRun(postgresql_database, errors_tolerance="all").write(records({"n": 1}, schema=s.struct(("n", s.INT64))))
    assert caught.value.code == "database.type"


def test_trigger_that_raises_the_code_of_a_type_refuses_a_row(postgresql_database):
    postgresql_database.execute(
        "CREATE TABLE orders (n bigint)",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n = 1 THEN"
        " RAISE 'no' USING ERRCODE = 'datatype_mismatch'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    run = SinkRun(postgresql_database, errors_tolerance="all")
    run.write(records({"n": 1}, {"n": 2}, schema=s.struct(("n", s.INT64))))
    assert [offset for offset, _ in run.errors.letters] == [0] and written(postgresql_database) == [2]


@pytest.mark.parametrize("schema", [s.INT16, s.INT32, s.INT64], ids=lambda schema: schema.type.name)
@pytest.mark.parametrize("declared", ["money", "cents"])
def test_whole_numbers_are_money_in_each_batch(postgresql_database, schema, declared):
    """The driver sends a small number as smallint, which is never made money: neighbours decided."""
    postgresql_database.execute("CREATE DOMAIN cents AS money")
    postgresql_database.execute(f"CREATE TABLE orders (n bigint PRIMARY KEY, v {declared})")
    run = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "n"}
    values = [1, 32_767] if schema is s.INT16 else [1, 2_000_000_000]
    for name, first, count, columnar in (
        ("few", 0, 2, False),
        ("many", 1000, 150, False),
        ("columns", 2000, 700, True),
    ):
        rows = [{"n": first + n, "v": values[n % 2]} for n in range(count)]
        assert ColumnRun(postgresql_database, order(schema), name, **run).copy(rows, columnar=columnar).letters == []
    found = postgresql_database.rows("SELECT v::numeric::bigint, count(*) FROM orders GROUP BY 1 ORDER BY 1")
    assert found == [(value, 426) for value in values]


def test_key_of_whole_numbers_finds_its_money(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (n money PRIMARY KEY)", "INSERT INTO orders VALUES (5), (70000)")
    run = SinkRun(postgresql_database, pk_mode="record_key", pk_fields="n", delete_enabled="true")
    run.write(records(None, None, keys=[5, 70_000], key_schema=s.INT64))
    assert postgresql_database.rows("SELECT * FROM orders") == []


def test_lists_of_whole_numbers_are_money(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (n bigint, v money[])")
    schema = s.struct(("n", s.INT64), ("v", s.array(s.INT64)))
    SinkRun(postgresql_database).write(records({"n": 1, "v": [1, 70_000]}, {"n": 2, "v": []}, schema=schema))
    assert postgresql_database.rows("SELECT v::numeric[]::bigint[] FROM orders ORDER BY n") == [([1, 70_000],), ([],)]
