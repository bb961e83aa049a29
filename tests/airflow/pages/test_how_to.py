"""docs/how-to/use-in-your-airflow.md: its code runs, its tables are complete, and its DAG is the one in dags/."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Connection

from airflow_connect.airflow.connections.official import aws_credentials, worker_with_kafka, worker_with_spark
from airflow_connect.airflow.outcome import summary_of
from airflow_connect.airflow.run_params import RUN_KEYS
from airflow_connect.cli.main import build_parser
from airflow_connect.documents.run import RunReport
from airflow_connect.documents.source_run import SourceRunReport
from tests.airflow.conftest import DAGS, LoadDag

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs/how-to/use-in-your-airflow.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHELL = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def connector_file(airflow_home: Path) -> Any:
    """The configuration that the first DAG of the page expects beside it."""
    path = Path(shutil.copy(PROJECT / "dags/meetups-to-s3.json", DAGS))
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "fake": "copy"}))
    yield path
    path.unlink()


def test_page_has_the_dag_of_the_dags_folder() -> None:
    source = (PROJECT / "dags/kafka_to_s3.py").read_text()
    quoted = source.partition("# [START howto]\n")[2].partition("# [END howto]")[0]
    assert quoted in PYTHON


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: re.findall(r'dag_id="(\w+)"', block)[0])
def test_python_block_is_a_dag_that_serializes(block: str, load_dag: LoadDag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = load_dag(block)
    assert isinstance(dag, DAG)
    assert DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).dag_id == dag.dag_id


def test_first_dag_of_the_page_runs(
    load_dag: LoadDag, connector_file: Path, scripted_driver: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, connection in connections_of_the_page().items():
        monkeypatch.setenv(name, connection)
    assert load_dag(PYTHON[0]).test(logical_date=None).state == "success"


def test_second_dag_of_the_page_renders_its_template(load_dag: LoadDag) -> None:
    task = load_dag(PYTHON[1]).get_task("copy_orders")
    task.render_template_fields({"var": {"value": {}}})
    assert task.config["s3.bucket.name"] == "orders"
    assert task.worker == {"spark.master": "local[2]"}


def connections_of_the_page() -> dict[str, str]:
    """What a shell makes of the block with the exports."""
    script = next(block for block in SHELL if "AIRFLOW_CONN" in block) + "\nenv -0"
    done = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True)
    pairs = (entry.partition("=") for entry in done.stdout.split("\0") if entry)
    return {name: value for name, _, value in pairs if name.startswith("AIRFLOW_CONN_")}


def test_connections_of_the_page_are_understood() -> None:
    found = connections_of_the_page()

    def get(conn_id: str) -> Connection:
        return Connection.from_json(found[f"AIRFLOW_CONN_{conn_id.upper()}"], conn_id)

    assert worker_with_kafka({}, "kafka_default", get)["sasl.username"] == "airflow"
    assert aws_credentials("aws_default", get) == {
        "region": "eu-central-1",
        "role_arn": "arn:aws:iam::123456789012:role/meetups-writer",
    }
    assert worker_with_spark({}, "spark_cluster", get) == {
        "spark.master": "spark://spark-master:7077",
        "spark.executor.memory": "2g",
    }


def test_commands_of_the_page_are_understood() -> None:
    lines = [line for block in SHELL for line in block.splitlines() if line.startswith("airflow-connect ")]
    assert [build_parser().parse_args(line.split()[1:]).command.NAME for line in lines] == [
        "doctor",
        "validate",
        "plan",
        "standalone",
    ]


def test_page_names_every_limit_and_every_member_of_the_summary() -> None:
    words = set(re.findall(r"`([\w.]+)`", PAGE))
    assert set(RUN_KEYS) - words == set()
    assert set(summary_of(RunReport("c", "r", "done", 0, 1))) - words == set()
    assert set(summary_of(RunReport("c", "r", "done", 0, 1, source=SourceRunReport()))) - words == set()


def test_dags_folder_holds_what_the_demo_and_users_copy() -> None:
    assert {"kafka_to_s3.py", "meetups-to-s3.json"} <= set(os.listdir(PROJECT / "dags"))
