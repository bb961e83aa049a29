"""Values that a column would change without an error are refused, or the column is named."""

from __future__ import annotations

import base64
from decimal import Decimal

import pytest
from sqlalchemy import inspect

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink import charsets
from tests.support.copies.jdbc_sink_tasks import SinkRun, give, records
from tests.support.values.jdbc_columns import ColumnRun

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_number_that_the_database_does_not_have_is_a_dead_letter(database, value):
    """SQLite stores NULL for NaN, and MySQL's driver refuses both: the run failed, whatever `errors.tolerance` was."""
    database.execute("CREATE TABLE orders (n BIGINT, v DOUBLE PRECISION)")
    schema = s.struct(("n", s.INT64), ("v", s.FLOAT64))
    run = SinkRun(database, errors_tolerance="all")
    give(run.open(), records({"n": 1, "v": float(value)}, {"n": 2, "v": 2.5}, schema=schema))
    refused = database.dialect == "mysql" or (database.dialect == "sqlite" and value == "nan")
    assert [offset for offset, _ in run.errors.letters] == ([0] if refused else [])
    assert all(f"the number is {value}, which no column" in text for _, text in run.errors.letters)
    kept = sorted(database.rows("SELECT n FROM orders WHERE v IS NOT NULL"))
    assert kept == ([(2,)] if refused else [(1,), (2,)])


def test_whole_number_that_a_real_column_of_sqlite_would_change_is_refused(sqlite_database):
    sqlite_database.execute("CREATE TABLE orders (n BIGINT, v REAL)")
    run = SinkRun(sqlite_database, errors_tolerance="all")
    rows = [{"n": n, "v": v} for n, v in enumerate([2**53 + 1, 2**60, -3])]
    give(run.open(), records(*rows, schema=s.struct(("n", s.INT64), ("v", s.INT64))))
    ((offset, text),) = run.errors.letters
    assert offset == 0 and text.startswith("The field v of orders-0@0 is a number with more digits than SQLite keeps")
    assert sqlite_database.rows("SELECT n, v FROM orders") == [(1, 2.0**60), (2, -3.0)]


def test_columns_of_sqlite_that_make_numbers_of_texts_are_named(sqlite_database):
    """Two keys, such as `007` and `7`, were one row, and long ones lost their last digits."""
    sqlite_database.execute("CREATE TABLE orders (k INTEGER, r DOUBLE, t TEXT, b)")
    schema = s.struct(*((name, s.STRING) for name in "krtb"))
    runner = SinkRun(sqlite_database).open()
    give(runner, records(*(dict.fromkeys("krtb", text) for text in ("007", "12345678901234567890")), schema=schema))
    assert [note.partition(":")[0] for note in runner.notes.sentences] == [
        f"The column {name} of orders holds numbers, and the field is a text" for name in "kr"
    ]
    assert sqlite_database.rows("SELECT * FROM orders") == [
        (7, 7.0, "007", "007"), (12345678901234567000.0,) * 2 + ("12345678901234567890",) * 2,
    ]  # fmt: skip


def test_zero_in_an_auto_increment_column_stays_zero(mariadb_database):
    """It became the next number: an upsert inserted the row of the key 0 again and again."""
    mariadb_database.execute("CREATE TABLE orders (n BIGINT AUTO_INCREMENT PRIMARY KEY, v BIGINT)")
    run = SinkRun(mariadb_database, insert_mode="upsert", pk_mode="record_value", pk_fields="n")
    give(run.open(), records({"n": 0, "v": 1}, {"n": 0, "v": 2}, schema=s.struct(("n", s.INT64), ("v", s.INT64))))
    assert mariadb_database.rows("SELECT n, v FROM orders") == [(0, 2)]


