"""Connectors of the conformance plugins (tests/integration/jvm/plugins) in runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.integration.jvm.conftest import plugin_path as plugin_path  # noqa: PLC0414 (the fixture of that folder)
from tests.support.copies.java_plugin import JavaConnector

STRING = "org.apache.kafka.connect.storage.StringConverter"
MakeConnector = Callable[..., JavaConnector]


@pytest.fixture
def make_connector(kafka: KafkaBroker, plugin_path: Path, unique_name: str) -> MakeConnector:
    """A connector: `make_connector("OddSources$Marks", **keys)`; `_` in a key stands for `.`."""

    def make(plugin: str, **keys: str) -> JavaConnector:
        config = {
            "connector.class": f"plugins.{plugin}",
            "airflow.java.start.grace.ms": "0",
            "airflow.java.idle.ms": "100",
        }
        config |= {key.replace("_", "."): value for key, value in keys.items()}
        worker = {"key.converter": STRING, "value.converter": STRING}
        return JavaConnector(kafka.bootstrap, f"java-{unique_name}", plugin_path, config, worker)

    return make
