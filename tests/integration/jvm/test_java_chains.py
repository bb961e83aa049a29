"""The JVM of a chain: it starts with the chain, hides secrets, and ends with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.jvm.host import PluginHost
from airflow_connect.runtime.executor.converting import RecordConverter
from tests.integration.jvm.hosting import is_running

pytestmark = pytest.mark.integration

STRING = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture
def started(plugin_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PluginHost]:
    """Every plugin host of this test; the first one may have told the keys of the classes."""
    found: list[PluginHost] = []
    start = PluginHost.start

    def watched(*arguments: Any, **named: Any) -> PluginHost:
        found.append(start(*arguments, **named))
        return found[-1]

    monkeypatch.setattr(PluginHost, "start", watched)
    use_plugin_path({"plugin.path": str(plugin_path)})
    return found


def opened(**keys: str) -> RecordConverter:
    """A chain of one Java transformation and a Java key converter; the keys are the transformation's."""
    connector = {
        "name": "c",
        "connector.class": "FileStreamSink",
        "topics": "t",
        "key.converter": "plugins.ChainStages$Reverses",
        "value.converter": STRING,
        "transforms": "one",
        "transforms.one.type": "plugins.ChainStages$Counts",
        "airflow.java.heap.mb": "64",
    }
    connector |= {f"transforms.one.{key}": value for key, value in keys.items()}
    return RecordConverter(load_connector_config(connector, {"bootstrap.servers": "x:1"}))


def test_one_jvm_prints_no_secret_and_is_closed_with_the_chain(started, caplog) -> None:
    caplog.set_level("INFO")

    converter = opened(name="noisy", seal="not-to-be-printed")
    assert [is_running(host.pid) for host in started][-1]
    converter.close()
    converter.close()

    assert not any(is_running(host.pid) for host in started)
    said = "\n".join(caplog.messages)
    assert "configured noisy [hidden]" in said
    assert "not-to-be-printed" not in said
    assert "IllegalStateException: it does not close" in said


def test_a_chain_that_does_not_open_leaves_no_jvm(started) -> None:
    with pytest.raises(ConfigError, match="Invalid value -1 for configuration times") as failed:
        opened(times="-1")

    assert (failed.value.code, failed.value.config_path) == ("java.config", "transforms.one.type")
    assert started
    assert not any(is_running(host.pid) for host in started)
