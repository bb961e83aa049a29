"""When a worker runs a connector."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from airflow_connect.airflow.run_params import RUN_KEYS
from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.worker.due import ANYTHING, Due, Early, Ended, Schedule
from airflow_connect.control.worker.rounds import TOPIC_MISSING, _may_repeat
from airflow_connect.errors import AccessError, ConfigError, ConnectError, DataError, NotStoppedError, UnavailableError
from airflow_connect.observe.watches.conditions import LagReaches

RUN_ID = "20261126T101112-0a1b2c"


class Topic:
    """A config topic and the worker's schedule over it."""

    def __init__(self, interval_s: float = 60) -> None:
        self.state, self._offset = ConfigState(), 0
        self.schedule = Schedule(interval_s, 0)

    def add(self, *given: records.Record) -> None:
        for key, value in given:
            self.state.take(key, value, self._offset)
            self._offset += 1

    def due(self, now_s: float) -> list[str]:
        return [due.name for due in self.schedule.due(self.state, now_s)]

    def ran(self, name: str, now_s: float, *, may_repeat: bool = True, **ended: Any) -> None:
        self.schedule.begin(self.state, self._due(name))
        self.schedule.end(name, now_s, Ended(may_repeat, **ended))

    def _due(self, name: str) -> Due:
        registered = self.state.connectors[name]
        return Due(name, registered.config, registered.offset)


def with_connector(interval_s: float = 60, **config: str) -> Topic:
    topic = Topic(interval_s)
    topic.add(records.connector_config("c", config))
    return topic


def restart(name: str = "c") -> records.Record:
    return records.restart(name, include_tasks=True, only_failed=False)


def test_a_new_connector_is_due_at_once():
    assert with_connector().due(0) == ["c"]


def test_a_paused_or_stopped_connector_is_never_due():
    topic = with_connector()
    for state in ("PAUSED", "STOPPED"):
        topic.add(records.target_state("c", state), restart())
        assert topic.due(1e9) == []


def test_a_connector_is_due_again_after_its_interval():
    topic = with_connector(interval_s=10)
    topic.ran("c", 100)
    assert topic.due(109.9) == [] and topic.due(110) == ["c"]


def test_a_connector_may_have_its_own_interval():
    topic = with_connector(interval_s=10, **{"run.interval.seconds": "3"})
    topic.ran("c", 100)
    assert topic.due(102.9) == [] and topic.due(103) == ["c"]


def test_a_new_configuration_is_due_at_once():
    topic = with_connector()
    topic.ran("c", 100, may_repeat=False)
    topic.add(records.connector_config("c", {"a": "b"}))
    assert topic.due(100) == ["c"]


def test_after_a_failure_that_no_repetition_mends_only_a_restart_makes_it_due():
    topic = with_connector(interval_s=10)
    topic.ran("c", 100, may_repeat=False)
    assert topic.due(1e9) == []
    topic.add(restart())
    assert topic.due(100) == ["c"]
    topic.ran("c", 100, may_repeat=False)
    assert topic.due(1e9) == []


def test_a_restart_during_a_run_makes_it_due_after_the_run():
    topic = with_connector()
    topic.schedule.begin(topic.state, Due("c", {}, 0))
    topic.add(restart())
    topic.schedule.end("c", 100, Ended())
    assert topic.due(100) == ["c"]


def test_requested_run_has_its_id_and_its_limits_once() -> None:
    topic = with_connector(interval_s=10, **{"run.lag.records": "1000"})
    topic.ran("c", 100)
    limits = {"run.max.records": "5", "connector.class": "Other", "run.until.timestamp": "2026-11-26T00:00:00Z"}
    topic.add(records.run_request("c", RUN_ID, limits))
    (wanted,) = topic.schedule.due(topic.state, 100)
    assert (wanted.run_id, wanted.lag) == (RUN_ID, None)
    registered = topic.state.connectors["c"].config
    del limits["connector.class"]
    assert wanted.config == {**registered, **limits}, "a request limits its run, and changes nothing else"
    topic.ran("c", 100)
    (later,) = topic.schedule.due(topic.state, 110)
    assert (later.run_id, later.config) == ("", registered)


