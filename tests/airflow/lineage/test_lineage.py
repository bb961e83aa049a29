"""Lineage as OpenLineage's official provider reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.airflow.lineage.columns import TracedField, message_fields, written_fields
from airflow_connect.airflow.lineage.openlineage import Lineage
from airflow_connect.documents.run import RunReport
from airflow_connect.documents.run_tables import TableCommit
from airflow_connect.documents.source_run import SourceRunReport
from airflow_connect.operators.connector import ConnectorOperator

TRANSFORMS = "org.apache.kafka.connect.transforms"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "email", "type": "string", "optional": True},
        {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
    ],
}
S3 = {
    "name": "copy",
    "connector.class": "S3SinkConnector",
    "topics": "orders",
    "s3.bucket.name": "lake",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schema.content": json.dumps(SCHEMA),
}
WORKER = {"bootstrap.servers": "broker:9092", "sasl.password": "opensesame1"}


def extracted(config: dict[str, Any], report: RunReport | None = None) -> dict[str, Any]:
    """What the provider's own extractor makes of a task, as it is sent."""
    from airflow.providers.openlineage.extractors.base import DefaultExtractor
    from openlineage.client.serde import Serde

    task = ConnectorOperator(task_id="copy", config=config, worker=WORKER)
    if report is not None:
        task._lineage = Lineage(config, WORKER, report)
    extractor = DefaultExtractor(task)
    found = extractor.extract() if report is None else extractor.extract_on_complete(None)
    assert found is not None
    whole: dict[str, Any] = json.loads(json.dumps(Serde.to_dict(found)))
    return {"inputs": [], "outputs": [], "run_facets": {}, **whole}


def names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(dataset["namespace"], dataset["name"]) for dataset in datasets]


def test_datasets_have_the_names_of_openlineage() -> None:
    found = extracted({**S3, "topics": "orders,payments"})
    assert names(found["inputs"]) == [("kafka://broker:9092", "orders"), ("kafka://broker:9092", "payments")]
    assert names(found["outputs"]) == [("s3://lake", "topics/orders"), ("s3://lake", "topics/payments")]
    assert "opensesame1" not in json.dumps(found)
    hdfs = {"connector.class": "HdfsSinkConnector", "topics": "t", "store.url": "hdfs://nn:8020"}
    assert names(extracted(hdfs)["outputs"]) == [("hdfs://nn:8020", "/topics/t")]
    lines = {"connector.class": "FileStreamSource", "topic": "t", "file": "/var/log/app.log"}
    found = extracted(lines)
    assert (names(found["inputs"]), names(found["outputs"])) == (
        [("file", "/var/log/app.log")],
        [("kafka://broker:9092", "t")],
    )


def test_tables_have_the_names_of_openlineage() -> None:
    sink = {"connector.class": "JdbcSink", "topics": "orders", "name": "copy"}
    for url, expected in {
        "jdbc:postgresql://db/shop?user=me&password=opensesame1": ("postgres://db:5432", "shop.public.orders"),
        "jdbc:mysql://db:3307/shop": ("mysql://db:3307", "shop.orders"),
        "jdbc:sqlite:/data/my shop.db": ("sqlite", "/data/my shop.db/orders"),
    }.items():
        found = extracted({**sink, "connection.url": url})
        assert (names(found["inputs"]), names(found["outputs"])) == ([("kafka://broker:9092", "orders")], [expected])
        assert "opensesame1" not in json.dumps(found)


