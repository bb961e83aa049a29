"""A run that is asked to stop, or takes too long, after the step from which it cannot go back."""

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import run_connector, set_offsets
from airflow_connect.runtime.driver.stopping import StoppedError, StopRequest
from tests.support.copies.s3 import numbered


@pytest.fixture
def stopped_run(make_topic, produce, make_sink, steps):
    """Do a run of 30 records that is asked to stop at a point."""

    def run(guarantee, point, ask=None):
        topic = make_topic(partitions=3)
        produce(topic, numbered(0, 30, 3)[0])
        sink = make_sink(topic, flush_size="4", delivery_guarantee=guarantee)
        stop = StopRequest()
        steps.on(point, lambda: stop.ask(StoppedError("The connector was stopped.")) and ask and ask())
        return sink, run_connector(sink.spec(), sink.events.append, sink.engine, stop)

    return run


@pytest.mark.parametrize(
    ("guarantee", "point"),
    [
        ("exactly_once", crash_points.MANIFEST_WRITTEN),
        ("exactly_once", crash_points.PUBLISHED),
        ("at_least_once", crash_points.PUBLISHED),
        ("at_most_once", crash_points.COMMITTED),
    ],
)
def test_a_run_that_has_begun_to_publish_or_commit_does_both_before_it_stops(stopped_run, guarantee, point):
    sink, report = stopped_run(guarantee, point)

    assert report.status == "done", report.error
    set_offsets(sink.spec(), {f"{sink.topic}-0": 10})  # Which an open manifest would forbid until another run.
    assert sink.run().status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_a_run_that_is_stopped_before_that_leaves_nothing(stopped_run):
    sink, report = stopped_run("exactly_once", crash_points.COPIED)

    assert report.error["code"] == "run.stopped"
    assert (sink.keys(), sink.uploads(), sink.view().manifest) == ([], [], None)


def test_what_fails_after_that_is_named_and_not_the_request_to_stop(stopped_run):
    def fail():
        raise StoppedError("The store is full.", code="test.full")

    sink, report = stopped_run("exactly_once", crash_points.PUBLISHING, fail)

    assert report.error["code"] == "test.full"
    sink.run()
    sink.assert_exactly_once(numbered(0, 30)[1])
