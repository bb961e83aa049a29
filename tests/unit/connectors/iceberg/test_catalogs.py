"""Properties of catalogs: Java's names, and what is refused."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import CommitFailedException, ForbiddenError, NoSuchTableError, ServiceUnavailableError
from sqlalchemy.exc import OperationalError

from airflow_connect.connectors.iceberg.catalogs import catalog_settings, translate
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.errors import ConfigError


def settings(aws: dict[str, str] | None = None, **catalog: str) -> dict[str, str]:
    config = {f"iceberg.catalog.{key.replace('_', '.')}": value for key, value in catalog.items()}
    return catalog_settings(IcebergConfig.from_config({"iceberg.tables": "a.b", **config}), aws or {})


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("jdbc:postgresql://db:5432/lake?user=me&password=s%20p", "postgresql+psycopg://me:s p@db:5432/lake"),
        ("jdbc:postgresql://db/lake", "postgresql+psycopg://db/lake"),
        ("jdbc:sqlite:/var/lake.db", "sqlite+pysqlite:////var/lake.db"),
        ("sqlite:////var/lake.db", "sqlite+pysqlite:////var/lake.db"),
        ("postgresql+psycopg://me:p@db/lake", "postgresql+psycopg://me:p@db/lake"),
        ("postgresql://me:p@db/lake", "postgresql+psycopg://me:p@db/lake"),
    ],
)
def test_databases_are_reached_by_urls_of_java_and_of_sqlalchemy(given: str, url: str) -> None:
    found = settings(type="jdbc", uri=given)
    assert found["type"] == "sql"
    assert found["uri"].partition("?")[0] == url


def test_user_and_password_beside_the_url_are_used() -> None:
    given = {"iceberg.catalog.type": "sql", "iceberg.catalog.uri": "jdbc:postgresql://db/lake"}
    own = {"iceberg.catalog.jdbc.user": "me", "iceberg.catalog.jdbc.password": "p@:/"}
    found = catalog_settings(IcebergConfig.from_config({"iceberg.tables": "a.b", **given, **own}), {})
    assert found["uri"].startswith("postgresql+psycopg://me:p%40%3A%2F@db/lake")
    assert not any(key.startswith("jdbc.") for key in found)


def test_java_classes_and_regions_are_understood_and_waiting_has_limits() -> None:
    name = "org.apache.iceberg.rest.RESTCatalog"
    given = {
        "catalog-impl": name,
        "uri": "http://h",
        "client_region": "eu-1",
        "io-impl": "org.apache.iceberg.aws.S3FileIO",
    }
    found = settings(**given)
    assert found["type"] == "rest"
    assert found["s3.region"] == "eu-1"
    assert {"catalog-impl", "io-impl"}.isdisjoint(found)
    assert (found["s3.connect-timeout"], found["s3.request-timeout"]) == ("10.0", "60.0")


def test_credentials_of_an_airflow_connection_are_used_unless_there_are_own_ones() -> None:
    aws = {"access_key_id": "a", "secret_access_key": "b", "session_token": ""}
    found = settings(aws, type="rest", uri="http://h")
    assert (found["s3.access-key-id"], found["s3.secret-access-key"]) == ("a", "b")
    own = settings(aws, type="rest", uri="http://h", **{"s3_access-key-id": "own", "s3_secret-access-key": "key"})
    assert (own["s3.access-key-id"], own["s3.secret-access-key"]) == ("own", "key")


def test_class_of_ones_own_is_passed_on() -> None:
    found = settings(**{"py-catalog-impl": "my.Catalog", "uri": "x"})
    assert (found["py-catalog-impl"], found["uri"], "type" in found) == ("my.Catalog", "x", False)


@pytest.mark.parametrize(
    ("catalog", "key"),
    [
        ({"type": "hadoop", "uri": "file:///h"}, "iceberg.catalog.type"),
        ({"type": "hadoop", "warehouse": "/w"}, "iceberg.catalog.type"),
        ({"uri": "http://h"}, "iceberg.catalog.type"),
        ({"type": "rest"}, "iceberg.catalog.uri"),
        ({"type": "rest", "catalog-impl": "a.RESTCatalog", "uri": "http://h"}, "iceberg.catalog.catalog-impl"),
        (
            {"catalog-impl": "org.apache.nessie.NessieCatalog", "uri": "http://h"},
            "iceberg.catalog.catalog-impl",
        ),
        ({"type": "sql", "uri": "jdbc:oracle:thin:@h:1521:x"}, "iceberg.catalog.uri"),
    ],
)
def test_what_is_not_supported_is_refused_by_its_key(catalog: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(**catalog)
    assert refused.value.config_path == key


def test_errors_of_the_library_say_whether_a_later_run_may_succeed_and_hide_statements() -> None:
    statement = OperationalError("UPDATE t SET secret = 'x'", {}, Exception("database is locked"))
    found = [
        (type(error).__name__, problem.code, problem.retriable, "secret" in problem.message)
        for error in (
            statement, ServiceUnavailableError("away"), CommitFailedException("moved"), ForbiddenError("no"),
            NoSuchTableError("a.b"), ValueError("bad"), OSError("disk"),
        )
        for problem in [translate(error, "committing a.b")]
    ]  # fmt: skip
    assert found == [
        ("OperationalError", "iceberg.unavailable", True, False),
        ("ServiceUnavailableError", "iceberg.unavailable", True, False),
        ("CommitFailedException", "iceberg.unavailable", True, False),
        ("ForbiddenError", "iceberg.denied", False, False),
        ("NoSuchTableError", "iceberg.no_table", False, False),
        ("ValueError", "iceberg.refused", False, False),
        ("OSError", "iceberg.unavailable", True, False),
    ]
