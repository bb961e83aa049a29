"""The edge values of each column type become the same records on each path: record by record, in columns, by ADBC."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_connect.connectors.jdbc.source import task as task_module
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.databases import Database
from tests.support.session.many_cases import check_each
from tests.support.values.jdbc_edges import EDGE_TYPES, POSTGRESQL_EDGES, POSTGRESQL_NUMBERS, Types

pytestmark = pytest.mark.integration

MARIADB: Types = [
    ("boolean", ["true", "2"]),
    ("tinyint unsigned", ["255"]),
    ("mediumint unsigned", ["16777215"]),
    ("int(5) unsigned zerofill", ["42"]),
    ("bigint unsigned", ["9223372036854775807", "9223372036854775808"]),
    ("float", ["0.1", "16777215", "3.4028234663852886e38", "1.4e-45", "-0e0", "1234567.9"]),
    ("double", ["0.1", "-0e0", "5e-324", "1.7976931348623157e308"]),
    ("decimal(65,30)", ["12345678901234567890123456789012345.123456789012345678901234567890", "0"]),
    ("decimal(38,38)", ["0.1"]),
    ("decimal(10,2) unsigned", ["1.5"]),
    ("bit(1)", ["b'1'"]),
    ("bit(8)", ["b'10000000'"]),
    ("bit(64)", ["b'1'"]),
    ("char(3)", ["''", "'a '"]),
    ("varchar(20)", ["''", "'é🎉'", "'a  '"]),
    ("varchar(5) character set latin1 collate latin1_bin", ["'é'"]),
    ("json", ["'{\"a\": 1e400}'", "'null'"]),
    ("enum('sad','')", ["'sad'", "''"]),
    ("set('a','b')", ["'a,b'", "''"]),
    ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    ("inet6", ["'::ffff:1.2.3.4'"]),
    ("binary(3)", ["x'00'"]),
    ("blob", ["''", "x'00ff5c27'"]),
    ("date", ["'0000-00-00'", "'0001-01-01'", "'9999-12-31'"]),
    ("year", ["2026", "0", "1901", "2155"]),
    ("year(2)", ["70", "69", "0"]),
    ("time(6)", ["'23:59:59.999999'", "'-00:00:00.000001'", "'838:59:59'", "'24:00:00'"]),
    ("datetime(6)", ["'0000-00-00'", "'1969-12-31 23:59:59.999999'", "'2026-03-29 02:30'", "'9999-12-31 23:59:59'"]),
    ("timestamp(6) null", ["'1970-01-01 00:00:01.000001'", "0"]),
]
SQLITE: Types = [
    ("BOOLEAN", ["1", "'TRUE'", "1.0"]),
    ("TINYINT", ["-128", "128", "'7'"]),
    ("INTEGER", ["9223372036854775807", "1e300"]),
    ("REAL", ["0.1", "9e999", "-0.0", "9007199254740993"]),
    ("DECIMAL(10,2)", ["12345.67", "0.1+0.2", "1e300", "9e999", "'12.5'"]),
    ("NUMERIC", ["12", "1e20", "9e999"]),
    ("NUMERIC(5,0)", ["99999"]),
    ("NUMERIC(9,2)", ["1.25"]),
    ("TEXT", ["''", "1.5", "x'c3a9'", "'a' || char(0)"]),
    ("ANY", ["1e300", "x'61'", "12345678901234567890"]),
    ("BLOB", ["x'00ff'", "'a'", "1.5", "x''"]),
    ("DATE", ["'1969-12-31'", "'2026-01-01'"]),
    ("TIME", ["'23:59:59.999'", "86400001", "'12:00:00+02:00'"]),
    ("TIMESTAMP", ["'2026-01-01 12:00:00.123456'", "'2026-01-01T13:00:00+01:00'"]),
    ("INTEGER", ["1.5"]),
    ("TEXT", ["x'ff'"]),
]
REFUSED = {"1.5", "x'ff'"}
"""First values of types that no setting makes fit; the table of all types has null instead."""
MAPPINGS = [{"numeric.mapping": name} for name in ("precision_only", "best_fit", "best_fit_eager_double")]
NULLS, NEAREST = ({"values.out.of.range": action} for action in ("null", "clamp"))
SETTINGS = [{}, NULLS, {**NEAREST, "db.timezone": "Europe/Berlin"}]
GRANULARITIES = [
    {**NULLS, "timestamp.granularity": name} for name in ("micros_long", "nanos_long", "nanos_iso_datetime_string")
]


def tables(database: Database, types: Types) -> dict[str, str]:
    """A table for each type, with its values and null, and one with all types; what each holds, by name."""
    statements, made = [], {}
    for number, (kind, literals) in enumerate(types):
        rows = ", ".join(f"({literal})" for literal in [*literals, "NULL"])
        statements += [f"CREATE TABLE t{number} (v {kind})", f"INSERT INTO t{number} VALUES {rows}"]
        made[f"t{number}"] = f"{kind}: {', '.join(literals)[:80]}"
    columns = ", ".join(f"c{number} {kind}" for number, (kind, _) in enumerate(types))
    firsts = ", ".join("NULL" if literals[0] in REFUSED else literals[0] for _, literals in types)
    statements += [f"CREATE TABLE wide ({columns})", f"INSERT INTO wide VALUES ({firsts})"]
    database.execute(*(statement.replace("%", "%%") for statement in statements))
    return {**made, "wide": "all types"}


def run_of(config: Mapping[str, str], path: str) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        if path != "adbc":
            patch.setattr(task_module, "arrow_stream", lambda connection, isolation: None)
        return Copies({"mode": "bulk", **config}, columnar=path != "records").run()


def outcome(run: Run) -> dict[str, list[str]]:
    """What became of each table, and what was said; `repr`, because NaN does not equal itself, and -0.0 equals 0.0."""
    found: dict[str, list[str]] = {"notes": [repr((sorted(run.notes), sorted(run.numbers.items())))]}
    for record in run.records:
        text = f"{record.value_schema} {record.value!r} {record.source_offset}"
        found.setdefault(record.topic.removeprefix("db-") or "query", []).append(text)
    for place, error in run.left_out.items():
        found.setdefault(place.rpartition(".")[2].split()[-1], []).append(error.message)
    return found


def check(database: Database, types: Types, settings: Sequence[Mapping[str, str]], paths: Sequence[str]) -> None:
    made = tables(database, types)
    sources = [{**setting, "table.whitelist": ",".join(made)} for setting in settings]
    sources.append({**NULLS, "query": "SELECT * FROM wide"})
    cases = []
    for source in sources:
        config = {"connection.url": database.jdbc_url, **source}
        first, *others = (outcome(run_of(config, path)) for path in paths)
        assert len(first) >= (2 if "query" in source else len(made)), "a table has no outcome"
        setting = {name: value for name, value in source.items() if name != "table.whitelist"}
        cases += [
            (f"{setting} {made.get(table, table)} ({path})", first.get(table), other.get(table))
            for path, other in zip(paths[1:], others, strict=True)
            for table in first.keys() | other.keys()
        ]

    def equal(case: tuple[str, Any, Any]) -> None:
        assert case[2] == case[1]

    check_each(cases, lambda case: case[0], equal)


def test_every_type_of_postgresql_is_the_same_on_each_path(postgresql_database: Database) -> None:
    postgresql_database.execute(*EDGE_TYPES)
    check(postgresql_database, POSTGRESQL_EDGES, SETTINGS, ["records", "columns", "adbc"])


def test_every_number_of_postgresql_is_the_same_on_each_path(postgresql_database: Database) -> None:
    postgresql_database.execute(*EDGE_TYPES)
    settings = [{**mapping, **NULLS} for mapping in MAPPINGS]
    check(postgresql_database, POSTGRESQL_NUMBERS, settings, ["records", "columns", "adbc"])


def test_every_time_of_postgresql_is_the_same_on_each_path(postgresql_database: Database) -> None:
    times = [one for one in POSTGRESQL_EDGES if one[0].startswith("timestamp")]
    check(postgresql_database, times, GRANULARITIES, ["records", "columns", "adbc"])


def test_every_type_of_mariadb_is_the_same_on_each_path(mariadb_database: Database) -> None:
    check(mariadb_database, MARIADB, [*SETTINGS, *GRANULARITIES], ["records", "columns"])


def test_every_type_of_sqlite_is_the_same_on_each_path(sqlite_database: Database) -> None:
    check(sqlite_database, SQLITE, [*SETTINGS, *MAPPINGS], ["records", "columns"])


def test_number_with_more_digits_than_arrow_has_is_exact(postgresql_database: Database) -> None:
    """Arrow's cast of 39 sevens to a decimal128 is another number with 38 digits, without an error."""
    numbers = [int("7" * 39), -int("7" * 50), 10**400]
    rows = ", ".join(f"({number})" for number in numbers)
    postgresql_database.execute("CREATE TABLE n (v numeric)", f"INSERT INTO n VALUES {rows}")
    run = run_of({"connection.url": postgresql_database.jdbc_url}, "adbc")
    assert [int(value["v"]) for value in run.values] == numbers