DEBEZIUM_DATE = s.Schema(s.Type.INT32, name="io.debezium.time.Date")
DAYS_OF_2025 = 20101
TAKEN_FOR_OTHERS = {
    "a": ("ENUM('false', 'true')", s.BOOLEAN, True, "has the type enum, and the field is a number"),
    "b": ("YEAR", s.BOOLEAN, True, "has the type year, and the field is a number"),
    "c": ("ENUM('x', 'y')", s.decimal(2), "ZA==", "has the type enum, and the field is a number"),
    "d": ("ENUM('x', 'y')", s.BYTES, "MQ==", "has the type enum, in which the database takes a number in a text"),
    "e": ("DATE", DEBEZIUM_DATE, DAYS_OF_2025, "has the type date, and the field is a number"),
    "f": ("DATE", s.time(), 36_672_000, "has the type date, and the field is a time of day"),
    "g": ("VARCHAR(10)", s.FLOAT64, 1 / 3, "keeps 10 characters of a number: the database rounds"),
    "h": ("DATE", s.BYTES, "MTA6MTE6MTI=", "has the type date, in which the database takes digits in a text"),
}


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_columns_of_mariadb_that_change_what_is_no_plain_number_are_named(mariadb_database, columnar):
    """BOOLEAN true became the text `false` in an ENUM, and a time of day a date, without a word."""
    listed = ", ".join(f"{name} {declared}" for name, (declared, *_) in TAKEN_FOR_OTHERS.items())
    mariadb_database.execute(f"CREATE TABLE orders ({listed}, i VARCHAR(24))")
    fields = {name: kind for name, (_, kind, *_) in TAKEN_FOR_OTHERS.items()}
    schema = s.struct(*fields.items(), ("i", s.FLOAT64))
    row = {name: value for name, (_, _, value, _) in TAKEN_FOR_OTHERS.items()} | {"i": -2.2250738585072014e-308}
    notes = ColumnRun(mariadb_database, schema).copy([row] * 600, columnar=columnar).notes
    assert len(notes) == len(TAKEN_FOR_OTHERS), notes
    for (name, (*_, said)), note in zip(TAKEN_FOR_OTHERS.items(), notes, strict=True):
        assert note.startswith(f"The column {name} of orders {said}"), note
    statement = "SELECT DISTINCT a, b, c, d, CAST(e AS CHAR), CAST(f AS CHAR), g, CAST(h AS CHAR), i FROM orders"
    assert mariadb_database.rows(statement) == [
        ("false", 2001, "x", "x", "2002-01-01", "2010-11-12", "0.33333333", "2010-11-12", "-2.2250738585072014e-308")
    ]


def test_text_of_sqlite_that_keeps_fewer_digits_of_a_double_is_named(sqlite_database):
    """SQLite writes 15 digits, so two keys may become one row."""
    sqlite_database.execute("CREATE TABLE orders (a TEXT, b VARCHAR(20), c BLOB, d TEXT)")
    schema = s.struct(("a", s.FLOAT64), ("b", s.FLOAT64), ("c", s.FLOAT64), ("d", s.FLOAT32))
    runner = SinkRun(sqlite_database).open()
    give(runner, records(dict.fromkeys("abc", 0.1 + 0.2) | {"d": 0.5}, schema=schema))
    assert [note.partition(":")[0] for note in runner.notes.sentences] == [
        f"The column {name} of orders keeps about 15 digits of a number, and the field may have more" for name in "ab"
    ]
    assert sqlite_database.rows("SELECT * FROM orders") == [("0.3", "0.3", 0.1 + 0.2, "0.5")]


def test_intervals_of_postgresql_that_drop_a_part_are_named(postgresql_database):
    kinds = ("interval year to month", "interval day", "interval day to second(0)", "interval(0)", "interval")
    listed = ", ".join(f"{name} {kind}" for name, kind in zip("abcde", kinds, strict=True))
    postgresql_database.execute(f"CREATE TABLE orders ({listed}, f interval(0), g interval)")
    schema = s.struct(*((name, s.STRING) for name in "abcde"), ("f", s.time()), ("g", s.time()))
    notes = ColumnRun(postgresql_database, schema).copy(
        [dict.fromkeys("abcde", "1 day 03:04:05.9") | dict.fromkeys("fg", 11_045_900)]
    )
    assert [note.partition(":")[0].partition(",")[0] for note in notes.notes] == [
        "The column a of orders keeps nothing below a month",
        "The column b of orders keeps nothing below a day",
        "The column c of orders keeps 0 digits of a second after the point",
        "The column d of orders keeps 0 digits of a second after the point",
        "The column e of orders keeps 6 digits of a second after the point",
        "The column f of orders keeps 0 digits of a second after the point",
    ]
    listed = ", ".join(f"{name}::text" for name in "abcdefg")
    assert postgresql_database.rows(f"SELECT {listed} FROM orders") == [
        ("00:00:00", "1 day", "1 day 03:04:06", "1 day 03:04:06", "1 day 03:04:05.9", "03:04:06", "03:04:05.9")
    ]


