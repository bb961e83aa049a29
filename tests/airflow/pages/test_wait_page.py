"""docs/how-to/wait-for-data.md: its DAGs load and look at a real broker, its tables are complete."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

import airflow_connect.sensors.connector
import airflow_connect.sensors.topics
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.sensors.peeking import PeekingSensor
from tests.airflow.conftest import DAGS, LoadDag

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs/how-to/wait-for-data.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SENSORS = {
    name: found
    for module in (airflow_connect.sensors.connector, airflow_connect.sensors.topics)
    for name, found in inspect.getmembers(module, inspect.isclass)
    if issubclass(found, PeekingSensor) and name in module.__all__
}


@pytest.fixture(autouse=True)
def connector_file(airflow_home: Path) -> Iterator[None]:
    """The file beside the DAGs."""
    path = Path(shutil.copy(PROJECT / "dags/meetups-to-s3.json", DAGS))
    yield
    path.unlink()


@pytest.mark.parametrize(("file", "mark"), [("event_driven_copy.py", "event"), ("wait_for_hour.py", "hour")])
def test_page_quotes_the_dags(file: str, mark: str) -> None:
    source = (PROJECT / "dags" / file).read_text()
    assert source.partition(f"# [START {mark}]\n")[2].partition(f"# [END {mark}]")[0] in PYTHON


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: re.findall(r'dag_id="(\w+)"', block)[0])
def test_python_block_is_a_dag_that_serializes(block: str, load_dag: LoadDag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = load_dag(block)
    assert isinstance(dag, DAG)
    assert DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).dag_id == dag.dag_id


def test_sensors_of_the_page_look(
    load_dag: LoadDag, kafka: KafkaBroker, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = {"bootstrap.servers": kafka.bootstrap}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    topic = make_topic()
    worker = {"value.converter": "JsonConverter", "key.converter": "StringConverter"}
    for block in PYTHON[1:]:
        dag = load_dag(block.replace('"meetups"', f'"{topic}"'))
        for task in dag.tasks:
            if not isinstance(task, PeekingSensor):
                continue
            context: Any = {"dag_run": RunAfter()}
            task.worker = worker
            task.render_template_fields(context)
            assert task.poke({}) is False, task.task_id


class RunAfter:
    """As much of a DAG run as the templates of the page use."""

    run_after = datetime.now(UTC) + timedelta(hours=1)  # an hour that no topic has passed


def test_page_names_every_sensor_and_its_documented_xcom() -> None:
    rows = dict(re.findall(r"^\| `(\w+Sensor)` \| (`connector`.*|`\w+`.*) \|$", PAGE, re.MULTILINE))
    assert rows.keys() == SENSORS.keys()
    for name, found in SENSORS.items():
        documented = (found.__doc__ or "").partition("XCom: ")[2].partition("Args:")[0]
        assert set(re.findall(r"`(\w+)`", documented)) - set(re.findall(r"`(\w+)`", rows[name])) == set(), name
