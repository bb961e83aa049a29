"""What Java says about plugins: asked once, for many at once, and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.config_def import Importance, Type, Width
from airflow_connect.errors import ConfigError, JavaVersionError, JvmGoneError
from airflow_connect.jvm.discovery.catalogue import Catalogue
from airflow_connect.jvm.discovery.definitions import definition_of
from airflow_connect.jvm.discovery.describing import describe
from airflow_connect.jvm.host import PluginHost
from airflow_connect.jvm.wire import Reply
from tests.support.java_classes import SINK, SOURCE, class_file, jar

KEY = {
    "name": "file", "type": "STRING", "required": True, "default_value": None, "importance": "HIGH",
    "documentation": "A file.", "group": "Files", "order_in_group": 2, "width": "LONG", "display_name": "File",
    "dependents": ["mode"],
}  # fmt: skip


class Hosts:
    """Stands in for plugin hosts: what each was asked, and how it answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[list[str]] = []
        self.ends_with = ""
        self.errors: dict[str, str] = {}
        monkeypatch.setattr(PluginHost, "start", lambda folders, **_: self)

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def call(self, op: str, *, classes: list[list[str]], **_: Any) -> Reply:
        names = [name for _, name in classes]
        self.asked.append(names)
        if self.ends_with in names:
            raise JvmGoneError("The JVM has ended.")
        entries = [
            {"kind": kind, "class": name, "error": self.errors[name]}
            if name in self.errors
            else {"kind": kind, "class": name, "version": "1.0", "config": [KEY]}
            for kind, name in classes
        ]
        return Reply({"value": entries}, memoryview(b""))


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(monkeypatch)


def catalogue(folder: Path, **plugins: list[str]) -> Catalogue:
    for name, classes in plugins.items():
        jar(folder / f"{name}.jar", [class_file(one, SINK) for one in classes])
    return Catalogue.of(str(folder))


def test_all_plugins_of_all_locations_are_asked_about_at_once_and_never_again(tmp_path: Path, hosts: Hosts) -> None:
    found = catalogue(tmp_path / "path", a=["a/Sink", "a/Other"], b=["b/Sink"])
    answers = describe(found.locations)
    assert [answers[known.path].keys() for known in found.locations] == [{"a.Other", "a.Sink"}, {"b.Sink"}]
    assert [plugin.version for plugin in found.plugins] == ["1.0"] * 3
    assert list(found.plugins[0].config_def().keys) == ["file"]
    assert hosts.asked == [["a.Other", "a.Sink", "b.Sink"]]


def test_one_class_in_two_locations_is_asked_about_in_two_hosts(tmp_path: Path, hosts: Hosts) -> None:
    describe(catalogue(tmp_path / "path", a=["a/Sink"], b=["a/Sink"], c=["c/Sink"]).locations)
    assert hosts.asked == [["a.Sink", "c.Sink"], ["a.Sink"]]


def test_a_plugin_that_ends_its_jvm_does_not_hide_the_others(tmp_path: Path, hosts: Hosts) -> None:
    hosts.ends_with = "b.Sink"
    found = catalogue(tmp_path / "path", a=["a/Sink"], b=["b/Sink"])
    describe(found.locations)
    assert hosts.asked == [["a.Sink", "b.Sink"], ["a.Sink"], ["b.Sink"]]
    assert [(plugin.class_name, plugin.is_loadable) for plugin in found.plugins] == [
        ("a.Sink", True),
        ("b.Sink", False),
    ]


def test_a_class_that_could_not_be_created_is_tried_again_when_it_is_used(tmp_path: Path, hosts: Hosts) -> None:
    hosts.errors["a.Sink"] = "java.lang.NoClassDefFoundError: com/acme/Missing"
    (plugin,) = catalogue(tmp_path / "path", a=["a/Sink"]).plugins
    assert (plugin.is_loadable, plugin.version) == (False, "")
    with pytest.raises(
        ConfigError, match=r"a\.jar cannot be loaded: java\.lang\.NoClassDefFoundError: com/acme/Missing"
    ):
        plugin.config_def()
    del hosts.errors["a.Sink"]
    assert list(plugin.config_def().keys) == ["file"]
    assert (plugin.is_loadable, plugin.version) == (True, "1.0")


def test_without_java_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(folders: Any, **_: Any) -> None:
        raise JavaVersionError("There is no Java.")

    (plugin,) = catalogue(tmp_path / "path", a=["a/Sink"]).plugins
    with monkeypatch.context() as patch:
        patch.setattr(PluginHost, "start", start)
        with pytest.raises(JavaVersionError):
            plugin.config_def()
    Hosts(monkeypatch)
    assert plugin.version == "1.0"


def test_a_changed_plugin_is_asked_about_again(tmp_path: Path, hosts: Hosts) -> None:
    describe(catalogue(tmp_path / "path", a=["a/Sink"]).locations)
    jar(tmp_path / "path" / "a.jar", [class_file("a/Sink", SINK), class_file("a/Source", SOURCE)])
    describe(Catalogue.of(str(tmp_path / "path")).locations)
    assert hosts.asked == [["a.Sink"], ["a.Sink", "a.Source"]]


def test_keys_have_what_connects_json_says_and_a_password_keeps_javas_default() -> None:
    definition = definition_of([
        KEY, {**KEY, "documentation": "The second of this name."},
        {**KEY, "name": "seal", "type": "PASSWORD", "required": False, "default_value": "[hidden]"},
        {**KEY, "name": "mode", "type": "LATER", "required": False, "default_value": "x", "importance": "HUGE",
         "width": None, "group": None, "order_in_group": -1, "dependents": []},
        {**KEY, "name": "size", "type": "INT", "required": False, "default_value": "many"},
        {**KEY, "name": "parts", "type": "LIST", "required": False, "default_value": "a,b"},
    ])  # fmt: skip
    file, seal, mode, size, parts = definition.keys.values()
    assert (file.is_required, file.documentation, file.importance) == (True, "A file.", Importance.HIGH)
    assert (file.group, file.order, file.width, file.display_name, file.dependents) == (
        "Files", 2, Width.LONG, "File", ("mode",),
    )  # fmt: skip
    assert (seal.is_required, seal.parsed_default, definition.secret_names) == (False, None, {"seal"})
    assert (mode.type, mode.importance, mode.order) == (Type.STRING, Importance.MEDIUM, -1)
    assert (size.type, size.default, parts.parsed_default) == (Type.STRING, "many", ["a", "b"])