@pytest.mark.parametrize("run", [{"id": "../x", "limits": {}}, {"id": RUN_ID}, {"id": 5, "limits": {}}, "now"])
def test_request_that_is_damaged_is_a_restart(run: object) -> None:
    topic = with_connector()
    topic.ran("c", 100)
    key, _ = restart()
    topic.add((key, json.dumps({"include-tasks": True, "only-failed": False, "run": run}).encode()))
    (wanted,) = topic.schedule.due(topic.state, 100)
    assert wanted.run_id == ""


def test_limits_of_a_request_are_those_of_the_trigger_form() -> None:
    assert set(RUN_KEYS) == records.RUN_LIMITS


def test_restarts_from_before_the_worker_started_and_of_other_connectors_do_not_count():
    topic = with_connector()
    topic.add(restart())
    topic.schedule = Schedule(60, topic.state.next_offset)
    topic.ran("c", 100)
    topic.add(restart("other"))
    assert topic.due(100) == []


def test_the_connector_that_has_waited_longest_comes_first():
    topic = Topic(interval_s=1)
    topic.add(*(records.connector_config(name, {}) for name in ("a", "b", "new")))
    topic.ran("a", 20)
    topic.ran("b", 10)
    assert topic.due(30) == ["new", "b", "a"]


def test_a_deleted_connector_is_forgotten():
    topic = with_connector()
    topic.ran("c", 100)
    topic.add(*records.no_connector("c"))
    assert topic.due(100) == []
    topic.add(records.connector_config("c", {}))
    assert topic.due(100) == ["c"]


def early(topic: Topic, now_s: float) -> list[tuple[str, bool]]:
    """Names that data makes due, and whether the worker has to look for it."""
    return [(due.name, due.lag == ANYTHING) for due in topic.schedule.due(topic.state, now_s) if due.is_early]


def test_a_sink_is_due_before_its_interval_if_there_is_anything_to_copy():
    topic = with_connector(interval_s=60)
    topic.ran("c", 100, early=Early(5, asks=False))
    assert topic.due(104) == [] and early(topic, 105) == [("c", True)]
    assert topic.due(160) == ["c"] and early(topic, 160) == []


def test_a_source_is_asked_before_its_interval():
    topic = with_connector(interval_s=60)
    topic.ran("c", 100, early=Early(5, asks=True))
    assert early(topic, 105) == [("c", False)]


def test_runs_that_write_files_come_early_a_few_times_and_then_once_for_each_interval():
    topic, now_s, ended = with_connector(interval_s=60), 0.0, []
    while now_s < 600:  # There is always something to copy.
        now_s = next(at for at in (now_s + step for step in range(100)) if topic.due(at))
        topic.ran("c", now_s, early=Early(5, made_files=True))
        ended.append(now_s)
    assert ended[:5] == [0, 5, 10, 15, 20]
    assert {later - before for before, later in pairwise(ended[4:])} == {60}


def test_records_that_come_one_by_one_are_copied_early_although_each_makes_a_file():
    topic = with_connector(interval_s=60)
    for number in range(20):
        topic.ran("c", 70.0 * number, early=Early(5, made_files=True))
        assert early(topic, 70.0 * number + 5) == [("c", True)]


def test_a_restart_of_an_early_connector_does_not_wait_for_data():
    topic = with_connector(interval_s=60)
    topic.ran("c", 100, early=Early(5, asks=False))
    topic.add(restart())
    (due,) = topic.schedule.due(topic.state, 105)
    assert (due.lag, due.is_early) == (None, False)


