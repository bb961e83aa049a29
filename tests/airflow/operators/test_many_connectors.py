"""Many connectors: `@task.connector`, mapped tasks, a folder of connectors; the driver is scripted."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import structlog

from airflow_connect.get_provider_info import get_provider_info
from airflow_connect.operators.dag_factory import DagSettings, connector_dags
from tests.airflow.conftest import DAGS, LoadDag

pytestmark = pytest.mark.usefixtures("scripted_driver")

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs/how-to/many-connectors.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
WORKER = {"bootstrap.servers": "broker:9092"}

DECORATED = """
from airflow.sdk import DAG, task
from airflow_connect.decorators.connector import connector_task

with DAG({dag_id!r}, schedule=None):
    @task
    def topic():
        return "meetups"

    @connector_task(worker={worker!r}, retries=0)
    def copy(topic, dag_run=None):
        return {returned}

    copy(topic())
"""


@pytest.fixture
def decorated(load_dag: LoadDag, unique_name: str) -> Callable[[str], Any]:
    return lambda returned: load_dag(DECORATED.format(dag_id=unique_name, worker=WORKER, returned=returned))


def test_decorated_function_returns_the_configuration_of_a_run(
    decorated: Callable[[str], Any], xcom: Callable[..., Any]
) -> None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    config = '{"name": topic + "-to-s3", "fake": "copy", "topics": topic, "note": "{{ dag.dag_id }} " + dag_run.dag_id}'
    run = decorated(config).test(logical_date=None)

    assert run.state == "success"
    assert xcom(run, "copy")["records"] == 20
    rendered = RenderedTaskInstanceFields.get_templated_fields(run.get_task_instance("copy"))
    assert rendered is not None
    assert rendered["config"]["name"] == "meetups-to-s3"
    assert rendered["config"]["note"] == f"{run.dag_id} {run.dag_id}"


def test_decorated_function_that_returns_no_configuration_fails_without_a_retry(
    decorated: Callable[[str], Any], capfd: pytest.CaptureFixture[str]
) -> None:
    dag = decorated('["meetups"]')
    dag.get_task("copy").retries = 2
    run = dag.test(logical_date=None)

    instance = run.get_task_instance("copy")
    assert (instance.state, instance.try_number) == ("failed", 1)
    assert "returned a list, not a configuration" in "".join(capfd.readouterr())


MAPPED = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator.partial(task_id="copy", worker={worker!r}, map_index_template="{{{{ connector }}}}").expand(
        config={configs!r}
    )
"""


def test_mapped_task_runs_each_connector_under_its_name(load_dag: LoadDag, unique_name: str) -> None:
    sink = {"connector.class": "S3SinkConnector", "s3.bucket.name": "b", "topics": "t", "fake": "copy"}
    configs = [{"name": name, **sink} for name in ("orders", "users")]
    run = load_dag(MAPPED.format(dag_id=unique_name, worker=WORKER, configs=configs)).test(logical_date=None)

    assert run.state == "success"
    found = {i.map_index: (i.state, i.rendered_map_index) for i in run.get_task_instances()}
    assert found == {0: ("success", "orders"), 1: ("success", "users")}


@pytest.fixture
def installed_decorator(monkeypatch: pytest.MonkeyPatch) -> None:
    """`@task.connector` as Airflow finds it in an installed provider."""
    from airflow.sdk import task
    from airflow.sdk.module_loading import import_string

    (found,) = get_provider_info()["task-decorators"]
    monkeypatch.setattr(type(task), found["name"], staticmethod(import_string(found["class-name"])), raising=False)


FOLDER = """
from pathlib import Path
from airflow_connect.operators.dag_factory import DagSettings, connector_dags

connector_dags(
    Path(__file__).parent / {folder!r},
    worker={worker!r},
    settings=DagSettings(schedule="@daily", retries=0),
)
"""
SINK = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t", "s3.bucket.name": "b"}


@pytest.fixture
def folder(airflow_home: Path, unique_name: str) -> Iterator[Path]:
    """An empty folder beside the DAG files."""
    path = DAGS / f"connectors-{unique_name}"
    path.mkdir()
    yield path
    for file in path.iterdir():
        file.unlink()
    path.rmdir()
    (DAGS / f"{path.name}.py").unlink()