def test_source_names_the_tables_and_topics_that_it_has_copied() -> None:
    config = {
        "name": "shop",
        "connector.class": "JdbcSource",
        "connection.url": "jdbc:postgresql://db/shop",
        "topic.prefix": "shop-",
        "table.whitelist": "orders",
    }
    moves = [{"partition": {"protocol": "1", "table": f"shop.public.{table}"}} for table in ("orders", "items")]
    offsets = [{**move, "before": None, "after": {"incrementing": 7}} for move in moves]
    source = SourceRunReport.from_json({"topics": {"shop-orders": 7, "shop-items": 2}, "offsets": offsets})
    report = RunReport("shop", "r1", "done", 0, 1, records=9, source=source)
    found = extracted(config, report)
    read = [("postgres://db:5432", "shop.public.orders"), ("postgres://db:5432", "shop.public.items")]
    assert names(found["inputs"]) == read
    assert [(d["name"], d["outputFacets"]["outputStatistics"]["rowCount"]) for d in found["outputs"]] == [
        ("shop-orders", 7),
        ("shop-items", 2),
    ]
    referred = extracted({**config, "connection.url": "jdbc:postgresql://${airflow:db:host}/shop"}, report)
    assert (referred["inputs"], len(referred["outputs"])) == ([], 2)


ICEBERG = {
    **S3,
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "iceberg.tables": "sales.orders,sales.items",
    "iceberg.tables.evolve-schema-enabled": "true",
    "iceberg.catalog.uri": "https://me:opensesame1@catalog.example.com",
}
ORDERS = TableCommit(
    "iceberg",
    "sales.orders",
    "main",
    str((1 << 63) - 1),
    "r0",
    5,
    2,
    70,
    1,
    {"orders-0": (0, 5)},
    "s3a://lake/wh/orders/",
)


def test_tables_of_a_lake_are_named_by_their_folder_and_have_snapshot_counts_and_columns() -> None:
    newer = replace(ORDERS, snapshot_id="77", run_id="r1", rows=2, files=1, size_bytes=30)
    items = replace(newer, table="sales.items", snapshot_id="78", location="hdfs://nn:8020/wh/items")
    found = extracted(ICEBERG, RunReport("copy", "r1", "done", 0, 1, records=4, tables=(ORDERS, newer, items)))

    assert names(found["outputs"]) == [("s3://lake", "wh/orders"), ("hdfs://nn:8020", "/wh/items")]
    orders, other = found["outputs"]
    assert [d["facets"]["version"]["datasetVersion"] for d in (orders, other)] == ["77", "78"]
    counts = orders["outputFacets"]["outputStatistics"]
    assert (counts["rowCount"], counts["size"], counts["fileCount"]) == (7, 100, 3)
    assert orders["facets"]["storage"]["storageLayer"] == "iceberg"
    (name,) = orders["facets"]["symlinks"]["identifiers"]
    assert (name["namespace"], name["name"], name["type"]) == ("iceberg://iceberg", "sales.orders", "TABLE")
    assert [f["name"] for f in orders["facets"]["schema"]["fields"]] == ["id", "email", "at"]
    assert set(orders["facets"]["columnLineage"]["fields"]) == {"id", "email", "at"}
    assert names(found["inputs"]) == [("kafka://broker:9092", "orders")]
    assert "opensesame1" not in json.dumps(found)


def test_table_whose_folder_is_not_known_is_no_output_or_has_its_name_in_the_catalog() -> None:
    assert extracted(ICEBERG)["outputs"] == []
    assert extracted(ICEBERG, RunReport("copy", "r1", "empty", 0, 1))["outputs"] == []
    for location, expected in {
        "": ("iceberg://iceberg", "sales.orders"),
        "file:/tmp/wh/orders": ("file", "/tmp/wh/orders"),
        "file:///tmp/wh/orders": ("file", "/tmp/wh/orders"),
        "gs://lake/wh/orders": ("gs://lake", "wh/orders"),
    }.items():
        report = RunReport("copy", "r1", "done", 0, 1, tables=(replace(ORDERS, location=location),))
        assert names(extracted(ICEBERG, report)["outputs"]) == [expected]


