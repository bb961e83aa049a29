"""Deletes and updates whose keys have another type than the column: they find the row of an insert, or none."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal

import pytest
from sqlalchemy.exc import DBAPIError

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink.conditions import Comparison, comparisons
from airflow_connect.connectors.jdbc.sink.fields import SinkField
from airflow_connect.connectors.jdbc.sink.outcome import RowRefusedError
from airflow_connect.errors import DatabaseError
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, records

pytestmark = pytest.mark.integration

KEYS = {
    s.INT64: (0, 1, -1, 49, 99, 10299, 2026, 3000, 20260102, 20260231, 10203, 2**53 + 1),
    s.BOOLEAN: (True, False),
    s.FLOAT64: (0.0, 1.0, 1.5, 0.1, float(2**53)),
    s.FLOAT32: (0.10000000149011612, 1.0),
    s.decimal(2): (Decimal("1.00"), Decimal("0.10"), Decimal("2026.00")),
    s.STRING: (
        "", "0", "1", "01", "1.0", " 1", "1e0", "a", "A", "a ", "1abc", "true", "infinity", "2026-01-02", "20260102",
        "2026-01-02 03:04:05", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05+05:00", "03:04:05", "::1", "b,a", "26",
        "2026-02-31", "00:99:00", "99", "000099", "000000", "1.5",
        "9007199254740993", "99999999999999999999", "00112233-4455-6677-8899-aabbccddeeff", '{"a":1}', "\x01",
    ),
    s.BYTES: (b"", b"a", b"a\0", b"1", b"\x01", b"2026-01-02"),
    s.date(): (date(2026, 1, 2), date(1970, 1, 1)),
    s.time(): (time(0), time(3, 4, 5)),
    s.timestamp(): (datetime.fromisoformat("2026-01-02 03:04:05"), datetime.fromisoformat("2026-01-02 00:00")),
}  # fmt: skip
"""As they are bound."""
_TIMES = ("2026-01-02 03:04:05", "2026-01-02 00:00:00")
_MARIADB = {
    "DATE": ("2026-01-02", "1970-01-01", "0000-00-00"),
    "DATETIME": (*_TIMES, "0000-00-00 00:00:00"),
    "TIMESTAMP(3) NULL": _TIMES,
    "TIME": ("00:00:00", "00:00:01", "03:04:05"),
    "YEAR": ("2026", "2001", "2000", "0000"),
    "ENUM('a','b','1','0')": ("a", "b", "1", "0"),
    "SET('a','b','1')": ("", "a", "a,b", "1"),
    "UUID": ("00112233-4455-6677-8899-aabbccddeeff",),
    "INET6": ("::1",),
    "BIT(8)": (b"\0", b"\1", b"1", b"a"),
    "DECIMAL(30,0)": ("0", "1", "2026", "9007199254740992", "9007199254740993", "99999999999999999999"),
    "FLOAT": ("0", "1", "1.5", "0.1"),
    "DOUBLE": ("0", "1", "1.5", "0.1"),
    "INT": ("0", "1", "2026", "49"),
    "BIGINT UNSIGNED": ("0", "1", "9007199254740992", "9007199254740993"),
    "BINARY(4)": (b"", b"a", b"1", b"0", b"a ", b"\1"),
    "VARBINARY(20)": (b"", b"1", b"01", b"a", b"a ", b"\1", b"1.0", b"a\0", b"2026-01-02"),
    "VARCHAR(40) COLLATE utf8mb4_nopad_bin": ("", "0", "1", "01", "1.0", "a", "A", "a ", "2026-01-02", *_TIMES),
}
_POSTGRESQL = {
    "real": ("0", "1", "1.5", "0.1"),
    "double precision": ("0", "1", "0.1", "9007199254740992"),
    "numeric(30, 2)": ("0", "1", "1.5", "0.1", "9007199254740992", "9007199254740993"),
    "bigint": ("0", "1", "2026", "9007199254740992", "9007199254740993"),
    "boolean": ("true", "false"),
    "text": ("", "1", "01", "a", "1.0", "true", "2026-01-02", *_TIMES, "\\x61"),
    "character varying(40)": ("", "1", "01", "a", "a ", "1.0", "true", "2026-01-02", *_TIMES, "\\x61"),
    "character(40)": ("", "1", "01", "a", "1.0"),
    "date": ("2026-01-02", "1970-01-01"),
    "timestamp(0)": _TIMES,
    "timestamptz": _TIMES,
    "time": ("00:00:00", "03:04:05"),
    "uuid": ("00112233-4455-6677-8899-aabbccddeeff",),
    "money": ("1", "1.5"),
    "bytea": ("\\x", "\\x61", "\\x31"),
}
_DECLARED = {
    "mysql": "SELECT column_type FROM information_schema.columns WHERE table_schema = DATABASE()"
    " AND table_name = 'kept' AND column_name = 'k'",
    "postgresql": "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
    " WHERE attrelid = 'kept'::regclass AND attname = 'k'",
}
_SHOWN = {"mysql": "HEX(CAST(k AS BINARY))", "postgresql": "k::text"}


_ROUNDING = {
    "postgresql": set(),
    "mariadb": {
        "DATE", "DATETIME", "TIME", "ENUM('a','b','1','0')", "SET('a','b','1')", "BIT(8)", "DECIMAL(30,0)",
        "INT", "BIGINT UNSIGNED",
    },
}  # fmt: skip
"""Columns that round a key, or take it for another: a note names them, and a record that finds no row is counted."""


@pytest.mark.budget(40)  # Two thousand keys.
@pytest.mark.parametrize(("kind", "tables"), [("mariadb", _MARIADB), ("postgresql", _POSTGRESQL)])
def test_condition_finds_no_row_that_an_insert_would_not_make(request, kind, tables):
    """What an insert of a key stores says which row is its own: a condition may find that one, and no other."""
    database = request.getfixturevalue(f"{kind}_database")
    with database.engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if kind == "mariadb":
            connection.exec_driver_sql("SET sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00'")
        else:
            connection.exec_driver_sql("SET timezone = 'UTC'")
            connection.connection.driver_connection.prepare_threshold = None  # The tables change.
        wrong, missed = [], set()
        for declared, rows in tables.items():
            table = _Kept(connection, database.dialect, declared, rows)
            for schema, key in ((schema, key) for schema, keys in KEYS.items() for key in keys):
                own, found = table.own(key), table.found(schema, key)
                if not found <= own:
                    wrong.append(f"{declared} {schema.name or schema.type} {key!r}: {found}, not {own}")
                missed |= {declared} if own - found else set()
    assert wrong == []
    assert missed == _ROUNDING[kind]


class _Kept:
    """A table with rows, and the same without any, which shows what an insert stores."""

    def __init__(self, connection, dialect, declared, rows):
        self.connection, self.dialect, self.shown = connection, dialect, _SHOWN[dialect]
        for name in ("kept", "one"):
            connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")
            connection.exec_driver_sql(f"CREATE TABLE {name} (k {declared})")
        for row in rows:
            connection.exec_driver_sql("INSERT INTO kept VALUES (%s)", (row,))
        self.rows = self._rows("kept")
        self.declared = str(connection.exec_driver_sql(_DECLARED[dialect]).scalar()).lower()

    def _rows(self, table):
        return {row[0] for row in self.connection.exec_driver_sql(f"SELECT {self.shown} FROM {table}")}

    def _after(self, statement, value, table):
        """The rows of a table after a statement, which is rolled back; None if the database refuses it."""
        self.connection.exec_driver_sql("BEGIN")
        try:
            self.connection.exec_driver_sql(statement, (value,))
            return self._rows(table)
        except DBAPIError:
            return None
        finally:
            self.connection.exec_driver_sql("ROLLBACK")

    def own(self, key):
        """The rows that are what an insert of the key stores."""
        return self.rows & (self._after("INSERT INTO one VALUES (%s)", key, "one") or set())

    def found(self, schema, key):
        """The rows that a delete of the key deletes."""
        known = comparisons(
            "kept", [SinkField("k", schema, True, None)], {"k": "k"}, {"k": self.declared}, self.dialect
        )
        comparison = known.get("k", Comparison())
        try:
            value = comparison.convert(key) if comparison.convert else key
        except RowRefusedError:
            return set()
        left = self._after(f"DELETE FROM kept WHERE k = {comparison.cast.format('%s')}", value, "kept")
        return set() if left is None else self.rows - left


NUMBERS_AND_TEXTS = [
    ("VARCHAR(20)", s.INT64, 1, "1", ["01", "1abc"]),
    ("VARCHAR(20)", s.FLOAT64, 1.5, "1.5", ["1.50", "1.5x"]),
    ("VARBINARY(20)", s.INT64, 1, "1", ["01", "1abc"]),
]


@pytest.mark.parametrize("mode", ["delete", "update"])
@pytest.mark.parametrize(("declared", "schema", "key", "same", "others"), NUMBERS_AND_TEXTS)
def test_number_as_key_finds_only_its_own_text_in_mariadb(mariadb_database, mode, declared, schema, key, same, others):
    """It compares both as numbers: a delete of 1 also deleted the rows 01 and 1abc."""
    texts = ", ".join(f"('{text}', 'old')" for text in [same, *others])
    mariadb_database.execute(
        f"CREATE TABLE orders (n {declared} PRIMARY KEY, note VARCHAR(20))", f"INSERT INTO orders VALUES {texts}"
    )
    give_key(mariadb_database, mode, schema, key)
    left = dict(mariadb_database.rows("SELECT CAST(n AS CHAR), note FROM orders"))
    assert left == {**({same: "new"} if mode == "update" else {}), **dict.fromkeys(others, "old")}


REFUSED = [
    ("INT", "0", s.STRING, "abc"),
    ("INT", "1", s.STRING, "1abc"),
    ("YEAR", "2026", s.STRING, "2026-01-02"),
    ("TIME", "'00:00:00'", s.STRING, "abc"),
    ("DATETIME", "'2026-01-02 03:04:05'", s.STRING, "2026-01-02T03:04:05+05:00"),
    ("DECIMAL(10,2)", "2026", s.date(), 20455),
    ("INT", "1", s.Schema(s.Type.STRING, name="io.debezium.data.Enum"), "1abc"),
]


@pytest.mark.parametrize("mode", ["delete", "update"])
@pytest.mark.parametrize(("declared", "row", "schema", "key"), REFUSED)
def test_key_that_a_column_cannot_hold_finds_no_row_in_mariadb(mariadb_database, mode, declared, row, schema, key):
    """It took abc for 0, and the first part of a text for a time: a delete of abc deleted the row 0."""
    mariadb_database.execute(
        f"CREATE TABLE orders (n {declared} PRIMARY KEY, note VARCHAR(20))", f"INSERT INTO orders VALUES ({row}, 'old')"
    )
    ((_, message),) = give_key(mariadb_database, mode, schema, key)
    kind = schema.name or schema.type.name
    assert f"the field n of its key is {kind}, and the column n of orders is {declared.lower()}" in message
    assert str(key) not in message.replace("orders-0@0", "")
    assert mariadb_database.rows("SELECT note FROM orders") == [("old",)]


FOUND = [
    ("mariadb", "BIT(8)", s.STRING, "1"), ("mariadb", "BINARY(4)", s.STRING, "a"), ("mariadb", "FLOAT", s.FLOAT64, 0.1),
    ("postgresql", "real", s.FLOAT64, 0.1), ("postgresql", "varchar(20)", s.INT64, 5),
    ("postgresql", "character(20)", s.FLOAT64, 0.5), ("postgresql", "text", s.BOOLEAN, True),
    ("postgresql", "timestamp(0)", s.timestamp(), 1_767_323_045_700),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["delete", "update"])
@pytest.mark.parametrize(("kind", "declared", "schema", "key"), FOUND)
def test_row_of_an_upsert_is_found_by_its_key(request, mode, kind, declared, schema, key):
    """A column may hold a key in another form: an upsert wrote the row, and a delete or an update did not find it."""
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(f"CREATE TABLE orders (n {declared} PRIMARY KEY, note VARCHAR(20))")
    value = s.struct(("n", schema), ("note", s.STRING))
    upserts = SinkRun(database, "upserts", insert_mode="upsert", pk_mode="record_value", pk_fields="n")
    give(upserts.open(), records({"n": key, "note": "old"}, schema=value))
    assert give_key(database, mode, schema, key) == []
    assert database.rows("SELECT note FROM orders") == ([("new",)] if mode == "update" else [])


INCOMPARABLE = [
    ("postgresql", "int", s.BOOLEAN, True, "operator does not exist: integer = boolean"),
    ("postgresql", "uuid", s.INT64, 5, "operator does not exist: uuid = smallint"),
    ("mariadb", "UUID", s.INT64, 5, "Illegal parameter data types"),
]


@pytest.mark.parametrize("mode", ["delete", "update"])
@pytest.mark.parametrize(("kind", "declared", "schema", "key", "reason"), INCOMPARABLE)
def test_key_whose_type_the_database_cannot_compare_ends_the_run(request, mode, kind, declared, schema, key, reason):
    """With errors.tolerance=all, each record of the topic was a dead letter."""
    database = request.getfixturevalue(f"{kind}_database")
    database.execute(f"CREATE TABLE orders (n {declared}, note VARCHAR(20))")
    with pytest.raises(DatabaseError, match=reason) as caught:
        give_key(database, mode, schema, key, "insert")
    assert caught.value.code == "jdbc.column_type"
    assert "the field n is " in caught.value.message and "its column n is " in caught.value.message


def test_key_with_characters_that_its_column_does_not_have_is_refused(mariadb_database):
    mariadb_database.execute("CREATE TABLE orders (n VARCHAR(9) CHARACTER SET latin1, note VARCHAR(20))")
    for mode in ("delete", "update"):
        ((_, message),) = give_key(mariadb_database, mode, s.STRING, "ж", "insert")
        assert re.search("its key cannot be compared with .n. of orders: Illegal mix of collations", message)


def test_operator_that_a_trigger_lacks_is_no_reason_of_a_row(postgresql_database):
    postgresql_database.execute(
        "CREATE TABLE orders (n int, note text)",
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$"
        " BEGIN IF OLD.n = true THEN RETURN NULL; END IF; RETURN OLD; END $$",
        "CREATE TRIGGER broken BEFORE DELETE ON orders FOR EACH ROW EXECUTE FUNCTION broken()",
        "INSERT INTO orders VALUES (5, 'old')",
    )
    with pytest.raises(DatabaseError, match="operator does not exist"):
        give_key(postgresql_database, "delete", s.INT64, 5)


def give_key(database, mode, schema, key, of_others="upsert"):
    """Delete or update the row of a key; returns the dead letters. `of_others`: insert.mode beside deletes."""
    of_rows = {"insert_mode": "update", "pk_mode": "record_value", "pk_fields": "n"}
    of_deletes = {"insert_mode": of_others, "pk_mode": "record_key", "pk_fields": "n", "delete_enabled": "true"}
    run = SinkRun(database, errors_tolerance="all", **(of_deletes if mode == "delete" else of_rows))
    value = None if mode == "delete" else {"n": key, "note": "new"}
    of_value = s.struct(("n", schema), ("note", s.STRING))
    give(run.open(), records(value, keys=[key], key_schema=schema, schema=None if value is None else of_value))
    return run.errors.letters
