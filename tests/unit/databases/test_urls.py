"""`connection.url` as JDBC writes it -> SQLAlchemy's URL and the driver's arguments."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import make_url

from airflow_connect.databases.urls import mask, parse_url
from airflow_connect.errors import ConfigError, MissingPackageError

UTF8 = {"charset": "utf8mb4"}

URLS: list[tuple[str, str, dict[str, Any]]] = [
    ("jdbc:postgresql://db:5433/shop", "postgresql+psycopg://db:5433/shop", {}),
    ("jdbc:postgresql://db/shop", "postgresql+psycopg://db/shop", {}),
    ("jdbc:postgresql:shop", "postgresql+psycopg://localhost/shop", {}),
    ("jdbc:postgresql:/", "postgresql+psycopg://localhost", {}),
    ("jdbc:postgresql://[::1]:5432/shop", "postgresql+psycopg://[::1]:5432/shop", {}),
    ("jdbc:postgresql://db/my%20shop", "postgresql+psycopg://db/my shop", {}),
    ("jdbc:postgresql://db/shop?user=u&password=p%40%2F", "postgresql+psycopg://u:p%40%2F@db/shop", {}),
    ("jdbc:postgresql://u:p@db/shop", "postgresql+psycopg://u:p@db/shop", {}),
    ("jdbc:postgresql://db/shop?ssl=true", "postgresql+psycopg://db/shop", {"sslmode": "verify-full"}),
    ("jdbc:postgresql://db/shop?ssl=true&sslmode=require", "postgresql+psycopg://db/shop", {"sslmode": "require"}),
    ("jdbc:postgresql://db/shop?ssl", "postgresql+psycopg://db/shop", {"sslmode": "verify-full"}),
    ("jdbc:postgresql://db/shop?sslrootcert=/ca.pem", "postgresql+psycopg://db/shop", {"sslrootcert": "/ca.pem"}),
    (
        "jdbc:postgresql://db/shop?currentSchema=a%20b,c&connectTimeout=7&ApplicationName=x",
        "postgresql+psycopg://db/shop",
        {"options": "-c search_path=a\\ b,c", "connect_timeout": 7, "application_name": "x"},
    ),
    (
        "jdbc:postgresql://db/shop?options=-c%20a=1&readOnly=true",
        "postgresql+psycopg://db/shop",
        {"options": "-c a=1 -c default_transaction_read_only=on"},
    ),
    (
        "jdbc:postgresql://a:1,b/shop?targetServerType=primary",
        "postgresql+psycopg://a:1/shop",
        {"host": "a,b", "port": "1,5432", "target_session_attrs": "primary"},
    ),
    ("postgresql://u@db/shop?sslmode=require", "postgresql+psycopg://u@db/shop?sslmode=require", {}),
    ("postgres://u@db/shop", "postgresql+psycopg://u@db/shop", {}),
    ("jdbc:mysql://db:3307/shop", "mysql+pymysql://db:3307/shop", UTF8),
    ("jdbc:mysql://u:p@db/shop", "mysql+pymysql://u:p@db/shop", UTF8),
    ("jdbc:mariadb://db/shop", "mariadb+pymysql://db/shop", UTF8),
    ("jdbc:mysql://db/", "mysql+pymysql://db", UTF8),
    ("jdbc:mysql://db/shop?useSSL=false&serverTimezone=UTC", "mysql+pymysql://db/shop", {**UTF8, "ssl_disabled": True}),
    (
        "jdbc:mysql://db/shop?sslMode=VERIFY_IDENTITY&serverSslCert=/ca.pem&connectTimeout=1500&socketTimeout=60000",
        "mysql+pymysql://db/shop",
        {
            **UTF8,
            "ssl_verify_cert": True,
            "ssl_verify_identity": True,
            "ssl_ca": "/ca.pem",
            "connect_timeout": 2,
            "read_timeout": 60,
            "write_timeout": 60,
        },
    ),
    ("mysql://u@db/shop", "mysql+pymysql://u@db/shop", UTF8),
    ("jdbc:sqlite:/data/shop.db", "sqlite+pysqlite:////data/shop.db", {}),
    ("jdbc:sqlite:shop.db?busy_timeout=1500", "sqlite+pysqlite:///shop.db", {"timeout": 1.5}),
    ("jdbc:sqlite:file:/data/shop.db?mode=ro", "sqlite+pysqlite:///file:/data/shop.db?mode=ro&uri=true", {}),
    ("sqlite:////data/shop.db", "sqlite+pysqlite:////data/shop.db", {}),
]


@pytest.mark.parametrize(("text", "expected", "arguments"), URLS, ids=[text for text, _, _ in URLS])
def test_url_is_translated(text: str, expected: str, arguments: dict[str, Any]) -> None:
    address = parse_url(text)
    assert address.url == make_url(expected)
    assert dict(address.arguments) == arguments


def _without_drivers(monkeypatch: pytest.MonkeyPatch, *, found: bool) -> None:
    real = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *a: object() if found else None if name else real(name)
    )


OTHERS = [
    (
        "jdbc:sqlserver://db:1433;databaseName=shop;user=u;password={p;}}w};encrypt=true",
        ("mssql+pymssql", "db", 1433, "shop", "u", "p;}w"),
        {"encryption": "require"},
    ),
    ("jdbc:sqlserver://db\\named;DatabaseName=shop", ("mssql+pymssql", "db\\named", None, "shop", None, None), {}),
    ("jdbc:sqlserver://;serverName=db;portNumber=1434", ("mssql+pymssql", "db", 1434, None, None, None), {}),
    ("jdbc:oracle:thin:@db:1521:XE", ("oracle+oracledb", "db", 1521, "XE", None, None), {}),
    ("jdbc:oracle:thin:u/p@db:1521:XE", ("oracle+oracledb", "db", 1521, "XE", "u", "p"), {}),
    ("jdbc:oracle:thin:@//db:1521/shop", ("oracle+oracledb", "db", 1521, None, None, None), {}),
    ("jdbc:oracle:thin:@tcps://db:2484/shop", ("oracle+oracledb", "db", 2484, None, None, None), {"protocol": "tcps"}),
    ("jdbc:oracle:thin:@shop_alias", ("oracle+oracledb", None, None, None, None, None), {"dsn": "shop_alias"}),
]


@pytest.mark.parametrize(("text", "expected", "arguments"), OTHERS, ids=[text for text, _, _ in OTHERS])
def test_url_of_a_database_without_extra_is_translated(
    text: str, expected: tuple[Any, ...], arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_drivers(monkeypatch, found=True)
    address = parse_url(text)
    url = address.url
    assert (url.drivername, url.host, url.port, url.database, url.username, url.password) == expected
    assert dict(address.arguments) == arguments
    if "/shop" in text:
        assert url.query == {"service_name": "shop"}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("jdbc:db2://db/shop", "'db2' is not supported"),
        ("shop", "is not a URL"),
        ("jdbc:postgresql:", ""),
        ("jdbc:postgresql://db:99999/shop", "host and port"),
        ("jdbc:postgresql://a b/shop", "host and port"),
        ("jdbc:postgresql://db/a/b", "there is a /"),
        ("jdbc:postgresql://db/shop?ssl=maybe", "ssl of the database connection must be true or false"),
        ("jdbc:postgresql://db/shop?sslmod=require", "sslmod of the database connection is not known"),
        ("jdbc:postgresql://db/shop?sslfactory=x", "not supported here"),
        ("jdbc:mysql:replication://a,b/shop", "replication"),
        ("jdbc:mysql://a,b/shop", "several hosts"),
        ("jdbc:mysql://db/shop?characterEncoding=latin1", "UTF-8"),
        ("jdbc:sqlite::memory:", "in memory"),
        ("jdbc:sqlite:", "in memory"),
        ("sqlite://", "in memory"),
    ],
)
def test_wrong_url_is_refused_with_the_reason(text: str, part: str) -> None:
    if not part:
        assert parse_url(text).url.database is None
        return
    with pytest.raises(ConfigError) as caught:
        parse_url(text)
    assert part in str(caught.value)
    assert caught.value.config_path == "connection.url"


def test_misspelt_parameter_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="Did you mean sslmode"):
        parse_url("jdbc:postgresql://db/shop?sslmod=require")


def test_user_and_password_keys_take_precedence() -> None:
    url = parse_url("jdbc:postgresql://db/shop?user=a&password=b", "c", "d").url
    assert (url.username, url.password) == ("c", "d")


def test_other_connection_keys_are_parameters_and_the_url_takes_precedence() -> None:
    address = parse_url(
        "jdbc:postgresql://db/shop?sslmode=require", properties={"sslmode": "disable", "loginTimeout": "3"}
    )
    assert dict(address.arguments) == {"sslmode": "require", "connect_timeout": 3}


def test_parameters_that_only_tune_java_are_reported_as_ignored() -> None:
    address = parse_url("jdbc:mysql://db/shop?rewriteBatchedStatements=true&useCursorFetch=true")
    assert address.ignored == ("rewriteBatchedStatements", "useCursorFetch")


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://u:hush1@db/shop",
        "jdbc:postgresql://db/shop?user=u&password=hush1&ssl=1",
        "jdbc:sqlserver://db;user=u;password=hush1;x=1",
        "jdbc:oracle:thin:u/hush1@db:1521:XE",
        "postgresql://u:hush1@db:x/shop",
        "jdbc:nosuch://u:hush1@db/shop",
        "jdbc:nosuch://u:/hush1@db/shop",
        "jdbc:mysql://u:a/hush1@db/shop",
        "jdbc:mysql://u:a@/hush1@db/shop",
        "jdbc:mysql://u:a?hush1@db/shop",
        "jdbc:postgresql://u:a/b==hush1@db:5432/shop?ssl=1",
        "jdbc:postgresql:u:hush1@db/shop",
        "jdbc:postgresql:/u:hush1@db/shop",
        "jdbc:postgresql://db/shop user=u password=hush1",
        "jdbc:mysql://address=(host=db)(user=u)(password=hush1)/shop",
        "jdbc:mysql://db/shop?user=u&password=a&hush1",
        "jdbc:sqlserver://db;user=u;password={a;hush1};x",
        "jdbc:oracle:oci:u/hush1@db",
        "jdbc:oracle:thin:u/a@hush1@db:1521:XE",
        "u:hush1@db/shop",
        "hush1",
    ],
)
def test_no_message_has_a_password(url: str) -> None:
    """A password may have any character, also one that a URL would not have."""
    if "//" in url and "&hush1" not in url:  # What follows an & looks like a parameter.
        assert "hush1" not in mask(url)
    shown = ""
    try:
        address = parse_url(url)
        shown = repr(address) + address.display + str(address.url)
    except ConfigError as error:
        shown = str(error)
    assert shown and "hush1" not in shown


def test_secrets_are_scrubbed_in_every_form() -> None:
    address = parse_url("jdbc:postgresql://db/shop", "u", "p@ss/1")
    assert address.scrub("p@ss/1 p%40ss%2F1 ok") == "[hidden] [hidden] ok"


@pytest.mark.parametrize(
    ("text", "package", "suggestion"),
    [
        ("jdbc:postgresql://db/shop", "psycopg", "airflow-connect[postgresql]"),
        ("jdbc:mariadb://db/shop", "pymysql", "airflow-connect[mysql]"),
        ("jdbc:sqlserver://db;databaseName=shop", "pymssql", "pip install pymssql"),
        ("jdbc:oracle:thin:@db:1521:XE", "oracledb", "pip install oracledb"),
    ],
)
def test_missing_driver_is_named_with_its_extra(
    text: str, package: str, suggestion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_drivers(monkeypatch, found=False)
    with pytest.raises(MissingPackageError) as caught:
        parse_url(text)
    assert package in caught.value.message and suggestion in caught.value.suggestion
