"""Files that are delivered, archived and rotated between whole runs on a real broker: each line once, none left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_connect.connectors.file_stream.source.offsets.reconciliation import OffsetReconciler
from airflow_connect.documents.run import RunReport, TaskPlan, TaskReport
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.runtime.spec import ignore_events
from tests.integration.connectors.file_stream.source.conftest import Lines, MakeLines

pytestmark = pytest.mark.integration

BOTH_PATHS = pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])


class NoEngine:
    """Fails if a run needs Spark."""

    may_leave_duplicates = False

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        raise AssertionError("there is nothing to do")

    def progress_host(self) -> str:
        raise AssertionError("there is nothing to do")


def run_without_engine(source: Lines) -> RunReport:
    return run_connector(source.spec(), ignore_events, NoEngine())


@BOTH_PATHS
def test_deliveries_with_equal_lines_are_copied_and_the_archived_ones_are_not_repeated(
    make_lines: MakeLines, tmp_path: Path, columnar: bool
):
    (tmp_path / "in").mkdir()
    source = make_lines(f"{tmp_path}/in/*.csv")
    for day in (24, 25, 26):
        # The delivery before is deleted, so that its inode may be used again.
        (tmp_path / "in" / f"orders-{day - 1}.csv").unlink(missing_ok=True)
        (tmp_path / "in" / f"orders-{day}.csv").write_text("id,amount\n" + ("7,10\n" if day == 26 else ""))
        source.run(columnar=columnar)
    assert source.lines() == ["id,amount", "id,amount", "id,amount", "7,10"]


@BOTH_PATHS
def test_rotations_between_runs_lose_neither_a_file_nor_the_last_event_of_one(
    make_lines: MakeLines, tmp_path: Path, columnar: bool
):
    log = tmp_path / "app.log"
    source = make_lines(log, multiline_pattern=r"^\s")
    log.touch()
    source.run(columnar=columnar)
    for number in range(3):
        with log.open("a") as out:
            out.write(f"ERROR {number}\n  at x\n")
        for old in range(number, 0, -1):
            (tmp_path / f"app.log.{old}").rename(tmp_path / f"app.log.{old + 1}")
        log.rename(tmp_path / "app.log.1")
        log.touch()
    source.run(columnar=columnar)
    # The program may not have opened the new file yet, and write to the old one.
    assert source.lines() == [f"ERROR {number}\n  at x" for number in range(2)]
    log.write_text("ERROR 3\n")
    source.run(columnar=columnar)
    assert source.lines() == [f"ERROR {number}\n  at x" for number in range(3)]
    assert run_without_engine(source).status == "empty"


def test_run_in_which_all_lines_wait_starts_no_engine_and_says_so(make_lines: MakeLines, tmp_path: Path):
    source = make_lines(tmp_path / "app.log", multiline_pattern=r"^\s")
    (tmp_path / "app.log").write_text("ERROR one\n  at x\nERROR two\n  at y\n")
    source.run()
    report = run_without_engine(source)
    assert (report.status, report.tasks, report.error) == ("empty", 0, None)
    (note,) = report.notes
    assert "The last event of 1 file waits, because more of it may be written" in note


def test_run_compares_files_with_offsets_once_before_its_tasks_and_once_after_them(
    make_lines: MakeLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls: list[OffsetReconciler] = []
    reconcile = OffsetReconciler.reconcile

    def counted(self, committed):
        calls.append(self)
        return reconcile(self, committed)

    monkeypatch.setattr(OffsetReconciler, "reconcile", counted)
    source = make_lines(tmp_path / "a.log")
    (tmp_path / "a.log").write_text("one\n")
    source.run()
    assert len(calls) == 2
    source.run()
    assert len(calls) == 3


def test_missing_file_is_in_the_report(make_lines: MakeLines, tmp_path: Path):
    report = make_lines(tmp_path / "typo.log").run()
    assert (report.status, report.notes) == ("empty", (f"{tmp_path}/typo.log is not read: no file has this name.",))


def test_missing_directory_fails_the_run_with_its_name(make_lines: MakeLines, tmp_path: Path):
    error = make_lines(tmp_path / "no" / "app.log").try_run().error
    assert error is not None and error["code"] == "file.no_directory"
    assert f"the directory {tmp_path}/no/ does not exist" in error["message"]
