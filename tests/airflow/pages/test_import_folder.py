"""The DAG that imports a folder, and its page, on a real broker and a real S3 server."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.operators.connector_task import ConnectorTask
from tests.airflow.conftest import LoadDag
from tests.support.copies.restore import stored

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
DAG_FILE = (PROJECT / "dags/import_folder.py").read_text()
ONE_BROKER = {f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")}


def test_page_has_the_dag_of_the_dags_folder() -> None:
    page = (PROJECT / "docs/how-to/import-a-folder.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert code == DAG_FILE.partition("# [START howto]\n")[2].partition("# [END howto]")[0]


@pytest.mark.budget(30)  # a copy on Spark
def test_new_files_are_imported_and_a_changed_one_fails_after_them(
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    unique_name: str,
    load_dag: LoadDag,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    without_spark: Callable[[], None],
) -> None:
    brokers = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(brokers))
    place = {"endpoint_url": s3.endpoint_url, "region_name": s3.region}
    aws = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "extra": place}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(aws))
    source = DAG_FILE.replace('"lake"', f'"{bucket}"').replace("orders:exports", f"{unique_name}:exports")
    source = source.replace('"import-orders"', f'"import-{unique_name}"')

    def put(name: str, first: int, count: int = 5) -> None:
        content = io.BytesIO()
        pq.write_table(pa.table({"id": range(first, first + count), "name": ["ü"] * count}), content)
        s3.client().put_object(Bucket=bucket, Key=f"exports/orders/{name}", Body=content.getvalue())

    def run() -> Any:
        dag = load_dag(source)
        for task in dag.tasks:
            task.retries = 0  # a failure shall show at once
            if isinstance(task, ConnectorTask):
                task.worker = {**ONE_BROKER, "spark.master": "local[2]"}
        return dag.test(logical_date=None).state

    put("2026-11-27 a.parquet", 0)
    put("2026-11-27 b.parquet", 100)
    assert run() == "success", "".join(capfd.readouterr())[-9_000:]
    found = stored(kafka.bootstrap, unique_name)
    numbers = [*range(5), *range(100, 105)]
    assert sorted(json.loads(one.value or b"")["id"] for one in found) == numbers
    assert {one.key for one in found} == {b"%d" % n for n in numbers}

    without_spark()
    put("2026-11-27 a.parquet", 50)
    put("2026-11-26 late.parquet", 200, 1)
    assert run() == "failed"
    assert "2026-11-27 a.parquet has changed since 5 records of it were imported" in "".join(capfd.readouterr())
    assert len(stored(kafka.bootstrap, unique_name)) == 11
