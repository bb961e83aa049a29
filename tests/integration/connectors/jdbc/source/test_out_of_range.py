"""Values that their field cannot hold: `values.out.of.range`, and zeroDateTimeBehavior of a URL of MySQL."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_connect.connectors.jdbc.source.read.loaders import load_leniently
from airflow_connect.connectors.jdbc.source.values.out_of_range import Beyond
from airflow_connect.errors import ConfigError, DataError
from tests.support.copies.jdbc_source import Copies, Run
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration
BOTH_PATHS = pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
FIRST_DAY, LAST_DAY = (date.min - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999

POSTGRESQL: dict[str, list[tuple[str, Any]]] = {
    "date": [
        ("infinity", LAST_DAY), ("-infinity", FIRST_DAY), ("0044-03-15 BC", FIRST_DAY), ("10000-01-01", LAST_DAY),
        ("5874897-12-31", LAST_DAY), ("9999-12-31", LAST_DAY),
    ],
    "timestamp": [
        ("infinity", LAST_MS), ("-infinity", FIRST_MS), ("4714-11-24 BC", FIRST_MS), ("10000-01-01", LAST_MS),
        ("294276-12-31", LAST_MS), ("9999-12-31 23:59:59.999999", LAST_MS),
    ],
    "timestamptz": [
        ("infinity", LAST_MS), ("-infinity", FIRST_MS), ("0044-03-15 00:00+00 BC", FIRST_MS),
        ("12000-01-01 00:00+00", LAST_MS), ("2020-01-01 00:00+00", 1_577_836_800_000),
    ],
    "time": [("24:00", 86_399_999), ("23:00", 82_800_000)],
    "timetz": [("24:00+02", 86_399_999), ("23:00+00", 82_800_000)],
    "numeric": [("NaN", None), ("Infinity", None), ("-Infinity", None), ("12", Decimal(12))],
}  # fmt: skip
HUGE = "1" + "0" * 400
"""A number of PostgreSQL that a double would hold as infinity."""
ZERO: dict[str, list[tuple[str, Any]]] = {
    "date": [("0000-00-00", FIRST_DAY), ("2020-01-01", 18_262)],
    "datetime(6)": [("0000-00-00", FIRST_MS), ("2020-01-01", 1_577_836_800_000)],
    "timestamp": [("0000-00-00", FIRST_MS), ("2020-01-01", 1_577_836_800_000)],
}
MARIADB = {
    **ZERO,
    "year": [("0000", FIRST_DAY), ("2020", 18_262)],
    "time": [("25:00:00", 86_399_999), ("-01:00:00", 0), ("01:00:00", 3_600_000)],
    "bigint unsigned": [("18446744073709551615", (1 << 63) - 1), ("7", 7)],
}
FITS = frozenset(
    {"9999-12-31", "9999-12-31 23:59:59.999999", "2020-01-01 00:00+00", "2020-01-01", "2020", "23:00", "23:00+00",
     "12", "01:00:00", "7"}
)  # fmt: skip


def filled(database: Database, kind: str, literals: list[str]) -> None:
    rows = ", ".join(f"({n}, '{literal}')" for n, literal in enumerate(literals))
    with database.connected() as connection:
        if database.dialect == "mysql":
            connection.exec_driver_sql("SET sql_mode = ''")
        connection.exec_driver_sql(f"CREATE TABLE t (id int NOT NULL PRIMARY KEY, a {kind} NULL)")
        connection.exec_driver_sql(f"INSERT INTO t VALUES {rows}")


def copied(database: Database, columnar: bool, parameter: str = "", **more: str) -> Run:
    url = database.jdbc_url
    if parameter:
        url += ("&" if "?" in url else "?") + parameter
    config = {"connection.url": url, "mode": "incrementing", "incrementing.column.name": "id", **more}
    return Copies(config, columnar=columnar).run()


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(f"{request.param}_database")
    return made


@BOTH_PATHS
def test_values_out_of_range_become_null_or_the_nearest_and_are_counted(database: Database, columnar: bool) -> None:
    for kind, cases in (POSTGRESQL if database.dialect == "postgresql" else MARIADB).items():
        database.execute("DROP TABLE IF EXISTS t")
        filled(database, kind, [literal for literal, _ in cases])
        misfits = [literal for literal, _ in cases if literal not in FITS]
        nearest = [value for _, value in cases]

        run = copied(database, columnar, **{"values.out.of.range": "null"})
        assert run.ids("a") == [n if text in FITS else None for text, n in cases], kind
        [(sentence, number)] = run.numbers.items()
        assert number == len(misfits) and "column a (" in sentence and "table t" in sentence, kind

        if kind != "numeric":
            run = copied(database, columnar, **{"values.out.of.range": "clamp"})
            assert run.ids("a") == nearest, kind
            assert list(run.numbers.values()) == [len(misfits)], kind
        with pytest.raises(DataError, match=r"column a .* of the table t .*values\.out\.of\.range"):
            copied(database, columnar)


@BOTH_PATHS
@pytest.mark.parametrize(("mapping", "declared"), [("none", "numeric"), ("precision_only", "numeric(9)")])
def test_a_number_that_is_none_has_no_nearest(
    postgresql_database: Database, mapping: str, declared: str, columnar: bool
) -> None:
    filled(postgresql_database, declared, ["1", "NaN"])
    more = {"numeric.mapping": mapping}
    with pytest.raises(DataError, match="no nearest value"):
        copied(postgresql_database, columnar, **more, **{"values.out.of.range": "clamp"})
    assert copied(postgresql_database, columnar, **more, **{"values.out.of.range": "null"}).ids("a") == [1, None]


@BOTH_PATHS
def test_null_is_refused_for_a_column_that_is_not_null(postgresql_database: Database, columnar: bool) -> None:
    filled(postgresql_database, "date", ["infinity"])
    postgresql_database.execute("ALTER TABLE t ALTER a SET NOT NULL")
    with pytest.raises(DataError, match="NOT NULL"):
        copied(postgresql_database, columnar, **{"values.out.of.range": "null"})


@BOTH_PATHS
@pytest.mark.parametrize("granularity", ["nanos_long", "micros_iso_datetime_string"])
def test_nearest_of_other_granularities(postgresql_database: Database, granularity: str, columnar: bool) -> None:
    filled(postgresql_database, "timestamp", ["infinity", "-infinity", "3000-01-01", "2020-01-01"])
    more = {"timestamp.granularity": granularity, "db.timezone": "Europe/Berlin", "values.out.of.range": "clamp"}
    most, least = (1 << 63) - 1, -(1 << 63)
    expected = {
        "nanos_long": [most, least, most, 1_577_833_200_000_000_000],
        "micros_iso_datetime_string": [
            "9999-12-31T23:59:59.999999", "0001-01-01T00:00:00.000000", "3000-01-01T00:00:00.000000",
            "2020-01-01T00:00:00.000000",
        ],
    }  # fmt: skip
    assert copied(postgresql_database, columnar, **more).ids("a") == expected[granularity]


@BOTH_PATHS
@pytest.mark.parametrize("word", ["CONVERT_TO_NULL", "convertToNull", "ROUND", "round"])
def test_url_of_mysql_says_what_a_zero_date_becomes(mariadb_database: Database, word: str, columnar: bool) -> None:
    for kind, cases in ZERO.items():
        mariadb_database.execute("DROP TABLE IF EXISTS t")
        filled(mariadb_database, kind, [literal for literal, _ in cases])
        run = copied(mariadb_database, columnar, f"zeroDateTimeBehavior={word}")
        first = cases[0][1] if word.lower() == "round" else None
        assert run.ids("a") == [first, cases[1][1]], kind
        [(sentence, number)] = run.numbers.items()
        assert number == 1 and "zeroDateTimeBehavior" in sentence
        assert not [note for note in run.notes if "have no effect" in note]


@pytest.mark.parametrize("word", ["EXCEPTION", "exception"])
def test_exception_is_the_default_of_the_url_and_leaves_the_choice_to_our_key(
    mariadb_database: Database, word: str
) -> None:
    filled(mariadb_database, "date", ["0000-00-00"])
    parameter = f"zeroDateTimeBehavior={word}"
    with pytest.raises(DataError, match="zeros"):
        copied(mariadb_database, False, parameter)
    assert copied(mariadb_database, False, parameter, **{"values.out.of.range": "null"}).ids("a") == [None]


def test_a_date_with_some_zeros_has_no_nearest(mariadb_database: Database) -> None:
    filled(mariadb_database, "date", ["2020-00-15"])
    for word in ("ROUND", "CONVERT_TO_NULL"):
        with pytest.raises(DataError, match="zeros"):
            copied(mariadb_database, False, f"zeroDateTimeBehavior={word}")
    with pytest.raises(DataError, match="no nearest value"):
        copied(mariadb_database, False, **{"values.out.of.range": "clamp"})
    assert copied(mariadb_database, False, **{"values.out.of.range": "null"}).ids("a") == [None]


def test_unknown_word_in_the_url_is_refused(mariadb_database: Database) -> None:
    with pytest.raises(ConfigError, match="EXCEPTION, CONVERT_TO_NULL or ROUND"):
        copied(mariadb_database, False, "zeroDateTimeBehavior=null")


@BOTH_PATHS
def test_tracked_column_is_never_changed(postgresql_database: Database, columnar: bool) -> None:
    filled(postgresql_database, "timestamp", ["0044-03-15 BC"])
    more = {
        "mode": "timestamp", "timestamp.column.name": "a", "validate.non.null": "false", "values.out.of.range": "null",
    }  # fmt: skip
    with pytest.raises(DataError, match="tracked"):
        copied(postgresql_database, columnar, **more)


def test_a_connection_that_reads_many_tables_reads_the_last_as_the_first(postgresql_database):
    """Each table added a loader around that of the one before: after five hundred, Python refused the depth."""
    query = "SELECT timestamptz 'infinity', date '2020-01-01'"
    with postgresql_database.connected() as connection:
        load_leniently(connection)
        first = connection.exec_driver_sql(query).one()
        for _ in range(1500):
            load_leniently(connection)
        last = connection.exec_driver_sql(query).one()
    assert isinstance(first[0], Beyond)
    assert (last[0].text, last[1]) == (first[0].text, date(2020, 1, 1))


@BOTH_PATHS
def test_number_that_is_larger_than_any_double_does_not_become_infinity(
    postgresql_database: Database, columnar: bool
) -> None:
    postgresql_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v numeric)",
        f"INSERT INTO t VALUES (1, 1.5), (2, {HUGE}), (3, -{HUGE}), (4, 'Infinity')",
    )
    config = {"connection.url": postgresql_database.jdbc_url, "mode": "bulk"}
    config["numeric.mapping"] = "best_fit_eager_double"
    with pytest.raises(DataError, match="it is larger than any double") as caught:
        Copies(config, columnar=columnar).run()
    assert caught.value.code == "database.value"
    found = {}
    for action in ("null", "clamp"):
        run = Copies({**config, "values.out.of.range": action}, columnar=columnar).run()
        found[action] = [row["v"] for row in run.values]
        assert list(run.numbers.values()) == [2]
    largest = 1.7976931348623157e308
    assert found == {"null": [1.5, None, None, math.inf], "clamp": [1.5, largest, -largest, math.inf]}
