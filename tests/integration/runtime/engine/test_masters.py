"""What starts for each kind of master, and what others on the machine can see of it: never a secret."""

from __future__ import annotations

import os

import pytest

from airflow_connect.errors import ConfigError, TaskFailedError
from airflow_connect.jvm import java
from airflow_connect.runtime.engine.session import OpenSession, open_session
from airflow_connect.runtime.engine.spark import SparkEngine
from tests.support.processes.proc import command_lines, descendants_of, environment_of
from tests.support.processes.recorded_spark import RecordedSpark
from tests.support.servers.cluster_managers import ApiServer, resource_manager
from tests.support.waiting import wait_until

SECRET = "hunter2 = 'of\\spark'"  # With all that a properties file or a shell might stumble over.
PASSWORD = "hunter2-of-the-options"
DRIVERS_OWN = "key-in-the-environment-of-the-driver"
# Without these a JVM that spark-submit starts compiles as if it had to work for long.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.hadoop.fs.s3a.secret.key": SECRET,
    "spark.driver.extraJavaOptions": f"-Dstore.password={PASSWORD} '-Dwords=two words' {QUICK_START}",
    "spark.executor.memory": "512m",
}


@pytest.fixture
def spark(tmp_path, monkeypatch):
    """Programs that are recorded when they start."""
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    # What is kept for later starts belongs to programs that are gone after the test.
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    recorded = RecordedSpark(tmp_path, monkeypatch)
    java.find_java.cache_clear()
    yield recorded
    java.find_java.cache_clear()


def running() -> str:
    """Command lines and environments of every process below this one."""
    below = descendants_of(os.getpid())
    return "\n".join([*map(environment_of, below), *(line for pid, line in command_lines() if pid in below)])


def assert_hidden(*texts: str) -> None:
    for text in texts:
        assert "hunter2" not in text


def assert_ended(spark: RecordedSpark) -> None:
    wait_until(lambda: descendants_of(os.getpid()) <= spark.before, "every process of Spark has ended")


def in_jvm(opened: OpenSession, name: str) -> str:
    """A system property of the driver's JVM."""
    return str(opened.session.sparkContext._jvm.java.lang.System.getProperty(name))


def test_local_session_has_every_setting_and_shows_none(spark, tmp_path, monkeypatch):
    # With a configuration folder the JVM writes no archive of its classes for later starts, which takes 20 s.
    folder = tmp_path / "conf"
    folder.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    opened = open_session({"spark.master": "local[1]", **SETTINGS})
    try:
        told = running()
        assert opened.session.conf.get("spark.hadoop.fs.s3a.secret.key") == SECRET
        assert (in_jvm(opened, "store.password"), in_jvm(opened, "words")) == (PASSWORD, "two words")
        assert opened.session.range(3).count() == 3
    finally:
        opened.stop()

    assert set(spark.started()) == {"java"}
    assert_hidden(spark.seen(), told)
    assert_ended(spark)


