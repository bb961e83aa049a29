"""Second copies of a task, as Spark's speculation starts them: their work is invisible, and swept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_connect.runtime.driver.process_tree import processes_of
from airflow_connect.runtime.executor.task import run_task


class SpeculatingEngine:
    """Runs every task twice and takes the reports of the attempts that `winner` names, as Spark might."""

    may_leave_duplicates = True

    def __init__(self, winner: int, at_once: bool) -> None:
        self._winner = winner
        self._at_once = at_once

    def run(self, settings, tasks):
        with ThreadPoolExecutor(2 if self._at_once else 1) as pool:
            attempts = [[pool.submit(run_task, settings, task, attempt) for attempt in (0, 1)] for task in tasks]
            return [pair[self._winner].result() for pair in attempts]

    def progress_host(self):
        return "127.0.0.1"


@pytest.mark.parametrize("winner", [0, 1], ids=["first attempt wins", "second attempt wins"])
@pytest.mark.parametrize("at_once", [False, True], ids=["one after the other", "side by side"])
def test_duplicate_attempts_of_every_task_double_nothing(make_topic, fill, make_sink, winner, at_once):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 100)
    sink = make_sink(topic, tasks_max="2", flush_size="10")
    sink.engine = SpeculatingEngine(winner, at_once)

    report = sink.run()

    assert (report.records, report.files, report.swept) == (100, 10, 10)
    assert sink.offsets() == {0: 50, 1: 50}
    sink.assert_exactly_once(values)


def test_attempts_of_a_task_stage_under_the_same_keys_in_uploads_of_their_own(make_topic, fill, make_sink):
    staged = []

    class Watching(SpeculatingEngine):
        def run(self, settings, tasks):
            both = [run_task(settings, task, attempt) for task in tasks for attempt in (0, 1)]
            staged.extend(both)
            return both[::2]

    topic = make_topic()
    values = fill(topic, 1, 20)
    sink = make_sink(topic, flush_size="10")
    sink.engine = Watching(0, at_once=False)

    sink.run()

    first, second = staged
    assert [file.key for file in first.files] == [file.key for file in second.files]
    tokens = {file.token["upload_id"] for report in staged for file in report.files}
    assert len(tokens) == 4
    sink.assert_exactly_once(values)


def test_session_with_speculation_sweeps_although_every_first_attempt_won(make_topic, fill, make_sink, drive):
    topic = make_topic(partitions=2)
    values = fill(topic, 2, 20)
    sink = make_sink(topic, tasks_max="2")

    driven = drive(sink, {"spark.master": "local[2]", "spark.speculation": "true"})

    assert "sweep" in [event.get("phase") for event in driven.events]
    assert driven.report.status == "done"
    assert processes_of(driven.token) == []
    sink.assert_exactly_once(values)
