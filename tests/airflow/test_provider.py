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
    modules = [module for group in info["operators"] for module in group["python-modules"]]
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


def test_parsing_a_dag_file_loads_nothing_heavy() -> None:
    """What Airflow itself loads does not count."""
    code = f"""
import sys, airflow.sdk as sdk
sdk.BaseOperator, sdk.DAG, sdk.Param, sdk.Asset
before = set(sys.modules)
from airflow_connect.operators.connector import ConnectorOperator, run_params
with sdk.DAG("d", schedule=None, params=run_params()):
    ConnectorOperator(task_id="copy", config={{"name": "c"}}, worker="w.json", outlets=[sdk.Asset("a")])
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
