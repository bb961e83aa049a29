"""docs/how-to/first-copy.md as it is: its connections, its connector and its DAG, and what the pages show then."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from tests.support.kept_dags import forget_dag, keep_dag
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PAGE = (Path(__file__).parents[3] / "docs/how-to/first-copy.md").read_text()
RECORDS = 250


def block(language: str, word: str) -> str:
    """The block of the page that has this word."""
    every = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(found for found in every if word in found)


def connections(kafka: KafkaBroker, s3: S3Server) -> dict[str, str]:
    """What a shell makes of the exports, with the addresses and keys of the tests."""
    script = block("sh", "AIRFLOW_CONN").replace("localhost:9092", kafka.bootstrap)
    script = script.replace("my-key-id", s3.access_key).replace("my-secret-key", s3.secret_key)
    script = script.replace('"region_name"', f'"endpoint_url": "{s3.endpoint_url}", "region_name"')
    done = subprocess.run(["sh", "-c", f"{script}\nenv -0"], env={}, capture_output=True, text=True, check=True)
    pairs = (entry.partition("=") for entry in done.stdout.split("\0") if entry)
    return {name: value for name, _, value in pairs if name.startswith("AIRFLOW_CONN_")}


@pytest.mark.budget(30)  # Spark, and Airflow's API server
def test_page_copies_the_topic_and_the_pages_show_it(
    airflow_home: Path,
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    make_topic: Callable[..., str],
    produce: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow.dag_processing.dagbag import DagBag

    found = connections(kafka, s3)
    assert set(found) == {f"AIRFLOW_CONN_{name}_DEFAULT" for name in ("KAFKA", "AWS", "SPARK")}
    for name, connection in found.items():
        monkeypatch.setenv(name, connection)
    topic = make_topic(2)
    produce(topic, [(n % 2, None, b'{"order":%d}' % n, 0, []) for n in range(RECORDS)])
    connector = {**json.loads(block("json", "connector.class")), "topics": topic, "s3.bucket.name": bucket}
    connector["name"] = f"{topic}-to-s3"
    (tmp_path / "orders.json").write_text(json.dumps(connector))
    keep_dag(tmp_path, block("python", "ConnectorOperator"))

    for conf in ({"run.max.records": 100}, None):
        (dag,) = DagBag(str(tmp_path)).dags.values()  # A DAG keeps the conf of its test.
        assert dag.test(logical_date=None, run_conf=conf).state == "success"
    client = s3.client()
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert {key.partition("/partition=")[0] for key in keys} == {f"topics/{topic}"}
    lines = [line for key in keys for line in client.get_object(Bucket=bucket, Key=key)["Body"].read().splitlines()]
    assert sorted(json.loads(line)["order"] for line in lines) == list(range(RECORDS))
    _assert_on_pages(connector["name"])
    forget_dag("orders_to_s3")


def _assert_on_pages(connector: str) -> None:
    """Two runs of the connector, without any setting of the pages."""
    from airflow.api_fastapi.app import init_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    from airflow_connect.ui.pages.app import create_app

    token = init_auth_manager().generate_jwt(SimpleAuthManagerUser(username="ann", role="VIEWER"))
    browser = TestClient(create_app(), base_url="http://airflow.example.com", cookies={"_token": token})
    shown = ""

    def is_shown() -> bool:
        nonlocal shown
        shown = browser.get("/of", params={"dag_id": "orders_to_s3"}).text
        return connector in shown

    wait_until(is_shown, f"{connector} on the pages")
    counts = re.findall(r'<td>done</td><td class="n">([\d,]+)</td>', shown)
    assert counts == [str(RECORDS - 100), "100"]
