"""Executors as on other machines: without the driver's environment, without its home, without this package.

Two workers of a standalone cluster, each with an address of its own, whose Python lacks airflow-connect.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.jvm.cache import cache_dir
from airflow_connect.runtime.driver.entry import plan_connector
from airflow_connect.runtime.engine.spark import SparkEngine
from airflow_connect.runtime.machines import GROUPS
from tests.support.faulty_converter import Faults
from tests.support.processes.proc import command_lines, descendants_of, environment_of
from tests.support.servers.executor_python import bare_python, packed_environment
from tests.support.servers.spark import StandaloneCluster

LOGINS = [name for group in GROUPS for name in (*group.sent, *group.own)]
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "0",
    "spark.speculation.efficiency.enabled": "false",
}
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What only this test has made: environments, and the home of the workers."""
    folder: Path = tmp_path_factory.mktemp("elsewhere")
    (folder / "home").mkdir()
    return folder


@pytest.fixture(scope="module")
def cluster(elsewhere: Path) -> Iterator[StandaloneCluster]:
    changes = {**dict.fromkeys(LOGINS), "PYTHONPATH": None, "PYSPARK_PYTHON": None, "HOME": str(elsewhere / "home")}
    with StandaloneCluster.start(has_hosts=True, changes=changes) as servers:
        yield servers


@pytest.fixture(scope="module")
def engine(cluster: StandaloneCluster, elsewhere: Path) -> Iterator[SparkEngine]:
    """A session that sends the package to executors, and writes what it can about itself."""
    (elsewhere / "events").mkdir()
    spark = {
        **cluster.settings(),
        **SPECULATION,
        **DYNAMIC,
        "spark.archives": f"{packed_environment(elsewhere)}#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (elsewhere / "events").as_uri(),
        "spark.local.dir": str(elsewhere / "local"),
        "spark.executorEnv.AWS_EC2_METADATA_DISABLED": "true",  # otherwise botocore asks a machine of Amazon
    }
    with SparkEngine(spark) as running:
        yield running


@pytest.fixture
def driver_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment without logins, and an empty home."""
    for name in LOGINS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(cache_dir()))  # which would be in that home
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def files_with(secret: str, *folders: Path) -> list[Path]:
    """Files below some folders that hold a secret. Spark removes files meanwhile."""

    def content(path: Path) -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""

    places = (Path(place) / name for folder in folders for place, _, names in os.walk(folder) for name in names)
    found = (path for path in places if path.is_file() and not path.is_symlink())
    return [path for path in found if secret.encode() in content(path)]


def executors_of(cluster: StandaloneCluster, faults: Faults) -> set[int]:
    """JVMs of the executors that have run a task: parents of pyspark's daemons.

    The driver has used the converter, too.
    """
    here = [visitor for visitor in faults.visitors() if Path(visitor["cwd"]).is_relative_to(cluster.folder)]
    stats = [Path(f"/proc/{visitor['parent']}/stat").read_text() for visitor in here]
    return {int(stat.rpartition(")")[2].split()[1]) for stat in stats}


@pytest.mark.budget(40)  # a cluster of two hosts, three executors, and an archive for each
def test_login_and_package_come_from_the_driver_and_the_loss_of_an_executor_costs_no_record(
    make_topic, fill, make_sink, cluster, engine, faults, in_background, elsewhere, driver_home, monkeypatch
):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 100, at={n: {"do": "hold", "times": 2} for n in (60, 61)})
    sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
    sink.config |= {"aws.access.key.id": None, "aws.secret.access.key": None}
    sink.worker_config["x.padding"] = secrets.token_hex(1_500_000)  # pyspark writes larger functions into files
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sink.s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sink.s3.secret_key)
    sink.engine = engine
    folders = (cluster.folder, elsewhere / "local", elsewhere / "events")
    running = in_background(sink.try_run)
    running.until(lambda: len(faults.held()) == 2, "both tasks are at work")
    jvms = executors_of(cluster, faults)
    told = [environment_of(pid) for jvm in jvms for pid in (jvm, *descendants_of(jvm))]
    told += [line for _, line in command_lines()]
    written = files_with(sink.s3.secret_key, *folders)
    os.kill(min(jvms), signal.SIGKILL)
    faults.release()
    report = running.result()

    assert (report.status, report.records) == ("done", 100), report.error
    assert len(jvms) == 2
    assert report.swept >= 5
    assert written == []
    assert not any(sink.s3.secret_key in each for each in told)
    assert files_with(sink.s3.secret_key, *folders) == []
    assert files_with("SparkListenerJobStart", elsewhere / "events")
    sink.assert_exactly_once(values)


@pytest.mark.budget(20)
def test_login_that_only_the_drivers_home_has_is_named_with_both_machines(
    make_topic, fill, make_sink, engine, driver_home
):
    topic = make_topic()
    fill(topic, 1, 5)
    sink = make_sink(topic)
    sink.config |= {"aws.access.key.id": None, "aws.secret.access.key": None}
    (driver_home / ".aws").mkdir()
    (driver_home / ".aws" / "credentials").write_text(
        f"[default]\naws_access_key_id={sink.s3.access_key}\naws_secret_access_key={sink.s3.secret_key}\n"
    )
    sink.engine = engine
    report = sink.try_run()

    assert (report.status, report.error["code"]) == ("failed", "s3.no_credentials"), report.error
    assert "It happened on an executor on " in report.error["suggestion"]
    assert "Only the driver has, or can use: ~/.aws/credentials." in report.error["suggestion"]
    assert sink.s3.secret_key not in str(report.error)
    assert sink.keys() == []


@pytest.mark.budget(25)  # two sessions
def test_what_executors_lack_is_an_error_that_names_them_and_the_cure(
    make_topic, fill, make_sink, cluster, engine, elsewhere, driver_home
):
    engine.stop()  # A process has one session at a time.
    before = os.environ.get("PYSPARK_PYTHON")
    topic = make_topic()
    fill(topic, 1, 5)
    sink = make_sink(topic)
    python = bare_python(elsewhere / "bare")
    with SparkEngine({**cluster.settings(), "spark.pyspark.python": str(python)}) as other:
        sink.engine = other
        without_package = sink.try_run()
    with SparkEngine({**cluster.settings(), "spark.pyspark.python": "/nowhere/bin/python"}) as other:
        sink.engine = other
        without_python = sink.try_run()

    assert os.environ.get("PYSPARK_PYTHON") == before  # The next session may have executors elsewhere.
    for report, code in ((without_package, "spark.package_missing"), (without_python, "spark.python_missing")):
        assert (report.status, report.error["code"]) == ("failed", code), report.error
        assert "spark.archives" in report.error["suggestion"]
        assert not report.error["retriable"]
    assert "no module airflow_connect" in without_package.error["message"]
    assert "The executor on 127.0.0." in without_python.error["message"]
    assert "/nowhere/bin/python" in without_python.error["message"]
    assert sink.keys() == []


def test_plan_names_the_variables_that_executors_get_and_no_value(
    make_topic, fill, make_sink, driver_home, monkeypatch
):
    topic = make_topic()
    fill(topic, 1, 5)
    sink = make_sink(topic)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sink.s3.secret_key)
    here = plan_connector(sink.spec())
    sink.worker_config["spark.master"] = "yarn"
    elsewhere = plan_connector(sink.spec())

    assert not any("Executors" in note for note in here.notes)
    assert elsewhere.notes == (
        "Executors without a login of their own get AWS_SECRET_ACCESS_KEY of the driver's environment.",
    )
    assert sink.s3.secret_key not in str(elsewhere.to_json())
