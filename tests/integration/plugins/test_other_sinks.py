"""Sinks that do not stage, under the conformance suite: at least once, and by offsets of their own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import plan_connector
from airflow_connect.testing import SinkConformance
from airflow_connect.testing.cases.sink_case import SinkCase
from airflow_connect.testing.runs import run_here
from tests.integration.plugins.other_sinks import AppendConnector

pytestmark = pytest.mark.integration


class TestAppendSink(SinkConformance):
    connector_class = "tests.integration.plugins.other_sinks:AppendConnector"
    stores_tombstones = True

    def connector_config(self, target: Path) -> Mapping[str, str]:
        return {"path": str(target / "lines.json")}

    def read_back(self, target: Path) -> Sequence[Any]:
        file = target / "lines.json"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def test_crash_after_writing_writes_again_and_the_suite_knows_that(self, case: SinkCase) -> None:
        case.add(9)
        assert case.start(crash_at=crash_points.COPIED).wait() is None
        case.run()

        assert len(case.found()) == 18
        case.check_everything_arrived()

    def test_run_with_nothing_to_copy_does_not_start_the_connector(
        self, case: SinkCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started: list[str] = []
        start = AppendConnector.start

        def counted(connector: AppendConnector, config: Mapping[str, str]) -> None:
            started.append(connector.context.run_id)
            start(connector, config)

        monkeypatch.setattr(AppendConnector, "start", counted)
        case.add(3)
        done, empty = case.run(), case.run()

        assert (done.status, empty.status) == ("done", "empty")
        assert started == [done.run_id]

    def test_plan_warnings_and_report_say_aloud_that_it_delivers_at_least_once(self, case: SinkCase) -> None:
        case.add(3)
        plan = plan_connector(case.spec())
        report, events = run_here(case.spec())

        said = [note for note in plan.notes if "delivers at least once" in note]
        assert len(said) == 1
        assert [e["message"] for e in events if e["event"] == "warning"] == said
        assert report.delivery_guarantee == "at_least_once"


class TestOffsetsSink(SinkConformance):
    connector_class = "tests.integration.plugins.other_sinks:OffsetsConnector"
    stores_tombstones = True

    def connector_config(self, target: Path) -> Mapping[str, str]:
        return {"path": str(target / "records.sqlite")}

    def read_back(self, target: Path) -> Sequence[Any]:
        if not (target / "records.sqlite").exists():
            return []
        with closing(sqlite3.connect(target / "records.sqlite")) as database:
            return [json.loads(value) for (value,) in database.execute("SELECT value FROM records ORDER BY rowid")]

    def test_records_that_the_target_has_are_not_read_again(self, case: SinkCase) -> None:
        case.add(9)
        assert case.start(crash_at=crash_points.COPIED).wait() is None
        report = case.run()

        assert (report.status, report.records, report.filtered) == ("done", 0, 0)
        case.check_everything_arrived()
        assert case.committed() == {0: 3, 1: 3, 2: 3}
