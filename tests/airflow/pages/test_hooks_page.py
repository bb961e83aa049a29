"""docs/how-to/hooks-and-connections.md: its DAGs load, its connections are understood, its table is complete."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from airflow.sdk import DAG, Connection

from airflow_connect.airflow.connections.worker import worker_with_connection
from airflow_connect.hooks.connect import ConnectHook
from airflow_connect.hooks.kafka_connect import _urls
from airflow_connect.operators.kafka_connect import Action
from tests.airflow.conftest import LoadDag

PAGE = (Path(__file__).parents[3] / "docs/how-to/hooks-and-connections.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHELL = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def connection(conn_id: str) -> Connection:
    """What a shell makes of the page's exports."""
    script = "\n".join([*SHELL, f'printf %s "$AIRFLOW_CONN_{conn_id.upper()}"'])
    done = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True)
    return Connection.from_json(done.stdout, conn_id)


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: re.findall(r'dag_id="(\w+)"', block)[0])
def test_python_block_is_a_dag(block: str, load_dag: LoadDag) -> None:
    assert isinstance(load_dag(block), DAG)


def test_worker_connection_of_the_page_is_understood() -> None:
    worker = worker_with_connection({"spark.master": "local[2]"}, "connect_worker", connection)
    assert worker["bootstrap.servers"] == "broker-1:9092,broker-2:9092"
    assert worker["sasl.password"] == "change me"
    assert worker["spark.master"] == "local[2]"


def test_cluster_connection_of_the_page_is_understood() -> None:
    found = connection("kafka_connect_default")
    assert _urls(found) == ["https://connect-1:8083", "https://connect-2:8083"]


def test_page_names_every_action() -> None:
    table = PAGE[PAGE.index("| `action` |") :]
    named = {
        name
        for row in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", table, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    }
    assert named == {"action", *get_args(Action)}


def test_page_names_every_method_of_the_hook() -> None:
    methods = {name for name, _ in inspect.getmembers(ConnectHook, inspect.isfunction) if name in vars(ConnectHook)}
    named = set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE))
    assert {name for name in methods if not name.startswith("_")} == named
