"""What a run asks a connector: a third-party sink that overrides all of it, with a publisher of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import plan_connector
from airflow_connect.testing import SinkConformance
from airflow_connect.testing.cases.sink_case import PARTITIONS, SinkCase
from airflow_connect.testing.topics import Row
from tests.integration.plugins.catalog_sink import CatalogConnector

pytestmark = pytest.mark.integration


def entry(case: SinkCase, kind: str, run_id: str) -> Any:
    return json.loads((case.target / f"{kind}-{run_id}").read_text())


class TestCatalogSink(SinkConformance):
    connector_class = "tests.integration.plugins.catalog_sink:CatalogConnector"
    stores_tombstones = True
    errant_value = '"errant"'

    @pytest.fixture(autouse=True)
    def calls(self) -> list[str]:
        CatalogConnector.calls.clear()
        return CatalogConnector.calls

    def connector_config(self, target: Path) -> Mapping[str, str]:
        return {"folder": str(target)}

    def read_back(self, target: Path) -> Sequence[Any]:
        return [json.loads(line) for file in sorted(target.glob("*.json")) for line in file.read_text().splitlines()]

    def test_a_run_begins_where_an_earlier_connector_has_ended(self, case: SinkCase, calls: list[str]) -> None:
        case.add(30)
        plan = plan_connector(case.spec(begin_at="2"))
        report = case.run(begin_at="2")
        case.add(3)
        case.run(begin_at="2")

        assert [r.start for r in plan.ranges] == [2] * PARTITIONS
        assert report.records == 30 - 2 * PARTITIONS
        # Partitions that a run has committed are not asked for again.
        assert [call for call in calls if call.startswith("first_offsets")] == [
            f"first_offsets of {PARTITIONS}, apply=False",
            f"first_offsets of {PARTITIONS}, apply=True",
        ]

    def test_tasks_are_told_what_the_connector_says_and_the_next_run_what_was_kept(self, case: SinkCase) -> None:
        told = []
        for _ in range(2):
            case.add(30)
            report = case.run(flush_on_end="false")
            told.append(entry(case, "told", report.run_id))

        assert told == [
            {"state": {"v": 1, "runs": 0, "gone": []}, "flush_on_end": False},
            {"state": {"v": 1, "runs": 1, "gone": []}, "flush_on_end": True},
        ]
        assert report.late == 1

    def test_what_follows_publishing_sees_the_files_and_what_is_complete(self, case: SinkCase) -> None:
        case.add(30)
        report = case.run()

        assert [one["directory"] for one in report.complete] == ["day"]
        assert report.notes == ("Planned.", "Counted.", f"{PARTITIONS} files are in the catalog.")
        assert entry(case, "catalog", report.run_id) == {
            "catalog": "main", "files": PARTITIONS, "complete": ["day"]
        }  # fmt: skip

    def test_what_follows_publishing_is_repeated_for_a_recovered_manifest(self, case: SinkCase) -> None:
        case.add(30)
        assert case.start(crash_at=crash_points.MANIFEST_WRITTEN).wait() is None
        assert list(case.target.glob("catalog-*")) == []

        # No file depends on the name of the catalog, which has another one since.
        report = case.run(catalog="moved")

        assert entry(case, "catalog", report.recovered_run_id) == {
            "catalog": "moved", "files": PARTITIONS, "complete": ["day"]
        }  # fmt: skip
        case.check_everything_arrived()

    @pytest.mark.parametrize("recovers", [False, True], ids=["own", "recovered"])
    def test_each_configuration_has_one_object_that_is_stopped_at_the_end(
        self, case: SinkCase, calls: list[str], recovers: bool
    ) -> None:
        case.add(30)
        if recovers:
            case.start(crash_at=crash_points.MANIFEST_WRITTEN).wait()
            case.add(30)

        case.run()

        objects = 2 if recovers else 1
        assert [calls.count(call) for call in ("made", "start", "stop")] == [objects] * 3
        # Both have the same store, and so one publisher.
        assert [calls.count(call) for call in ("publisher", "close")] == [1, 1]
        assert calls.index("close") < calls.index("stop")

    def test_a_run_that_fails_stops_the_connector(self, case: SinkCase, calls: list[str]) -> None:
        case.add(3)
        case.write_rows(Row(1, b"bad", b'{"n": broken'))

        assert case.try_run().status == "failed"
        assert [calls.count(call) for call in ("made", "start", "stop", "publisher", "close")] == [1] * 5

    def test_what_the_connector_refuses_is_found_by_validation_and_without_start(
        self, case: SinkCase, calls: list[str]
    ) -> None:
        assert [error["key"] for error in case.errors(folder="here")] == ["folder"]
        report = case.try_run(folder="here")
        assert report.error is not None and report.error["configPath"] == "folder"
        assert set(calls) == {"made"}