def test_real_is_a_float_of_32_bits(postgresql_database: Database) -> None:
    postgresql_database.execute("CREATE TABLE n (v real)", "INSERT INTO n VALUES (0.1), (3.4028235e38)")
    run = run_of({"connection.url": postgresql_database.jdbc_url}, "records")
    assert [value["v"] for value in run.values] == list(struct.unpack("<2f", struct.pack("<2f", 0.1, 3.4028235e38)))


def test_float_of_mariadb_keeps_the_sign_of_zero(mariadb_database: Database) -> None:
    mariadb_database.execute("CREATE TABLE n (a float, b double)", "INSERT INTO n VALUES (-0e0, -0e0)")
    run = run_of({"connection.url": mariadb_database.jdbc_url}, "records")
    assert repr(run.values) == "[{'a': -0.0, 'b': -0.0}]"


def test_year_of_two_digits_is_one_of_1970_to_2069(mariadb_database: Database) -> None:
    mariadb_database.execute("CREATE TABLE n (a year(2))", "INSERT INTO n VALUES (70), (99), (0), (69)")
    run = run_of({"connection.url": mariadb_database.jdbc_url}, "records")
    assert [value["a"] for value in run.values] == [0, 10592, 10957, 36160]


@pytest.mark.parametrize("columnar", [False, True])
def test_offset_beyond_64_bits_is_continued(postgresql_database: Database, columnar: bool) -> None:
    """The number was bound as a BIGINT: the first run copied the table, and the next one failed."""
    first = 10**30
    postgresql_database.execute("CREATE TABLE n (id numeric(40) PRIMARY KEY)", f"INSERT INTO n VALUES ({first})")
    config = {"mode": "incrementing", "incrementing.column.name": "id", "connection.url": postgresql_database.jdbc_url}
    runs = Copies(config, columnar=columnar)
    assert [int(number) for number in runs.run().ids()] == [first]
    postgresql_database.execute(f"INSERT INTO n VALUES ({first + 1})")
    assert [int(number) for number in runs.run().ids()] == [first + 1]


@pytest.mark.parametrize("columnar", [False, True])
def test_numbers_beyond_64_bits_are_divided(postgresql_database: Database, columnar: bool) -> None:
    postgresql_database.execute(
        "CREATE TABLE n (id numeric(40) PRIMARY KEY)",
        "INSERT INTO n SELECT i + 1e39 FROM generate_series(1, 300) i",
        "ANALYZE n",
    )
    config = {"mode": "incrementing", "incrementing.column.name": "id", "table.split.min.rows": "50"}
    runs = Copies({**config, "connection.url": postgresql_database.jdbc_url}, columnar=columnar)
    run = runs.run(tasks=3)
    assert any("is read in 3 ranges of id" in note for note in run.notes)
    assert sorted(int(number) for number in run.ids()) == [10**39 + i for i in range(1, 301)]