COLUMNS = {
    "a": ("ENUM('5', '1')", s.OPTIONAL_INT64, 1, "has the type enum, and the field is a number"),
    "b": ("TIME(3)", s.OPTIONAL_INT64, 123, "has the type time, and the field is a number"),
    "c": ("INT", s.OPTIONAL_STRING, "1.6", "keeps 0 digits after the point, and the field is a text"),
    "d": ("DECIMAL(5,1)", s.OPTIONAL_STRING, "1.26", "keeps 1 digit after the point, and the field is a text"),
    "e": ("DATE", s.OPTIONAL_STRING, "2026-01-01 12:00:00", "keeps no time of day, and the field is a text"),
    "f": (
        "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        s.timestamp(optional=True),
        None,
        "has the current time where",
    ),
}


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_columns_of_mariadb_that_take_values_for_others_are_named(mariadb_database, columnar):
    listed = ", ".join(f"{name} {declared}" for name, (declared, *_) in COLUMNS.items())
    mariadb_database.execute(f"CREATE TABLE orders ({listed})".replace("f TIMESTAMP", "f TIMESTAMP(3)").replace(
        "CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP(3)"))  # fmt: skip
    schema = s.struct(*((name, kind) for name, (_, kind, *_) in COLUMNS.items()))
    row = {name: value for name, (_, _, value, _) in COLUMNS.items()}
    notes = ColumnRun(mariadb_database, schema).copy([row] * 600, columnar=columnar).notes
    notes = tuple(note for note in notes if not note.startswith("The column e of orders has the type date, in which"))
    assert len(notes) == len(COLUMNS), notes
    for (name, (*_, said)), note in zip(COLUMNS.items(), notes, strict=True):
        assert note.startswith(f"The column {name} of orders {said}"), note
    assert mariadb_database.rows("SELECT DISTINCT a, c FROM orders") == [("5", 2)]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_columns_of_mariadb_that_take_texts_for_numbers_are_named(mariadb_database, columnar):
    mariadb_database.execute("CREATE TABLE orders (a ENUM('x', 'y'), b SET('x', 'y'), c YEAR)")
    schema = s.struct(*((name, s.STRING) for name in "abc"))
    notes = ColumnRun(mariadb_database, schema).copy([dict.fromkeys("abc", "1")] * 600, columnar=columnar).notes
    assert [note.partition(",")[0] for note in notes] == [
        f"The column {name} of orders has the type {kind}"
        for name, kind in zip("abc", ("enum", "set", "year"), strict=True)
    ]
    assert mariadb_database.rows("SELECT DISTINCT a, b, c FROM orders") == [("x", "x", 2001)]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_columns_of_mariadb_that_take_bytes_for_numbers_are_named(mariadb_database, columnar):
    """MySQL takes the bytes of `12` for 12594, so that a table of it does not have the rows of one of MariaDB."""
    kinds = {"a": "INT", "b": "BIGINT UNSIGNED", "c": "DECIMAL(10, 2)", "d": "FLOAT", "e": "DOUBLE"}
    listed = ", ".join(f"{name} {kind}" for name, kind in {**kinds, "f": "VARBINARY(9)", "g": "BIT(16)"}.items())
    mariadb_database.execute(f"CREATE TABLE orders ({listed})")
    schema = s.struct(*((name, s.BYTES) for name in "abcdefg"))
    row = dict.fromkeys("abcdefg", base64.b64encode(b"12").decode())
    notes = ColumnRun(mariadb_database, schema).copy([row] * 600, columnar=columnar).notes
    assert [note.partition(",")[0] for note in notes] == [
        f"The column {name} of orders has the type {kind.split('(')[0].split(' ')[0].lower()}"
        for name, kind in kinds.items()
    ]
    assert all("MySQL takes `12` for 12594" in note for note in notes)
    assert mariadb_database.rows("SELECT DISTINCT a, b, c, d, e, f, HEX(g) FROM orders") == [
        (12, 12, 12, 12, 12, b"12", "3132")
    ]


