"""Plugins of others: the scan finds what Kafka Connect's own scan finds, and Java tells the rest once."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.control.herder.plugins import installed, keys_of
from airflow_connect.control.herder.refusals import RefusedError
from airflow_connect.control.herder.validation import refuse_invalid, validated
from airflow_connect.control.rest.models import ConfigInfos, ConfigKeyInfo, PluginInfo
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError
from airflow_connect.jvm import host_jars
from airflow_connect.jvm.discovery.catalogue import Catalogue
from airflow_connect.jvm.discovery.class_files import read_header
from airflow_connect.jvm.discovery.registry import registered, use_plugin_path
from airflow_connect.jvm.discovery.runtime_types import INTERFACES, SUBTYPES
from airflow_connect.jvm.host import PluginHost
from airflow_connect.jvm.jars import locked_jars
from airflow_connect.runtime.driver.checks.java import java_answer
from airflow_connect.runtime.driver.entry import plan_connector
from airflow_connect.runtime.spec import RunSpec
from tests.support.command_line import run_command
from tests.support.java_classes import SINK, class_file, jar
from tests.support.java_plugins import CONNECT_FILE, TRANSFORMS, forget_java_plugins, ledger_folder, plugin_folder
from tests.support.session.searching import IS_SOAK

RECORDED: dict[str, list[list[str]]] = json.loads(
    (Path(__file__).parents[2] / "data" / "java_plugins" / "kafka_scan.json").read_text()
)
CLOUD_EVENTS = ("converter", "io.debezium.converters.CloudEventsConverter")
"""Its static initialization fails, which no scan without Java can see; Java leaves it out of the list."""
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SMT = "com.github.jcustenborder.kafka.connect.transform.common"


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_java_plugins(monkeypatch)


@pytest.fixture
def worker(tmp_path: Path) -> dict[str, str]:
    """Of a `plugin.path` with two plugins; known in this process."""
    path = plugin_folder(tmp_path / "plugins", CONNECT_FILE, TRANSFORMS)
    found = {"bootstrap.servers": "b:1", "plugin.path": path}
    for key in ("key.converter", "value.converter"):
        found[key] = "org.apache.kafka.connect.storage.StringConverter"
    use_plugin_path(found)
    return found


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Calling it makes every start of a JVM fail from then on."""

    def start(*arguments: Any, **more: Any) -> None:
        raise AssertionError("A JVM is started.")

    return lambda: monkeypatch.setattr(PluginHost, "start", start)


@pytest.mark.parametrize("lock", sorted(RECORDED) if IS_SOAK else [CONNECT_FILE, TRANSFORMS])
def test_the_scan_finds_what_kafka_connects_own_scan_finds(tmp_path: Path, lock: str) -> None:
    path = plugin_folder(tmp_path, lock)
    started_s = time.process_time()
    catalogue = Catalogue.of(path)
    spent_s = time.process_time() - started_s
    classes = sum(known.scanned.classes for known in catalogue.locations)
    assert spent_s < 0.5 + 2.0 * classes / 10_000  # Nothing, if an earlier test has filled the cache.
    found = {(kind, plugin.class_name) for plugin in catalogue.plugins for kind in plugin.kinds}
    assert found - {CLOUD_EVENTS} == {(kind, name) for kind, name, _ in RECORDED[lock]}
    assert (CLOUD_EVENTS in found) == lock.startswith("debezium")
    assert catalogue.warnings == ()


def test_the_table_of_kafkas_own_classes_is_complete() -> None:
    """What a plugin may extend without having it in its folder."""
    headers = {}
    for path in locked_jars.fetch_jars(host_jars.LOCK):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("org/apache/kafka/") and name.endswith(".class"):
                    header = read_header(archive.read(name))
                    headers[header.name] = header

    def kinds(name: str) -> set[str]:
        above = headers[name].super_types if name in headers else ()
        return {INTERFACES[name]} if name in INTERFACES else {kind for parent in above for kind in kinds(parent)}

    found = {name: tuple(sorted(kinds(name))) for name in headers if name not in INTERFACES and kinds(name)}
    assert {name: tuple(sorted(of)) for name, of in SUBTYPES.items()} == found


