"""The plugins of all plugin paths of a process."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from airflow_connect.api.config import plugins
from airflow_connect.api.config.plugins import PluginKind
from airflow_connect.errors import ConfigError
from airflow_connect.jvm import host_jars
from airflow_connect.jvm.discovery import registry
from airflow_connect.jvm.discovery.registry import registered, use_plugin_path
from tests.support.java_classes import OBJECT, SINK, SOURCE, TRANSFORMATION, class_file, jar
from tests.support.java_plugins import forget_java_plugins


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_java_plugins(monkeypatch)


def worker(*folders: Path) -> dict[str, str]:
    return {"plugin.path": ",".join(map(str, folders))}


def test_classes_of_a_plugin_path_are_found_by_name_and_registered(tmp_path: Path) -> None:
    jar(tmp_path / "a" / "acme" / "a.jar", [class_file("acme/Sink", SINK), class_file("acme/In$Source", SOURCE)])
    assert use_plugin_path({}) is None
    catalogue = use_plugin_path(worker(tmp_path / "a"))
    assert catalogue is not None
    assert use_plugin_path(worker(tmp_path / "a")) is catalogue
    found = plugins.resolve(PluginKind.CONNECTOR, "acme.In$Source")
    assert found.path == "airflow_connect.connectors.java.classes:java_class[acme.In$Source]"
    source = registered(found.name)
    assert (source.kind, source.is_sink, source.location) == (PluginKind.CONNECTOR, False, str(tmp_path / "a" / "acme"))
    with pytest.raises(ConfigError, match=r"acme.Missing is in no plugin.path of this process") as caught:
        registered("acme.Missing")
    assert caught.value.code == "plugin.not_found"


def test_files_are_looked_at_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar(tmp_path / "a" / "a.jar", [class_file("acme/Sink", SINK)])
    monkeypatch.setattr(registry, "FRESH_S", 60.0)
    use_plugin_path(worker(tmp_path / "a"))
    jar(tmp_path / "a" / "b.jar", [class_file("acme/Source", SOURCE)])
    use_plugin_path(worker(tmp_path / "a"))
    assert plugins.find_added(PluginKind.CONNECTOR, "acme.Source") is None
    monkeypatch.setattr(registry, "FRESH_S", 0.0)
    use_plugin_path(worker(tmp_path / "a"))
    assert plugins.find_added(PluginKind.CONNECTOR, "acme.Source") is not None


def test_a_reference_in_the_plugin_path_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar(tmp_path / "a" / "a.jar", [class_file("acme/Sink", SINK)])
    monkeypatch.setenv("PLUGINS", str(tmp_path / "a"))
    use_plugin_path({
        "plugin.path": "${env:PLUGINS}", "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    })  # fmt: skip
    assert registered("acme.Sink").location == str(tmp_path / "a" / "a.jar")
    use_plugin_path({"plugin.path": "${airflow:variable:p}"}, {"${airflow:variable:p}": str(tmp_path / "a")})
    with pytest.raises(ConfigError, match="only Airflow knows"):
        use_plugin_path({"plugin.path": "${airflow:variable:q}"})


def test_the_workers_folder_of_kafka_connect_is_that_of_every_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_jars, "_of_worker", {})
    monkeypatch.setattr(host_jars, "fetch_jars", lambda lock: [Path(f"/{lock}/connect-runtime-4.3.1.jar")])
    jar(tmp_path / "a" / "a.jar", [class_file("acme/Sink", SINK)])
    for folder in ("libs", "other"):
        jar(tmp_path / folder / "connect-runtime-4.4.0.jar")
    use_plugin_path(worker(tmp_path / "a"))
    assert host_jars.runtime_jars() == [Path("/connect-host-4.3.1/connect-runtime-4.3.1.jar")]
    use_plugin_path({**worker(tmp_path / "a"), "airflow.java.connect.home": str(tmp_path / "libs")})
    assert host_jars.runtime_jars() == [tmp_path / "libs" / "connect-runtime-4.4.0.jar"]
    assert host_jars.runtime_jars(tmp_path / "other") == [tmp_path / "other" / "connect-runtime-4.4.0.jar"]


def test_warnings_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            use_plugin_path(worker(tmp_path / "missing"))
    assert [record.message for record in caplog.records] == [
        f"plugin.path names {tmp_path}/missing, which does not exist on this machine; nothing is read from there."
    ]


def test_one_connector_in_two_places_is_ambiguous_only_if_they_differ(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        more = [class_file("acme/New")] if name == "c" else []
        jar(tmp_path / name / "acme" / "a.jar", [class_file("acme/Sink", SINK), *more])
    use_plugin_path(worker(tmp_path / "a"))
    use_plugin_path(worker(tmp_path / "b"))
    assert registered("acme.Sink").location == str(tmp_path / "a" / "acme")
    use_plugin_path(worker(tmp_path / "c"))
    with pytest.raises(ConfigError, match=r"acme\.Sink is in several places, which differ") as caught:
        registered("acme.Sink")
    assert str(tmp_path / "a" / "acme") in caught.value.message
    assert str(tmp_path / "c" / "acme") in caught.value.message
    assert (caught.value.code, caught.value.config_path) == ("plugin.ambiguous", "plugin.path")


def test_a_host_gets_the_folders_of_the_chain_and_a_class_beside_the_connector_is_taken_from_there(
    tmp_path: Path,
) -> None:
    mask = class_file("smt/Mask", OBJECT, [TRANSFORMATION])
    jar(tmp_path / "a" / "acme" / "a.jar", [class_file("acme/Sink", SINK), mask])
    jar(tmp_path / "a" / "smt" / "a.jar", [mask, class_file("smt/Drop", OBJECT, [TRANSFORMATION])])
    jar(tmp_path / "a" / "other" / "a.jar", [class_file("acme/Other", SINK)])
    use_plugin_path(worker(tmp_path / "a"))
    sink, other = registered("acme.Sink"), registered("acme.Other")
    chain = {"transforms": "a", "transforms.a.type": "smt.Mask"}
    assert sink.folders_for(chain) == sink.folders
    both = {**chain, "transforms": "a,b", "transforms.b.type": "Drop", "value.converter": "JsonConverter"}
    assert sink.folders_for(both) == (*sink.folders, *registered("smt.Drop").folders)
    with pytest.raises(ConfigError, match=r"smt\.Mask is in several places"):
        other.folders_for(chain)


def test_a_plugin_that_was_exchanged_is_read_again_in_the_same_process(tmp_path: Path) -> None:
    path = jar(tmp_path / "a" / "acme" / "a.jar", [class_file("acme/Sink", SINK), class_file("acme/Old", SOURCE)])
    use_plugin_path(worker(tmp_path / "a"))
    before = registered("acme.Sink")
    jar(path, [class_file("acme/Sink", SINK), class_file("acme/New", SOURCE)])
    os.utime(path, (1, 1))
    use_plugin_path(worker(tmp_path / "a"))
    assert registered("acme.Sink").folders != before.folders
    assert registered("acme.New").known == registered("acme.Sink").known
    with pytest.raises(ConfigError, match=r"acme\.Old is in no plugin.path"):
        registered("acme.Old")