def test_short_texts_of_postgresql_are_named(postgresql_database):
    postgresql_database.execute(
        'CREATE TABLE orders (a name, b "char", c numeric(5, 1), d int, e text, f numeric, g bytea)'
    )
    schema = s.struct(*((name, s.STRING) for name in "abcdeg"), ("f", s.FLOAT64))
    row = {"a": "x" * 70, "b": "xy", "c": "1.26", "d": "00743", "e": "x", "f": 0.12345678901234568, "g": r"\x41"}
    notes = ColumnRun(postgresql_database, schema).copy([row]).notes
    assert [note.partition(",")[0] for note in notes] == [
        "The column a of orders keeps 63 bytes of a text",
        "The column b of orders keeps 1 byte of a text",
        "The column c of orders keeps 1 digit after the point",
        "The column c of orders has the type numeric(5",
        "The column d of orders has the type integer",
        "The column g of orders has the type bytea",
        "The column f of orders keeps about 15 digits of a number",
    ]
    assert "`00743` becomes 743" in notes[4] and postgresql_database.rows("SELECT d FROM orders") == [(743,)]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_numbers_of_postgresql_that_become_others_are_named(postgresql_database, columnar):
    postgresql_database.execute("CREATE TABLE orders (a numeric(3, -2), b oid)")
    schema = s.struct(("a", s.INT64), ("b", s.INT64))
    notes = ColumnRun(postgresql_database, schema).copy([{"a": 149, "b": -3}] * 600, columnar=columnar).notes
    assert [note.partition(",")[0].partition(":")[0] for note in notes] == [
        "The column a of orders keeps multiples of 100 only", "The column b of orders has the type oid",
    ]  # fmt: skip
    assert postgresql_database.rows("SELECT DISTINCT a, b FROM orders") == [(100, 4294967293)]


def test_deletes_that_find_no_row_are_counted(database):
    database.execute("CREATE TABLE orders (id VARCHAR(20) PRIMARY KEY, n BIGINT)", "INSERT INTO orders VALUES ('a', 1)")
    config = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id", "delete_enabled": "true"}
    runner = SinkRun(database, **config).open()
    report = give(runner, records(None, None, None, keys=["a", "b", "c"], key_schema=s.STRING))
    (note,) = (note for note in runner.notes.sentences if "deleted no row" in note)
    assert report.written == 3 and note.startswith("2 records were without value, and deleted no row of orders:")