def parse(folder: Path) -> Any:
    """What Airflow's DAG processor makes of a DAG file for the folder."""
    from airflow.dag_processing.dagbag import DagBag

    path = DAGS / f"{folder.name}.py"
    path.write_text(FOLDER.format(folder=folder.name, worker=WORKER))
    return DagBag(str(path), bundle_path=DAGS)


def test_each_file_of_a_folder_becomes_a_dag_with_the_schedule_beside_it(folder: Path) -> None:
    (folder / "orders.json").write_text(json.dumps({"name": "orders", "config": {**SINK, "fake": "copy"}}))
    sidecar = {"schedule": "15 * * * *", "tags": ["sales"], "pool": "kafka", "retries": 1, "execution_timeout_s": 900}
    (folder / "orders.dag.json").write_text(json.dumps(sidecar))
    (folder / "users.properties").write_text("name=users to s3\nconnector.class=S3SinkConnector\ntopics=u\n")
    bag = parse(folder)

    assert bag.import_errors == {}
    assert sorted(bag.dags) == ["orders", "users_to_s3"]
    orders, users = bag.dags["orders"], bag.dags["users_to_s3"]
    assert (orders.schedule, users.schedule) == ("15 * * * *", "@daily")
    assert orders.tags == {"connector", "sales"}
    assert (orders.description, users.description) == ("S3SinkConnector t", "S3SinkConnector u")
    task = orders.get_task("copy")
    assert (task.pool, task.retries, task.execution_timeout.total_seconds()) == ("kafka", 1, 900)
    assert [asset.uri for asset in task.outlets] == ["s3://b/topics/t"]
    assert orders.test(logical_date=None).state == "success"


def test_task_creates_only_its_own_dag_of_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("orders", "users", "clicks"):
        (folder / f"{name}.json").write_text(json.dumps({"name": name, **SINK}))
    (folder / "users.dag.json").write_text('{"schedule": "every now and then"}')
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "orders")  # What Airflow sets for a task while it parses.
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "copy")

    bag = parse(folder)

    assert bag.import_errors == {}
    assert list(bag.dags) == ["orders"]
    assert bag.dags["orders"].has_task("copy")


def test_dag_file_may_use_every_dag_of_a_folder_in_a_task(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("orders", "users"):
        (folder / f"{name}.json").write_text(json.dumps({"name": name, **SINK}))
    (DAGS / f"{folder.name}.py").touch()  # The fixture removes it.
    of_dag_processor = connector_dags(folder, worker=WORKER)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "orders")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "copy")
    of_task = connector_dags(folder, worker=WORKER)

    assert "users" in of_task
    assert "clicks" not in of_task
    assert of_task.get("clicks") is None
    assert of_task["users"] is of_task["users"]
    assert {**of_task}.keys() == {**of_dag_processor}.keys() == {"orders", "users"}
    for name, dag in of_task.items():
        assert (dag.dag_id, dag.schedule) == (name, of_dag_processor[name].schedule)
        assert dag.get_task("copy").outlets == of_dag_processor[name].get_task("copy").outlets


