"""The conformance plugins, compiled; hosts that are ended with the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.jvm.host import PluginHost
from tests.integration.jvm.conformance import conformance_plugins
from tests.integration.jvm.hosting import configuration
from tests.support.session.searching import IS_SOAK

collect_ignore = [] if IS_SOAK else ["test_as_a_worker.py"]
"""It fetches 60 MB, and the worker reads every class of it in a minute."""


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory) -> Path:
    """A folder as in `plugin.path`, with the plugins of `plugins/*.java`."""
    return conformance_plugins(tmp_path_factory.mktemp("plugin-path"))


@pytest.fixture
def lines() -> list[str]:
    """What hosts of this test print."""
    return []


@pytest.fixture
def start_host(plugin_path, lines):
    """`start_host(**arguments of PluginHost.start)`; each host is closed with the test."""
    hosts: list[PluginHost] = []

    def start(**arguments: Any) -> PluginHost:
        host = PluginHost.start(
            [plugin_path], **{"is_driver": True, "heap_mb": 128, "on_line": lines.append, **arguments}
        )
        hosts.append(host)
        return host

    yield start
    for host in hosts:
        host.close(call_timeout_s=0.5)


@pytest.fixture
def start_task(start_host) -> Callable[..., PluginHost]:
    """`start_task(plugin, request={}, **keys)`: a host with a started task of that plugin; sinks have partition t-0."""

    def start(plugin: str, request: dict[str, Any] | None = None, **keys: str) -> PluginHost:
        host = start_host()
        config = configuration(plugin, **keys)
        plan = host.call("plan", config=config, max_tasks=1, offsets=[]).result
        task = {"config": config, "task": plan["tasks"][0], "task_class": plan["task_class"], "task_id": 0}
        if plan["kind"] == "source":
            host.call("source", **task, **{"offsets": [], **(request or {})})
        else:
            host.call("sink", **task, **{"assignment": [["t", 0]], **(request or {})})
        return host

    return start
