"""A task compares the Java plugins of its machine with those of the driver."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

from airflow_connect.documents.run import TaskPlan
from airflow_connect.errors import MissingPluginError
from airflow_connect.jvm.discovery import known_locations
from airflow_connect.jvm.discovery.registry import registered, use_plugin_path
from airflow_connect.jvm.discovery.same_plugins import UsedPlugin, check_same
from airflow_connect.runtime.driver.checks.java import plugins_of
from airflow_connect.runtime.executor.task import run_task
from airflow_connect.runtime.settings import TaskSettings
from tests.support.java_classes import OBJECT, SINK, TRANSFORMATION, class_file, jar
from tests.support.java_plugins import forget_java_plugins

CONNECTOR = {
    "connector.class": "acme.Sink",
    "transforms": "a,b,c",
    "transforms.a.type": "smt.Mask",
    "transforms.b.type": "acme.Near",
    "transforms.c.type": "org.apache.kafka.connect.transforms.InsertField$Value",
}
PLAN = TaskPlan(0, ())


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_java_plugins(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plugin path with a sink and two transformations, one of them in a folder of its own."""
    near = class_file("acme/Near", OBJECT, [TRANSFORMATION])
    jar(tmp_path / "plugins" / "acme" / "a.jar", [class_file("acme/Sink", SINK), near], {"text": "one"})
    jar(tmp_path / "plugins" / "smt" / "smt.jar", [class_file("smt/Mask", OBJECT, [TRANSFORMATION])])
    return tmp_path / "plugins"


def settings(folder: Path, driver: tuple[UsedPlugin, ...]) -> TaskSettings:
    return TaskSettings(CONNECTOR, {"plugin.path": str(folder)}, java_plugins=driver)


def as_on_the_driver(folder: Path) -> tuple[UsedPlugin, ...]:
    use_plugin_path({"plugin.path": str(folder)})
    return plugins_of(CONNECTOR)


def test_driver_names_each_folder_that_the_connector_and_its_chain_use(folder: Path) -> None:
    jar(folder / "unused" / "u.jar", [class_file("acme/Other", SINK)])
    driver = as_on_the_driver(folder)
    assert [(plugin.class_name, plugin.path) for plugin in driver] == [
        ("acme.Sink", str(folder / "acme")),
        ("smt.Mask", str(folder / "smt")),
    ]
    assert driver[0].about.startswith("1 file with ")
    registered("acme.Sink").known.keep_described({"acme.Sink": {"version": "1.2.3"}})
    assert plugins_of(CONNECTOR)[0].about.startswith("version 1.2.3, 1 file with ")
    assert plugins_of({"connector.class": "FileStreamSink"}) == ()


def test_task_without_the_folder_fails_and_names_the_machine_and_what_to_do(folder: Path) -> None:
    driver = as_on_the_driver(folder)
    shutil.rmtree(folder / "smt")
    with pytest.raises(MissingPluginError) as caught:
        run_task(settings(folder, driver), PLAN, 0)
    error = caught.value
    assert (error.code, error.retriable, error.config_path) == ("java.missing_on_executor", True, "plugin.path")
    assert f"smt.Mask is not the same on the driver and on {socket.gethostname()}" in error.message
    assert f"Driver: {folder}/smt: {driver[1].about}. This machine: missing." in error.message
    assert f"Copy the folder {folder}/smt to each machine" in error.suggestion


def test_task_with_another_version_of_the_same_size_fails_and_names_both(folder: Path) -> None:
    driver = as_on_the_driver(folder)
    near = class_file("acme/Near", OBJECT, [TRANSFORMATION])
    jar(folder / "acme" / "a.jar", [class_file("acme/Sink", SINK), near], {"text": "two"})
    with pytest.raises(MissingPluginError) as caught:
        run_task(settings(folder, driver), PLAN, 0)
    (here,) = [plugin for plugin in as_on_the_driver(folder) if plugin.class_name == "acme.Sink"]
    assert here.content != driver[0].content
    assert here.about.split(", ")[0] == driver[0].about.split(", ")[0]
    assert (
        f"Driver: {folder}/acme: {driver[0].about}. This machine: {folder}/acme: {here.about}." in caught.value.message
    )


def test_task_with_the_same_files_reads_none_of_them_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = as_on_the_driver(folder)
    forget_java_plugins(monkeypatch)  # A task has a process of its own.
    read = []
    monkeypatch.setattr(known_locations, "_digest", read.append)
    task = as_on_the_driver(folder)
    check_same(driver)
    assert (task, read) == (driver, [])


def test_folder_with_the_same_files_in_another_place_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = as_on_the_driver(folder)
    forget_java_plugins(monkeypatch)
    task = as_on_the_driver(folder.rename(folder.with_name("elsewhere")))
    check_same(driver)
    assert [plugin.content for plugin in task] == [plugin.content for plugin in driver]
    assert [plugin.path for plugin in task] != [plugin.path for plugin in driver]
