"""What a database says about a row it refuses is shown without the values of the row."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from pymysql.err import OperationalError
from sqlalchemy.exc import DBAPIError

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
from airflow_connect.databases.connecting import Database
from airflow_connect.databases.dialects.mysql import MySqlDialect
from airflow_connect.databases.reasons import LONGEST_REASON, NO_VALUE, reason_of
from airflow_connect.errors import DataError
from tests.support.copies.jdbc_sink_tasks import SinkRun, records

pytestmark = pytest.mark.integration

ORDER = s.struct(("n", s.INT64), ("email", s.OPTIONAL_STRING))
SECRET = "hush'1\" for key 'x' at line 1"
CASES = {
    "postgresql": {
        "email TEXT UNIQUE": "unique constraint",
        "email INT": "invalid input syntax for type integer",
        "email TEXT CHECK (length(email) < 5)": "violates check constraint",
        "email VARCHAR(4)": "value too long for type character varying",
        "email TEXT, other INT NOT NULL": 'null value in column "other"',
        "email JSON": "invalid input syntax for type json",
        "email UUID": "invalid input syntax for type uuid",
        "email TIMESTAMP": "invalid input syntax for type timestamp",
        "email BYTEA GENERATED ALWAYS AS ('x') STORED": None,
    },
    "mariadb": {
        "email VARCHAR(90) UNIQUE": "Duplicate entry",
        "email INT": "Incorrect integer value",
        "email VARCHAR(90) CHECK (length(email) < 5)": "CONSTRAINT",
        "email VARCHAR(4)": "Data too long for column 'email'",
        "email DATETIME": "Incorrect datetime value",
        "email DECIMAL(5,2)": "Incorrect decimal value",
        "email UUID": "Incorrect uuid value",
    },
    "sqlite": {"email TEXT UNIQUE": "UNIQUE constraint failed", "email TEXT CHECK (length(email) < 5)": "CHECK"},
}


@pytest.mark.parametrize(
    ("server", "column"), [(server, column) for server, found in CASES.items() for column in found]
)
@pytest.mark.parametrize("count", [2, 150])
def test_refused_row_is_named_by_its_place_and_not_by_its_values(request, server, column, count):
    database = request.getfixturevalue(f"{server}_database")
    database.execute(f"CREATE TABLE orders (n BIGINT, {column})")
    values = [{"n": 20_261_126 + n, "email": SECRET} for n in range(count)]
    expected = CASES[server][column]
    run = SinkRun(database, max_retries="0")
    with pytest.raises(DataError if expected else Exception) as caught:
        run.write(records(*values, schema=ORDER))
    message = str(caught.value)
    assert "hush" not in message and "20261126" not in message and len(message) < LONGEST_REASON
    if expected:
        assert expected in message and "orders-0@" in message


def test_number_out_of_range_is_not_shown(postgresql_database):
    postgresql_database.execute("CREATE TABLE orders (n SMALLINT, email TEXT)")
    with pytest.raises(DataError, match=r"smallint out of range|out of range for type smallint") as caught:
        SinkRun(postgresql_database).write(records({"n": 40_123, "email": None}, schema=ORDER))
    assert "40123" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("email TIMESTAMPTZ", "2026-01-01 00:00 Hush/Foo", "time zone (value not shown) not recognized"),
        ("email TEXT CHECK (to_date(email, 'YYYY') > '1970-01-01')", "hush", "invalid value (value not shown) for"),
        ("email TEXT CHECK (make_date(2026, length(email), 1) > '1970-01-01')", "x" * 77, "range: (value not shown)"),
        ("email TEXT", "hu\ud800sh", "a text has half of a surrogate pair"),
        ("email REAL", "7.77e300", "refused orders-0@0: (value not shown) is out of range for type real"),
        ("email DOUBLE PRECISION", "7.77e999", "(value not shown) is out of range for type double"),
        ("email BIT(8)", "hush", "(value not shown) is not a valid binary digit"),
        ("email TEXT CHECK (date_part(email, DATE '2026-01-01') > 0)", "hush", "unit (value not shown) not recognized"),
        ("email TEXT CHECK (chr(email::int) > '')", "7712399", "for encoding: (value not shown)"),
        (
            "email TEXT CHECK (get_bit('\\x00'::bytea, email::int) > 0)",
            "7712",
            "index (value not shown) out of",
        ),
        ("email TEXT CHECK (decode(email, 'base64') > '')", "a*hush", "symbol (value not shown) found while"),
        ("email TEXT CHECK (timezone(email, now()) > '1970-01-01')", "x\"hush'hush", "time zone (value not shown) not"),
        (
            "email TEXT CHECK (date_trunc(email, now()) > now())",
            "x\"hush'hush",
            "unit (value not shown) not recognized",
        ),
        ("email TEXT CHECK (convert_to('x', email) > '')", "hush", "encoding name (value not shown)"),
    ],
    ids=[
        "zone",
        "pattern",
        "date",
        "surrogate",
        "real",
        "double",
        "bits",
        "unit",
        "character",
        "index",
        "base64",
        "quotes in a zone",
        "quotes in a unit",
        "encoding",
    ],
)
def test_values_in_other_words_of_postgresql_are_not_shown(postgresql_database, column, value, expected):
    postgresql_database.execute(f"CREATE TABLE orders (n BIGINT, {column})")
    with pytest.raises(DataError) as caught:
        SinkRun(postgresql_database).write(records({"n": 1, "email": value}, schema=ORDER))
    message = str(caught.value).lower()
    assert expected in message and "hush" not in message and "77" not in message and "ud800" not in message


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("g TEXT AS (json_extract(email, '$.a')) STORED", '{"a": hush', "malformed JSON"),
        ("g TEXT AS (json_extract('{}', email)) STORED", "hush", f"path error near {NO_VALUE}"),
        ("CHECK ('x' NOT LIKE email)", "hush%" * 10_001, "pattern too complex"),
    ],
    ids=["json", "path", "pattern"],
)
def test_what_functions_of_sqlite_say_of_a_value_is_a_reason_of_the_row(sqlite_database, column, value, expected):
    """It ended the run, without the place of the record, also if errors are tolerated."""
    sqlite_database.execute(f"CREATE TABLE orders (n BIGINT, email TEXT, {column})")
    run = SinkRun(sqlite_database, errors_tolerance="all")
    run.write(records({"n": 1, "email": "{}"}, {"n": 2, "email": value}, schema=ORDER))
    ((offset, message),) = (letter for letter in run.errors.letters if letter[0] == 1)
    assert expected in message and f"orders-0@{offset}" in message and "hush" not in message


def test_character_that_the_database_does_not_have_is_not_shown(postgresql_database):
    """Its bytes were in the message."""
    name = f"latin_{postgresql_database.rows('SELECT current_database()')[0][0]}"
    statement = f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    latin = replace(
        postgresql_database,
        **{
            key: getattr(postgresql_database, key).replace(name.removeprefix("latin_"), name)
            for key in ("url", "jdbc_url")
        },
    )
    with postgresql_database.engine().connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(statement)
        try:
            latin.execute("CREATE TABLE orders (n BIGINT, email TEXT)")
            with pytest.raises(DataError) as caught:
                SinkRun(latin).write(records({"n": 1, "email": "hush\u20ac"}, schema=ORDER))
            assert f'byte sequence {NO_VALUE} in encoding "UTF8" has no equivalent in encoding' in str(caught.value)
            with pytest.raises(DBAPIError) as invalid:
                postgresql_database.rows("SELECT convert_from('\\x68ff', 'UTF8')")
            assert reason_of(invalid.value) == f'invalid byte sequence for encoding "UTF8": {NO_VALUE}'
        finally:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


def test_value_without_a_partition_is_not_shown(mariadb_database):
    mariadb_database.execute(
        "CREATE TABLE orders (n BIGINT, email TEXT) PARTITION BY RANGE (n) (PARTITION p VALUES LESS THAN (5))"
    )
    with pytest.raises(DataError, match=r"no partition for value \(value not shown\)") as caught:
        SinkRun(mariadb_database).write(records({"n": 20_261_126, "email": None}, schema=ORDER))
    assert "20261126" not in str(caught.value)


def test_text_that_mysql_cannot_convert_is_not_shown():
    """MariaDB says something else, without the text."""
    error = OperationalError(3854, "Cannot convert string 'hush's \\xD0\\xB6' from utf8mb4 to latin1")
    assert reason_of(error) == f"Cannot convert string {NO_VALUE} from utf8mb4 to latin1 (3854)"


class TranslatedError(Exception):
    """What psycopg raises where `lc_messages` of PostgreSQL is another language."""

    def __init__(self, text: str, severity: str, sqlstate: str = "22P02") -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        self.diag = SimpleNamespace(message_primary=text, severity=severity, severity_nonlocalized="ERROR")


class TranslatedTextError(Exception):
    """What ADBC raises there."""

    __module__ = "adbc_driver_manager.dbapi"
    sqlstate = "22P02"


@pytest.mark.parametrize(
    ("severity", "text", "shown"),
    [
        ("FEHLER", "ungültige Eingabesyntax für Typ integer: »hu»77»sh«", "Eingabesyntax für Typ integer: {}"),
        ("FEHLER", "Wert »77« ist außerhalb des gültigen Bereichs für Typ integer", "Wert {} ist außerhalb"),
        ("FEHLER", "Wert zu lang für Typ character varying(3)", "für Typ character varying(3)"),
        ("FEHLER", "Zeichen mit Byte-Folge 0x77 in Kodierung »UTF8« hat keine", "mit Byte-Folge {} in Kodierung"),
        ("ERREUR", "la valeur « 77 » est en dehors des limites pour le type oid", "la valeur {} est en dehors"),
        ("ERROR", "el valor «77» está fuera de rango para el tipo integer", "el valor {} está fuera de rango"),
        ("ERROR", "valor en campo de fecha fuera de rango: 2026-77-01", "fuera de rango: {}"),
        ("ERROR", '値"77"は型integerの範囲外です', "値{}は型integerの範囲外です"),
        ("ERRORE", 'valore "77" fuori dall\'intervallo consentito per il tipo integer', "valore {} fuori"),
        ("错误", '有缺陷的数组常量:"hush"', "有缺陷的数组常量:{}"),
        ("", "Failed to prepare query: FEHLER:  Typ integer: »hush«\nZEILE 1: 77\n", "query: FEHLER: Typ integer: {}"),
        ("", "Execution error: ERREUR:  type json\nDÉTAIL : « hush »\nCONTEXTE : 77", "error: ERREUR: type json"),
    ],
)
def test_values_are_not_shown_in_other_languages(severity, text, shown):
    """A server of Germany says »hush«, and the words around values were those of English only."""
    reason = reason_of(TranslatedError(text, severity) if severity else TranslatedTextError(text))
    assert shown.format(NO_VALUE) in reason and "hush" not in reason and "77" not in reason


def test_names_are_shown_in_other_languages():
    error = TranslatedError("Spalte »email« existiert nicht", "FEHLER", "42703")
    assert reason_of(error) == "Spalte »email« existiert nicht"


def test_errors_of_mariadb_are_in_english(mariadb_database, monkeypatch):
    own = MySqlDialect.connect_arguments

    def in_another_language(self, address):
        return {**own(self, address), "init_command": "SET lc_messages = 'en_GB'"}

    monkeypatch.setattr(MySqlDialect, "connect_arguments", in_another_language)
    settings = JdbcSinkConfig.from_config(SinkRun(mariadb_database).config).connection
    with Database(settings) as database, database.connected() as connection:
        assert connection.exec_driver_sql("SELECT @@lc_messages").scalar_one() == "en_US"