def test_rest_lists_java_plugins_with_their_versions_and_asks_java_once(
    worker: dict[str, str], no_java: Callable[[], None]
) -> None:
    every = installed(connectors_only=False)
    for entry in every:
        PluginInfo.model_validate(entry)
    java = [(e["type"], e["class"], e.get("version", "undefined")) for e in every if e["class"].startswith(SMT)]
    assert [list(entry) for entry in java] == RECORDED[TRANSFORMS]
    # A class of this package has its name, and is what the name means.
    assert [entry["class"] for entry in every].count(FILE_SINK) == 1
    assert registered(FILE_SINK).version == "4.3.1"
    order = ["sink", "source", "transformation", "predicate", "converter", "header_converter"]
    assert [entry["type"] for entry in every] == sorted((e["type"] for e in every), key=order.index)
    no_java()
    assert installed(connectors_only=False) == every
    forgotten = [entry for entry in installed(connectors_only=True) if entry["class"].startswith(SMT)]
    assert forgotten == []


def test_rest_tells_the_keys_of_a_java_class_as_connect_does(
    worker: dict[str, str], no_java: Callable[[], None]
) -> None:
    keys = keys_of(f"{SMT}.PatternRename$Value")
    assert [ConfigKeyInfo.model_validate(key).name for key in keys] == [
        "field.pattern", "field.pattern.flags", "field.replacement",
    ]  # fmt: skip
    assert (keys[0]["required"], keys[0]["type"], keys[0]["importance"]) == (True, "STRING", "HIGH")
    definition = registered(f"{SMT}.PatternRename$Value").config_def()
    assert definition.keys["field.pattern"].is_required
    assert definition.keys["field.pattern.flags"].parsed_default == ["CASE_INSENSITIVE"]
    no_java()
    assert keys_of("ChangeTopicCase")[0]["name"] == "from"


def test_validate_asks_the_java_class_and_merges_its_answer_with_the_keys_of_every_connector(
    worker: dict[str, str],
) -> None:
    config: dict[str, str | None] = {
        "name": "f", "connector.class": FILE_SINK, "airflow.java.prefer": "true", "topics": "t", "tasks.max": "no",
    }  # fmt: skip
    infos = validated(FILE_SINK, config, worker, asks_java=True)
    ConfigInfos.model_validate(infos)
    by_name = {entry["value"]["name"]: entry for entry in infos["configs"]}
    assert by_name["file"]["definition"]["documentation"].startswith("Destination filename.")
    assert {name for name, entry in by_name.items() if entry["value"]["errors"]} == {"tasks.max"}
    assert infos["error_count"] == sum(len(entry["value"]["errors"]) for entry in infos["configs"])
    assert "airflow.java.heap.mb" in by_name
    with pytest.raises(RefusedError, match=r"tasks\.max"):
        refuse_invalid(config, worker, asks_java=True)
    refuse_invalid({**config, "tasks.max": "2"}, worker, asks_java=True)


def test_what_java_says_about_a_value_is_told_without_the_value_of_a_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_URL", "refused:unguessable")
    worker = {
        "bootstrap.servers": "b:1", "plugin.path": ledger_folder(tmp_path / "path"), "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "key.converter": "StringConverter", "value.converter": "StringConverter",
    }  # fmt: skip
    use_plugin_path(worker)
    config: dict[str, str | None] = {
        "name": "books", "connector.class": "LedgerSink", "topics": "t", "ledger.url": "${env:LEDGER_URL}",
        "ledger.seal": "wax", "ledger.pages": "0", "errors.tolerance": "sometimes",
    }  # fmt: skip
    infos = validated("LedgerSink", config, worker, asks_java=True)
    assert "unguessable" not in json.dumps(infos) and "wax" not in json.dumps(infos)
    values = {entry["value"]["name"]: entry["value"] for entry in infos["configs"]}
    assert values["ledger.url"]["value"] == "${env:LEDGER_URL}"
    assert values["ledger.url"]["errors"] == ["The ledger at ${env:LEDGER_URL} refuses books."]
    assert values["ledger.mode"]["recommended_values"] == ["append", "amend"]
    assert values["ledger.pages"]["errors"] == [
        "Invalid value 0 for configuration ledger.pages: Value must be at least 1"
    ]
    assert (values["ledger.seal"]["value"], values["ledger.seal"]["errors"]) == ("[hidden]", [])
    (tolerance,) = values["errors.tolerance"]["errors"]
    assert "String must be one of: none, all" in tolerance
    assert infos["groups"][0] == "Ledger"
    valid = {**config, "ledger.pages": "1", "errors.tolerance": "none"}
    with pytest.raises(RefusedError, match=r"The ledger at \$\{env:LEDGER_URL\} refuses books."):
        refuse_invalid(valid, worker, asks_java=True)
    spec = RunSpec(valid, worker)
    assert [(found["key"], found["message"], found["level"]) for found in java_answer(spec).findings] == [
        ("ledger.url", "The ledger at ${env:LEDGER_URL} refuses books.", "error")
    ]


