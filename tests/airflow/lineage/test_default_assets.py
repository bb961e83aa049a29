"""Topics and directories as assets: known at parse time, told of in a real Airflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset

from airflow_connect.airflow.lineage.default_assets import default_assets
from airflow_connect.operators.connector import ConnectorOperator
from tests.airflow.conftest import LoadDag

S3 = {
    "name": "copy",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "orders, payments",
    "s3.bucket.name": "lake",
}
ONE = S3 | {"topics": "t"}
TRANSFORMS = "org.apache.kafka.connect.transforms"
HDFS = {"connector.class": "HdfsSinkConnector", "topics": "orders", "store.url": "hdfs://nn:8020"}
SOURCE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "topic": "lines"}
WORKER = {"bootstrap.servers": "SASL_SSL://broker-1:9092,broker-2:9092"}


def uris(connector: dict[str, Any], worker: dict[str, Any] | None = None) -> tuple[list[str], list[str]]:
    inlets, outlets = default_assets(connector, WORKER if worker is None else worker)
    return [a.uri for a in inlets], [a.uri for a in outlets]


@pytest.mark.parametrize(
    ("config", "outlets"),
    [
        (S3, ["s3://lake/topics/orders", "s3://lake/topics/payments"]),
        (S3 | {"topics.dir": "/raw/"}, ["s3://lake/raw/orders", "s3://lake/raw/payments"]),
        (S3 | {"topics.dir": "", "topics": "t"}, ["s3://lake/t"]),
        (S3 | {"topics": "", "topics.regex": "o.*"}, ["s3://lake/topics"]),
        (S3 | {"topics": "${vault:a:b}"}, ["s3://lake/topics"]),
        (S3 | {"s3.bucket.name": "{{ var.value.bucket }}"}, []),
        (S3 | {"topics.dir": "${file:/a:b}"}, []),
        (
            ONE | {"connector.class": "airflow_connect.connectors.files.s3.connector:S3SinkConnector"},
            ["s3://lake/topics/t"],
        ),
        (ONE | {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}.RegexRouter"}, ["s3://lake/topics"]),
        (ONE | {"transforms": "a", "transforms.a.type": "my.Own"}, ["s3://lake/topics"]),
        (ONE | {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}.MaskField$Value"}, ["s3://lake/topics/t"]),
        (HDFS, ["hdfs://nn:8020/topics/orders"]),
        (HDFS | {"store.url": "", "hdfs.url": "hdfs://cluster/data"}, ["hdfs://cluster/data/topics/orders"]),
        (HDFS | {"store.url": "${env:URL}"}, []),
        (HDFS | {"connector.class": "my.FolderSink"}, []),
    ],
)
def test_sink_writes_to_the_directories_that_its_configuration_names(
    config: dict[str, Any], outlets: list[str]
) -> None:
    assert uris(config)[1] == outlets


def test_topics_are_inlets_of_sinks_and_outlets_of_sources() -> None:
    assert uris(S3)[0] == ["kafka://broker-1:9092/orders", "kafka://broker-1:9092/payments"]
    assert uris(SOURCE) == ([], ["kafka://broker-1:9092/lines"])
    assert uris(S3, {})[0] == []  # The brokers stand in a connection, which is read when the task runs.
    assert uris({"connector.class": "my.Other"}) == ([], [])
    assert uris({}) == ([], [])


FILES = SOURCE | {"topic": ""}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (FILES | {"file": "/var/log/app.log"}, (["file:///var/log/app.log"], [])),
        (FILES | {"file": "s3://logs/app.log"}, (["s3://logs/app.log"], [])),
        (
            FILES | {"files": "/var/log/nginx/*.log*, s3://logs/app/**/*.gz, hdfs://nn:8020/logs/"},
            (["file:///var/log/nginx", "s3://logs/app", "hdfs://nn:8020/logs"], []),
        ),
        (FILES | {"file": "relative.log"}, ([], [])),
        (FILES | {"file": "{{ var.value.file }}"}, ([], [])),
        (FILES | {"files": "/*.log"}, ([], [])),
        ({"connector.class": "FileStreamSink", "topics": "t", "file": "/data/out.txt"}, ([], ["file:///data/out.txt"])),
        ({"connector.class": "FileStreamSink", "topics": "t"}, ([], [])),
        (
            {"connector.class": "LocalSink", "topics": "t", "store.url": "file:///data/out/"},
            ([], ["file:///data/out/topics/t"]),
        ),
        ({"connector.class": "LocalSink", "topics": "t", "store.url": "/data"}, ([], ["file:///data/topics/t"])),
        ({"connector.class": "LocalSink", "topics": "t", "store.url": "out"}, ([], [])),
    ],
    ids=["file", "s3", "patterns", "relative", "template", "root", "sink", "stdout", "local", "path", "unknown"],
)
def test_files_are_inlets_of_sources_and_outlets_of_sinks(
    config: dict[str, Any], expected: tuple[list[str], list[str]]
) -> None:
    assert uris(config, {}) == expected


POSTGRES = "jdbc:postgresql://db.example.com/shop?user=me&password=opensesame1"
SINK = {
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "topics": "orders",
    "connection.url": POSTGRES,
}
READS = {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "connection.url": POSTGRES}
SHOP = "postgres://db.example.com:5432/shop"


@pytest.mark.parametrize(
    ("config", "tables"),
    [
        (SINK, [f"{SHOP}/public/orders"]),
        (
            SINK | {"topics": "a,b", "table.name.format": "sales.${topic}_copy"},
            [f"{SHOP}/sales/a_copy", f"{SHOP}/sales/b_copy"],
        ),
        (SINK | {"topics": "a,b", "table.name.format": "all"}, [f"{SHOP}/public/all"]),
        (SINK | {"topics": "", "topics.regex": "o.*"}, []),
        (
            SINK | {"topics": "", "topics.regex": "o.*", "table.name.format": '"My Table"'},
            [f"{SHOP}/public/My%20Table"],
        ),
        (SINK | {"topics": "{{ params.topic }}"}, []),
        (SINK | {"table.name.format": "${topic}_${timestamp}"}, []),
        (SINK | {"table.name.format": '"open'}, []),
        (SINK | {"table.name.format": "a.b.c.d"}, []),
        (SINK | {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}.RegexRouter"}, []),
        (
            SINK | {"connection.url": "jdbc:postgresql://[::1]:6000/shop?currentSchema=sales,public"},
            ["postgres://[::1]:6000/shop/sales/orders"],
        ),
        (SINK | {"connection.url": "jdbc:postgresql://${airflow:db:host}/shop"}, []),
        (SINK | {"connection.url": ""}, []),
        (SINK | {"connection.url": "jdbc:db2://h/shop"}, []),
        (SINK | {"connection.url": "jdbc:sqlserver://h;databaseName=shop"}, []),
        (SINK | {"connection.url": "jdbc:postgresql://h/shop;password=opensesame1"}, []),
        (
            SINK | {"connection.url": "postgresql+psycopg2://me:opensesame1@db/shop"},
            ["postgres://db:5432/shop/public/orders"],
        ),
        (
            SINK | {"connection.url": "jdbc:mariadb://db/shop", "topics": "a,b", "table.name.format": "`x.y`.${topic}"},
            ["mysql://db:3306/x.y/a", "mysql://db:3306/x.y/b"],
        ),
        (SINK | {"connection.url": "jdbc:mysql://db:3307/shop"}, ["mysql://db:3307/shop/orders"]),
        (SINK | {"connection.url": "jdbc:sqlite:/data/my shop.db"}, ["sqlite:/data/my%20shop.db/orders"]),
        (
            SINK | {"connection.url": "jdbc:sqlite:file:/data/my%20shop.db?mode=rwc"},
            ["sqlite:/data/my%20shop.db/orders"],
        ),
        (SINK | {"connection.url": "jdbc:sqlite:shop.db"}, []),
        (SINK | {"connection.url": "sqlite:////data/shop.db"}, ["sqlite:/data/shop.db/orders"]),
    ],
)
def test_tables_that_a_sink_writes_are_outlets(config: dict[str, Any], tables: list[str]) -> None:
    assert uris(config)[1] == tables


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"table.whitelist": "orders, sales.items"}, (["public/orders", "sales/items"], ["shop-orders", "shop-items"])),
        ({"table.whitelist": "other.sales.items"}, (["../other/sales/items"], ["shop-items"])),
        ({"table.whitelist": "orders", "schema.pattern": "sales"}, (["sales/orders"], ["shop-orders"])),
        ({"table.whitelist": "orders", "schema.pattern": "s%"}, (["public/orders"], ["shop-orders"])),
        ({"table.include.list": r"shop\.public\.orders"}, (["public/orders"], ["shop-orders"])),
        ({"table.include.list": r"shop\.public\.o.*"}, ([], [])),
        ({"table.include.list": "shop.public.orders"}, ([], [])),
        ({"table.blacklist": "orders"}, ([], [])),
        ({}, ([], [])),
        ({"query": "SELECT 1", "table.whitelist": "orders"}, ([], ["shop-"])),
        ({"table.whitelist": "orders", "topic.prefix": "${env:PREFIX}"}, (["public/orders"], [])),
        (
            {"table.whitelist": "orders", "transforms": "a", "transforms.a.type": f"{TRANSFORMS}.RegexRouter"},
            (["public/orders"], []),
        ),
    ],
)
def test_tables_that_a_source_names_are_inlets_and_their_topics_outlets(
    config: dict[str, Any], expected: tuple[list[str], list[str]]
) -> None:
    tables, topics = expected
    written = [f"{SHOP}/{table}".replace("shop/../", "") for table in tables]
    assert uris({**READS, "topic.prefix": "shop-", **config}) == (
        written,
        [f"kafka://broker-1:9092/{topic}" for topic in topics],
    )


def test_uris_are_as_airflow_writes_them() -> None:
    databases = [{**SINK, "connection.url": url} for url in (POSTGRES, "jdbc:mysql://db/shop", "jdbc:sqlite:/d/s.db")]
    for inlets, outlets in (default_assets(config, WORKER) for config in (S3, HDFS, *databases)):
        assert outlets
        assert [a.uri for a in [*inlets, *outlets] if a.uri != a.name] == []  # `uri` is what Airflow made of `name`.


def test_own_inlets_and_outlets_stay_and_are_not_doubled() -> None:
    mine, other = Asset("orders", "s3://lake/topics/orders"), Asset("other")
    task = ConnectorOperator(task_id="t", config=S3, worker=WORKER, inlets=[other], outlets=[mine])
    assert [a.name for a in task.inlets] == ["other", "kafka://broker-1:9092/orders", "kafka://broker-1:9092/payments"]
    assert [a.name for a in task.outlets] == ["orders", "s3://lake/topics/payments"]


def test_assets_can_be_turned_off() -> None:
    task = ConnectorOperator(task_id="t", config=S3, worker=WORKER, add_assets=False)
    assert (list(task.inlets), list(task.outlets)) == ([], [])


def test_files_are_read_when_they_are_there_and_mistakes_in_them_are_left_to_the_task(tmp_path: Path) -> None:
    connector, worker = tmp_path / "copy.json", tmp_path / "worker.properties"
    connector.write_text(json.dumps({"name": "copy", "config": S3}))
    worker.write_text("bootstrap.servers=broker:9092\n")
    task = ConnectorOperator(task_id="t", config_file=connector, worker=worker)
    assert [a.uri for a in task.inlets] == ["kafka://broker:9092/orders", "kafka://broker:9092/payments"]
    assert [a.uri for a in task.outlets] == ["s3://lake/topics/orders", "s3://lake/topics/payments"]

    connector.write_text("{")
    for config_file in (connector, tmp_path / "missing.json", "{{ var.value.path }}", "x" * 5000):
        assert list(ConnectorOperator(task_id="t", config_file=config_file).outlets) == []


DAG_FILE = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None) as dag:
    {task}
"""


