"""Records become rows: modes, primary keys, deletes, tables that are created and altered, types."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pytest

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink.tables import Tables
from airflow_connect.errors import DatabaseError, DataError
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, records

pytestmark = pytest.mark.integration

ORDER = s.struct(("id", s.INT64), ("name", s.OPTIONAL_STRING), ("price", s.OPTIONAL_FLOAT64))
CREATE = "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), price FLOAT)"
KEY = s.struct(("id", s.INT64))


def order(number: int, name: str | None = None, price: float | None = None) -> dict[str, object]:
    return {"id": number, "name": name, "price": price}


def test_insert_writes_every_field(database):
    database.execute(CREATE)
    report = SinkRun(database).write(records(order(1, "a", 0.5), order(2), schema=ORDER))
    assert (report.written, report.commit_offset) == (2, 1_000_000)
    assert database.rows("SELECT id, name, price FROM orders ORDER BY id") == [(1, "a", 0.5), (2, None, None)]


@pytest.mark.parametrize("count", [3, 250])
def test_upsert_replaces_rows_with_the_same_key(database, count):
    """250: PostgreSQL copies into a temporary table, in which a key may occur only once."""
    database.execute(CREATE)
    run = SinkRun(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    run.write(records(*(order(n % count, "old", float(n)) for n in range(2 * count)), schema=ORDER))
    assert database.rows("SELECT COUNT(*), MIN(price) FROM orders") == [(count, float(count))]
    SinkRun(database, "later", insert_mode="upsert", pk_mode="record_value", pk_fields="id").write(
        records(order(1, "new"), schema=ORDER)
    )
    assert database.rows("SELECT name, price FROM orders WHERE id = 1") == [("new", None)]


def test_upsert_of_keys_alone_keeps_the_row(database):
    database.execute("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY)")
    run = SinkRun(database, insert_mode="upsert", pk_mode="record_value")
    run.write(records({"id": 1}, {"id": 1}, schema=KEY))
    assert database.rows("SELECT id FROM orders") == [(1,)]


def test_update_changes_rows_that_exist_and_adds_none(database):
    database.execute(CREATE, "INSERT INTO orders VALUES (1, 'old', 1)")
    run = SinkRun(database, insert_mode="update", pk_mode="record_key", pk_fields="id", fields_whitelist="name")
    rows = records(order(1, "new", 9.0), order(2, "none"), schema=ORDER, keys=[1, 2], key_schema=s.INT64)
    run.write(rows)
    assert database.rows("SELECT id, name, price FROM orders") == [(1, "new", 1.0)]


def test_kafka_coordinates_are_a_primary_key(database):
    run = SinkRun(database, pk_mode="kafka", auto_create="true")
    run.write(records({"a": 1}, {"a": 2}, first=7))
    columns = "__connect_topic, __connect_partition, __connect_offset, a"
    assert database.rows(f"SELECT {columns} FROM orders ORDER BY a") == [("orders", 0, 7, 1), ("orders", 0, 8, 2)]


def test_null_values_delete_in_the_order_of_the_log(database):
    database.execute(CREATE)
    run = SinkRun(database, insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    values = [order(1, "a"), order(2, "b"), None, order(1, "again"), None]
    names = [{"id": n} for n in (1, 2, 1, 1, 2)]
    rows = records(*values, keys=names, key_schema=KEY, schema=ORDER)
    assert run.write(rows).written == 5
    assert database.rows("SELECT id, name FROM orders") == [(1, "again")]


def test_null_value_without_deletes_is_refused_with_confluents_words_or_ignored(sqlite_database):
    sqlite_database.execute(CREATE)
    rows = records(order(1), None, schema=ORDER)
    with pytest.raises(DataError, match=r"'delete.enabled=false' and 'pk.mode=none' and therefore requires records"):
        SinkRun(sqlite_database).write(rows)
    report = SinkRun(sqlite_database, behavior_on_null_values="ignore").write(rows)
    assert (report.written, report.filtered) == (1, 1)


def test_record_without_key_is_refused(sqlite_database):
    run = SinkRun(sqlite_database, pk_mode="record_key", auto_create="true")
    with pytest.raises(DataError, match="requires records with a non-null key") as refused:
        run.write(records(order(1), schema=ORDER))
    assert refused.value.code == "jdbc.record"


# --- tables -----------------------------------------------------------------------------------------------------------


def test_missing_table_is_refused_or_created(database):
    with pytest.raises(DataError, match="Table orders is missing and auto-creation is disabled"):
        SinkRun(database).write(records(order(1), schema=ORDER))
    run = SinkRun(database, auto_create="true", pk_mode="record_value", pk_fields="id")
    run.write(records(order(1, "x", 2.5), schema=ORDER))
    assert database.rows("SELECT id, name, price FROM orders") == [(1, "x", 2.5)]


def test_missing_columns_are_refused_or_added(database):
    database.execute(CREATE)
    wider = s.struct(("id", s.INT64), ("note", s.OPTIONAL_STRING), ("size", s.OPTIONAL_INT32))
    value = {"id": 1, "note": "n", "size": 3}
    with pytest.raises(DataError, match=r"missing fields \(note, size\) and auto-evolution is disabled"):
        SinkRun(database).write(records(value, schema=wider))
    SinkRun(database, auto_evolve="true").write(records(order(2), value, schema=None))
    assert database.rows("SELECT id, note, size FROM orders ORDER BY id") == [(1, "n", 3), (2, None, None)]


def test_columns_that_are_added_are_named_because_earlier_rows_have_no_value_in_them(database):
    database.execute(CREATE, "INSERT INTO orders VALUES (1, 'a', 1)")
    wider = s.struct(("id", s.INT64), ("note", s.OPTIONAL_STRING), ("size", s.OPTIONAL_INT32))
    run = SinkRun(database, auto_evolve="true")
    runner = run.open()
    give(runner, records({"id": 2, "note": "n", "size": 3}, schema=wider))
    (note,) = runner.notes.sentences
    assert note.startswith("auto.evolve has added to the table orders: note, size. Rows that were written before")
    runner = run.open()
    give(runner, records({"id": 3, "note": "n", "size": 3}, first=1, schema=wider))
    assert not any("auto.evolve" in sentence for sentence in runner.notes.sentences)


def test_missing_column_that_must_have_a_value_is_refused_with_the_statement_that_adds_it(database):
    database.execute(CREATE)
    wider = s.struct(("id", s.INT64), ("must", s.INT32))
    run = SinkRun(database, auto_evolve="true")
    with pytest.raises(DataError, match="as the field is not optional and does not have a default value") as caught:
        run.write(records({"id": 1, "must": 1}, schema=wider))
    statement = caught.value.suggestion.removeprefix("Add the column yourself, such as by ").partition(";")[0]
    database.execute(statement)
    run.write(records({"id": 1, "must": 1}, schema=wider))
    assert database.rows("SELECT id, must FROM orders") == [(1, 1)]


def test_column_with_default_is_added(database):
    database.execute(CREATE, "INSERT INTO orders VALUES (1, 'a', 1)")
    state = s.Schema(s.Type.STRING, default="it's new")
    wider = s.struct(("id", s.INT64), ("state", state))
    SinkRun(database, auto_evolve="true").write(records({"id": 2, "state": None}, schema=wider))
    assert database.rows("SELECT id, state FROM orders ORDER BY id") == [(1, "it's new"), (2, "it's new")]


def test_table_that_changes_while_the_sink_is_open_is_looked_at_again(database):
    database.execute(CREATE)
    runner = SinkRun(database, auto_evolve="true").open()
    first, second = records(order(1, "a"), order(2, "b"), schema=ORDER)
    runner.put(first)
    runner.deliver()
    runner._task.flush()
    database.execute("ALTER TABLE orders DROP COLUMN name")
    give(runner, [second])
    assert database.rows("SELECT id, name FROM orders ORDER BY id") == [(1, None), (2, "b")]


@pytest.mark.parametrize("others", [["CREATE TABLE orders (id BIGINT)"], [], ["ALTER TABLE orders ADD x BIGINT"]])
def test_other_task_creates_or_alters_the_table_for_other_columns_at_the_same_time(database, monkeypatch, others):
    """Two tasks meet two schemas: the statement of one failed with "already exists", and so did the task."""
    own, pending = Tables._execute, list(others)
    if not others or not others[0].startswith("CREATE"):
        database.execute("CREATE TABLE orders (id BIGINT)")

    def late(self, connection, table, statements):
        connection.rollback()
        while pending:
            database.execute(pending.pop())
        own(self, connection, table, statements)

    monkeypatch.setattr(Tables, "_execute", late)
    schema = s.struct(("id", s.INT64), ("x", s.OPTIONAL_INT64), ("y", s.OPTIONAL_INT64))
    runner = SinkRun(database, auto_create="true", auto_evolve="true").open()
    give(runner, records({"id": 1, "x": 2, "y": 3}, schema=schema))
    assert database.rows("SELECT id, x, y FROM orders") == [(1, 2, 3)]
    named = [note.split(". ")[0] for note in runner.notes.sentences if note.startswith("auto.evolve has added")]
    assert sorted(", ".join(note.rpartition(": ")[2] for note in named).split(", ")) == ["x", "y"]


def test_other_task_creates_the_table_and_columns_may_not_be_added(database, monkeypatch):
    own, others = Tables._execute, ["CREATE TABLE orders (id BIGINT)"]

    def late(self, connection, table, statements):
        connection.rollback()
        database.execute(others.pop())
        own(self, connection, table, statements)

    monkeypatch.setattr(Tables, "_execute", late)
    schema = s.struct(("id", s.INT64), ("x", s.OPTIONAL_INT64))
    with pytest.raises(DataError, match=r"is missing fields \(x\) and auto-evolution is disabled"):
        give(SinkRun(database, auto_create="true").open(), records({"id": 1, "x": 2}, schema=schema))


def test_column_is_found_whatever_its_case(database):
    database.execute("CREATE TABLE orders (ID BIGINT, NAME VARCHAR(20))")
    SinkRun(database).write(records({"Id": 1, "nAme": "x"}))
    assert database.rows("SELECT id, name FROM orders") == [(1, "x")]


NAMES = ['we"ird', "we`ird", "per%cent", "per%s", "select", "a b", "naïve", "x'; DROP TABLE y"]


def test_any_name_of_table_and_column_is_quoted(database):
    mark = {"postgresql": '"', "sqlite": '"', "mysql": "`"}[database.dialect]
    for number, name in enumerate(NAMES):
        rows = (1, 150)[number % 2]
        quoted = mark + name.replace(mark, mark * 2) + mark
        run = SinkRun(
            database, f"sink{number}", auto_create="true", auto_evolve="true", table_name_format=quoted,
            insert_mode="upsert", pk_mode="kafka",
        )  # fmt: skip
        run.write(records(*({name: n} for n in range(rows)), schema=s.struct((name, s.OPTIONAL_INT64))))
        run.write(records({"other": 1}, first=rows))
        with database.connected() as connection:
            escaped = quoted if database.dialect == "sqlite" else quoted.replace("%", "%%")
            found = connection.exec_driver_sql(f"SELECT COUNT(*), COUNT({escaped}) FROM {escaped}").one()
        assert tuple(found) == (rows + 1, rows), name


def test_view_is_refused_unless_table_types_name_it(database):
    database.execute("CREATE TABLE base (id BIGINT)", "CREATE VIEW orders AS SELECT id FROM base")
    with pytest.raises(DatabaseError, match=r"orders is a view, but table\.types is TABLE"):
        SinkRun(database).write(records({"id": 1}))
    if database.dialect != "sqlite":  # whose views cannot be written to
        SinkRun(database, table_types="TABLE,VIEW").write(records({"id": 1}))
        assert database.rows("SELECT id FROM base") == [(1,)]


def test_table_without_transactions_is_refused(mariadb_database):
    mariadb_database.execute("CREATE TABLE orders (id BIGINT) ENGINE=MyISAM")
    with pytest.raises(DatabaseError, match="storage engine MyISAM, which has no transactions"):
        SinkRun(mariadb_database).write(records({"id": 1}))
    SinkRun(mariadb_database, offsets_table_name="").write(records({"id": 1}))
    assert mariadb_database.rows("SELECT id FROM orders") == [(1,)]


def test_schema_of_a_table_is_part_of_its_name(postgresql_database):
    postgresql_database.execute("CREATE SCHEMA sales")
    SinkRun(postgresql_database, auto_create="true", table_name_format="sales.all_${topic}").write(records({"id": 1}))
    assert postgresql_database.rows("SELECT id FROM sales.all_orders") == [(1,)]


def test_dots_of_a_topic_are_part_of_a_quoted_name(database):
    mark = {"postgresql": '"', "sqlite": '"', "mysql": "`"}[database.dialect]
    run = SinkRun(database, auto_create="true", table_name_format=f"{mark}${{topic}}{mark}")
    run.write([one.changed(topic="shop.v1.orders") for one in records({"id": 1})])
    assert database.rows(f"SELECT id FROM {mark}shop.v1.orders{mark}") == [(1,)]


def test_row_whose_key_is_a_uuid_is_deleted(postgresql_database):
    number = "c0ffee00-0000-4000-8000-00000000abcd"
    postgresql_database.execute("CREATE TABLE orders (id UUID PRIMARY KEY, name TEXT)")
    key, value = s.struct(("id", s.STRING)), s.struct(("name", s.STRING))
    run = SinkRun(
        postgresql_database, insert_mode="upsert", pk_mode="record_key", pk_fields="id", delete_enabled="true"
    )
    written = records({"name": "a"}, None, {"name": "b"}, keys=[{"id": number}] * 3, key_schema=key, schema=value)
    run.write(written[:2])
    assert postgresql_database.rows("SELECT name FROM orders") == []
    run.write(written[2:])
    assert postgresql_database.rows("SELECT name FROM orders") == [("b",)]


# --- types ------------------------------------------------------------------------------------------------------------

EVERY_TYPE = s.struct(
    ("i8", s.INT8), ("i16", s.INT16), ("i32", s.INT32), ("i64", s.INT64), ("f32", s.FLOAT32), ("f64", s.FLOAT64),
    ("yes", s.BOOLEAN), ("text", s.STRING), ("raw", s.BYTES), ("amount", s.decimal(2)), ("day", s.date()),
    ("clock", s.time()), ("moment", s.timestamp()),
)  # fmt: skip
MOMENT_MS = 1_700_000_000_123
VALUE = {
    "i8": -128, "i16": -32768, "i32": -(2**31), "i64": -(2**63), "f32": 0.5, "f64": 1e300, "yes": True,
    "text": "ü€😀\\", "raw": b"\x00\xff\\x", "amount": Decimal("-1234567890123.45"), "day": 19675,
    "clock": 3_723_004, "moment": MOMENT_MS,
}  # fmt: skip
AS_NATIVE = {
    "amount": Decimal("-1234567890123.45"), "day": dt.date(2023, 11, 14), "clock": dt.time(1, 2, 3, 4000),
    "moment": dt.datetime.fromisoformat("2023-11-14T22:13:20.123"),
}  # fmt: skip
AS_SQLITE = {"amount": -1234567890123.45, "day": 19675 * 86_400_000}
AS_MARIADB = {"clock": dt.timedelta(milliseconds=3_723_004)}


@pytest.mark.parametrize("count", [1, 120])
def test_every_type_comes_back(database, count):
    SinkRun(database, auto_create="true").write(records(*[VALUE] * count, schema=EVERY_TYPE))
    native = {"sqlite": AS_SQLITE, "postgresql": AS_NATIVE, "mysql": {**AS_NATIVE, **AS_MARIADB}}[database.dialect]
    found = database.rows(f"SELECT {', '.join(VALUE)} FROM orders")
    assert found == [tuple({**VALUE, **native}.values())] * count


def test_nulls_of_every_type_are_null(database):
    fields = [(f.name, replace(f.schema, optional=True)) for f in EVERY_TYPE.fields]
    SinkRun(database, auto_create="true").write(records(dict.fromkeys(VALUE), schema=s.struct(*fields)))
    assert database.rows(f"SELECT {', '.join(VALUE)} FROM orders") == [(None,) * len(VALUE)]


def test_times_are_those_of_the_zone_of_the_database(database):
    schema = s.struct(("moment", s.timestamp()), ("day", s.date()))
    value = {"moment": MOMENT_MS, "day": 19675}
    SinkRun(database, auto_create="true", db_timezone="America/New_York").write(records(value, schema=schema))
    utc = SinkRun(database, "utc", db_timezone="America/New_York", date_timezone="UTC")
    utc.write(records(value, schema=schema))
    found = database.rows("SELECT moment, day FROM orders ORDER BY day")
    if database.dialect == "sqlite":  # instants, in milliseconds
        assert found == [(MOMENT_MS, 19675 * 86_400_000)] * 2
    else:
        moment = dt.datetime.fromisoformat("2023-11-14T17:13:20.123")
        assert found == [(moment, dt.date(2023, 11, 13)), (moment, dt.date(2023, 11, 14))]


def test_numbers_in_timestamp_fields_are_timestamps(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (at TIMESTAMP, txt TIMESTAMP)")
    schema = s.struct(("at", s.INT64), ("txt", s.STRING))
    run = SinkRun(
        postgresql_database,
        timestamp_fields_list="at,txt",
        timestamp_precision_mode="nanoseconds",
        errors_tolerance="all",
    )
    nanos = 1_700_000_000_123_456_789
    run.write(records({"at": nanos, "txt": str(nanos)}, {"at": nanos, "txt": "soon"}, schema=schema))
    moment = dt.datetime.fromisoformat("2023-11-14T22:13:20.123456")
    assert postgresql_database.rows("SELECT at, txt FROM orders") == [(moment, moment)]
    assert [offset for offset, _ in run.errors.letters] == [1]


def test_postgresql_casts_texts_to_the_types_of_columns(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (u UUID, j JSONB, e INET, a INT[])")
    schema = s.struct(("u", s.STRING), ("j", s.STRING), ("e", s.STRING), ("a", s.array(s.INT32)))
    value = {"u": "0" * 32, "j": '{"a": [1]}', "e": "10.0.0.1", "a": [1, 2]}
    for count in (1, 150):
        run = SinkRun(postgresql_database, f"sink{count}")
        run.write(records(*[value] * count, schema=schema))
    assert postgresql_database.rows("SELECT DISTINCT u::text, j->'a'->>0, host(e), a[2] FROM orders") == [
        ("00000000-0000-0000-0000-000000000000", "1", "10.0.0.1", 2)
    ]
    assert postgresql_database.rows("SELECT COUNT(*) FROM orders") == [(151,)]


def test_null_is_replaced_by_the_default_unless_told_otherwise(sqlite_database):
    schema = s.struct(("id", s.INT64), ("n", s.Schema(s.Type.INT32, True, default=7)))
    SinkRun(sqlite_database, auto_create="true").write(records({"id": 1, "n": None}, schema=schema))
    keep = SinkRun(sqlite_database, "keep", replace_null_with_default="false")
    keep.write(records({"id": 2, "n": None}, schema=schema))
    assert sqlite_database.rows("SELECT id, n FROM orders ORDER BY id") == [(1, 7), (2, None)]


def test_text_value_goes_to_one_column(sqlite_database):
    run = SinkRun(sqlite_database, auto_create="true", string_output_value_column_name="line")
    run.write(records("a", "b", schema=s.STRING))
    assert sqlite_database.rows("SELECT line FROM orders") == [("a",), ("b",)]


def test_object_without_schema_gets_columns_by_its_values(database):
    run = SinkRun(database, auto_create="true", auto_evolve="true")
    run.write(records({"a": 1, "b": None}, {"a": 2, "b": "x"}, {"b": None}))
    assert database.rows("SELECT a, b FROM orders ORDER BY COALESCE(a, 9)") == [(1, None), (2, "x"), (None, None)]


def test_nested_value_is_refused_by_name(sqlite_database):
    with pytest.raises(DataError, match="The field tags of the value is an array"):
        SinkRun(sqlite_database, auto_create="true").write(records({"id": 1, "tags": [1]}))


def test_percent_sign_in_a_default_is_a_percent_sign(database):
    schema = s.struct(("id", s.INT64), ("rate", replace(s.OPTIONAL_STRING, default="50%s %d 100%")))
    SinkRun(database, auto_create="true").write(
        records({"id": 1, "rate": "5%"}, {"id": 2, "rate": None}, schema=schema)
    )
    database.execute("INSERT INTO orders (id) VALUES (3)")
    assert database.rows("SELECT rate FROM orders ORDER BY id") == [("5%",), ("50%s %d 100%",), ("50%s %d 100%",)]
    wider = s.struct(("id", s.INT64), ("more", replace(s.OPTIONAL_STRING, default="%%")))
    SinkRun(database, "later", auto_evolve="true").write(records({"id": 4, "more": None}, schema=wider))
    assert database.rows("SELECT more FROM orders WHERE id IN (3, 4)") == [("%%",), ("%%",)]


def test_upsert_keeps_the_columns_that_the_record_does_not_have(database):
    database.execute("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40), note VARCHAR(9))")
    database.execute("INSERT INTO orders VALUES (1, 'old', 'kept')")
    run = SinkRun(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id", fields_whitelist="id,name")
    run.write(records(order(1, "new"), order(2, "b"), schema=ORDER))
    assert database.rows("SELECT name, note FROM orders ORDER BY id") == [("new", "kept"), ("b", None)]


def test_created_columns_hold_texts_and_bytes_of_any_length(database):
    schema = s.struct(("id", s.INT64), ("text", s.OPTIONAL_STRING), ("raw", s.OPTIONAL_BYTES))
    value = {"id": 1, "text": "ü" * 70_000, "raw": bytes(range(256)) * 300}
    SinkRun(database, auto_create="true").write(records(value, schema=schema))
    assert database.rows("SELECT text, raw FROM orders") == [(value["text"], value["raw"])]


@pytest.mark.parametrize("evolves", ["true", "false"])
@pytest.mark.parametrize("mode", ["insert", "upsert"])
@pytest.mark.parametrize("pk_mode", ["kafka", "record_value"])
def test_columns_of_a_key_that_are_missing_are_refused_with_advice_that_works(database, mode, pk_mode, evolves):
    database.execute("CREATE TABLE orders (name VARCHAR(30))", "INSERT INTO orders VALUES ('old')")
    schema = s.struct(("name", s.OPTIONAL_STRING), ("code", s.STRING))
    fields = {"pk_fields": "code"} if pk_mode == "record_value" else {"fields_whitelist": "name"}
    run = SinkRun(database, insert_mode=mode, pk_mode=pk_mode, auto_evolve=evolves, **fields)
    given = records({"name": "a", "code": "x"}, {"name": "b", "code": "y"}, schema=schema)
    with pytest.raises(DataError, match="missing field") as refused:
        run.write(given)
    advice = refused.value.suggestion
    assert "auto.evolve" not in advice
    assert "fields.whitelist" not in advice
    assert "optional" not in advice
    statements = advice.partition("Add them: ")[2].partition(". Or ")[0]
    database.execute(*statements.split("; "))
    for _ in range(2):
        run.write(given)
    assert database.rows("SELECT name FROM orders ORDER BY name") == [("a",), ("b",), ("old",)]
