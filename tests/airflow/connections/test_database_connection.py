"""Connections to databases as keys of a connector: names, real servers, and secrets that stay secret."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.sql.hooks.sql import DbApiHook
from airflow.sdk import Connection
from sqlalchemy import make_url

from airflow_connect.airflow.connections.database import with_database
from airflow_connect.airflow.connector_arguments import ConnectorArguments
from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.databases.connecting import Database as ConnectedDatabase
from airflow_connect.errors import AccessError, ConfigError
from airflow_connect.hooks.connect import ConnectHook
from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.operators.offsets import ResetOffsetsOperator, SetOffsetsOperator
from airflow_connect.operators.replay import ReplayDeadLettersOperator, ReplayOperator
from airflow_connect.operators.task_group import ConnectorTaskGroup
from airflow_connect.sensors.connector import ConnectorLagSensor, ConnectorRunSensor, SourceChangedSensor
from tests.airflow.conftest import LoadDag
from tests.support.servers.databases import Database

Get = Callable[[str], Connection]
SECRET = "opensesame1"
CONFIG = {"name": "shop", "connector.class": "JdbcSource", "topic.prefix": "shop-", "mode": "bulk"}


def one(**fields: Any) -> Get:
    extra = fields.pop("extra", None)
    text = extra if isinstance(extra, str) or extra is None else json.dumps(extra)
    return lambda conn_id: Connection(conn_id=conn_id, **fields, extra=text)


def uri(text: str) -> Get:
    return lambda conn_id: Connection.from_uri(text, conn_id=conn_id)


def keys(get: Get) -> dict[str, str]:
    """What a connection adds to an empty configuration, with the values of its references."""
    found = with_database({}, "db", get)
    resolved = ResolvedReferences(found.references).resolve(found.config)
    return {name.removeprefix("connection."): str(value) for name, value in resolved.items()}


POSTGRES = {"conn_type": "postgres", "host": "db", "port": 5432, "schema": "shop", "login": "copy", "password": SECRET}
MYSQL = {**POSTGRES, "conn_type": "mysql", "port": 3306}
LOGIN = {"user": "copy", "password": SECRET}


@pytest.mark.parametrize(
    ("get", "expected"),
    [
        (one(**POSTGRES), {"url": "jdbc:postgresql://db:5432/shop", **LOGIN}),
        (
            one(**POSTGRES, extra={"sslmode": "verify-full", "sslrootcert": "/ca.pem", "cursor": "dictcursor"}),
            {"url": "jdbc:postgresql://db:5432/shop", **LOGIN, "sslmode": "verify-full", "sslrootcert": "/ca.pem"},
        ),
        (
            one(**POSTGRES, extra={"connect_timeout": 5, "keepalives": True, "sslpassword": "pin-rabbit7"}),
            {
                "url": "jdbc:postgresql://db:5432/shop",
                **LOGIN,
                "connect_timeout": "5",
                "keepalives": "true",
                "sslpassword": "pin-rabbit7",
            },
        ),
        (
            uri("postgresql://copy:open%2Fsesame@[::1]:5433/my%20shop?sslmode=require"),
            {
                "url": "jdbc:postgresql://[::1]:5433/my%20shop",
                "user": "copy",
                "password": "open/sesame",
                "sslmode": "require",
            },
        ),
        (one(conn_type="postgres"), {"url": "jdbc:postgresql://localhost/"}),
        (
            one(**MYSQL, extra={"ssl_mode": "REQUIRED", "unix_socket": "/s", "charset": "utf8mb4", "client": "x"}),
            {
                "url": "jdbc:mysql://db:3306/shop",
                **LOGIN,
                "sslMode": "REQUIRED",
                "localSocket": "/s",
                "charset": "utf8mb4",
            },
        ),
        (
            one(**MYSQL, extra={"ssl": {"ca": "/ca", "key": "/key"}}),
            {"url": "jdbc:mysql://db:3306/shop", **LOGIN, "ssl_ca": "/ca", "ssl_key": "/key"},
        ),
        (one(**MYSQL, extra={"ssl": '{"ca": "/ca"}'}), {"url": "jdbc:mysql://db:3306/shop", **LOGIN, "ssl_ca": "/ca"}),
        (uri("mysql+pymysql://u@h/shop"), {"url": "jdbc:mysql://h/shop", "user": "u"}),
        (uri("mariadb://u@h/shop"), {"url": "jdbc:mariadb://h/shop", "user": "u"}),
        (uri("mssql://u@h:1433/shop"), {"url": "mssql://h:1433/shop", "user": "u"}),
        (one(conn_type="sqlite", host="/data/shop.db"), {"url": "jdbc:sqlite:/data/shop.db"}),
        (uri("sqlite:////data/shop.db"), {"url": "jdbc:sqlite:/data/shop.db"}),
        (uri("sqlite:///data/shop.db"), {"url": "jdbc:sqlite:/data/shop.db"}),
        (uri("sqlite://%2Fdata%2Fshop.db"), {"url": "jdbc:sqlite:/data/shop.db"}),
        (
            one(conn_type="sqlite", host="/data/a b.db", extra={"mode": "ro"}),
            {"url": "jdbc:sqlite:file:/data/a%20b.db?mode=ro"},
        ),
        (
            one(conn_type="jdbc", host="jdbc:postgresql://db/shop", login="copy", password=SECRET, extra={"drv": "x"}),
            {"url": "jdbc:postgresql://db/shop", **LOGIN},
        ),
        (
            one(conn_type="generic", host="postgresql+psycopg://db/shop", password=SECRET),
            {"url": "postgresql+psycopg://db/shop", "password": SECRET},
        ),
    ],
    ids=[
        "postgres", "postgres-tls", "postgres-extras", "postgres-uri", "postgres-empty", "mysql", "mysql-tls",
        "mysql-tls-text", "mysql-uri", "mariadb", "mssql", "sqlite", "sqlite-4", "sqlite-3", "sqlite-host",
        "sqlite-mode", "jdbc", "generic",
    ],
)  # fmt: skip
def test_connection_becomes_keys_of_a_connector(get: Get, expected: dict[str, str]) -> None:
    assert keys(get) == expected


def test_secrets_are_references_to_the_connection() -> None:
    found = with_database(CONFIG, "shop_db", one(**POSTGRES, extra={"sslpassword": "pin-rabbit7"}))
    assert found.config["connection.password"] == "${airflow:shop_db:password}"
    assert found.config["connection.sslpassword"] == "${airflow:shop_db:extra.sslpassword}"
    assert (SECRET in str(found), "pin-rabbit7" in str(found)) == (False, False)
    url = f"jdbc:postgresql://copy:{SECRET}@db/shop"
    found = with_database(CONFIG, "shop_db", one(conn_type="jdbc", host=url))
    assert found.config["connection.url"] == "${airflow:shop_db:host}"
    assert found.references == {"${airflow:shop_db:host}": url}
    assert SECRET not in str(found)


def test_without_a_connection_nothing_changes() -> None:
    assert with_database(CONFIG, None, one()).config == CONFIG


def test_key_of_both_is_refused_by_its_name() -> None:
    config = {**CONFIG, "connection.url": "jdbc:sqlite:/x", "connection.password": "", "connection.sslmode": "allow"}
    with pytest.raises(ConfigError) as caught:
        with_database(config, "shop_db", one(**POSTGRES, extra={"sslmode": "require"}))
    assert caught.value.code == "airflow.connection_conflict"
    assert "connector shop sets connection.sslmode, connection.url, and so does the connection 'shop_db'" in str(
        caught.value
    )
    # Keys that a connection never sets are those of the connector.
    assert with_database({**CONFIG, "connection.attempts": "5"}, "db", one(**POSTGRES)).config["connection.attempts"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({**POSTGRES, "extra": {"iam": True}}, "has the extra 'iam': it logs in with a token"),
        ({**POSTGRES, "extra": {"options": {"a": 1}}}, "has an extra 'options' that is neither text nor a number"),
        ({**MYSQL, "extra": {"ssl": {"capath": "/x"}}}, "has an extra 'ssl' that cannot be honoured"),
        ({**MYSQL, "extra": {"ssl": "{"}}, "has an extra 'ssl' that cannot be honoured"),
        ({"conn_type": "sqlite"}, "names no file"),
        ({"conn_type": "kafka", "host": "db"}, "is of type 'kafka', which is not a database"),
        ({"conn_type": "warehouse", "host": "db"}, "is of type 'warehouse', which has no hook here"),
    ],
)
def test_connection_that_cannot_be_used_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        with_database(CONFIG, "shop_db", one(**fields))
    assert str(caught.value).startswith("Connection 'shop_db' ")


class WarehouseHook(DbApiHook):
    """A hook as providers of databases have them."""

    conn_name_attr = "warehouse_conn_id"
    conn_type = "warehouse"

    @property
    def sqlalchemy_url(self) -> Any:
        found = self.get_connection(self.get_conn_id())
        if found.schema == "broken":
            raise RuntimeError(f"no such schema, {found.password}")
        return make_url("postgresql+asyncpg://").set(
            host=found.host, port=6000, database=found.schema, username=found.login, password=found.password
        )


class OldHook(WarehouseHook):
    """One that has a URI only."""

    @property
    def sqlalchemy_url(self) -> Any:
        raise NotImplementedError

    def get_uri(self) -> str:
        return "mysql://u:p@old/shop?charset=utf8mb4"


def test_hook_of_another_type_tells_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithHook(Connection):
        def get_hook(self, *, hook_params: Any = None) -> Any:
            return (OldHook if self.conn_type == "old" else WarehouseHook)(warehouse_conn_id=self.conn_id)

    def given(conn_id: str, **more: Any) -> Get:
        fields = {"conn_type": "warehouse", "host": "wh", "schema": "shop", "login": "copy", "password": SECRET, **more}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))
        return lambda _: WithHook(conn_id=conn_id, **fields)

    assert keys(given("db")) == {"url": "postgresql://wh:6000/shop", **LOGIN}
    assert keys(given("db", conn_type="old")) == {"url": "mysql://old/shop?charset=utf8mb4", **LOGIN}
    with pytest.raises(ConfigError, match=r"whose hook gives no URL \(RuntimeError\)") as caught:
        keys(given("db", schema="broken"))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


CLASSES: list[Callable[..., Any]] = [
    lambda **kw: ConnectorOperator(task_id="t", **kw),
    lambda **kw: SetOffsetsOperator(task_id="t", offsets="latest", **kw),
    lambda **kw: ResetOffsetsOperator(task_id="t", **kw),
    lambda **kw: ReplayOperator(task_id="t", start=0, **kw),
    lambda **kw: ReplayDeadLettersOperator(task_id="t", **kw),
    lambda **kw: SourceChangedSensor(task_id="t", **kw),
    lambda **kw: ConnectorLagSensor(task_id="t", min_records=1, **kw),
    lambda **kw: ConnectorRunSensor(task_id="t", **kw),
]


@pytest.mark.parametrize("make", CLASSES)
def test_everything_that_names_a_connector_takes_the_connection(make: Callable[..., Any]) -> None:
    assert make(config=CONFIG, db_conn_id="shop_db").arguments().db_conn_id == "shop_db"


def test_hook_and_group_take_the_connection() -> None:
    assert ConnectHook(config=CONFIG, db_conn_id="shop_db")._arguments.db_conn_id == "shop_db"
    from airflow.sdk import DAG

    with DAG("group_with_database", schedule=None) as dag:
        ConnectorTaskGroup("copy", config=CONFIG, db_conn_id="shop_db")
    assert {getattr(task, "db_conn_id", "") for task in dag.tasks} == {"shop_db"}


def test_only_a_look_at_the_source_reads_the_connection() -> None:
    arguments = SourceChangedSensor(task_id="t", config=CONFIG, db_conn_id="db").request().arguments
    assert arguments.db_conn_id == "db"
    lag = ConnectorLagSensor(task_id="t", config=CONFIG, db_conn_id="db", min_records=1).request().arguments
    assert lag.db_conn_id is None


def opened(config: dict[str, Any], conn_id: str) -> ConnectedDatabase:
    """The database as a run of the connector reaches it."""
    spec = ConnectorArguments("this test", config=config, kafka_conn_id=None, db_conn_id=conn_id).run_spec()
    assert SECRET not in json.dumps(dict(spec.connector))
    resolved = ResolvedReferences(spec.references).resolve(spec.connector)
    return ConnectedDatabase(JdbcSourceConfig.from_config(resolved).connection)


@pytest.mark.integration
def test_user_of_a_connection_logs_in_to_a_real_server_and_a_wrong_password_is_not_repeated(
    mariadb_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, user = make_url(mariadb_database.url), make_url(mariadb_database.url).database
    mariadb_database.execute(
        f"CREATE USER {user}@'%%' IDENTIFIED BY '{SECRET}'", f"GRANT ALL ON {user}.* TO {user}@'%%'"
    )
    fields = {"conn_type": "mysql", "host": url.host, "port": url.port, "schema": user, "login": user}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({**fields, "password": SECRET}))
    with opened(CONFIG, "shop_db") as database, database.connect() as connection:
        (row,) = connection.exec_driver_sql("SELECT CURRENT_USER(), DATABASE()")
        assert tuple(row) == (f"{user}@%", user)

    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({**fields, "password": "wrong-rabbit77"}))
    with opened(CONFIG, "shop_db") as database, pytest.raises(AccessError) as caught:
        database.connect()
    assert "wrong-rabbit77" not in str(caught.value)
    mariadb_database.execute(f"DROP USER {user}@'%%'")


@pytest.mark.integration
def test_connections_reach_postgresql_and_sqlite(
    postgresql_database: Database, sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(postgresql_database.url)
    fields = {"conn_type": "postgres", "host": url.host, "port": url.port, "schema": url.database}
    extra = {"application_name": "from the extra", "sslmode": "prefer"}
    monkeypatch.setenv("AIRFLOW_CONN_PG", json.dumps({**fields, "login": url.username, "extra": extra}))
    with opened(CONFIG, "pg") as database, database.connect() as connection:
        (row,) = connection.exec_driver_sql("SELECT current_database(), current_setting('application_name')")
        assert tuple(row) == (url.database, "from the extra")

    sqlite_database.execute("CREATE TABLE orders (id INTEGER)")
    path = str(make_url(sqlite_database.url).database)
    for extra in ({}, {"mode": "ro"}):
        monkeypatch.setenv("AIRFLOW_CONN_LITE", json.dumps({"conn_type": "sqlite", "host": path, "extra": extra}))
        with opened(CONFIG, "lite") as database, database.connect() as connection:
            assert connection.exec_driver_sql("SELECT name FROM sqlite_master").scalar() == "orders"


DAG_FILE = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator(task_id="copy", config={config!r}, worker={{}}, kafka_conn_id=None, db_conn_id="shop_db")
"""


