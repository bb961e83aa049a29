"""Column types of each database: a value in SQL, and the field that the JDBC source makes of it.

tests/integration/connectors/jdbc/source/test_types.py sends every one of them through the source, and
docs/connectors/jdbc-source-types.md is made from this list (`python -m tests.docs.jdbc_types_page`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple


class ColumnType(NamedTuple):
    """One type.

    Attributes:
        declared: in CREATE TABLE.
        literal: a value in SQL.
        field: the Connect type, with its logical name in brackets.
        value: in the Python form of airflow_connect.api.schema; None: the column is left out.
    """

    declared: str
    literal: str
    field: str
    value: Any


_LEFT_OUT = "left out"
_NOON_MS = 1_767_268_800_000
"""2026-01-01T12:00:00Z."""

POSTGRESQL = [
    ColumnType("boolean", "true", "BOOLEAN", True),
    ColumnType("smallint", "-32768", "INT16", -32768),
    ColumnType("integer", "2147483647", "INT32", 2147483647),
    ColumnType("bigint", "-9223372036854775808", "INT64", -(2**63)),
    ColumnType("oid", "4294967295", "INT64", 4294967295),
    ColumnType("real", "1.5", "FLOAT32", 1.5),
    ColumnType("double precision", "0.1", "FLOAT64", 0.1),
    ColumnType("money", "-1234.50", "FLOAT64", -1234.5),
    ColumnType("numeric(38,10)", "-12345678901234567890.0123456789", "BYTES (Decimal, scale 10)",
               Decimal("-12345678901234567890.0123456789")),
    ColumnType("numeric(5,0)", "12345", "BYTES (Decimal, scale 0)", Decimal(12345)),
    ColumnType("numeric", "12345678901234567890", "BYTES (Decimal, scale 0)", Decimal("12345678901234567890")),
    ColumnType("char(3)", "'ab'", "STRING", "ab "),
    ColumnType("varchar(20)", "'Größe 🎉'", "STRING", "Größe 🎉"),
    ColumnType("text", "E'a\\nb'", "STRING", "a\nb"),
    ColumnType("name", "'x'", "STRING", "x"),
    ColumnType('"char"', "'x'", "STRING", "x"),
    ColumnType("json", "'{\"a\": 12345678901234567890}'", "STRING", '{"a": 12345678901234567890}'),
    ColumnType("jsonb", "'[1,null]'", "STRING", "[1, null]"),
    ColumnType("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "STRING", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ColumnType("mood", "'glad'", "STRING", "glad"),
    ColumnType("feeling", "'sad'", "STRING", "sad"),
    ColumnType("short", "7", "INT16", 7),
    ColumnType("bytea", "'\\x00ff'", "BYTES", b"\x00\xff"),
    ColumnType("bit(1)", "B'1'", "BOOLEAN", True),
    ColumnType("bit(3)", "B'101'", "INT8", 5),
    ColumnType("bit(12)", "B'000000000101'", "BYTES", b"000000000101"),
    ColumnType("date", "'1969-12-31'", "INT32 (Date)", -1),
    ColumnType("time", "'23:59:59.999999'", "INT32 (Time)", 86_399_999),
    ColumnType("timetz", "'01:00:00+02'", "INT32 (Time)", 82_800_000),
    ColumnType("timestamp", "'2026-01-01 12:00:00.123456'", "INT64 (Timestamp)", _NOON_MS + 123),
    ColumnType("timestamptz", "'2026-01-01 13:00:00+01'", "INT64 (Timestamp)", _NOON_MS),
    ColumnType("interval", "'1 day'", _LEFT_OUT, None),
    ColumnType("integer[]", "'{1,2}'", _LEFT_OUT, None),
    ColumnType("integer[][]", "'{{1,2},{3,4}}'", _LEFT_OUT, None),
    ColumnType("int4range", "'[1,5)'", _LEFT_OUT, None),
    ColumnType("int4multirange", "'{[1,2),[4,5)}'", _LEFT_OUT, None),
    ColumnType("tsvector", "'a fat cat'", _LEFT_OUT, None),
    ColumnType("inet", "'127.0.0.1'", _LEFT_OUT, None),
    ColumnType("macaddr", "'08:00:2b:01:02:03'", _LEFT_OUT, None),
    ColumnType("point", "'(1,2)'", _LEFT_OUT, None),
    ColumnType("bit varying(5)", "B'101'", _LEFT_OUT, None),
]  # fmt: skip
POSTGRESQL_TYPES = ("CREATE TYPE mood AS ENUM ('sad', 'glad')", "CREATE DOMAIN short AS smallint CHECK (VALUE > 0)",
                    "CREATE DOMAIN feeling AS mood")  # fmt: skip

MARIADB = [
    ColumnType("boolean", "true", "INT8", 1),
    ColumnType("tinyint", "-128", "INT8", -128),
    ColumnType("tinyint unsigned", "255", "INT16", 255),
    ColumnType("smallint", "-32768", "INT16", -32768),
    ColumnType("smallint unsigned", "65535", "INT32", 65535),
    ColumnType("mediumint", "-8388608", "INT32", -8388608),
    ColumnType("mediumint unsigned", "16777215", "INT32", 16777215),
    ColumnType("int", "-2147483648", "INT32", -2147483648),
    ColumnType("int unsigned", "4294967295", "INT64", 4294967295),
    ColumnType("bigint", "-9223372036854775808", "INT64", -(2**63)),
    ColumnType("bigint unsigned", "9223372036854775807", "INT64", 2**63 - 1),
    ColumnType("float", "1.5", "FLOAT32", 1.5),
    ColumnType("double", "0.1", "FLOAT64", 0.1),
    ColumnType("decimal(38,10)", "-12345678901234567890.0123456789", "BYTES (Decimal, scale 10)",
               Decimal("-12345678901234567890.0123456789")),
    ColumnType("decimal(5,0)", "12345", "BYTES (Decimal, scale 0)", Decimal(12345)),
    ColumnType("bit(1)", "b'1'", "INT8", 1),
    ColumnType("bit(8)", "b'11111111'", "INT8", -1),
    ColumnType("bit(12)", "b'000000000101'", "BYTES", b"\x00\x05"),
    ColumnType("char(3)", "'ab'", "STRING", "ab"),
    ColumnType("varchar(20)", "'Größe 🎉'", "STRING", "Größe 🎉"),
    ColumnType("text", "'a\\nb'", "STRING", "a\nb"),
    ColumnType("json", "'{\"a\": 12345678901234567890}'", "STRING", '{"a": 12345678901234567890}'),
    ColumnType("enum('sad','glad')", "'glad'", "STRING", "glad"),
    ColumnType("set('a','b')", "'a,b'", "STRING", "a,b"),
    ColumnType("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "STRING", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ColumnType("inet4", "'127.0.0.1'", "STRING", "127.0.0.1"),
    ColumnType("inet6", "'::1'", "STRING", "::1"),
    ColumnType("binary(3)", "x'00ff'", "BYTES", b"\x00\xff\x00"),
    ColumnType("varbinary(20)", "x'00ff'", "BYTES", b"\x00\xff"),
    ColumnType("blob", "x'00ff'", "BYTES", b"\x00\xff"),
    ColumnType("point", "ST_GeomFromText('POINT(1 2)')", "BYTES",
               bytes.fromhex("000000000101000000000000000000f03f0000000000000040")),
    ColumnType("date", "'1969-12-31'", "INT32 (Date)", -1),
    ColumnType("year", "2026", "INT32 (Date)", 20454),
    ColumnType("year(2)", "69", "INT32 (Date)", 36160),
    ColumnType("time(6)", "'23:59:59.999999'", "INT32 (Time)", 86_399_999),
    ColumnType("datetime(6)", "'2026-01-01 12:00:00.123456'", "INT64 (Timestamp)", _NOON_MS + 123),
    ColumnType("timestamp(3) default '2000-01-01'", "'2026-01-01 12:00:00.123'", "INT64 (Timestamp)", _NOON_MS + 123),
]  # fmt: skip

SQLITE = [
    ColumnType("BOOLEAN", "1", "BOOLEAN", True),
    ColumnType("TINYINT", "-128", "INT8", -128),
    ColumnType("SMALLINT", "-32768", "INT16", -32768),
    ColumnType("INTEGER", "9223372036854775807", "INT64", 2**63 - 1),
    ColumnType("BIGINT", "-9223372036854775808", "INT64", -(2**63)),
    ColumnType("REAL", "0.1", "FLOAT64", 0.1),
    ColumnType("DOUBLE PRECISION", "3", "FLOAT64", 3.0),
    ColumnType("DECIMAL(10,2)", "12345.67", "BYTES (Decimal, scale 2)", Decimal("12345.67")),
    ColumnType("NUMERIC", "12", "BYTES (Decimal, scale 0)", Decimal(12)),
    ColumnType("TEXT", "'Größe 🎉'", "STRING", "Größe 🎉"),
    ColumnType("VARCHAR(20)", "'a'", "STRING", "a"),
    ColumnType("CLOB", "'a'", "STRING", "a"),
    ColumnType("ANY", "'a'", "STRING", "a"),
    ColumnType("BLOB", "x'00ff'", "BYTES", b"\x00\xff"),
    ColumnType("DATE", "'1969-12-31'", "INT32 (Date)", -1),
    ColumnType("TIME", "'23:59:59.999'", "INT32 (Time)", 86_399_999),
    ColumnType("TIMESTAMP", "'2026-01-01 12:00:00.123'", "INT64 (Timestamp)", _NOON_MS + 123),
    ColumnType("DATETIME", "'2026-01-01T13:00:00+01:00'", "INT64 (Timestamp)", _NOON_MS),
]
"""SQLite keeps a type per value; the declared type of the column counts."""

ALL = {"PostgreSQL": POSTGRESQL, "MariaDB": MARIADB, "SQLite": SQLITE}
