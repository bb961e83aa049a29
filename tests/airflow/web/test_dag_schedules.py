"""When DAGs run is read from Airflow's tables: of all of them at once, and without running a DAG file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_connect.errors import UnavailableError
from airflow_connect.ui.overview.dag_schedules import DagSchedule
from airflow_connect.ui.web import dag_schedules
from airflow_connect.ui.web.dag_schedules import DagSchedules
from tests.support.kept_dags import forget_dag, keep_dag

SOURCE = """
from datetime import timedelta
import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, CronTriggerTimetable, MultipleCronTriggerTimetable

with DAG({dag_id!r}, schedule={schedule}, start_date=pendulum.datetime(2026, 1, 1), catchup=False, max_active_runs=1):
    EmptyOperator(task_id="a")
"""
FRIDAY = datetime(2026, 9, 18, 6, 10, tzinfo=UTC)
MONDAY_AND_TUESDAY = ["2026-09-21T06:00", "2026-09-22T06:00"]


def schedule_of(folder: Path, dag_id: str, schedule: str) -> DagSchedule:
    keep_dag(folder, SOURCE.format(dag_id=dag_id, schedule=schedule))
    return DagSchedules().read({dag_id, "dag_that_does_not_exist"})[dag_id]


def told(schedule: DagSchedule, after: datetime) -> list[str]:
    found = schedule.two_after(round(after.timestamp() * 1000))
    return [f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M}" for ms in found]


@pytest.mark.parametrize(
    ("schedule", "times"),
    [
        ("'0 6 * * 1-5'", MONDAY_AND_TUESDAY),
        ("CronTriggerTimetable('0 6 * * 1-5', timezone='UTC')", MONDAY_AND_TUESDAY),
        ("CronDataIntervalTimetable('0 6 * * 1-5', timezone='UTC')", MONDAY_AND_TUESDAY),
        ("'@hourly'", ["2026-09-18T07:00", "2026-09-18T08:00"]),
        ("timedelta(hours=2)", ["2026-09-18T08:10", "2026-09-18T10:10"]),
        (
            "MultipleCronTriggerTimetable('0 7 * * *', '30 7 * * *', timezone='UTC')",
            ["2026-09-18T07:00", "2026-09-18T07:30"],
        ),
    ],
)
def test_the_next_two_times_after_a_run_are_those_of_the_timetable(
    airflow_home: Path, tmp_path: Path, unique_name: str, schedule: str, times: list[str]
) -> None:
    found = schedule_of(tmp_path, unique_name, schedule)
    assert (told(found, FRIDAY), found.problem) == (times, "")
    assert found.next_ms is not None


@pytest.mark.parametrize("schedule", ["None", "[Asset('a', 's3://b/c')]"])
def test_a_dag_without_fixed_times_misses_no_run(
    airflow_home: Path, tmp_path: Path, unique_name: str, schedule: str
) -> None:
    found = schedule_of(tmp_path, unique_name, schedule)
    assert (found.next_ms, found.problem) == (None, "")
    assert found.missed_since(0, 1 << 50) is None


@pytest.mark.parametrize("schedule", ["'@once'", "'@continuous'"])
def test_a_dag_that_runs_once_or_all_the_time_misses_no_run(
    airflow_home: Path, tmp_path: Path, unique_name: str, schedule: str
) -> None:
    found = schedule_of(tmp_path, unique_name, schedule)
    assert (found.two_after(0), found.problem) == ((), "")


def test_pause_change_and_end_of_a_dag_are_seen(airflow_home: Path, tmp_path: Path, unique_name: str) -> None:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    read = DagSchedules().read
    keep_dag(tmp_path, SOURCE.format(dag_id=unique_name, schedule="'@hourly'"))
    for is_paused in (True, False):
        with create_session() as session:
            session.get(DagModel, unique_name).is_paused = is_paused
        assert read([unique_name])[unique_name].is_paused is is_paused
    keep_dag(tmp_path, SOURCE.format(dag_id=unique_name, schedule="'@daily'"))
    assert told(read([unique_name])[unique_name], FRIDAY) == ["2026-09-19T00:00", "2026-09-20T00:00"]
    forget_dag(unique_name)
    assert read([unique_name]) == {}


def test_a_timetable_that_this_process_does_not_have_is_named(
    airflow_home: Path, tmp_path: Path, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.timetables.trigger import CronTriggerTimetable

    def fail(self: object, **_: object) -> None:
        raise LookupError("calendar.csv is missing")

    keep_dag(tmp_path, SOURCE.format(dag_id=unique_name, schedule="'@daily'"))
    monkeypatch.setattr(CronTriggerTimetable, "next_dagrun_info_v2", fail)
    found = DagSchedules().read([unique_name])[unique_name]
    why = "LookupError: calendar.csv is missing"
    assert found.problem == f"The schedule of DAG {unique_name} is not known here ({why})."
    assert found.missed_since(0, 1 << 50) is None


def test_a_database_that_does_not_answer_is_named(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    def fail(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(dag_schedules.DagSchedules, "_read", fail)
    with pytest.raises(UnavailableError, match="did not say when DAGs run"):
        DagSchedules().read(["any"])
