"""What importing costs: an empty run ends half a second after process start, so nothing heavy loads early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("airflow", "boto3", "botocore", "confluent_kafka", "fastavro", "hdfs_native", "pandas", "pyarrow", "pyspark")


def modules_of(folder: str) -> list[str]:
    found = sorted((REPOSITORY / "airflow_connect" / folder).rglob("*.py"))
    names = [".".join(path.relative_to(REPOSITORY).with_suffix("").parts) for path in found]
    return [name.removesuffix(".__init__") for name in names]


FOLDERS = ("file_stream.sink", "files.hdfs", "files.local", "files.s3")
CONNECTORS = [f"airflow_connect.connectors.{folder}.connector" for folder in FOLDERS]
"""A class is loaded when a DAG is parsed; what a run of it needs is imported by its methods."""
LIGHT = ["airflow_connect", *modules_of("api"), "airflow_connect.get_provider_info", *CONNECTORS]


@pytest.mark.parametrize("module", LIGHT)
def test_import_of_a_light_module_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []


PARSED = [*modules_of("sensors"), *modules_of("triggers"), "airflow_connect.observe.watches.conditions"]
"""A DAG processor imports them at every parse."""


def test_import_of_sensors_and_triggers_loads_nothing_heavy_but_airflow():
    """What Airflow itself loads does not count."""
    code = (
        "import sys, airflow.sdk, airflow.triggers.base; airflow.sdk.BaseSensorOperator; before = set(sys.modules);"
        f"import {', '.join(PARSED)}; print(*sorted({set(HEAVY) - {'airflow'}!r} & (set(sys.modules) - before)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []


def test_the_plugin_loads_nothing_but_itself_in_processes_of_airflow():
    """Every process of Airflow loads it: pages, REST API and Kafka clients are for the first request."""
    code = (
        "import sys, asyncio, airflow.plugins_manager; before = set(sys.modules); import airflow_connect.plugin as p;"
        "p.ConnectPlugin.fastapi_apps, p.ConnectPlugin.external_views; print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stdout.splitlines()[-1].split()) - {"airflow_connect"} == {"airflow_connect.plugin"}


def test_api_modules_import_only_the_standard_library():
    top_level = "sorted({name.partition('.')[0] for name in sys.modules})"
    code = f"import sys, {', '.join(modules_of('api'))}; print(*{top_level})"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    own = {"airflow_connect", "__main__"}
    assert set(ran.stdout.split()) - set(sys.stdlib_module_names) - own == set()
