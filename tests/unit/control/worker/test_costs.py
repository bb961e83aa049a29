"""What a connector costs."""

from __future__ import annotations

import json

from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.worker.costs import HOUR_MS, WINDOW_MS, costs, seconds_per_hour

NOW_MS = 10 * WINDOW_MS


def entry(ago_ms: int, seconds: float) -> bytes:
    return json.dumps({"started_ms": NOW_MS - ago_ms, "ended_ms": NOW_MS - ago_ms + seconds * 1000}).encode()


def test_the_seconds_of_runs_count_per_hour_since_the_first_of_them():
    assert seconds_per_hour([entry(2 * HOUR_MS, 30), entry(HOUR_MS, 10)], NOW_MS) == 20


def test_one_short_run_a_minute_ago_is_not_taken_for_sixty_in_an_hour():
    assert seconds_per_hour([entry(60_000, 5)], NOW_MS) == 5


def test_old_runs_and_entries_that_cannot_be_read_do_not_count():
    assert seconds_per_hour([entry(WINDOW_MS + 1, 30), b"{", b"[]", b'{"started_ms": "soon"}'], NOW_MS) == 0


def test_tasks_count_and_a_paused_connector_costs_as_much_as_a_task():
    state = ConfigState()
    tasks = [records.task_config(name, task, {}) for name in "ab" for task in range(3)]
    written = [*(records.connector_config(name, {}) for name in "abc"), *tasks]
    written += [records.commit("a", 3), records.commit("b", 3), records.target_state("b", "PAUSED")]
    for offset, (key, value) in enumerate(written):
        state.take(key, value, offset)
    assert costs(state, {"a": 7.0, "b": 7.0}) == {"a": 10.0, "b": 1.0, "c": 1.0}
