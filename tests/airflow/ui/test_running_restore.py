"""A restore in progress, in a browser: how many records and files are copied, of how many."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from airflow_connect.connectors.restore.task import RestoreTask
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver import pages_progress
from airflow_connect.runtime.executor import progress
from tests.airflow.ui.conftest import CONN_ID, OpenPage
from tests.support.copies.backups import TIME_MS, record, write_file
from tests.support.copies.restore import LOCAL_SOURCE
from tests.support.copies.showcase import Showcase
from tests.support.kafka_data import TopicProducer

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]  # a browser draws Airflow's UI on a busy machine

IMAGES = os.environ.get("AIRFLOW_CONNECT_SCREENSHOTS", "")
NAME, OWN_CONN_ID = "restore-orders", "connect_restore"
PATH = f"airflow-connect/{OWN_CONN_ID}"
FILES, RECORDS = {0: 5, 1: 4}, 20
"""Files of each partition, and records of each file."""


@dataclass
class HeldRestore:
    """A restore that waits before its fourth file."""

    showcase: Showcase
    config: dict[str, str | None]
    let_go: threading.Event = field(default_factory=threading.Event)
    is_held: threading.Event = field(default_factory=threading.Event)
    reports: list[RunReport] = field(default_factory=list)

    def run(self) -> None:
        self.reports.append(self.showcase.run(NAME, self.config))

    def holding(self, poll: Any) -> Any:
        polled: list[None] = []

        def held(task: RestoreTask) -> Any:
            if len(polled) == 3:
                self.is_held.set()
                assert self.let_go.wait(120), "nobody has let the run go"
            polled.append(None)
            return poll(task)

        return held


@pytest.fixture
def restore(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldRestore]:
    """A restore that runs, and that pages show."""
    name = f"restoring-{uuid.uuid4().hex[:8]}"
    for partition, files in FILES.items():
        for file in range(files):
            numbers = range(file * RECORDS, (file + 1) * RECORDS)
            rows = [record(n, b"order", topic="orders", partition=partition, timestamp=TIME_MS) for n in numbers]
            write_file(tmp_path / "topics", rows)
    made = Showcase(kafka.bootstrap, name, tmp_path, TopicProducer(kafka.bootstrap), {})
    config: dict[str, str | None] = {
        "name": NAME, "connector.class": LOCAL_SOURCE, "store.url": f"file://{tmp_path}", "tasks.max": "1",
        "format.class": "ParquetFormat", "topics": "orders", "topic.rename": f"orders:{name}",
    }  # fmt: skip
    made.herder.create(NAME, config)
    for module, limit in ((pages_progress, "TELL_AFTER_S"), (pages_progress, "TELL_EVERY_S"), (progress, "INTERVAL_S")):
        monkeypatch.setattr(module, limit, 0.0)
    connection = {"conn_type": "connect_worker", "extra": made.worker}
    monkeypatch.setenv(f"AIRFLOW_CONN_{OWN_CONN_ID.upper()}", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS", f"{CONN_ID}, {OWN_CONN_ID}")
    held = HeldRestore(made, config)
    monkeypatch.setattr(RestoreTask, "poll_columns", held.holding(RestoreTask.poll_columns))
    thread = threading.Thread(target=held.run)
    thread.start()
    assert held.is_held.wait(60), held.reports
    yield held
    held.let_go.set()
    thread.join(60)
    assert [(report.status, report.records) for report in held.reports] == [("done", 180)]


def saved(page: Page, name: str) -> None:
    if IMAGES:
        page.screenshot(path=Path(IMAGES) / f"{name}.png", full_page=True)


def test_a_restore_shows_how_many_files_and_partitions_it_has_left(open_page: OpenPage, restore: HeldRestore) -> None:
    page = open_page("viewer", f"{PATH}/connector?name={NAME}")
    told = "Copied 60 records, 470 B written; 3 of 9 files of 2 partitions."
    expect(page.get_by_text("Copied 60")).to_be_visible(timeout=15_000)
    saved(page, "restore-connector")
    expect(page.get_by_text(told)).to_be_visible()
    saved(page, "restore-connector")
    page.get_by_role("link", name="Run 2").click()
    expect(page.get_by_text(told)).to_be_visible(timeout=30_000)
    expect(page.get_by_text("task 0, attempt 1: 60 records").first).to_be_attached()
    saved(page, "restore-run")
    restore.let_go.set()
    expect(page.get_by_text("180").first).to_be_visible(timeout=30_000)
    saved(page, "restore-ended")
