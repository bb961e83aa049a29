"""A run of a source is killed, stopped, doubled: every number arrives once all the same."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, READ_UNCOMMITTED, latest_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import SKIP
from airflow_connect.runtime.executor.task import run_task
from airflow_connect.testing.runs import InProcessEngine
from tests.integration.runtime.source.conftest import Numbers
from tests.integration.runtime.source.numbers import held_by
from tests.support.session.searching import KILL_ROUNDS
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.integration]

POINTS = (*crash_points.SOURCE_DRIVER_POINTS, *crash_points.SOURCE_TASK_POINTS)


def test_killed_rounds_with_other_numbers_of_tasks(numbers: Numbers, monkeypatch: pytest.MonkeyPatch):
    chance, counts = random.Random(20261122), [0, 0, 0, 0]
    for _ in range(KILL_ROUNDS):
        counts = [count + chance.randint(0, 30) for count in counts]
        numbers.feed(*counts)
        monkeypatch.setenv(SKIP, str(chance.randrange(4)))
        boundary = chance.choice(["poll", "interval"])
        numbers.start(
            crash_at=chance.choice(POINTS),
            tasks_max=str(chance.randint(1, 4)),
            transaction_boundary=boundary,
            transaction_boundary_interval_ms=str(chance.choice([0, 5, 10_000])),
            numbers_batch=str(chance.randint(1, 9)),
        ).wait()

    numbers.run(tasks_max="3")
    numbers.assert_exactly_once(*counts)


@pytest.mark.started_anew
def test_two_runs_at_once_copy_once_and_the_older_one_is_fenced(numbers: Numbers):
    numbers.feed(40, 40)
    both = [numbers.start(numbers_batch="2", numbers_pause="0.02") for _ in range(2)]
    reports = [process.wait() for process in both]

    assert all(r is not None and (r.error is None or r.error["code"] == "run.fenced") for r in reports), reports
    numbers.run()
    numbers.assert_exactly_once(40, 40)


class RacingEngine(InProcessEngine):
    """Starts a second attempt of the task while the first one is held in the middle of its way."""

    def __init__(self, held: Path) -> None:
        super().__init__()
        self.held = held
        self.errors: list[Any] = []

    def run(self, settings: Any, tasks: Any) -> Any:
        reports = []
        for task in tasks:

            def first(task: Any = task) -> None:
                try:
                    reports.append(run_task(settings, task, attempt=0))
                except Exception as error:  # noqa: BLE001 (looked at by the test)
                    self.errors.append(error)

            thread = threading.Thread(target=first)
            thread.start()
            wait_until(self.held.exists, "the first attempt to be on its way")
            try:
                reports.append(run_task(settings, task, attempt=1))
            finally:
                self.held.unlink()
                thread.join()
        return [report for report in reports if report.attempt == 1]


def test_two_attempts_of_a_task_race_and_the_later_one_fences_the_earlier(numbers: Numbers, tmp_path: Path):
    from airflow_connect.runtime.driver.entry import run_connector

    numbers.feed(60)
    hold = tmp_path / "hold"
    hold.touch()
    engine = RacingEngine(held_by(hold))

    report = run_connector(numbers.spec(numbers_batch="2", numbers_hold=str(hold), tasks_max="1"), engine=engine)

    assert report.status == "done", report.error
    assert [(error.code, error.retriable) for error in engine.errors] == [("task.taken_over", True)]
    numbers.assert_exactly_once(60)


def test_task_of_an_older_run_that_starts_late_sees_the_newer_claim(numbers: Numbers):
    from airflow_connect.errors import FencedError
    from airflow_connect.runtime.driver.entry import run_connector

    class Late(InProcessEngine):
        def run(self, settings: Any, tasks: Any) -> Any:
            late.append((settings, tasks))
            return super().run(settings, tasks)

    late: list[Any] = []
    numbers.feed(5, 5, 5)
    run_connector(numbers.spec(tasks_max="3"), engine=Late())
    numbers.feed(9, 9, 9)
    numbers.run(tasks_max="1")
    numbers.feed(12, 12, 12)

    settings, tasks = late[0]
    for task in tasks:
        with pytest.raises(FencedError, match="of the same connector has taken over"):
            run_task(settings, task, attempt=0)
    numbers.assert_exactly_once(9, 9, 9)


def has_no_open_transaction(numbers: Numbers) -> bool:
    """Whether records are there, and all of them are of transactions that have ended."""
    admin, place = admin_client({"bootstrap.servers": numbers.bootstrap}), TopicPartition(numbers.topic, 0)
    stable, end = (latest_offsets(admin, [place], level)[place] for level in (READ_COMMITTED, READ_UNCOMMITTED))
    return 0 < end == stable


def test_transaction_that_was_open_for_too_long_is_ended_by_kafka_and_copied_again(numbers: Numbers, tmp_path: Path):
    numbers.feed(12)
    hold = tmp_path / "hold"
    hold.touch()
    numbers.config |= {
        "producer.override.transaction.timeout.ms": "1000",
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "60000",
    }

    def let_go_when_kafka_has_ended_it() -> None:
        wait_until(held_by(hold).exists, "the transaction to be open")
        try:
            wait_until(lambda: has_no_open_transaction(numbers), "Kafka to end the transaction", 60)
        finally:
            held_by(hold).unlink()

    waiting = threading.Thread(target=let_go_when_kafka_has_ended_it)
    waiting.start()
    report = numbers.try_run(numbers_batch="3", numbers_hold=str(hold))
    waiting.join()

    assert report.status == "done", report.error
    assert len([note for note in report.notes if "The tasks ran a second time" in note]) == 1, report.notes
    numbers.assert_exactly_once(12)


def test_task_is_stopped_once_whatever_happens(numbers: Numbers, tmp_path: Path):
    notes = tmp_path / "notes"
    numbers.feed(3)
    numbers.run(tasks_max="1", numbers_notes=str(notes))

    assert [json.loads(line)[0] for line in notes.read_text().splitlines()] == ["start", "stop"]
