"""Every column type of every database becomes the field that the documentation names."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from airflow_connect.api.schema import DECIMAL_SCALE, Schema
from airflow_connect.errors import DataError
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.values.jdbc_types import MARIADB, POSTGRESQL, POSTGRESQL_TYPES, SQLITE, ColumnType

pytestmark = pytest.mark.integration


def shown(schema: Schema) -> str:
    text = schema.type.name
    if schema.name is not None:
        scale = f", scale {schema.parameters[DECIMAL_SCALE]}" if DECIMAL_SCALE in schema.parameters else ""
        text += f" ({schema.name.rpartition('.')[2]}{scale})"
    return text


def check(database: Database, types: Sequence[ColumnType], columnar: bool) -> None:
    columns = ", ".join(f"c{n} {kind.declared} NULL" for n, kind in enumerate(types))
    literals = ", ".join(kind.literal.replace("%", "%%") for kind in types)
    database.execute(
        f"CREATE TABLE every_type ({columns})",
        f"INSERT INTO every_type VALUES ({literals})",
        f"INSERT INTO every_type VALUES ({', '.join('NULL' for _ in types)})",
    )
    run = Copies({"connection.url": database.jdbc_url, "mode": "bulk"}, columnar=columnar).run()
    full, empty = run.records
    assert full.value_schema is not None and full.value_schema.name == "every_type"
    fields = full.value_schema.fields_by_name
    for number, kind in enumerate(types):
        name = f"c{number}"
        if kind.value is None:
            assert name not in fields, kind.declared
            assert any(f"{name} (" in note and "are left out" in note for note in run.notes), kind.declared
            continue
        assert shown(fields[name].schema) == kind.field, kind.declared
        assert fields[name].schema.optional
        found: Any = full.value[name]
        assert (found, type(found)) == (kind.value, type(kind.value)), kind.declared
        assert empty.value[name] is None, kind.declared


@pytest.mark.parametrize("columnar", [False, True])
def test_every_type_of_postgresql(postgresql_database: Database, columnar: bool) -> None:
    postgresql_database.execute(*POSTGRESQL_TYPES)
    check(postgresql_database, POSTGRESQL, columnar)


@pytest.mark.parametrize("columnar", [False, True])
def test_every_type_of_mariadb(mariadb_database: Database, columnar: bool) -> None:
    check(mariadb_database, MARIADB, columnar)


@pytest.mark.parametrize("columnar", [False, True])
def test_every_type_of_sqlite(sqlite_database: Database, columnar: bool) -> None:
    check(sqlite_database, SQLITE, columnar)


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ("none", ["Decimal", "Decimal", "Decimal", "Decimal", "Decimal", "Decimal"]),
        ("precision_only", ["INT8", "INT16", "INT32", "INT64", "Decimal", "Decimal"]),
        ("best_fit", ["INT8", "INT16", "INT32", "INT64", "Decimal", "FLOAT64"]),
        ("best_fit_eager_double", ["INT8", "INT16", "INT32", "INT64", "Decimal", "FLOAT64"]),
    ],
)
def test_numeric_mapping(postgresql_database: Database, mapping: str, expected: list[str]) -> None:
    postgresql_database.execute(
        "CREATE TABLE n (a numeric(2), b numeric(4), c numeric(9), d numeric(18), e numeric(19), f numeric(10,2))",
        "INSERT INTO n VALUES (12, 1234, 123456789, 123456789012345678, 1234567890123456789, 1.25)",
    )
    run = Copies({"connection.url": postgresql_database.jdbc_url, "mode": "bulk", "numeric.mapping": mapping}).run()
    (record,) = run.records
    assert record.value_schema is not None
    found = [f.schema.type.name if f.schema.name is None else "Decimal" for f in record.value_schema.fields]
    assert found == expected
    values = [12, 1234, 123456789, 123456789012345678, 1234567890123456789, Decimal("1.25")]
    assert list(record.value.values()) == values
    scales = [f.schema.parameters.get("connect.decimal.precision") for f in record.value_schema.fields]
    assert scales[4] == "19"


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("mapping", ["best_fit", "best_fit_eager_double", "precision_only"])
def test_numbers_that_lose_digits_in_a_double_are_named(
    postgresql_database: Database, mapping: str, columnar: bool
) -> None:
    postgresql_database.execute(
        "CREATE TABLE n (a numeric(18,4), b numeric(15,4), c numeric(30,2), d numeric)",
        "INSERT INTO n VALUES (12345678901234.5678, 12345678901.2345, 1234567890123456789012345678.25, 7)",
    )
    config = {"connection.url": postgresql_database.jdbc_url, "mode": "bulk", "numeric.mapping": mapping}
    run = Copies(config, columnar=columnar).run()
    named = [note for note in run.notes if "become FLOAT64" in note]
    listed = {"best_fit": "a (numeric)", "best_fit_eager_double": "a (numeric), c (numeric), d (numeric)"}
    if mapping == "precision_only":
        assert named == [] and run.values[0]["a"] == Decimal("12345678901234.5678")
    else:
        (note,) = named
        assert f"keeps about 15 digits of a number: {listed[mapping]}." in note
        assert Decimal(repr(run.values[0]["a"])) != Decimal("12345678901234.5678")


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_columns_with_eight_bits_whose_numbers_may_be_negative_are_named(
    request: pytest.FixtureRequest, kind: str
) -> None:
    database: Database = request.getfixturevalue(f"{kind}_database")
    database.execute("CREATE TABLE n (a bit(8), b bit(7))", "INSERT INTO n VALUES (b'11111111', b'1111111')")
    config = {"connection.url": database.jdbc_url, "mode": "bulk"}
    for columnar in (False, True):
        run = Copies(config, columnar=columnar).run()
        assert run.values == [{"a": -1, "b": 127}]
        (note,) = [note for note in run.notes if "become INT8" in note]
        assert "such as -1 for 255: a (bit)." in note


def test_number_without_declared_scale_is_refused_if_it_has_a_fraction(postgresql_database: Database) -> None:
    postgresql_database.execute("CREATE TABLE n (a numeric)", "INSERT INTO n VALUES (1.5)")
    config = {"connection.url": postgresql_database.jdbc_url, "mode": "bulk"}
    with pytest.raises(DataError, match=r"column a \(numeric\) of the table n .*best_fit_eager_double"):
        Copies(config).run()
    assert Copies({**config, "numeric.mapping": "best_fit_eager_double"}).run().values == [{"a": 1.5}]


MICROS = 1_767_268_800_123_456


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        ("connect_logical", MICROS // 1000),
        ("micros_long", MICROS),
        ("micros_string", str(MICROS)),
        ("micros_iso_datetime_string", "2026-01-01T13:00:00.123456"),
        ("nanos_long", MICROS * 1000),
        ("nanos_string", str(MICROS * 1000)),
        ("nanos_iso_datetime_string", "2026-01-01T13:00:00.123456000"),
    ],
)
def test_timestamp_granularity(postgresql_database: Database, granularity: str, expected: Any) -> None:
    postgresql_database.execute(
        "CREATE TABLE t (a timestamp, b timestamptz)",
        "INSERT INTO t VALUES ('2026-01-01 13:00:00.123456', '2026-01-01 12:00:00.123456Z')",
    )
    config = {
        "connection.url": postgresql_database.jdbc_url, "mode": "bulk", "timestamp.granularity": granularity,
        "db.timezone": "Europe/Berlin",
    }  # fmt: skip
    assert Copies(config).run().values == [{"a": expected, "b": expected}]
