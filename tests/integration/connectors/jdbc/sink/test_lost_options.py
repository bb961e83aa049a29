"""Settings of the address that a pooler keeps from PostgreSQL: without its search path, another table is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote, urlsplit

import pytest

from airflow_connect.api import schema as s
from airflow_connect.errors import ConfigError
from tests.support.copies.jdbc_sink_tasks import SinkRun, records
from tests.support.copies.jdbc_source import Copies
from tests.support.servers.databases import Database
from tests.support.servers.option_pooler import ignoring_options

pytestmark = pytest.mark.integration
ORDER = s.struct(("n", s.INT64))


@pytest.fixture
def pooled(postgresql_database: Database) -> Iterator[Database]:
    """The same database behind a pooler."""
    server = urlsplit(postgresql_database.jdbc_url.removeprefix("jdbc:"))
    assert server.hostname is not None and server.port is not None
    for schema in ("app", "public"):
        postgresql_database.execute(
            f"CREATE SCHEMA IF NOT EXISTS {schema}", f"CREATE TABLE {schema}.orders (n BIGINT NOT NULL PRIMARY KEY)"
        )
    with ignoring_options(server.hostname, server.port) as port:
        url = postgresql_database.jdbc_url.replace(f":{server.port}/", f":{port}/", 1)
        assert url != postgresql_database.jdbc_url
        yield replace(postgresql_database, jdbc_url=url)


def with_parameters(database: Database, parameters: str) -> Database:
    joint = "&" if "?" in database.jdbc_url else "?"
    return replace(database, jdbc_url=f"{database.jdbc_url}{joint}{parameters}")


def numbers(database: Database, schema: str) -> list[int]:
    return [n for (n,) in database.rows(f"SELECT n FROM {schema}.orders ORDER BY n")]


def test_sink_does_not_write_into_the_table_of_another_schema(pooled):
    run = SinkRun(with_parameters(pooled, "currentSchema=app"))
    with pytest.raises(ConfigError, match="does not have the setting search_path") as found:
        run.write(records({"n": 1}, schema=ORDER))
    assert found.value.code == "database.options"
    assert (numbers(pooled, "app"), numbers(pooled, "public")) == ([], [])


def test_setting_of_the_user_is_as_good(pooled):
    name = pooled.url.rpartition("/")[2]
    pooled.execute(f"ALTER DATABASE {name} SET search_path = app")
    SinkRun(with_parameters(pooled, "currentSchema=app")).write(records({"n": 1}, schema=ORDER))
    assert (numbers(pooled, "app"), numbers(pooled, "public")) == ([1], [])


@pytest.mark.parametrize("parameters", ["currentSchema=app", "readOnly=true", "options=-c%20statement_timeout%3D5s"])
def test_source_is_refused_too(pooled, parameters):
    config = {
        "connection.url": with_parameters(pooled, parameters).jdbc_url,
        "mode": "bulk",
        "query": "SELECT * FROM orders",
    }
    with pytest.raises(ConfigError, match="has left it out"):
        Copies(config).run()


@pytest.mark.parametrize(
    "parameters",
    [
        "currentSchema=app",
        "currentSchema=" + quote('app, "A b"'),
        "options=" + quote("-c statement_timeout=5000 -c search_path=app --work-mem=64MB"),
        "options=" + quote(r"-csearch_path=app,\ public -c some.name=x"),
        "readOnly=true&currentSchema=app&options=" + quote("-c DateStyle=SQL"),
    ],
)
def test_settings_that_reach_the_server_are_used(pooled, postgresql_database, parameters):
    postgresql_database.execute("INSERT INTO app.orders VALUES (7)", "INSERT INTO public.orders VALUES (8)")
    config = {
        "connection.url": with_parameters(postgresql_database, parameters).jdbc_url,
        "mode": "bulk",
        "query": "SELECT * FROM orders",
    }
    assert Copies(config).run().values == [{"n": 7}]
