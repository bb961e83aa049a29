"""Folders of Java plugins for tests, and a process that knows none of them yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.api.config import plugins
from airflow_connect.jvm import host_jars
from airflow_connect.jvm.discovery import java_plugin, registry
from airflow_connect.jvm.jars import locked_jars
from tests.devstack.jars import fetch_jars
from tests.devstack.java_compiler import compiled_jar

CONNECT_FILE = "kafka-connect-4.3.1"
"""Its lock has more; its folder has `connect-file` alone, the connectors without a worker."""
TRANSFORMS = "kafka-connect-transform-common-0.1.0.14"
"""Transformations without service files."""


def plugin_folder(path: Path, *locks: str) -> str:
    """A `plugin.path` with a folder for each lock of tests/devstack/locks, filled with links."""
    for lock in locks:
        folder = path / lock
        folder.mkdir(parents=True)
        for jar in fetch_jars(lock):
            if lock != CONNECT_FILE or "connect-file" in jar.name:
                (folder / jar.name).symlink_to(jar)
    return str(path)


def forget_java_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process know no Java plugin until the end of the test."""
    monkeypatch.setattr(plugins, "_added", {})
    monkeypatch.setattr(plugins, "_searched", {})
    plugins._additions[0] += 1
    monkeypatch.setattr(registry, "_catalogues", {})
    monkeypatch.setattr(registry, "FRESH_S", 0.0)
    monkeypatch.setattr(java_plugin, "_by_class", {})


def ledger_folder(path: Path) -> str:
    """A `plugin.path` with `acme.LedgerSinkConnector`, a sink whose jar has no service file."""
    sources = sorted((Path(__file__).parents[1] / "data" / "java_plugins" / "ledger").glob("*.java"))
    jar = compiled_jar(sources, locked_jars.fetch_jars(host_jars.LOCK))
    (path / "ledger").mkdir(parents=True)
    (path / "ledger" / "ledger.jar").symlink_to(jar)
    return str(path)