def test_delete_does_not_create_the_table_that_a_later_record_needs(database):
    config = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id", "delete_enabled": "true"}
    run = SinkRun(database, auto_create="true", auto_evolve="true", **config)
    runner = run.open()
    report = give(runner, records(None, None, keys=["a", "b"], key_schema=s.STRING))
    (note,) = runner.notes.sentences
    with database.connected() as connection:
        assert report.written == 2 and not inspect(connection).has_table("orders")
    assert note.startswith("2 records were without value, and deleted no row of orders, because the table did not")
    runner = run.open()
    of_keys = {"keys": ["a", "b", "c", "b"], "key_schema": s.STRING, "schema": s.struct(("n", s.INT64))}
    rows = records(None, {"n": 1}, {"n": 2}, None, first=2, **of_keys)
    assert give(runner, rows).written == 4
    assert database.rows("SELECT id, n FROM orders") == [("c", 2)]
    assert any(note.startswith("1 record was without value") for note in runner.notes.sentences)


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_constraint_of_sqlite_that_deletes_other_rows_is_named(sqlite_database, mode):
    sqlite_database.execute(
        "CREATE TABLE orders (n BIGINT PRIMARY KEY, mail TEXT /* ' */ UNIQUE ON\nconflict Replace)",
        "CREATE TABLE others (n BIGINT PRIMARY KEY,"
        " mail TEXT DEFAULT 'ON CONFLICT REPLACE' UNIQUE -- ON CONFLICT REPLACE\n)",
    )
    schema = s.struct(("n", s.INT64), ("mail", s.STRING))
    for table in ("orders", "others"):
        config = {"insert_mode": mode, "pk_mode": "record_value", "pk_fields": "n", "table_name_format": table}
        runner = SinkRun(sqlite_database, table, **config).open()
        rows = [{"n": 1, "mail": "a"}, {"n": 2, "mail": "a" if table == "orders" else "b"}]
        give(runner, records(*rows, schema=schema))
        notes = [note for note in runner.notes.sentences if "ON CONFLICT REPLACE" in note]
        assert [note.partition(":")[0] for note in notes] == (
            ["The table orders has a constraint that is declared with ON CONFLICT REPLACE"] if table == "orders" else []
        )
    assert sqlite_database.rows("SELECT n FROM orders") == [(2,)]


def test_fields_of_the_whitelist_that_no_record_has_are_named(database):
    database.execute("CREATE TABLE orders (n BIGINT)")
    runner = SinkRun(database, fields_whitelist="n,amuont").open()
    give(runner, records({"n": 1}, schema=s.struct(("n", s.INT64), ("amount", s.OPTIONAL_INT64))))
    (note,) = runner.notes.sentences
    assert note.startswith("No record of this task has amuont, which fields.whitelist names:")


def test_names_that_postgresql_would_cut_are_refused(postgresql_database):
    long = "a" * 64
    schema = s.struct(("n", s.INT64), (long, s.OPTIONAL_STRING))
    run = SinkRun(postgresql_database, auto_create="true", auto_evolve="true", errors_tolerance="all")
    give(run.open(), records({"n": 1, long: "x"}, schema=schema))
    give(run.open(), records({"n": 2}, first=1, schema=s.struct(("n", s.INT64))))
    give(run.open(), records({"n": 3, long: "x"}, first=2, schema=schema))
    assert [offset for offset, text in run.errors.letters if "cuts names after 63 bytes" in text] == [0, 2]
    assert postgresql_database.rows("SELECT n FROM orders") == [(2,)]


