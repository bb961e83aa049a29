"""What a plan says about the class of a Java connector."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.runtime.driver.checks.java import notes_on_class
from airflow_connect.runtime.driver.class_of_connector import names_source
from airflow_connect.runtime.spec import RunSpec
from tests.support.java_classes import SINK, SOURCE, class_file, jar
from tests.support.java_plugins import forget_java_plugins

S3 = "io.confluent.connect.s3.S3SinkConnector"
WORKER = {"plugin.path": "/opt/plugins"}


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    forget_java_plugins(monkeypatch)
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    return {"bootstrap.servers": "b:1", "plugin.path": str(tmp_path / "plugins")}


def test_a_plan_names_what_uses_the_insides_of_a_worker_and_what_cannot_be_read(
    worker: dict[str, str], tmp_path: Path
) -> None:
    runtime = "org.apache.kafka.connect.runtime"
    jar(tmp_path / "plugins" / "lake" / "a.jar", [
        class_file("acme/Sink", SINK), class_file("acme/Utils", texts=[f"{runtime}.WorkerSinkTaskContext"]),
        class_file("acme/Looks", texts=[f"{runtime}.InternalSinkRecord"]),
    ])  # fmt: skip
    (tmp_path / "plugins" / "lake" / "b.jar").write_bytes(b"")
    use_plugin_path(worker)
    unreadable, uses = notes_on_class({"connector.class": "acme.Sink"}, WORKER)
    assert unreadable == f"{tmp_path}/plugins/lake/b.jar cannot be read: File is not a zip file."
    assert uses == (
        "acme.Sink: classes of its folder use Kafka Connect's worker itself, which does not run here: acme.Utils"
        f" ({runtime}.WorkerSinkTaskContext)."
    )
    assert notes_on_class({"connector.class": S3}, WORKER) == ()


def test_whether_a_java_class_is_a_source_is_known_without_java(worker: dict[str, str], tmp_path: Path) -> None:
    jar(tmp_path / "plugins" / "a.jar", [class_file("acme/Source", SOURCE), class_file(S3.replace(".", "/"), SOURCE)])
    assert names_source(RunSpec({"name": "a", "connector.class": "acme.Source"}, worker))
    assert not names_source(RunSpec({"name": "a", "connector.class": S3}, worker))
    assert names_source(RunSpec({"name": "a", "connector.class": S3, "airflow.java.prefer": "true"}, worker))
    assert notes_on_class({"connector.class": S3}, WORKER)[0].startswith(f"{S3} is the connector of this package.")
    assert notes_on_class({"connector.class": S3}, {}) == (), "another worker of this process has no plugin.path"
