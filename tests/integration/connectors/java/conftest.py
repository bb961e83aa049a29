"""Connectors of the conformance plugins (tests/integration/jvm/plugins), and of Debezium, in runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.conftest import MakeTopic
from tests.devstack.iceberg_rest import IcebergRest
from tests.devstack.mariadb import MariaDbServer
from tests.devstack.postgresql import USER, PostgresServer
from tests.integration.jvm.conftest import plugin_path as plugin_path  # noqa: PLC0414 (the fixture of that folder)
from tests.support.copies import camel as camel_connectors
from tests.support.copies.debezium import ROWS_OF_CHANGES, Replicated
from tests.support.copies.java_iceberg import JavaIceberg, iceberg_plugin, java_iceberg
from tests.support.copies.java_plugin import JavaConnector, locked_plugin
from tests.support.servers.databases import Database
from tests.support.session.searching import IS_SOAK

IN_THE_SOAK = (
    "test_debezium_ending.py",
    "test_camel_source.py",
    "test_debezium_jdbc.py",
    "test_debezium_mariadb.py",
    "test_mongodb.py",
    "test_iceberg_recovery.py",
    "test_iceberg_left_out.py",
)
collect_ignore = [] if IS_SOAK else list(IN_THE_SOAK)
"""They take up to a minute each, and have jars to fetch."""

POSTGRESQL_LOCK = "debezium-postgres-3.6.3"
MARIADB_LOCK = "debezium-mariadb-3.5.0"
BINLOG = ("--log-bin=binlog", "--server-id=7", "--binlog-format=ROW", "--binlog-row-image=FULL")
STRING = "org.apache.kafka.connect.storage.StringConverter"
PYTHON_STRING = "airflow_connect.converters.string_converter:StringConverter"
"""The same, but no name that Java knows: Python runs the chain then."""
MakeConnector = Callable[..., JavaConnector]


@pytest.fixture(params=[STRING, PYTHON_STRING] if IS_SOAK else [STRING], ids=lambda name: name.partition(".")[0])
def text_converter(request: pytest.FixtureRequest) -> str:
    """The converter of connectors: what a run copies does not depend on which side runs its chain."""
    return str(request.param)


def in_java(connector: JavaConnector) -> bool:
    """Whether Java runs the chain: its exceptions are Java's then."""
    return connector.worker_config["value.converter"] == STRING


@pytest.fixture
def make_connector(kafka: KafkaBroker, plugin_path: Path, unique_name: str, text_converter: str) -> MakeConnector:
    """A connector: `make_connector("OddSources$Marks", **keys)`; `_` in a key stands for `.`."""

    def make(plugin: str, **keys: str) -> JavaConnector:
        config = {
            "connector.class": f"plugins.{plugin}",
            "airflow.java.start.grace.ms": "0",
            "airflow.java.idle.ms": "100",
        }
        config |= {key.replace("_", "."): value for key, value in keys.items()}
        worker = {"key.converter": text_converter, "value.converter": text_converter}
        return JavaConnector(kafka.bootstrap, f"java-{unique_name}", plugin_path, config, worker)

    return make


@pytest.fixture(scope="session")
def camel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin path with Camel's connectors."""
    return locked_plugin(tmp_path_factory.mktemp("plugins"), camel_connectors.LOCK)


@pytest.fixture(scope="session")
def iceberg_in_java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin path with Apache's Iceberg sink."""
    return iceberg_plugin(tmp_path_factory.mktemp("plugins"))


@pytest.fixture
def java_iceberg_sink(
    kafka: KafkaBroker, iceberg_rest: IcebergRest, iceberg_in_java: Path, make_topic: MakeTopic, unique_name: str
) -> JavaIceberg:
    """The sink, from a topic of two partitions into a table of its own."""
    return java_iceberg(kafka.bootstrap, f"lake-{unique_name}", iceberg_in_java, make_topic(2), iceberg_rest.uri)


@pytest.fixture(scope="session")
def debezium_postgresql(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin path with the connector for PostgreSQL."""
    return locked_plugin(tmp_path_factory.mktemp("plugins"), POSTGRESQL_LOCK)


@pytest.fixture
def postgresql_changes(
    kafka: KafkaBroker,
    postgresql: PostgresServer,
    postgresql_database: Database,
    debezium_postgresql: Path,
    unique_name: str,
) -> Iterator[Replicated]:
    """A table of 3,000 rows."""
    slot = unique_name.replace("-", "_")
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": unique_name,
        "database.hostname": "127.0.0.1",
        "database.port": str(postgresql.ports[0]),
        "database.user": USER,
        "database.password": "unused",
        "database.dbname": slot,
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": slot,
        **ROWS_OF_CHANGES,
    }
    connector = JavaConnector(kafka.bootstrap, f"changes-{unique_name}", debezium_postgresql, config)
    made = Replicated(connector, postgresql_database.url, f"{unique_name}.public.orders")
    made.execute(
        "create table orders (id int primary key, name text)",
        "insert into orders select n, 'n' || n from generate_series(1, 3000) n",
    )
    yield made
    made.execute(f"select pg_drop_replication_slot('{slot}') from pg_replication_slots where slot_name = '{slot}'")


@pytest.fixture(scope="session")
def binlog_server() -> Iterator[MariaDbServer]:
    """A server of its own, which writes a binary log."""
    with MariaDbServer.start(None, *BINLOG) as started:
        yield started


@pytest.fixture(scope="session")
def debezium_mariadb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for MariaDB."""
    return locked_plugin(tmp_path_factory.mktemp("plugins"), MARIADB_LOCK)


@pytest.fixture
def mariadb_changes(
    kafka: KafkaBroker, binlog_server: MariaDbServer, debezium_mariadb: Path, unique_name: str
) -> Iterator[Replicated]:
    """Two tables of 1,500 rows each, whose rows go to one topic."""
    database = unique_name.replace("-", "_")
    binlog_server.create_database(database)
    config = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "topic.prefix": unique_name,
        "database.hostname": "127.0.0.1",
        "database.port": str(binlog_server.ports[0]),
        "database.user": "root",
        "database.server.id": "4711",
        "database.include.list": database,
        "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap,
        "schema.history.internal.kafka.topic": f"history-{unique_name}",
        "include.schema.changes": "false",
        **ROWS_OF_CHANGES,
        "transforms": "route,unwrap",
        "transforms.route.type": "io.debezium.transforms.ByLogicalTableRouter",
        "transforms.route.topic.regex": ".*orders_[0-9]",
        "transforms.route.topic.replacement": f"orders-{unique_name}",
    }
    connector = JavaConnector(kafka.bootstrap, f"changes-{unique_name}", debezium_mariadb, config)
    made = Replicated(connector, binlog_server.url_of(database), f"orders-{unique_name}")
    made.execute(
        *(f"create table orders_{n} (id int primary key, name varchar(20))" for n in (1, 2)),
        "insert into orders_1 select seq, concat('n', seq) from seq_1_to_1500",
        "insert into orders_2 select seq, concat('n', seq) from seq_1501_to_3000",
    )
    yield made
    binlog_server.drop_database(database)
