"""Runs that share a Spark session: one is stopped, the other one goes on."""

from __future__ import annotations

import pytest

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.driver.stopping import RunTimeoutError, StopRequest
from airflow_connect.runtime.engine import jobs
from tests.support.waiting import wait_until

pytestmark = pytest.mark.budget(20)  # Spark takes three seconds to end a task that does not end by itself.


def test_a_stopped_run_ends_its_job_and_another_one_in_the_same_session_is_not_disturbed(
    make_topic, fill, make_sink, faults, local_engine, in_background
):
    held, free = make_topic(), make_topic()
    values = fill(held, 1, 20, at={7: {"do": "hold", "times": 1}})
    others = fill(free, 1, 20, first=100)
    stopped, going_on = make_sink(held, **faults.config()), make_sink(free)
    stopped.engine = going_on.engine = local_engine
    request, spec = StopRequest(), stopped.spec()
    run = in_background(lambda: run_connector(spec, engine=local_engine, stop=request))
    run.until(lambda: bool(faults.held()), "a copy in the middle")

    assert going_on.run().records == 20
    request.ask(RunTimeoutError("It took too long."))
    local_engine.cancel(spec.run_id)
    report = run.result()

    assert (report.status, report.error["code"], report.error["message"]) == (
        "failed",
        "run.timeout",
        "It took too long.",
    )
    assert jobs.running_tasks(local_engine._get_session(), spec.run_id) == 0
    session = local_engine._get_session()
    assert stopped.run().records == 20
    assert local_engine._get_session() is session
    stopped.assert_exactly_once([*values, *others])  # Both write to one bucket.


def test_a_run_that_is_asked_to_stop_before_it_copies_starts_no_job(make_topic, fill, make_sink, local_engine):
    topic = make_topic()
    fill(topic, 1, 5)
    sink, request = make_sink(topic), StopRequest()
    request.ask(RunTimeoutError("It took too long."))

    report = run_connector(sink.spec(), engine=local_engine, stop=request)

    assert report.error["code"] == "run.timeout" and sink.keys() == []


def test_failed_session_ends_when_the_last_job_has_left_it(
    make_topic, fill, make_sink, faults, local_engine, in_background
):
    """A job that dies suggests that the session is broken; a run that still uses it ends first."""
    held, bad = make_topic(), make_topic()
    values = fill(held, 1, 20, at={7: {"do": "hold", "times": 1}})
    fill(bad, 1, 20, at={7: {"do": "bug", "times": 99}})
    first, second = make_sink(held, **faults.config()), make_sink(bad, **faults.config())
    first.engine = second.engine = local_engine
    run = in_background(first.run)
    run.until(lambda: bool(faults.held()), "a copy in the middle")

    assert second.try_run().status == "failed"
    faults.release()

    assert run.result().records == 20
    wait_until(lambda: local_engine._users == 0, "both jobs to end")
    first.assert_exactly_once(values)
