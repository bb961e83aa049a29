"""The wheel with each extra in an empty environment does what the extra is for."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.jvm.host_jars import LOCK
from airflow_connect.jvm.jars.locked_jars import fetch_jars
from tests.devstack.hdfs import HdfsCluster
from tests.integration.wheel.conftest import LOCAL_SINK, ROOT, Installation

Install = Callable[[str], Installation]

# Everything that an executor may import: the base dependencies must do.
IMPORT_ALL = """
import importlib, pkgutil, sys, airflow_connect
names = [found.name for found in pkgutil.walk_packages(airflow_connect.__path__, "airflow_connect.")]
wanted = [name for name in names if name.split(".")[1] not in {left_out!r} and not name.endswith("__main__")]
from airflow_connect.errors import MissingPackageError
for name in wanted:
    try:
        importlib.import_module(name)
    except MissingPackageError as missing:  # Its message has the extra; no other module may need one.
        assert name.startswith("airflow_connect.connectors.iceberg."), name
        assert "airflow-connect[iceberg]" in missing.suggestion
print(len(wanted))
"""
OF_AIRFLOW = ("airflow", "ui", "operators", "sensors", "triggers", "hooks", "decorators", "notifications", "plugin")
NOT_ON_EXECUTORS = (*OF_AIRFLOW, "control", "testing", "devstack")

HDFS_ROUND_TRIP = """
import sys
from airflow_connect.stores.hdfs.files import HdfsFiles
from airflow_connect.stores.hdfs.settings import HdfsSettings
files = HdfsFiles(HdfsSettings(sys.argv[1]))
files.make_directory("/of-the-wheel")
print(files.status("/of-the-wheel").path)
"""

PLUGIN_HOST = """
from airflow_connect.jvm.host import PluginHost
with PluginHost.start([], is_driver=True, heap_mb=128) as host:
    print(host.hello["connect"])
    print(host.close())
"""


def test_base_package_has_all_that_executors_import(install: Install) -> None:
    code = IMPORT_ALL.format(left_out=NOT_ON_EXECUTORS)
    done = install("").run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


def test_base_package_validates_a_connector(install: Install) -> None:
    done = install("").run("airflow-connect", "validate", "--json", ROOT / "dags" / "meetups-to-s3.json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True


@pytest.mark.budget(40)  # installs Spark
@pytest.mark.integration
def test_spark_extra_runs_a_connector(install: Install, kafka: KafkaBroker, lines: str, tmp_path: Path) -> None:
    installed = install("spark")
    config = {**LOCAL_SINK, "topics": lines, "store.url": tmp_path.as_uri()}
    files = installed.connector(config, bootstrap_servers=kafka.bootstrap, spark_master="local[1]")
    done = installed.run("airflow-connect", "standalone", "--json", *files)
    assert done.returncode == 0, done.stderr
    written = [line for path in sorted(tmp_path.rglob("*.txt")) for line in path.read_text().splitlines()]
    assert written == [f"line-{number}" for number in range(20)]


def test_worker_extra_has_all_that_the_rest_api_imports(install: Install) -> None:
    code = IMPORT_ALL.format(left_out=(*OF_AIRFLOW, "testing", "devstack"))
    done = install("worker").run("python", "-c", f"{code}\nassert 'airflow_connect.control.rest.app' in sys.modules")
    assert done.returncode == 0, done.stderr


@pytest.mark.integration
def test_hdfs_extra_reaches_a_namenode(install: Install, hdfs: HdfsCluster) -> None:
    done = install("hdfs").run("python", "-c", HDFS_ROUND_TRIP, hdfs.url)
    assert done.returncode == 0, done.stderr
    assert "/of-the-wheel" in done.stdout


def test_wheel_and_source_distribution_have_the_plugin_host(wheel: Path, tmp_path: Path) -> None:
    inside = ["jvm/helper/host.jar", "jvm/helper/src/org/airflowconnect/host/Main.java"]
    inside += ["jvm/jars/locks/connect-host-4.3.1.lock"]
    with zipfile.ZipFile(wheel) as archive:
        assert {f"airflow_connect/{name}" for name in inside} <= set(archive.namelist())
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"airflow_connect/{name}" for name in inside} <= names


@pytest.mark.integration
def test_base_package_starts_a_plugin_host(install: Install) -> None:
    fetch_jars(LOCK)
    done = install("").run("python", "-c", PLUGIN_HOST)
    assert (done.returncode, done.stdout) == (0, "4.3.1\n[]\n"), done.stderr


@pytest.mark.budget(60)  # installs Airflow and Spark, and runs the demo
@pytest.mark.airflow
def test_demo_of_the_wheel_works_outside_a_checkout(install: Install) -> None:
    installed = install("airflow,spark")
    done = installed.run("airflow-connect", "demo", "--json", "--records", "1000")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert sum(found["records"] for found in result["objects"]) == 1000
    assert all(found["committed"] == found["end"] for found in result["offsets"])
