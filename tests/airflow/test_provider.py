"""What Airflow finds of the package: provider metadata, plugin, and how little a DAG file loads."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from airflow_connect import __version__
from airflow_connect.get_provider_info import get_provider_info

PROJECT = Path(__file__).parents[2]
HEAVY = ("pyspark", "confluent_kafka", "boto3", "botocore", "pyarrow", "babel", "fastavro", "pandas")


def python(code: str, *path: Path) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, PROJECT]))}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that makes the checkout look installed: it has what an installer makes of pyproject.toml."""
    try:
        importlib.metadata.distribution("airflow-connect")
    except importlib.metadata.PackageNotFoundError:
        project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
        folder = tmp_path / f"airflow_connect-{__version__}.dist-info"
        folder.mkdir()
        name_and_version = f"Name: airflow-connect\nVersion: {__version__}\n"
        (folder / "METADATA").write_text("Metadata-Version: 2.1\n" + name_and_version)
        groups = project["entry-points"].items()
        lines = [
            line for group, points in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
        ]
        (folder / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def test_provider_info_is_valid_against_airflows_schema() -> None:
    from airflow.providers_manager import _create_provider_info_schema_validator

    _create_provider_info_schema_validator().validate(get_provider_info())


def test_provider_info_names_modules_that_exist() -> None:
    from airflow.sdk.module_loading import import_string

    info = get_provider_info()
    kinds = ("operators", "sensors", "triggers", "hooks")
    modules = [module for kind in kinds for group in info[kind] for module in group["python-modules"]]
    assert modules
    assert [module for module in modules if importlib.import_module(module).__doc__ is None] == []
    assert [import_string(plugin["plugin-class"]).name for plugin in info["plugins"]] == ["airflow_connect"]


def test_provider_info_imports_nothing_of_airflow() -> None:
    code = """
import sys, airflow_connect.get_provider_info as g
g.get_provider_info()
print("airflow" in sys.modules)
"""
    assert python(code) == "False"


def test_connection_types_have_hooks_and_forms() -> None:
    from airflow.sdk.module_loading import import_string

    for declared in get_provider_info()["connection-types"]:
        hook = import_string(declared["hook-class-name"])
        assert (hook.conn_type, hook.hook_name) == (declared["connection-type"], declared["hook-name"])
        assert {"host", "password"} <= set(declared["ui-field-behaviour"]["relabeling"])


PROVIDERS_AND_PLUGINS = """
import json
from airflow.providers_manager import ProvidersManager
from airflow import plugins_manager
provider = ProvidersManager().providers["airflow-connect"]
plugins, errors = plugins_manager._get_plugins()
ours = [p for p in plugins if p.name == "airflow_connect"]
from airflow.sdk import plugins_manager as sdk
sdk.integrate_macros_plugins()
from airflow.sdk.execution_time import macros
group = macros.airflow_connect.connector_group("orders")
print(json.dumps({"version": provider.version, "plugins": len(ours), "errors": errors, "group": group}))
"""


def test_entry_points_bring_provider_and_plugin_into_airflow(installed: Path, airflow_home: Path) -> None:
    found = json.loads(python(PROVIDERS_AND_PLUGINS, installed))
    assert found == {"version": __version__, "plugins": 1, "errors": {}, "group": "connect-orders"}


def test_page_about_objects_names_every_class_that_dags_use() -> None:
    page = (PROJECT / "docs/airflow-objects.md").read_text()
    info = get_provider_info()
    modules = {m for kind in ("operators", "sensors", "hooks") for group in info[kind] for m in group["python-modules"]}
    endings = ("Operator", "Sensor", "Hook", "TaskGroup")
    found = {name: kind for m in modules for name, kind in vars(importlib.import_module(m)).items()}
    ours = {n for n, kind in found.items() if n.endswith(endings) and kind.__module__.startswith("airflow_connect.")}
    parts = {"ConnectorSensor", "TopicsSensor", "PeekingSensor", "ConnectorPlanOperator", "PlanApprovalOperator"}
    assert {name for name in ours - parts if f"`{name}`" not in page} == set()
    assert {c["connection-type"] for c in info["connection-types"] if f"`{c['connection-type']}`" not in page} == set()


def test_command_line_of_airflow_shows_the_provider(installed: Path, airflow_home: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(PROJECT)])}
    command = [sys.executable, "-m", "airflow", "providers", "get", "airflow-connect", "--full", "--output", "json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout[done.stdout.index("[") :])
    for name in ("KafkaConnectHook", "connect_worker", "airflow_connect.operators.connector", "ConnectorNotifier"):
        assert name in json.dumps(told), name


def test_parsing_a_dag_file_loads_nothing_heavy() -> None:
    """What Airflow itself loads does not count."""
    code = f"""
import sys, airflow.sdk as sdk
sdk.BaseOperator, sdk.DAG, sdk.Param, sdk.Asset
before = set(sys.modules)
from airflow_connect.operators.connector import ConnectorOperator, run_params
from airflow_connect.hooks.connect import ConnectHook
from airflow_connect.operators.kafka_connect import KafkaConnectOperator
with sdk.DAG("d", schedule=None, params=run_params()):
    ConnectorOperator(task_id="copy", config={{"name": "c"}}, worker="w.json", outlets=[sdk.Asset("a")])
print([name for name in {HEAVY} if name in set(sys.modules) - before])
"""
    assert python(code) == "[]"


def test_parsing_sensors_and_asset_watchers_loads_nothing_heavy() -> None:
    code = f"""
import sys, airflow.sdk as sdk, airflow.triggers.base
sdk.BaseSensorOperator, sdk.DAG, sdk.Asset, sdk.AssetWatcher
before = set(sys.modules)
from airflow_connect.sensors.connector import ConnectorLagSensor, ConnectorRunSensor, SourceChangedSensor
from airflow_connect.sensors.topics import PartitionCompleteSensor, TopicHasDataSensor
from airflow_connect.triggers.lag_event import ConnectorLagEventTrigger
config = {{"name": "c", "topics": "t"}}
trigger = ConnectorLagEventTrigger(config=config, min_records=1)
with sdk.DAG("d", schedule=[sdk.Asset("a", watchers=[sdk.AssetWatcher(name="w", trigger=trigger)])]):
    ConnectorLagSensor(task_id="lag", config=config, min_records=1, deferrable=True)
    ConnectorRunSensor(task_id="run", connector="c")
    SourceChangedSensor(task_id="source", config=config)
    PartitionCompleteSensor(task_id="hour", topics="t", time="{{{{ data_interval_end }}}}")
    TopicHasDataSensor(task_id="data", topics="t")
print([name for name in {HEAVY} if name in set(sys.modules) - before])
"""
    assert python(code) == "[]"


def test_plugin_module_loads_nothing_but_the_plugin_base() -> None:
    code = """
import sys, airflow.plugins_manager
before = set(sys.modules)
import airflow_connect.plugin
print(set(sys.modules) - before <= {"airflow_connect", "airflow_connect.plugin"})
"""
    assert python(code) == "True"


def test_airflows_command_line_has_the_command_connect(installed: Path, tmp_path: Path) -> None:
    connector = tmp_path / "orders.json"
    connector.write_text(json.dumps({"name": "orders", "connector.class": "FileStreamSink", "file": "x"}))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [installed, PROJECT]))}
    words = [sys.executable, "-m", "airflow", "connect", "validate", "--json", str(connector)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    envelope = json.loads(done.stdout)
    assert (envelope["command"], envelope["summary"]) == ("validate", "0 connectors valid, 1 wrong.")
