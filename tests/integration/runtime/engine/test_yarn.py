"""A sink on YARN, in the soak: containers without the driver's environment, and without this package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.runtime.engine.spark import SparkEngine
from airflow_connect.runtime.machines import GROUPS
from tests.support.processes.proc import command_lines
from tests.support.servers.executor_python import bare_python, packed_environment, zipped_package
from tests.support.servers.yarn import YarnCluster

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(180)]

SPARKS_OWN = "__spark_conf__"
LOGINS = [name for group in GROUPS for name in (*group.sent, *group.own)]


@pytest.fixture
def yarn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[YarnCluster]:
    (tmp_path / "home").mkdir()
    changes = {**dict.fromkeys(LOGINS), "PYTHONPATH": None, "HOME": str(tmp_path / "home")}
    for name in LOGINS:
        monkeypatch.delenv(name, raising=False)
    with YarnCluster.start(changes) as cluster:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.conf_dir))
        yield cluster


def as_environment(folder: Path) -> dict[str, str]:
    archive = packed_environment(folder / "packed")
    return {"spark.archives": f"{archive}#environment", "spark.pyspark.python": "./environment/bin/python"}


def as_zip(folder: Path) -> dict[str, str]:
    python = bare_python(folder / "bare")
    return {"spark.submit.pyFiles": str(zipped_package(folder)), "spark.pyspark.python": str(python)}


@pytest.mark.parametrize("shipping", [as_environment, as_zip])
def test_container_copies_with_the_drivers_login_and_package(
    make_topic, fill, make_sink, faults, in_background, yarn, tmp_path, monkeypatch, shipping
):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 100, at={60: {"do": "hold", "times": 1}})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
    sink.config |= {"aws.access.key.id": None, "aws.secret.access.key": None}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sink.s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sink.s3.secret_key)
    with SparkEngine({**yarn.settings(), **shipping(tmp_path)}) as engine:
        sink.engine = engine
        running = in_background(sink.try_run)
        running.until(lambda: len(faults.held()) == 1, "a task is at work", 280)
        told = [line for _, line in command_lines() if sink.s3.secret_key in line]
        files = (path for path in yarn.folder.rglob("*") if path.is_file() and not path.is_symlink())
        written = [path for path in files if sink.s3.secret_key.encode() in path.read_bytes()]
        faults.release()
        report = running.result()

    assert (report.status, report.records) == ("done", 100), report.error
    assert told == []
    # Spark's own client sends keys of its environment to containers, for S3A (SparkHadoopUtil): in the Hadoop
    # configuration of the application, which only its user can read. We add no file to that.
    assert [path for path in written if SPARKS_OWN not in str(path)] == []
    assert any(Path(visitor["cwd"]).is_relative_to(yarn.folder) for visitor in faults.visitors())
    assert "AWS_SECRET_ACCESS_KEY" in os.environ
    sink.assert_exactly_once(values)