def events_of(dag_run: Any) -> dict[str, Any]:
    """Extra of each asset's event, by URI."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session

    with create_session() as session:
        query = session.query(AssetModel.uri, AssetEvent.extra).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        return {uri: dict(extra) for uri, extra in query.filter(AssetEvent.source_run_id == dag_run.run_id)}


@pytest.mark.usefixtures("scripted_driver")
def test_run_in_airflow_emits_an_event_for_each_directory(load_dag: LoadDag, unique_name: str) -> None:
    config = {**S3, "s3.bucket.name": unique_name, "fake": "copy"}
    task = f"ConnectorOperator(task_id='copy', config={config!r}, worker={WORKER!r})"
    dag_run = load_dag(DAG_FILE.format(dag_id=unique_name, task=task)).test(logical_date=None)

    assert dag_run.state == "success"
    found = events_of(dag_run)
    assert sorted(found) == [f"s3://{unique_name}/topics/orders", f"s3://{unique_name}/topics/payments"]
    assert [extra["records"] for extra in found.values()] == [20, 20]


@pytest.mark.usefixtures("scripted_driver")
def test_mapped_tasks_run_without_assets_that_the_dag_does_not_know(load_dag: LoadDag, unique_name: str) -> None:
    configs = [{**S3, "name": f"copy-{n}", "s3.bucket.name": f"{unique_name}-{n}", "fake": "copy"} for n in range(2)]
    task = f"ConnectorOperator.partial(task_id='copy', worker={WORKER!r}).expand(config={configs!r})"
    dag_run = load_dag(DAG_FILE.format(dag_id=unique_name, task=task)).test(logical_date=None)

    assert dag_run.state == "success"
    assert events_of(dag_run) == {}