@pytest.mark.parametrize("changed", [{"evolve-schema-enabled": "false"}, {"schema-case-insensitive": "true"}])
def test_columns_of_a_lake_that_may_not_be_the_fields_of_the_value_are_not_told(changed: dict[str, str]) -> None:
    config = {**ICEBERG, **{f"iceberg.tables.{key}": value for key, value in changed.items()}}
    (table,) = extracted(config, RunReport("copy", "r1", "done", 0, 1, tables=(ORDERS,)))["outputs"]
    assert {"schema", "columnLineage"}.isdisjoint(table["facets"])


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({}, ["id", "email", "at"]),
        ({"pk.mode": "record_value", "pk.fields": "id"}, ["id", "email", "at"]),
        ({"pk.mode": "record_key", "pk.fields": "id"}, None),
        ({"fields.whitelist": "id"}, None),
    ],
)
def test_columns_of_a_table_are_told_only_if_they_are_the_fields_of_the_value(
    config: dict[str, str], fields: list[str] | None
) -> None:
    sink = {**S3, "connector.class": "JdbcSink", "connection.url": "jdbc:mysql://db/shop", **config}
    (table,) = extracted(sink)["outputs"]
    assert [f["name"] for f in table["facets"].get("schema", {}).get("fields", [])] == (fields or [])
    assert set(table["facets"].get("columnLineage", {}).get("fields", [])) == set(fields or [])


def test_finished_run_tells_counts_and_offsets() -> None:
    report = RunReport(
        "copy", "r1", "done", 0, 1000, records=7, filtered=2, dead_lettered=1, files=3, size_bytes=99,
        committed={"orders-0": 10},
    )  # fmt: skip
    found = extracted(S3, report)
    assert found["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 10
    written = found["outputs"][0]["outputFacets"]["outputStatistics"]
    assert (written["rowCount"], written["size"], written["fileCount"]) == (7, 99, 3)
    summary = found["run_facets"]["airflowConnect_run"]["summary"]
    assert (summary["run_id"], summary["offsets"]) == ("r1", {"orders-0": 10})


def test_counts_that_are_not_known_by_dataset_are_left_out() -> None:
    found = extracted({**S3, "topics": "orders,payments"}, RunReport("copy", "r1", "done", 0, 1, records=7))
    assert all(not dataset.get("outputFacets") for dataset in found["outputs"])
    source = {"connector.class": "FileStreamSource", "topic": "t", "file": "/var/log/app.log"}
    report = RunReport("copy", "r1", "done", 0, 1, records=7, source=SourceRunReport(topics={"t": 7}))
    assert extracted(source, report)["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 7


def test_fields_are_followed_through_transformations() -> None:
    chain = {
        "transforms": "rename, mask, add, key",
        "transforms.rename.type": f"{TRANSFORMS}.ReplaceField$Value",
        "transforms.rename.exclude": "at",
        "transforms.rename.renames": "id:order_id",
        "transforms.mask.type": f"{TRANSFORMS}.MaskField$Value",
        "transforms.mask.fields": "email",
        "transforms.add.type": f"{TRANSFORMS}.InsertField$Value",
        "transforms.add.topic.field": "came_from!",
        "transforms.key.type": f"{TRANSFORMS}.ReplaceField$Key",
        "transforms.key.exclude": "order_id",
    }
    found = extracted({**S3, **chain})
    read, written = found["inputs"][0]["facets"], found["outputs"][0]["facets"]
    assert [(f["name"], f["type"]) for f in read["schema"]["fields"]] == [
        ("id", "int64"),
        ("email", "string"),
        ("at", "Timestamp"),
    ]
    assert [f["name"] for f in written["schema"]["fields"]] == ["order_id", "email", "came_from"]
    columns = written["columnLineage"]["fields"]
    assert {name: [i["field"] for i in of["inputFields"]] for name, of in columns.items()} == {
        "order_id": ["id"],
        "email": ["email"],
    }
    (how,) = columns["email"]["inputFields"][0]["transformations"]
    assert (how["subtype"], how["masking"]) == ("TRANSFORMATION", True)
    (how,) = columns["order_id"]["inputFields"][0]["transformations"]
    assert (how["type"], how["subtype"], how["masking"]) == ("DIRECT", "IDENTITY", False)


def chain(kind: str, **settings: str) -> dict[str, str]:
    given = {f"transforms.a.{key.replace('_', '.')}": value for key, value in settings.items()}
    return {"transforms": "a", "transforms.a.type": f"{TRANSFORMS}.{kind}", **given}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ["id:int64", "email:string", "at:Timestamp"]),
        (chain("Cast$Value", spec="id:string"), ["id:string", "email:string", "at:Timestamp"]),
        (chain("ReplaceField$Value", include="id"), ["id:int64"]),
        (
            chain("TimestampConverter$Value", field="at", target_type="string"),
            ["id:int64", "email:string", "at:string"],
        ),
        (chain("HeaderFrom$Value", fields="id", headers="h", operation="move"), ["email:string", "at:Timestamp"]),
        (chain("RegexRouter", regex="a", replacement="b"), ["id:int64", "email:string", "at:Timestamp"]),
        (chain("Filter", predicate="p"), ["id:int64", "email:string", "at:Timestamp"]),
        (chain("Cast$Value", spec="string"), None),
        (chain("ReplaceField$Value", exclude="id", predicate="p"), None),
        (chain("ReplaceField$Value", exclude="{{ var.value.x }}"), None),
        (chain("Flatten$Value"), None),
        ({"transforms": "a", "transforms.a.type": "my.Own"}, None),
    ],
    ids=[
        "none", "cast", "include", "time", "moved", "router", "filter", "whole-value", "predicate", "template",
        "flatten", "own",
    ],
)  # fmt: skip
def test_fields_are_known_exactly_or_not_at_all(config: dict[str, str], expected: list[str] | None) -> None:
    fields = message_fields(S3, {})
    assert fields is not None
    found = written_fields(fields, {**S3, **config})
    assert (None if found is None else [f"{field.name}:{field.kind}" for field in found]) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"value.converter": "x"},
        {"value.converter.schema.content": "${file:/a:b}"},
        {"value.converter.schema.content": "{"},
        {"value.converter.schemas.enable": "false"},
    ],
    ids=["registry", "reference", "broken", "no-schema"],
)
def test_fields_of_messages_are_unknown_without_a_fixed_schema(config: dict[str, str]) -> None:
    base = {} if "value.converter" in config else S3
    assert message_fields({**base, **config}, {}) is None


