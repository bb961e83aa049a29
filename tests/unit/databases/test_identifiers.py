"""Names of tables and columns in statements."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mssql, mysql, postgresql, sqlite

from airflow_connect.databases.identifiers import Quoting, TableId, split_name
from airflow_connect.errors import ConfigError
from tests.support.session.searching import examples, settings

PG, MY = Quoting(postgresql.dialect()), Quoting(mysql.dialect())  # type: ignore[no-untyped-call]
MS, LITE = Quoting(mssql.dialect()), Quoting(sqlite.dialect())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("quoting", "name", "quoted"),
    [
        (PG, "order", '"order"'),
        (PG, 'a"b', '"a""b"'),
        (PG, "my table", '"my table"'),
        (PG, "Größe", '"Größe"'),
        (PG, "x; DROP TABLE y; --", '"x; DROP TABLE y; --"'),
        (MY, "a`b", "`a``b`"),
        (MS, "a]b", "[a]]b]"),
        (LITE, "select", '"select"'),
    ],
)
def test_name_is_quoted(quoting: Quoting, name: str, quoted: str) -> None:
    assert quoting.name(name) == quoted


def test_table_is_written_with_the_parts_that_the_database_has() -> None:
    assert PG.table(TableId("db", "public", "orders")) == '"public"."orders"'
    assert MY.table(TableId("shop", "", "orders")) == "`shop`.`orders`"
    assert LITE.table(TableId("", "", "orders")) == '"orders"'


def test_unquoted_names_must_be_plain() -> None:
    plain = Quoting(postgresql.dialect(), quotes=False)  # type: ignore[no-untyped-call]
    assert plain.table(TableId("", "public", "Orders$1")) == "public.Orders$1"
    for name in ("a b", "a;b", 'a"b', "1a", "", "a.b", "a--b"):
        with pytest.raises(ConfigError, match="cannot be used"):
            plain.name(name)
        with pytest.raises(ConfigError, match="cannot be used"):
            plain.element(name)


@pytest.mark.parametrize(
    ("quoting", "text", "expected"),
    [
        (PG, "orders", TableId("", "", "orders")),
        (PG, "public.orders", TableId("", "public", "orders")),
        (PG, "db.public.orders", TableId("db", "public", "orders")),
        (PG, 'public."a.b"', TableId("", "public", "a.b")),
        (PG, 'public."a""b"', TableId("", "public", 'a"b')),
        (PG, "my table", TableId("", "", "my table")),
        (MY, "shop.orders", TableId("shop", "", "orders")),
        (MY, "`a.b`.`c`", TableId("a.b", "", "c")),
        (MS, "[a.b].c", TableId("", "a.b", "c")),
    ],
)
def test_table_name_is_parsed(quoting: Quoting, text: str, expected: TableId) -> None:
    assert quoting.parse(text) == expected


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", '"a', 'a"b', '"a"b', "a.b.c.d"])
def test_wrong_table_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PG.parse(text)
    assert caught.value.code == "database.name"


@settings(max_examples=examples(100))
@given(st.lists(st.text(min_size=1).filter(lambda s: "\0" not in s), min_size=1, max_size=3))
def test_quoted_name_is_parsed_back(parts: list[str]) -> None:
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    assert split_name(quoted) == parts


@settings(max_examples=examples(100))
@given(st.text(min_size=1).filter(lambda s: "\0" not in s and not any(0xD800 <= ord(c) < 0xE000 for c in s)))
def test_any_name_is_one_column_for_a_real_database(name: str) -> None:
    with sqlite3.connect(":memory:") as connection:
        # The driver of SQLite takes ? as parameters, so SQLAlchemy doubles nothing.
        connection.execute(f"create table t ({LITE.name(name)} integer)")
        assert [row[1] for row in connection.execute("pragma table_info(t)")] == [name]
    connection.close()