def test_forms_ask_no_java_class_to_validate(worker: dict[str, str], no_java: Callable[[], None]) -> None:
    config: dict[str, str | None] = {
        "name": "f", "connector.class": FILE_SINK, "airflow.java.prefer": "true", "topics": "t", "file": "x",
    }  # fmt: skip
    assert validated(FILE_SINK, config, worker)["error_count"] == 0
    no_java()
    assert validated(FILE_SINK, config, worker)["error_count"] == 0
    refuse_invalid(config, worker)


def test_validate_of_the_command_line_tells_what_java_finds(tmp_path: Path) -> None:
    worker, connector = tmp_path / "worker.properties", tmp_path / "books.json"
    worker.write_text(f"bootstrap.servers=b:1\nplugin.path={ledger_folder(tmp_path / 'path')}\n")
    config = {
        "name": "books", "connector.class": "LedgerSink", "topics": "t", "ledger.url": "refused:here",
        "key.converter": "StringConverter", "value.converter": "StringConverter",
    }  # fmt: skip
    connector.write_text(json.dumps(config))
    done = run_command("validate", "--json", worker, connector)
    (checked,) = done.result["connectors"]
    assert (done.exit_code, checked["ok"]) == (2, False)
    assert [(f["key"], f["message"]) for f in checked["findings"] if f["level"] == "error"] == [
        ("ledger.url", "The ledger at refused:here refuses books.")
    ]
    values = {entry["value"]["name"]: entry["value"] for entry in checked["config_infos"]["configs"]}
    assert values["ledger.mode"]["recommended_values"] == ["append", "amend"]
    connector.write_text(json.dumps({**config, "ledger.url": "here"}))
    done = run_command("validate", "--json", worker, connector)
    assert (done.exit_code, done.result["connectors"][0]["ok"]) == (0, True)


@pytest.mark.parametrize("kind", ["Sink", "Source"])
def test_a_plan_says_which_of_two_classes_of_one_name_it_takes(
    worker: dict[str, str], kafka: KafkaBroker, make_topic: Any, tmp_path: Path, kind: str
) -> None:
    name, topic = f"org.apache.kafka.connect.file.FileStream{kind}Connector", make_topic()
    (tmp_path / "lines").write_text("one\n")
    config = {"name": topic, "connector.class": name, "file": str(tmp_path / "lines")}
    config |= {"topics": topic} if kind == "Sink" else {"topic": topic}
    there = {**worker, "bootstrap.servers": kafka.bootstrap}
    python = plan_connector(RunSpec(config, there)).notes
    java = plan_connector(RunSpec({**config, "airflow.java.prefer": "true"}, there)).notes
    assert [note for note in python if "airflow.java.prefer=true takes that one" in note] == [python[0]]
    assert java[0] == f"{name} is the Java class {name} of plugin.path, because airflow.java.prefer is true."


def test_a_class_that_java_cannot_load_is_left_out_of_lists_and_named_when_it_is_used(tmp_path: Path) -> None:
    jar(tmp_path / "plugins" / "acme" / "a.jar", [class_file("acme/Sink", SINK)])
    use_plugin_path({"plugin.path": str(tmp_path / "plugins")})
    assert "acme.Sink" not in {entry["class"] for entry in installed(connectors_only=True)}
    assert "acme.Sink" in {entry["class"] for entry in installed(connectors_only=True, with_versions=False)}
    with pytest.raises(ConfigError, match=r"The Java class acme.Sink of .*acme cannot be loaded: ") as caught:
        registered("acme.Sink").config_def()
    assert caught.value.code == "plugin.not_loadable"