def test_command_that_names_a_dag_but_no_task_finds_all_dags(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow may write what it found into its database: what is missing there would count as deleted."""
    for name in ("orders", "users"):
        (folder / f"{name}.json").write_text(json.dumps({"name": name, **SINK}))
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "orders")
    monkeypatch.delenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", raising=False)

    assert sorted(parse(folder).dags) == ["orders", "users"]


def test_file_that_cannot_be_used_is_an_import_error_of_its_own(folder: Path) -> None:
    from airflow.dag_processing.processor import _serialize_dags

    (folder / "a.json").write_text(json.dumps({"name": "good", **SINK}))
    (folder / "b.json").write_text('{"name": "broken"')
    (folder / "c.json").write_text(json.dumps({"name": "good", **SINK}))
    (folder / "d.json").write_text(json.dumps({"name": "d", **SINK}))
    (folder / "d.dag.json").write_text('{"schedul": null}')
    (folder / "e.json").write_text(json.dumps({"name": "e", **SINK}))
    (folder / "e.dag.json").write_text('{"schedule": "every now and then"}')
    (folder / "f.json").write_text(json.dumps({"name": "f"}))
    (folder / "g.json").write_text(json.dumps({"name": "g", **SINK}))
    (folder / "g.dag.json").write_text('{"retries": "many"}')
    for letter, sidecar in zip("hij", ("NaN", "Infinity", "1e30"), strict=True):
        (folder / f"{letter}.json").write_text(json.dumps({"name": letter, **SINK}))
        (folder / f"{letter}.dag.json").write_text(f'{{"execution_timeout_s": {sidecar}}}')
    long = "k" * 240 + ".json"
    (folder / long).write_text("[]")
    bag = parse(folder)

    serialized, errors = _serialize_dags(bag, structlog.get_logger())

    assert [dag.dag_id for dag in serialized] == ["good"]
    assert bag.import_errors == {}
    said = {Path(path).name: text for path, text in errors.items()}
    assert {str(Path(path).parent) for path in errors} == {folder.name}
    assert sorted(said) == [*(f"{letter}.json" for letter in "bcdefghij"), long]
    for name, words in {
        "b.json": "is not JSON",
        "c.json": "give DAG 'good'",
        "d.json": "Did you mean schedule?",
        "e.json": "Exactly 5, 6 or 7 columns",
        "f.json": "has no 'connector.class'",
        "g.json": "retries is 'many'",
        "h.json": "NaN is not a JSON number",
        "i.json": "Infinity is not a JSON number",
        "j.json": "execution_timeout_s is 1e+30; expected 0 to",
        long: "",
    }.items():
        assert words in said[name]


def test_form_of_a_source_has_no_limit_that_sources_refuse(folder: Path) -> None:
    for name in ("FileStreamSource", "a.b:MySource", "MirrorCheckpointConnector", "S3Sink", "a.SourceOfTruthSink"):
        config = {"name": name.rpartition(":")[2], "connector.class": name, "topics": "t"}
        (folder / f"{config['name']}.json").write_text(json.dumps(config))
    bag = parse(folder)
    with_time = {dag_id for dag_id, dag in bag.dags.items() if "run.until.timestamp" in dag.params}
    assert bag.import_errors == {}
    assert with_time == {"S3Sink", "a.SourceOfTruthSink"}


def test_folder_is_read_once_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So 300 DAGs take half a second: docs/how-to/many-connectors.md."""
    from airflow.sdk import BaseHook

    for number in range(20):
        (folder / f"c{number}.json").write_text(json.dumps({"name": f"c{number}", **SINK}))
    read: list[str] = []
    original = Path.read_bytes

    def counted(path: Path) -> bytes:
        read.append(path.name)
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    monkeypatch.setattr(BaseHook, "get_connection", lambda conn_id: pytest.fail(f"{conn_id} was read"))

    assert len(parse(folder).dags) == 20
    assert sorted(name for name in read if name.startswith("c")) == sorted(f"c{number}.json" for number in range(20))


def test_page_has_the_dag_of_the_dags_folder_and_names_every_setting(load_dag: LoadDag) -> None:
    source = (PROJECT / "dags/folder_of_connectors.py").read_text()
    assert source.partition("# [START howto]\n")[2].partition("# [END howto]")[0] in PYTHON
    assert {field.name for field in fields(DagSettings)} <= set(re.findall(r"`(\w+)`", PAGE))
    (DAGS / "connectors").mkdir()
    try:
        for path in (PROJECT / "dags/connectors").iterdir():
            shutil.copy(path, DAGS / "connectors")
        dag = load_dag(source)
        assert (dag.dag_id, dag.schedule) == ("meetups-by-day", "15 * * * *")
    finally:
        shutil.rmtree(DAGS / "connectors")


@pytest.mark.parametrize("block", PYTHON[1:], ids=["mapped", "decorated"])
def test_other_dags_of_the_page_run(
    load_dag: LoadDag, installed_decorator: None, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", '{"conn_type": "kafka", "extra": {"bootstrap.servers": "b:9092"}}')
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", '{"conn_type": "aws"}')
    dag = load_dag(block.replace('"format.class"', '"fake": "copy", "format.class"').replace("retries=3", "retries=0"))
    assert dag.test(logical_date=None).state == "success"
