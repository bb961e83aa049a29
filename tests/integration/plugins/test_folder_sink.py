"""A staging sink of a third party under the conformance suite: exactly once, with nothing left over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.testing import SinkConformance
from airflow_connect.testing.cases.sink_case import SinkCase

pytestmark = pytest.mark.integration


class TestFolderSink(SinkConformance):
    connector_class = "tests.integration.plugins.folder_sink:FolderSinkConnector"
    stores_tombstones = True
    errant_value = '"errant"'

    def connector_config(self, target: Path) -> Mapping[str, str]:
        return {"folder": str(target)}

    def read_back(self, target: Path) -> Sequence[Any]:
        return [json.loads(line) for file in sorted(target.glob("*.json")) for line in file.read_text().splitlines()]

    def test_what_a_killed_run_staged_is_swept(self, case: SinkCase) -> None:
        case.add(9)
        assert case.start(crash_at=crash_points.TASK_STAGED).wait() is None
        assert len(staged(case)) > 0

        report = case.run()

        assert report.swept > 0
        assert staged(case) == []
        case.check_everything_arrived()

    def test_file_that_was_lost_after_the_manifest_is_copied_again(self, case: SinkCase) -> None:
        case.add(9)
        assert case.start(crash_at=crash_points.MANIFEST_WRITTEN).wait() is None
        staged(case)[0].unlink()

        report = case.run()

        assert report.recovered_run_id
        case.check_everything_arrived()
        assert staged(case) == []

    def test_two_connectors_in_one_folder_leave_each_others_staged_files_alone(self, case: SinkCase) -> None:
        case.add(9)
        foreign = case.target / ".staged" / "somebody"
        foreign.mkdir(parents=True)
        (foreign / "x+0+0.json~run").write_text("")

        case.run()

        assert (foreign / "x+0+0.json~run").exists()


def staged(case: SinkCase) -> list[Path]:
    return sorted((case.target / ".staged" / case.name).glob("*"))
