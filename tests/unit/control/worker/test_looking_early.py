"""Which connectors may run before their interval is over."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.control.worker.looking_early import SOON_S, early_after_s
from airflow_connect.documents.run import DONE, EMPTY, RunReport
from airflow_connect.documents.source_run import SourceRunReport


def report(status: str, took_s: float = 1.0, **more: Any) -> RunReport:
    return RunReport("c", "r", status, 0, round(took_s * 1000), **more)


def source(status: str, took_s: float = 1.0) -> RunReport:
    return report(status, took_s, source=SourceRunReport())


@pytest.mark.parametrize(
    ("ended", "after_s"),
    [
        (report(EMPTY), SOON_S),
        (report(DONE, records=7), SOON_S),
        (report(DONE, 30.0, records=7), 60.0),
        (report(DONE, records=7, files=1), SOON_S),
        (report(DONE, records=7, left=1), None),
        (source(EMPTY, 0.01), SOON_S),
        (source(EMPTY, 1.0), 200.0),
        (source(DONE), None),
    ],
    ids=["idle", "rows", "many rows", "files", "limited", "quick source", "slow source", "source that copied"],
)
def test_data_begins_a_run_unless_files_become_small_or_a_table_is_repeated(ended: RunReport, after_s: float | None):
    assert early_after_s({}, ended, 10, was_early=False) == after_s


def test_a_run_that_began_early_and_found_nothing_is_not_repeated_early():
    assert early_after_s({}, report(EMPTY), 1, was_early=True) is None


@pytest.mark.parametrize("key", ["run.interval.seconds", "run.lag.records", "run.lag.seconds", "poll.interval.ms"])
def test_a_connector_with_a_pace_of_its_own_keeps_it(key: str):
    assert early_after_s({key: "60"}, report(EMPTY), 1, was_early=False) is None