def test_arrays_whose_elements_are_rounded_are_named(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (a int[], b numeric[], c text[])")
    schema = s.struct(("a", s.array(s.decimal(2))), ("b", s.array(s.decimal(2))), ("c", s.array(s.STRING)))
    runner = SinkRun(postgresql_database).open()
    give(runner, records({"a": [Decimal("1.25")], "b": [Decimal("1.25")], "c": ["x"]}, schema=schema))
    (note,) = runner.notes.sentences
    assert note.startswith("The column a of orders keeps 0 digits after the point, and the field has 2")
    assert postgresql_database.rows("SELECT a, b FROM orders") == [([1], [Decimal("1.25")])]


BYTES_OF_TEXTS = {
    "utf16": (b"\0a", b"a"),
    "ucs2": (b"\0a", b"abc"),
    "utf32": (b"\0\0\0a", b"\0a\0"),
    "ascii": (b"a?", b"\x80"),
    "cp1251": (b"a?\xff", b"\x98"),
    "latin1": (b"\x80\x81\xff", None),
    "utf8mb4": ("ü😀".encode(), b"\xed\xa0\x80"),
    "utf8mb3": ("ü".encode(), "😀".encode()),
    "sjis": (b"\x81\x98", b"\xff"),
    "binary": (b"\xff", None),
}


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("charset", BYTES_OF_TEXTS)
def test_bytes_that_are_no_text_of_their_column_are_refused(mariadb_database, charset, columnar, mode):
    """MariaDB put a zero byte before those of UTF-16, and kept some that no reader gets back as a character."""
    right, wrong = BYTES_OF_TEXTS[charset]
    mariadb_database.execute(
        f"CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET {charset})",
        "INSERT INTO orders VALUES (0, NULL), (1, NULL), (2, NULL)" if mode == "update" else "SELECT 1",
    )
    schema = s.struct(("id", s.INT32), ("v", s.OPTIONAL_BYTES))
    rows = [right, None] if wrong is None else [right, None, wrong]
    values = [{"id": n, "v": value and base64.b64encode(value).decode()} for n, value in enumerate(rows)]
    config = {"insert_mode": mode, "pk_mode": "record_value", "pk_fields": "id", "errors_tolerance": "all"}
    done = ColumnRun(mariadb_database, schema, **config).copy(values, columnar=columnar)
    kept = dict(mariadb_database.rows("SELECT id, CAST(v AS BINARY) FROM orders"))
    assert (kept[0], kept[1], kept.get(2)) == (right, None, None)
    assert done.letters == ([] if wrong is None else [2])


def test_error_of_bytes_that_are_no_text_names_the_field_and_the_character_set(mariadb_database):
    mariadb_database.execute("CREATE TABLE orders (v VARCHAR(20) CHARACTER SET ucs2)")
    run = SinkRun(mariadb_database, errors_tolerance="all")
    give(run.open(), records({"v": b"abc"}, {"v": b"\0a"}, schema=s.struct(("v", s.BYTES))))
    ((offset, text),) = run.errors.letters
    assert offset == 0 and text.startswith("The field v of orders-0@0 has bytes that are no text of the character set")
    assert mariadb_database.rows("SELECT v FROM orders") == [("a",)]
    # A transformation has made a text of them, and kept the schema: that ended the run with an AttributeError.
    give(SinkRun(mariadb_database, "other").open(), records({"v": "ü"}, schema=s.struct(("v", s.BYTES))))
    assert mariadb_database.rows("SELECT v FROM orders") == [("a",), ("ü",)]


def test_character_set_that_the_server_does_not_convert_is_left_to_it(mariadb_database, monkeypatch):
    monkeypatch.setattr(charsets, "_LONGEST", "SELECT 1 WHERE :name IS NOT NULL")
    with mariadb_database.engine().connect() as connection:
        assert charsets._lost_in(connection, "unknown_set") == frozenset()
        assert charsets._lost_in(connection, "cp1251") == {0x98}


@pytest.mark.parametrize("declared", ["date", "timestamp", "timestamptz", "time", "timetz", "text"])
@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_words_that_postgresql_takes_for_the_time_of_the_write_are_refused(postgresql_database, declared, mode):
    """`now` was stored as another moment by each try of a transaction, and by each run."""
    words = ["now", " TODAY ", "tomorrow", "yesterday 12:00", "now()"]
    fine = ["2026-01-02", "epoch", "infinity"] if declared in ("date", "timestamp", "timestamptz") else ["10:00"]
    texts = [*words, *fine]
    postgresql_database.execute(f"CREATE TABLE orders (n INT PRIMARY KEY, at {declared})")
    if mode == "update":
        postgresql_database.execute(f"INSERT INTO orders SELECT generate_series(0, {len(texts) - 1})")
    schema = s.struct(("n", s.INT32), ("at", s.OPTIONAL_STRING))
    run = SinkRun(postgresql_database, insert_mode=mode, pk_mode="record_value", pk_fields="n", errors_tolerance="all")
    give(run.open(), records(*({"n": n, "at": text} for n, text in enumerate(texts)), schema=schema))
    refused = [] if declared == "text" else list(range(len(words)))
    assert [offset for offset, _ in run.errors.letters] == refused
    assert all("takes for the time at which the row is written" in message for _, message in run.errors.letters)
    rows = postgresql_database.rows("SELECT n FROM orders WHERE at IS NOT NULL ORDER BY n")
    assert [n for (n,) in rows] == [n for n in range(len(texts)) if n not in refused]


@pytest.mark.parametrize("declared", ["daterange", "tsrange", "tstzmultirange"])
def test_words_in_a_range_are_refused(postgresql_database, declared):
    postgresql_database.execute(f"CREATE TABLE orders (n INT PRIMARY KEY, at {declared})")
    texts = ["[2026-01-02,2026-01-03)", "[yesterday,)", "[2026-01-02,infinity)", "[2026-01-02,now]"]
    texts = [f"{{{text}}}" if "multi" in declared else text for text in texts]
    run = SinkRun(postgresql_database, errors_tolerance="all")
    schema = s.struct(("n", s.INT32), ("at", s.STRING))
    give(run.open(), records(*({"n": n, "at": text} for n, text in enumerate(texts)), schema=schema))
    assert [offset for offset, _ in run.errors.letters] == [1, 3]


def test_words_in_a_list_of_dates_and_among_columns_are_refused(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (n INT PRIMARY KEY, at date[])")
    schema = s.struct(("n", s.INT32), ("at", s.array(s.OPTIONAL_STRING)))
    run = ColumnRun(postgresql_database, schema, insert_mode="insert", errors_tolerance="all")
    copied = run.copy([{"n": n, "at": [None, "today" if n == 7 else "2026-01-02"]} for n in range(600)])
    assert (copied.report.written, copied.letters) == (599, [7])


@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "sqlite"])
@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_numbers_of_32_bits_keep_their_digits(request, kind, columnar):
    """They were sent with 64 bits: 0.1 became 0.100000001490116 in a number with decimal digits, and in a text."""
    database = request.getfixturevalue(f"{kind}_database")
    places = {"postgresql": "numeric", "mariadb": "decimal(20, 15)", "sqlite": "numeric"}[kind]
    database.execute(f"CREATE TABLE orders (a {places}, b varchar(30), c double precision, d text)")
    schema = s.struct(*((name, s.Schema(s.Type.FLOAT32, optional=True)) for name in "abcd"))
    rows = [{"a": 0.1, "b": 1.1, "c": 0.5, "d": 3.4}] * 600 + [dict.fromkeys("abcd")]
    assert ColumnRun(database, schema).copy(rows, columnar=columnar).report.written == 601
    (found,) = database.rows("SELECT a, b, c, d FROM orders WHERE c IS NOT NULL GROUP BY a, b, c, d")
    assert (float(found[0]), *found[1:]) == (0.1, "1.1", 0.5, "3.4")


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("key", ["Long", "String"])
def test_fields_that_the_key_hides_are_named_if_they_differ(postgresql_database, columnar, key):
    """As with Confluent's sink, the column has the value of the key, but a lost value of the record was not named."""
    package = "converters.LongConverter" if key == "Long" else "storage.StringConverter"
    schema = s.struct(("id", s.OPTIONAL_INT64), ("n", s.INT64))
    run = ColumnRun(
        postgresql_database, schema, insert_mode="upsert", pk_mode="record_key", pk_fields="id", auto_create="true"
    )
    run.config["key.converter"] = f"org.apache.kafka.connect.{package}"
    keys = [n.to_bytes(8) if key == "Long" else str(n).encode() for n in range(600)]
    rows = [{"id": n + 1000 * (n % 200 == 7), "n": n} for n in range(599)] + [{"id": None, "n": 599}]
    copied = run.copy(rows, keys=keys, columnar=columnar)
    assert (copied.report.written, copied.in_columns) == (600, 600 if columnar else 0)
    (note,) = copied.notes
    assert note.startswith("3 records for the table orders had another value in the field id than the primary key")
    assert "first orders-0@7." in note
    assert postgresql_database.rows("SELECT count(*) FROM orders WHERE id::bigint = n") == [(600,)]


def test_field_that_fields_whitelist_leaves_out_is_not_hidden(postgresql_database):
    config = {"pk_mode": "record_key", "pk_fields": "id", "auto_create": "true", "fields_whitelist": "n"}
    runner = SinkRun(postgresql_database, **config).open()
    schema = s.struct(("id", s.INT64), ("n", s.INT64))
    give(runner, records({"id": 1, "n": 2}, keys=[7], key_schema=s.INT64, schema=schema))
    assert runner.notes.sentences == () and postgresql_database.rows("SELECT id, n FROM orders") == [(7, 2)]
