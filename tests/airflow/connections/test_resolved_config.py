"""Where an operator's configuration comes from: files, object storage, connections; and what the UI shows of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.airflow.connections.config_urls import read_connector, read_worker
from airflow_connect.errors import ConfigError
from tests.airflow.conftest import LoadDag
from tests.support.java_plugins import forget_java_plugins, ledger_folder

DAG_FILE = """
from airflow.sdk import DAG, ObjectStoragePath
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator(
        task_id="copy", config_file={config_file}, worker=ObjectStoragePath({worker!r}), kafka_conn_id="our_kafka"
    )
"""
SECRETS = ("opensesame1", "rabbit77hole", "pin4")


@pytest.fixture
def rendered(
    load_dag: LoadDag, unique_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted_driver: None
) -> Callable[[str], Any]:
    """Run a task whose worker file is in object storage; returns the state and the rendered fields."""
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    extra = {"bootstrap.servers": "broker:9092", "sasl.password": "opensesame1"}
    monkeypatch.setenv("AIRFLOW_CONN_OUR_KAFKA", json.dumps({"conn_type": "kafka", "extra": extra}))
    (tmp_path / "worker.properties").write_text(
        "group.id=ours\nvalue.converter.schema.registry.url=https://me:rabbit77hole@registry\nssl.key.password=pin4\n"
    )
    connector = {"name": "orders", "fake": "copy", "aws.secret.access.key": "${env:KEY}"}
    (tmp_path / "orders.json").write_text(json.dumps(connector))

    def run(config_file: str) -> Any:
        worker = f"file://{tmp_path}/worker.properties"
        dag = load_dag(DAG_FILE.format(dag_id=unique_name, config_file=config_file, worker=worker))
        result = dag.test(logical_date=None)
        fields = RenderedTaskInstanceFields.get_templated_fields(result.get_task_instance("copy"))
        return result.state, fields

    return run


def test_resolved_configuration_is_shown_without_secrets(rendered: Callable[[str], Any], tmp_path: Path) -> None:
    state, fields = rendered(repr(f"file://{tmp_path}/{{{{ 'orders' }}}}.json"))

    assert state == "success"
    assert fields["config_file"] == f"file://{tmp_path}/orders.json"
    assert fields["resolved_config"]["connector"]["name"] == "orders"
    assert fields["resolved_config"]["worker"]["bootstrap.servers"] == "broker:9092"
    assert fields["resolved_config"]["worker"]["group.id"] == "ours"
    assert "@registry" in json.dumps(fields)
    assert [secret for secret in SECRETS if secret in json.dumps(fields)] == []


def test_secrets_of_a_java_connector_are_known_by_its_keys(
    rendered: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_java_plugins(monkeypatch)
    with (tmp_path / "worker.properties").open("a") as worker:
        worker.write(f"plugin.path={ledger_folder(tmp_path / 'plugins')}\n")
    connector = {"name": "books", "connector.class": "LedgerSink", "fake": "copy", "ledger.seal": "beeswax99"}
    (tmp_path / "books.json").write_text(json.dumps(connector))
    state, fields = rendered(repr(f"file://{tmp_path}/books.json"))
    assert state == "success"
    assert fields["resolved_config"]["connector"]["ledger.seal"] != "beeswax99"
    assert "beeswax99" not in json.dumps(fields)


def test_missing_object_fails_the_run_and_shows_nothing(
    rendered: Callable[[str], Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state, fields = rendered(repr(f"file://{tmp_path}/nowhere.json"))

    assert state == "failed"
    assert not fields["resolved_config"] or fields["resolved_config"] == "None"
    assert f"There is no object file://{tmp_path}/nowhere.json" in "".join(capfd.readouterr())


def test_store_without_its_provider_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="Install the provider of this store"):
        read_connector("nosuchstore://bucket/orders.json")


def test_plain_paths_are_read_as_before(tmp_path: Path) -> None:
    (tmp_path / "worker.json").write_text('{"group.id": "ours"}')
    assert read_worker(str(tmp_path / "worker.json")) == {"group.id": "ours"}
    assert read_worker(f"file://{tmp_path}/worker.json") == {"group.id": "ours"}