def test_rendered_fields_show_where_the_database_is_and_no_secret(
    load_dag: LoadDag,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
    scripted_driver: None,
    capfd: pytest.CaptureFixture[str],
    airflow_home: Path,
) -> None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({**POSTGRES, "extra": {"sslpassword": "pin-rabbit7"}}))

    def run(**more: str) -> tuple[str, Any, str]:
        dag = load_dag(DAG_FILE.format(dag_id=unique_name, config={**CONFIG, "fake": "copy", **more}))
        result = dag.test(logical_date=None)
        fields = RenderedTaskInstanceFields.get_templated_fields(result.get_task_instance("copy"))
        assert fields is not None
        return str(result.state), fields["resolved_config"], "".join(capfd.readouterr()) + json.dumps(fields)

    state, resolved, seen = run()
    assert state == "success"
    assert resolved["connector"]["connection.url"] == "jdbc:postgresql://db:5432/shop"
    assert resolved["connector"]["connection.user"] == "copy"
    assert [secret for secret in (SECRET, "pin-rabbit7") if secret in seen] == []

    state, resolved, seen = run(**{"connection.user": "somebody"})
    assert (state, resolved) in [("failed", None), ("failed", "None")]
    assert "airflow.connection_conflict" in seen
    assert [secret for secret in (SECRET, "pin-rabbit7") if secret in seen] == []


def test_connection_of_the_page_is_understood() -> None:
    page = (Path(__file__).parents[3] / "docs/connectors/databases.md").read_text()
    (written,) = re.findall(r"^export AIRFLOW_CONN_SHOP_DB='(.*?)'$", page, re.MULTILINE | re.DOTALL)
    assert keys(lambda conn_id: Connection.from_json(written, conn_id)) == {
        "url": "jdbc:postgresql://db:5432/shop",
        "user": "copy",
        "password": "change me",
        "sslmode": "verify-full",
        "sslrootcert": "/etc/ssl/db.pem",
    }