def test_converter_of_the_worker_has_its_own_schema() -> None:
    worker = {key: value for key, value in S3.items() if key.startswith("value.")}
    assert message_fields({"name": "c"}, worker) == message_fields(S3, {})
    assert TracedField("id", "int64", "id") in (message_fields(S3, {}) or [])


RUN = """
import sys
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG("told", schedule=None) as dag:
    for action in ("copy", "config"):
        ConnectorOperator(task_id=action, config={{**{config!r}, "fake": action}}, worker={worker!r})
if __name__ == "__main__":
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session
    with create_session() as session:
        session.merge(DagBundleModel(name="told"))
    bag = DagBag(__file__)
    sync_bag_to_db(bag, "told", "1")
    bag.dags["told"].test(logical_date=None)
"""


@pytest.mark.budget(20)  # Airflow and the provider, started anew: the provider reads its settings when it is imported.
def test_official_provider_sends_events_of_a_success_and_of_a_failure(
    airflow_home: Path, scripted_driver: None, tmp_path: Path
) -> None:
    events, script = tmp_path / "events.json", tmp_path / "told.py"
    script.write_text(RUN.format(config=S3, worker=WORKER))
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    env = {**os.environ, "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport)}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=False)
    assert events.exists(), done.stdout + done.stderr
    told = [json.loads(line) for line in events.read_text().splitlines()]
    kinds = {name: [event for event in told if event["job"]["name"] == f"told.{name}"] for name in ("copy", "config")}
    assert {name: [event["eventType"] for event in of] for name, of in kinds.items()} == {
        "copy": ["START", "COMPLETE"],
        "config": ["START", "FAIL"],
    }
    succeeded, failed = kinds["copy"][-1], kinds["config"][-1]
    assert names(succeeded["outputs"]) == names(failed["outputs"]) == [("s3://lake", "topics/orders")]
    assert succeeded["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 20
    assert succeeded["run"]["facets"]["airflowConnect_run"]["summary"]["records"] == 20
    assert "It went wrong" in failed["run"]["facets"]["errorMessage"]["message"]
    assert "opensesame1" not in events.read_text()