def test_setting_that_only_spark_submit_applies_is_applied_and_others_are_not_shown(spark, tmp_path, monkeypatch):
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text("spark.speculation true\nspark.executor.memory 3g\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as pyspark leaves it after a session of Spark Connect
    extra = {"spark.driver.extraClassPath": "/nowhere/extra.jar"}
    opened = open_session({"spark.master": "local[1]", **SETTINGS, **extra})
    try:
        told = running()
        assert opened.session.conf.get("spark.hadoop.fs.s3a.secret.key") == SECRET
        assert (in_jvm(opened, "store.password"), in_jvm(opened, "words")) == (PASSWORD, "two words")
        assert "/nowhere/extra.jar" in in_jvm(opened, "java.class.path")
        # The worker's settings win over the defaults file of Spark.
        found = [opened.session.conf.get(name) for name in ("spark.speculation", "spark.executor.memory")]
        assert found == ["true", "512m"]
        assert opened.session.range(3).count() == 3
    finally:
        opened.stop()

    assert set(spark.started()) == {"java", "spark-submit"}
    assert_hidden(spark.seen(), told)
    assert_ended(spark)


def test_kubernetes_gets_pods_without_secrets_and_shows_none(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", DRIVERS_OWN)
    server = ApiServer()
    settings = {
        "spark.master": server.master,
        "spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY": "store:secret",
        "spark.kubernetes.executor.podNamePrefix": "copies",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.instances": "1",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "1ms",  # No executor will come.
        "spark.kubernetes.container.image": "spark",
        "spark.kubernetes.authenticate.oauthToken": "hunter2-of-the-cluster",
        **SETTINGS,
    }
    try:
        opened = open_session(settings)
        told = running()
        wait_until(lambda: server.created("pods"), "the driver asks for an executor")
        opened.stop()
    finally:
        server.stop()
    (pod, *_) = server.created("pods")
    (container,) = pod["spec"]["containers"]
    environment = {one["name"]: one for one in container["env"]}
    reference = environment["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"]

    assert "Bearer hunter2-of-the-cluster" in server.tokens
    assert len(server.created("configmaps")) == 1
    assert pod["metadata"]["name"].startswith("copies-exec-")
    assert (container["image"], container["args"]) == ("spark", ["executor"])
    assert container["resources"]["requests"]["memory"] == "896Mi"  # 512 MiB, and Spark's least overhead of 384 MiB
    assert (reference["name"], reference["key"]) == ("store", "secret")
    assert "PYTHONPATH" not in environment
    assert [body for _, _, body in server.requests if DRIVERS_OWN in body] == []
    assert_hidden(spark.seen(), told, *(body for _, _, body in server.requests))
    assert [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()] == []
    assert_ended(spark)


def test_yarn_is_found_through_hadoops_configuration_and_shows_none(spark, tmp_path, monkeypatch):
    calls: list[str] = []
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    settings = {"spark.master": "yarn", "spark.yarn.dist.archives": "/nowhere/packages.tar.gz", **SETTINGS}
    with (
        resource_manager(tmp_path / "hadoop", lambda: calls.append(running())),
        pytest.raises(TaskFailedError, match=r"Spark did not start: ") as failure,
    ):
        open_session(settings)

    assert calls  # The driver spoke to the address in yarn-site.xml.
    assert_hidden(spark.seen(), str(failure.value), *calls)
    assert_ended(spark)


@pytest.mark.parametrize(
    ("settings", "key", "message"),
    [
        ({"spark.master": "mesos://zk:5050"}, "spark.master", "has no master"),
        ({"spark.master": "yarn", "spark.submit.deployMode": "cluster"}, "spark.submit.deployMode", "cluster"),
        ({"spark.master": "local[1]", "spark.api.mode": "connect"}, "spark.api.mode", "connect"),
        ({"spark.submit.pyFiles": "/a/lib.zip, /a/connect-1.0.whl"}, "spark.submit.pyFiles", "names a wheel"),
        ({"spark.remote": "local[1]"}, "spark.remote", "sc://"),
        ({"spark.remote": "http://x/;token=hunter2-of-the-url"}, "spark.remote", "sc://"),
    ],
)
def test_what_cannot_be_started_safely_is_refused_before_anything_starts(spark, settings, key, message):
    with SparkEngine({**SETTINGS, **settings}) as engine, pytest.raises(ConfigError, match=message) as refusal:
        engine._get_session()

    assert refusal.value.config_path == key
    assert refusal.value.suggestion
    assert_hidden(str(refusal.value))
    assert spark.started() == []


def test_spark_submit_that_fails_is_a_sentence(spark):
    settings = {"spark.master": "local[1]", "spark.driver.extraClassPath": "/x", "spark.driver.memory": "no size"}
    with pytest.raises(TaskFailedError, match=r"spark-submit ended with exit code [1-9]\d* before Spark's JVM"):
        open_session(settings)
    assert_ended(spark)


def test_connect_url_that_is_malformed_is_refused_without_its_token(spark, monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # So that it is gone after the test: pyspark sets it.
    remote = "sc://127.0.0.1:1/path/;token=hunter2-of-the-url"
    with SparkEngine({"spark.remote": remote}) as engine, pytest.raises(TaskFailedError) as refusal:
        engine._get_session()

    assert_hidden(str(refusal.value))
    assert spark.started() == []