def test_only_connectors_of_this_worker_are_due():
    topic = Topic()
    topic.add(*(records.connector_config(name, {}) for name in "abc"))
    assert [due.name for due in topic.schedule.due(topic.state, 0, {"a", "c", "gone"})] == ["a", "c"]


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({}, None),
        ({"run.lag.records": "5"}, LagReaches(min_records=5)),
        ({"run.lag.seconds": "60"}, LagReaches(min_age_ms=60_000)),
        ({"run.lag.records": " 5 ", "run.lag.seconds": "1"}, LagReaches(min_records=5, min_age_ms=1000)),
        ({"run.lag.records": "many", "run.lag.seconds": "-1"}, None),
        ({"run.lag.records": "0"}, None),
    ],
)
def test_a_connector_with_a_condition_on_its_lag_waits_for_it(config, wanted):
    topic = with_connector(**config)
    (due,) = topic.schedule.due(topic.state, 0)
    assert due.lag == wanted


def test_a_connector_that_was_restarted_waits_for_no_lag():
    topic = with_connector(**{"run.lag.records": "5"})
    topic.ran("c", 100)
    topic.add(restart())
    (due,) = topic.schedule.due(topic.state, 100)
    assert due.lag is None


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_connector_that_failed_permanently_is_due_once_it_is_resumed(state: str):
    topic = with_connector(interval_s=10)
    topic.ran("c", 0, may_repeat=False)
    assert topic.due(1e9) == []
    topic.add(records.target_state("c", state))
    assert topic.due(1e9) == []
    topic.add(records.target_state("c", "STARTED"))
    assert topic.due(1) == ["c"]
    topic.ran("c", 2, may_repeat=False)
    # Resuming a connector that is neither paused nor stopped changes nothing, as in Kafka Connect.
    topic.add(records.target_state("c", "STARTED"))
    assert topic.due(1e9) == []


def test_a_connector_that_was_stopped_and_resumed_during_its_run_is_due_again():
    topic = with_connector(interval_s=10)
    (due,) = topic.schedule.due(topic.state, 0)
    topic.schedule.begin(topic.state, due)
    topic.add(records.target_state("c", "STOPPED"), records.target_state("c", "STARTED"))
    topic.schedule.end("c", 5, Ended(may_repeat=False))
    assert topic.due(6) == ["c"]


def test_the_pause_grows_while_runs_fail_and_not_beyond_its_limit():
    topic, now_s, pauses = with_connector(interval_s=60), 0.0, []
    for _ in range(7):
        topic.ran("c", now_s, has_failed=True)
        pause_s = next(s for s in range(1, 5000) if topic.due(now_s + s) == ["c"])
        pauses.append(pause_s)
        now_s += pause_s
    assert pauses == [60, 120, 240, 480, 600, 600, 600]
    topic.ran("c", now_s)
    assert topic.due(now_s + 60) == ["c"]


def test_an_interval_above_the_limit_does_not_grow_and_a_new_configuration_begins_anew():
    topic = with_connector(interval_s=3600)
    topic.ran("c", 0, has_failed=True)
    topic.ran("c", 0, has_failed=True)
    assert (topic.due(3599), topic.due(3600)) == ([], ["c"])
    topic = with_connector(interval_s=60)
    topic.ran("c", 0, has_failed=True)
    topic.ran("c", 0, has_failed=True)
    topic.add(records.connector_config("c", {"a": "b"}))
    topic.ran("c", 0, has_failed=True)
    assert (topic.due(59), topic.due(60)) == ([], ["c"])


@pytest.mark.parametrize(
    ("error", "may_repeat"),
    [
        (UnavailableError("x"), True), (AccessError("x", code="s3.denied"), True), (NotStoppedError("x"), True),
        (ConfigError("x", code=TOPIC_MISSING), True), (ConfigError("x"), False), (DataError("x"), False),
    ],
)  # fmt: skip
def test_what_may_end_without_a_change_of_the_connector_is_tried_again(error: ConnectError, may_repeat: bool):
    assert _may_repeat(error.to_json()) is may_repeat


@pytest.mark.parametrize(("interval", "seconds"), [("9" * 400, 60), ("9" * 5000, 60), ("٣", 3), ("x", 60)])
def test_an_interval_of_any_text_keeps_no_other_connector_from_running(interval, seconds):
    topic = with_connector(**{"run.interval.seconds": interval})
    topic.ran("c", 0)
    assert topic.due(seconds - 1) == []
    assert topic.due(seconds) == ["c"]
