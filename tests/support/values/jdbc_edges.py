"""Values at the edges of the types of PostgreSQL, in SQL, for tests that compare the paths of the JDBC source."""

from __future__ import annotations

from collections.abc import Sequence

Types = Sequence[tuple[str, Sequence[str]]]

EDGE_TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE DOMAIN feeling AS mood",
    "CREATE DOMAIN cents AS numeric(12,2)",
    "CREATE DOMAIN label AS char(4)",
    "CREATE DOMAIN moment AS timestamptz(3)",
)


def apart(kind: str, *literals: str) -> Types:
    """Values in tables of their own: one that does not fit makes the others of a batch take the slow path, too."""
    return [(kind, [literal]) for literal in literals]


POSTGRESQL_NUMBERS: Types = [
    ("numeric", ["0", "-1", "1.0", "7" * 38]),
    *apart("numeric", "1e38", "-" + "7" * 39, "7" * 50, "7" * 77, "7" * 100, "1e400"),
    *apart("numeric", "5." + "0" * 60, "123456." + "0" * 500, "1.5", "'NaN'", "'-Infinity'"),
    ("numeric(2)", ["-99", "0"]),
    ("numeric(2)", ["'NaN'"]),
    ("numeric(5,0)", ["-99999"]),
    ("numeric(5,0)", ["'NaN'"]),
    ("numeric(3,-2)", ["99900", "-100", "0"]),
    ("numeric(2,5)", ["0.00099", "-0.00001"]),
    ("numeric(9)", ["999999999"]),
    ("numeric(9)", ["'NaN'"]),
    ("numeric(18)", ["-999999999999999999"]),
    ("numeric(19)", ["9999999999999999999"]),
    ("numeric(15,4)", ["12345678901.2345", "-0.0001"]),
    ("numeric(15,4)", ["'NaN'"]),
    ("numeric(18,4)", ["12345678901234.5678"]),
    ("numeric(38,10)", ["9999999999999999999999999999.9999999999"]),
    ("numeric(38,38)", ["-0.99999999999999999999999999999999999999"]),
    ("numeric(39)", ["9" * 39]),
    ("numeric(60,20)", ["1234567890123456789012345678901234567890.12345678901234567891"]),
    ("numeric(1000,500)", ["1e-500", "1e499"]),
    ("cents", ["1.20", "-0.01"]),
]
POSTGRESQL_EDGES: Types = [
    *POSTGRESQL_NUMBERS,
    ("boolean", ["true", "false"]),
    ("smallint", ["-32768", "32767"]),
    ("bigint", ["-9223372036854775808", "9223372036854775807"]),
    ("oid", ["4294967295"]),
    ("real", ["0.1", "'-0'", "'NaN'", "'Infinity'", "'-Infinity'", "1e-45", "3.4028235e38", "16777216", "1234567.9"]),
    ("double precision", ["0.1", "'-0'", "'NaN'", "'-Infinity'", "5e-324", "1.7976931348623157e308"]),
    ("money", ["'92233720368547758.07'", "'-92233720368547758.08'", "-0.01"]),
    ("char(3)", ["''", "'é'"]),
    ("varchar(5)", ["''", "'a  '"]),
    ("bpchar", ["'a  '"]),
    ("label", ["'x '"]),
    ("text", ["''", r"E'\x01\n\t'", r"U&'\+01F389'", r"U&'\FFFF'"]),
    ("name", ["'é'"]),
    ('"char"', ["'x'", "''", "'é'"]),
    ("json", ['\'{"a": 1e400,  "a":2}\'', "'null'"]),
    ("jsonb", ['\'{"a": 1e400, "b":"\\u00e9"}\'', "'null'"]),
    ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    ("feeling", ["'sad'"]),
    ("bytea", ["''", r"'\x00ff5c'"]),
    ("bit", ["B'1'", "B'0'"]),
    ("bit(3)", ["B'111'"]),
    ("bit(8)", ["B'10000000'", "B'11111111'"]),
    ("bit(12)", ["B'000000000101'"]),
    ("date", ["'1969-12-31'", "'0001-01-01'", "'9999-12-31'", "'1582-10-10'"]),
    *apart("date", "'infinity'", "'-infinity'", "'0044-03-15 BC'", "'10000-01-01'"),
    ("time", ["'00:00'", "'23:59:59.999999'", "'00:00:00.0009'"]),
    ("time", ["'24:00'"]),
    ("timetz", ["'00:00+14'", "'24:00+02'", "'23:59:59.999999-15:59:59'", "'01:02:03+01:02:03'"]),
    ("timestamp", ["'1969-12-31 23:59:59.999999'", "'2026-03-29 02:30'", "'2026-10-25 02:30'", "'1900-01-01'"]),
    *apart("timestamp", "'infinity'", "'-infinity'", "'0001-01-01'", "'0044-03-15 BC'", "'9999-12-31 23:59:59.999999'"),
    *apart("timestamp", "'1677-09-21'", "'2262-04-12'"),
    ("timestamptz", ["'1969-12-31 23:59:59.999999Z'", "'2026-10-25 02:30+01'"]),
    *apart("timestamptz", "'infinity'", "'-infinity'", "'0001-01-01+10'", "'10000-01-01Z'", "'1677-09-21Z'"),
    ("moment", ["'2026-01-01 00:00:00.9996+02'"]),
    *((kind, ["NULL"]) for kind in ("interval", "integer[]", "mood[]", "int4range", "inet", "cidr", "pair", "xid")),
]
