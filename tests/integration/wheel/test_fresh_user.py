"""What goes wrong in somebody's first minutes ends in one sentence and one suggestion, never in a traceback."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.launching.process import free_ports
from airflow_connect.devstack.s3 import S3Server
from tests.integration.wheel.conftest import LOCAL_SINK, Installation

Install = Callable[[str], Installation]
pytestmark = pytest.mark.integration

HDFS_SINK = {
    "name": "to-hdfs",
    "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
    "hdfs.url": "hdfs://127.0.0.1:1",
    "format.class": "io.confluent.connect.hdfs.string.StringFormat",
    "flush.size": "10",
}
METRICS_SOURCE = {"name": "metrics", "connector.class": "MetricsSource", "topic": "metrics"}


def only_error(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The error of a command with `--json` and one connector; only the envelope and progress were printed."""
    envelope = json.loads(done.stdout)
    assert envelope["ok"] is False
    assert "Traceback" not in done.stderr
    error = envelope["error"]
    if error is None:
        (connector,) = envelope["result"]["connectors"]
        error = connector["error"]
    assert error["message"].rstrip().endswith((".", ")"))
    assert error["suggestion"]
    return dict(error)


def standalone(
    installed: Installation, config: Mapping[str, str], bootstrap: str, worker: Mapping[str, str] | None = None
) -> dict[str, Any]:
    files = installed.connector(config, bootstrap_servers=bootstrap, spark_master="local[1]", **(worker or {}))
    done = installed.run("airflow-connect", "standalone", "--json", *files)
    assert done.returncode != 0
    return only_error(done)


def test_no_broker(install: Install, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    config = {**LOCAL_SINK, "topics": "t", "store.url": tmp_path.as_uri()}
    error = standalone(install(""), config, f"127.0.0.1:{port}")
    assert (error["code"], error["configPath"]) == ("server.unavailable", "bootstrap.servers")
    assert f"127.0.0.1:{port}" in error["message"] and "Connection refused" in error["message"]


def test_no_spark(install: Install, kafka: KafkaBroker, lines: str, tmp_path: Path) -> None:
    config = {**LOCAL_SINK, "topics": lines, "store.url": tmp_path.as_uri()}
    error = standalone(install(""), config, kafka.bootstrap)
    assert error["code"] == "package.missing"
    assert 'pip install "airflow-connect[spark]"' in error["suggestion"]


def test_no_hdfs_client(install: Install, kafka: KafkaBroker, lines: str) -> None:
    error = standalone(install(""), {**HDFS_SINK, "topics": lines}, kafka.bootstrap)
    assert error["code"] == "package.missing"
    assert 'pip install "airflow-connect[hdfs]"' in error["suggestion"]


def test_no_psutil(install: Install, kafka: KafkaBroker) -> None:
    error = standalone(install(""), METRICS_SOURCE, kafka.bootstrap)
    assert error["code"] == "package.missing"
    assert 'pip install "airflow-connect[metrics]"' in error["suggestion"]


def test_no_airflow_for_the_demo(install: Install) -> None:
    done = install("").run("airflow-connect", "demo", "--json")
    assert done.returncode == 2
    error = only_error(done)
    assert "airflow and pyspark" in error["message"]
    assert 'pip install "airflow-connect[demo]"' in error["suggestion"]


def test_no_airflow_for_its_config_provider(install: Install, kafka: KafkaBroker, tmp_path: Path) -> None:
    config = {**LOCAL_SINK, "topics": "t", "store.url": tmp_path.as_uri(), "flush.size": "${airflow:var:size}"}
    provider = "airflow_connect.airflow.config_provider.AirflowConfigProvider"
    worker = {"config_providers": "airflow", "config_providers_airflow_class": provider}
    error = standalone(install(""), config, kafka.bootstrap, worker)
    assert (error["code"], error["configPath"]) == ("config.reference_missing", "flush.size")
    assert "the Python package airflow, which is not installed" in error["message"]
    assert 'pip install "airflow-connect[airflow]"' in error["suggestion"]


def test_airflow_that_was_never_initialised(install: Install, kafka: KafkaBroker, tmp_path: Path) -> None:
    installed = install("airflow,spark")
    config = {**LOCAL_SINK, "topics": "t", "store.url": tmp_path.as_uri(), "flush.size": "${airflow:files:login}"}
    provider = "airflow_connect.airflow.config_provider.AirflowConfigProvider"
    worker = {"config_providers": "airflow", "config_providers_airflow_class": provider}
    shutil.rmtree(installed.folder / "airflow", ignore_errors=True)
    error = standalone(installed, config, kafka.bootstrap, worker)
    assert (error["code"], error["configPath"]) == ("airflow.connection_missing", "flush.size")
    assert "AIRFLOW_CONN_FILES" in error["suggestion"] and "airflow db migrate" in error["suggestion"]


def test_no_java(install: Install, kafka: KafkaBroker, lines: str, tmp_path: Path) -> None:
    installed = install("spark")
    empty = tmp_path / "bin"
    empty.mkdir()
    config = {**LOCAL_SINK, "topics": lines, "store.url": (tmp_path / "out").as_uri()}
    files = installed.connector(config, bootstrap_servers=kafka.bootstrap, spark_master="local[1]")
    done = installed.run("airflow-connect", "standalone", "--json", *files, JAVA_HOME=None, PATH=str(empty))
    error = only_error(done)
    assert error["code"] == "java.not_found"
    assert "JDK 17" in error["suggestion"]


def test_no_bucket(install: Install, kafka: KafkaBroker, s3: S3Server, lines: str, unique_name: str) -> None:
    config = {
        "name": "to-s3",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": lines,
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "10",
        "s3.bucket.name": unique_name,
        "store.url": s3.endpoint_url,
        "aws.access.key.id": s3.access_key,
        "aws.secret.access.key": s3.secret_key,
    }
    error = standalone(install(""), config, kafka.bootstrap)
    assert (error["code"], error["configPath"]) == ("s3.no_bucket", "s3.bucket.name")
    assert unique_name in error["message"]
