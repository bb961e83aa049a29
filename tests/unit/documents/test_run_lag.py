"""What runs keep of their lag: bounded, and documents of earlier releases stay readable."""

from __future__ import annotations

import json
from dataclasses import replace

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.documents.run import PartitionReport, RunReport, TaskReport
from airflow_connect.documents.run_lag import HOUR_MS, KEPT_HOURS, RunLag, with_lag
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.planner import LogState, Memory, Policy, plan_positions
from airflow_connect.runtime.driver.reporting import end_of, lag_after
from airflow_connect.ui.overview.model import run_of

LAG = RunLag(90, 40, 5 * HOUR_MS)
REPORT = RunReport("c", "20261123T010203-abcdef", "done", 1, 2, lag=LAG)


def test_the_lag_of_a_run_survives_json_and_entries_of_earlier_releases_have_none() -> None:
    written = json.loads(json.dumps(REPORT.to_json()))
    assert written["lag"] == {"before": 90, "after": 40, "at_ms": 5 * HOUR_MS}
    assert RunReport.from_json(written).lag == LAG
    assert run_of(written).lag == LAG
    del written["lag"]
    assert RunReport.from_json(written).lag is None
    assert run_of(written).lag is None
    assert "lag" not in replace(REPORT, lag=None).to_json()  # as earlier releases wrote it
    assert run_of(end_of(REPORT)).lag == LAG


def test_the_age_is_that_of_the_oldest_first_record_and_is_left_out_if_it_is_not_known() -> None:
    lag = RunLag(9, 9, 5 * HOUR_MS)
    assert lag.age_ms is None and "oldest_ms" not in lag.to_json()
    part = PartitionReport(OffsetRange("t", 0, 0, 9), 9, 9, read=9, written=9)
    manifest = Manifest("c", "r", 0, (), (part,), {})
    tasks = [TaskReport(n, 0, (part,), (), oldest_ms=ms) for n, ms in enumerate((0, 4 * HOUR_MS, 3 * HOUR_MS))]
    after = lag_after(lag, manifest, tasks)
    assert after is not None and (after.after, after.age_ms) == (0, 2 * HOUR_MS)
    assert RunLag.from_json(json.loads(json.dumps({**after.to_json(), "later": 1}))) == after
    ahead = replace(after, oldest_ms=6 * HOUR_MS)
    assert ahead.age_ms == 0  # a producer's clock may be ahead


def test_the_lag_does_not_depend_on_the_limits_of_the_run_and_what_they_left_remains() -> None:
    place = TopicPartition("t", 0)
    log = LogState({"t": "id"}, {place: 0}, {place: 90}, {place: 0})
    positions = plan_positions(log, Memory(), Policy(limits=RunLimits(max_records=50)), 0)
    assert (positions.total, positions.behind) == (50, 90)
    part = PartitionReport(OffsetRange("t", 0, 0, 50), 50, 50, read=50, written=50)
    manifest = Manifest("c", "r", 0, (), (part,), {})
    assert lag_after(RunLag(90, 90, 7), manifest) == RunLag(90, 40, 7)
    assert lag_after(RunLag(90, 90, 7), None) == RunLag(90, 90, 7)
    assert lag_after(None, manifest) is None


def test_a_week_of_hours_is_kept_each_with_its_longest_lag() -> None:
    hours: tuple[tuple[int, int], ...] = ()
    for hour in range(400):
        for before in (hour, 3):
            hours = with_lag(hours, RunLag(before, 0, hour * HOUR_MS + 1))
    assert len(hours) == KEPT_HOURS
    assert hours[-1] == (399, 399)
    assert with_lag(((5, 7),), RunLag(4, 0, 5 * HOUR_MS)) == ((5, 7),)
    assert with_lag(((500, 7),), RunLag(4, 0, 5 * HOUR_MS)) == ((5, 4),)  # a clock that went back


def test_the_state_keeps_the_hours_and_states_of_earlier_releases_have_none() -> None:
    state = ConnectorState("c", "r", CLOSED, 1, lag_of_hours=((5, 90), (6, 0)))
    written = json.loads(json.dumps(state.to_json()))
    assert ConnectorState.from_json(written) == state
    del written["lag_of_hours"]
    assert ConnectorState.from_json(written).lag_of_hours == ()
    assert "lag_of_hours" not in ConnectorState("c", "r", CLOSED, 1).to_json()
