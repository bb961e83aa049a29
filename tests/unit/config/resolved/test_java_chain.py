"""Java classes in the chain of a Python connector: settings of their plugin host, and what of them is secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.config.references import ResolvedText
from airflow_connect.config.resolved.java_chain import with_hosts_of_worker
from airflow_connect.config.resolved.loading import connector_definition, load_connector_config, secret_names
from airflow_connect.config.resolved.source import load_source_config
from airflow_connect.errors import ConfigError, JavaVersionError
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin
from airflow_connect.jvm.discovery.registry import use_plugin_path
from tests.support.java_classes import CONVERTER, HEADER_CONVERTER, TRANSFORMATION, class_file, jar
from tests.support.java_classes import SINK as SINK_CONNECTOR
from tests.support.java_plugins import forget_java_plugins

STRING = "org.apache.kafka.connect.storage.StringConverter"
SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "value.converter": STRING}
RENAMES = {**SINK, "transforms": "x", "transforms.x.type": "acme.Renames"}


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """One with a Java connector and two classes for chains, whose key is a secret although its name does not tell."""
    forget_java_plugins(monkeypatch)
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    found = {"acme/Renames": [TRANSFORMATION], "acme/Reads": [CONVERTER, HEADER_CONVERTER]}
    classes = [class_file("acme/Writes", SINK_CONNECTOR)]
    classes += [class_file(name, interfaces=kinds) for name, kinds in found.items()]
    jar(tmp_path / "plugins" / "acme.jar", classes)
    key = ConfigKey("seal", Type.PASSWORD, "")
    monkeypatch.setattr(JavaPlugin, "config_def", lambda plugin: ConfigDef().define(key))
    worker = {"bootstrap.servers": "b:1", "plugin.path": str(tmp_path / "plugins"), "key.converter": STRING}
    use_plugin_path(worker)
    return worker


def hosts(raw: dict[str, Any], worker: dict[str, str]) -> dict[str, str] | None:
    java = load_connector_config(raw, worker).java
    return None if java is None else dict(java.hosts)


def test_settings_come_from_the_connector_else_from_the_worker(worker: dict[str, str]) -> None:
    worker |= {"airflow.java.heap.mb": "100", "airflow.java.options": "-Da=b"}

    assert hosts(SINK, worker) is None
    assert hosts(RENAMES, worker) == {"airflow.java.heap.mb": "100", "airflow.java.options": "-Da=b"}
    own = hosts({**RENAMES, "airflow.java.heap.mb": 200}, worker)
    assert own == {"airflow.java.heap.mb": "200", "airflow.java.options": "-Da=b"}
    with pytest.raises(ConfigError, match=r"airflow\.java\.heap\.mb"):
        load_connector_config({**RENAMES, "airflow.java.heap.mb": "1"}, worker)


def test_a_java_connector_gets_the_settings_of_its_worker_too(worker: dict[str, str]) -> None:
    worker |= {"airflow.java.heap.mb": "100", "airflow.java.options": "-Da=b"}
    java = {"connector.class": "acme.Writes", "airflow.java.heap.mb": "200"}

    assert with_hosts_of_worker(java, worker) == {**java, "airflow.java.options": "-Da=b"}
    assert with_hosts_of_worker(SINK, worker) == SINK
    assert with_hosts_of_worker({"connector.class": "acme.Nothing"}, worker) == {"connector.class": "acme.Nothing"}


def test_settings_are_keys_of_the_connector_only_if_it_may_have_a_use_for_them(worker: dict[str, str]) -> None:
    heap = "airflow.java.heap.mb"
    assert heap not in connector_definition(SINK).keys
    assert heap in connector_definition(RENAMES).keys
    assert heap in connector_definition({**SINK, "key.converter": "acme.Reads"}).keys

    assert [key.name for key in load_connector_config({**SINK, heap: "99"}, worker).connector.ignored] == [heap]
    by_worker = load_connector_config({**SINK, heap: "99"}, {**worker, "key.converter": "acme.Reads"})
    assert (by_worker.connector.ignored, by_worker.connector.unknown) == ((), ())


def test_all_classes_of_a_source_and_of_its_worker_are_found(worker: dict[str, str]) -> None:
    source = {"name": "c", "connector.class": "FileStreamSource", "topic": "t", "value.converter": STRING}
    worker["header.converter"] = worker["key.converter"] = "acme.Reads"

    resolved = load_source_config({**source, "transforms": "x", "transforms.x.type": "acme.Renames"}, worker)

    assert resolved.java is not None
    assert resolved.java.class_names == ("acme.Reads", "acme.Renames")


def test_what_no_class_may_print_is_known(worker: dict[str, str]) -> None:
    resolved = load_connector_config({**RENAMES, "transforms.x.city": ResolvedText("Rome", "${env:CITY}")}, worker)

    assert resolved.java is not None
    assert resolved.java.hidden_keys == {"seal", "city"}


def test_everything_of_a_class_is_secret_while_java_cannot_be_asked(
    worker: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**RENAMES, "transforms.x.seal": "s", "transforms.x.city": "Rome"}
    assert "transforms.x.city" not in secret_names(config)
    no_java = JavaVersionError("There is no Java here.", suggestion="Install one.")

    def fail(plugin: JavaPlugin) -> ConfigDef:
        raise no_java

    forget_java_plugins(monkeypatch)
    monkeypatch.setattr("airflow_connect.connectors.java.classes._made", {})
    use_plugin_path(worker)
    monkeypatch.setattr(JavaPlugin, "config_def", fail)

    assert {"transforms.x.seal", "transforms.x.city"} <= secret_names(config)
    with pytest.raises(ConfigError, match=r"There is no Java here\. Install one\."):
        load_connector_config(config, worker)
