"""The devstack's registry: up when started, gone when stopped, empty after a restart."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from airflow_connect.devstack.launching.process import answers
from tests.devstack.schema_registry import SchemaRegistry

pytestmark = pytest.mark.integration


def _subjects(server: SchemaRegistry) -> list[str]:
    with urllib.request.urlopen(f"{server.url}/subjects", timeout=30) as reply:
        found: list[str] = json.load(reply)
    return found


def test_server_restarts_empty_on_its_port_and_leaves_nothing(tmp_path: Path) -> None:
    with SchemaRegistry.start(tmp_path / "registry") as server:
        body = json.dumps({"schema": '"int"'}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.url}/subjects/s/versions", body, headers)
        with urllib.request.urlopen(request, timeout=30) as reply:
            assert json.load(reply) == {"id": 1}
        assert _subjects(server) == ["s"]
        url = server.url
        server.kill()
        assert not answers(server.ports[0])
        server.restart()
        assert (server.url, _subjects(server)) == (url, [])
    assert not server.is_running
    assert not answers(server.ports[0])
