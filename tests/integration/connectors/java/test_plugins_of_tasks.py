"""Runs whose tasks find other Java plugins than the driver."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_connect.documents.run import TaskPlan, TaskReport
from airflow_connect.jvm.discovery import registry
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.in_process import InProcessEngine
from airflow_connect.runtime.settings import TaskSettings
from tests.conftest import MakeTopic, TopicProducer
from tests.integration.connectors.java.conftest import MakeConnector
from tests.integration.connectors.java.test_sources import routed

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]


class OtherMachine(InProcessEngine):
    """Its tasks do not find a folder that the driver has."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        shutil.rmtree(self._folder)
        return super().run(settings, tasks)


@pytest.mark.parametrize("plugin", ["ResumingSource", "Upserts"])
def test_run_whose_tasks_have_no_such_folder_fails_and_says_what_to_do(
    make_connector: MakeConnector,
    make_topic: MakeTopic,
    produce: TopicProducer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plugin: str,
) -> None:
    monkeypatch.setattr(registry, "FRESH_S", 0.0)
    topic = make_topic()
    produce(topic, [(0, b"k", b"v", 1, [])])
    source = {"files": "1", "rows": "1", "batch": "1", "count": "1", "prefix": "x"}
    sink = {"topics": topic, "folder": str(tmp_path), "buffer": "0", "pause": "0"}
    connector = make_connector(plugin, **(source if plugin == "ResumingSource" else sink))
    if plugin == "ResumingSource":
        routed(connector, topic)
    here = tmp_path / "plugins" / "conformance"
    shutil.copytree(connector.plugin_path / "conformance", here)
    connector.plugin_path = here.parent

    report = run_connector(connector.spec(), engine=OtherMachine(here))

    assert report.status == "failed"
    assert report.error is not None
    assert (report.error["code"], report.error["retriable"]) == ("java.missing_on_executor", True)
    assert f"Driver: {here}: " in report.error["message"]
    assert report.error["message"].endswith("This machine: missing.")
    assert f"Copy the folder {here} to each machine" in report.error["suggestion"]
