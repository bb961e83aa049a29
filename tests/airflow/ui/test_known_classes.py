"""What a DAG names is not imported by the API server, and not read by it, because somebody looks at a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.airflow.ui.conftest import CONN_ID, ORIGIN
from tests.airflow.ui.test_pages import complete
from tests.support.copies.showcase import OF_DAG, Showcase
from tests.support.kept_dags import forget_dag, keep_dag

pytestmark = pytest.mark.integration

PAGES = ("connector", "cluster", "doctor", "offsets", "run")
DAG = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator(task_id="copy", {given}, kafka_conn_id="kafka_of_classes", worker={worker!r})
"""


@pytest.fixture
def foreign_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """A package that can be imported; whether it was: `foreign_package()`."""
    package = tmp_path / "packages" / "package_of_a_dag"
    package.mkdir(parents=True)
    marker = tmp_path / "imported"
    (package / "__init__.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    (package / "parts.py").write_text("class Part:\n    pass\n")
    monkeypatch.syspath_prepend(str(package.parent))
    yield marker.exists
    for name in [name for name in sys.modules if name.startswith("package_of_a_dag")]:
        del sys.modules[name]


@pytest.fixture
def browser(tokens: dict[str, str]) -> TestClient:
    """Pages that remember nothing, for a user who may run DAGs."""
    from airflow_connect.ui.pages.app import create_app

    return TestClient(create_app(), base_url=ORIGIN, cookies={"_token": tokens["user"]}, headers={"Origin": ORIGIN})


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("connector.class", "package_of_a_dag.parts:Part", "connector.class names a class"),
        ("connector.class", "package_of_a_dag.parts.Part", "connector.class names a class"),
        ("value.converter", "package_of_a_dag.parts:Part", "value.converter names a class"),
        ("transforms.a.type", "package_of_a_dag.parts.Part", "transforms.a.type names a class"),
        ("partitioner.class", "package_of_a_dag.parts:Part", "partitioner.class names a class"),
    ],
)
def test_class_of_a_dag_is_not_imported_by_any_page(
    browser: TestClient,
    showcase: Showcase,
    tmp_path: Path,
    foreign_package: Callable[[], bool],
    key: str,
    value: str,
    says: str,
) -> None:
    config = {**showcase.config(OF_DAG), "own.setting": "unguessable", key: value}
    config |= {"transforms": "a"} if key.startswith("transforms") else {}
    (tmp_path / "dag").mkdir()
    keep_dag(tmp_path / "dag", DAG.format(dag_id="nightly", given=f"config={config!r}", worker={}))
    assert not foreign_package(), "Airflow itself imports nothing for a configuration"

    page = complete(browser, f"/{CONN_ID}/connector", says, name=OF_DAG)
    assert "Show the plan" not in page
    # Which keys of an unknown class are secrets is not known.
    assert ("unguessable" in page) == (key != "connector.class")
    assert ("hides them all" in page) == (key == "connector.class")
    assert "flush.size" in page and value in page
    refused = browser.post(f"/{CONN_ID}/connector", params={"name": OF_DAG})
    assert refused.status_code == 400 and "neither part of this package nor an entry point" in refused.text
    for name in PAGES:
        browser.get(f"/{CONN_ID}/{name}", params={"name": OF_DAG})
    assert not foreign_package()
    forget_dag("nightly")


def test_config_provider_of_a_dag_is_not_imported(
    browser: TestClient,
    showcase: Showcase,
    tmp_path: Path,
    foreign_package: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", "")
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": showcase.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_OF_CLASSES", json.dumps(connection))
    topic = f"{showcase.worker['runs.storage.topic']}-classes"
    worker = {"runs.storage.topic": topic, "config.providers": "s", "retries": "${s:a:b}"}
    worker["config.providers.s.class"] = "package_of_a_dag.parts:Part"
    (tmp_path / "dag").mkdir()
    dag_id = f"classes-{topic}"
    keep_dag(tmp_path / "dag", DAG.format(dag_id=dag_id, given="config={'name': 'x'}", worker=worker))
    told = "names a class under config.providers.s.class that is neither part of this package nor an entry point"
    complete(browser, f"/kafka_of_classes:{topic}", told)
    assert not foreign_package()
    forget_dag(dag_id)


def test_file_that_is_not_beside_the_dag_is_not_shown(browser: TestClient, showcase: Showcase, tmp_path: Path) -> None:
    from airflow_connect.errors import ConfigError
    from airflow_connect.ui.web.dag_tasks import read_task

    (tmp_path / "dag").mkdir()
    elsewhere = tmp_path / "airflow.cfg"
    elsewhere.write_text("[database]\nname = private-of-the-server\n")
    (tmp_path / "dag" / "link.properties").symlink_to(elsewhere)
    for file in (elsewhere, tmp_path / "dag" / "link.properties", tmp_path / "dag" / ".." / "airflow.cfg"):
        keep_dag(tmp_path / "dag", DAG.format(dag_id="nightly", given=f"config_file={str(file)!r}", worker={}))
        with pytest.raises(ConfigError, match="which is not in the folder of the DAG"):
            read_task("nightly", "copy", OF_DAG)
    page = complete(browser, f"/{CONN_ID}/connector", "which is not in the folder of the DAG", name=OF_DAG)
    assert "private-of-the-server" not in page
    forget_dag("nightly")
