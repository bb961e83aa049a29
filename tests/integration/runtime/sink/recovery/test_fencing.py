"""Two runs of one connector at once: the older one is fenced, says so, and leaves nothing behind."""

import contextlib
import threading
from dataclasses import replace

import pytest
from confluent_kafka import Consumer

from airflow_connect.runtime import crash_points
from tests.support.copies.s3 import InProcessEngine, numbered
from tests.support.steps import Frozen
from tests.support.waiting import wait_until


@pytest.fixture
def sink(make_topic, produce, make_sink):
    """A connector with 30 records in 3 partitions to copy into several files."""
    topic = make_topic(partitions=3)
    produce(topic, numbered(0, 30, 3)[0])
    return make_sink(topic, flush_size="4")


def successor(sink):
    """Another run of the same connector."""
    return replace(sink, engine=InProcessEngine(), events=[])


def test_older_of_two_runs_at_once_is_fenced_and_publishes_nothing(sink, produce):
    older = Frozen.while_copying(sink)
    produce(sink.topic, numbered(30, 36, 3)[0])
    newer = successor(sink).run()
    before = sink.identities()

    report = older.thaw()

    assert newer.records == 36
    assert report.status == "failed"
    assert report.error["type"] == "FencedError"
    assert "newer run" in report.error["message"]
    assert sink.identities() == before
    assert sink.offsets() == {0: 12, 1: 12, 2: 12}
    sink.assert_exactly_once(numbered(0, 36)[1])


ZOMBIE_POINTS = [
    crash_points.PLANNED,
    crash_points.BEGUN,
    crash_points.COPIED,
    crash_points.AUDITED,
    crash_points.MANIFEST_WRITTEN,
    crash_points.PUBLISHING,
    crash_points.PUBLISHED,
]


@pytest.mark.parametrize("point", ZOMBIE_POINTS)
def test_frozen_run_that_wakes_after_its_successor_changes_nothing(sink, steps, point):
    frozen = Frozen.at(steps, point, sink)
    recovering = successor(sink).run()
    before, offsets = sink.identities(), sink.offsets()

    report = frozen.thaw()

    assert recovering.status in ("done", "empty")
    assert report.error["type"] == "FencedError"
    assert sink.identities() == before
    assert sink.offsets() == offsets == {0: 10, 1: 10, 2: 10}
    sink.assert_exactly_once(numbered(0, 30)[1])
    assert successor(sink).run().status == "empty"


def test_frozen_run_that_has_not_planned_yet_finds_nothing_left_to_do(sink, steps):
    frozen = Frozen.at(steps, crash_points.FENCED, sink)
    successor(sink).run()

    assert frozen.thaw().status == "empty"
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_frozen_run_that_wakes_while_its_successor_is_at_work_changes_nothing(sink, steps, produce):
    frozen = Frozen.at(steps, crash_points.COPIED, sink)
    produce(sink.topic, numbered(30, 33, 3)[0])
    second = Frozen.at(steps, crash_points.COPIED, successor(sink))

    fenced = frozen.thaw()
    done = second.thaw()

    assert fenced.error["type"] == "FencedError"
    assert (done.status, done.records) == ("done", 33)
    sink.assert_exactly_once(numbered(0, 33)[1])


@pytest.mark.parametrize("point", [crash_points.COPIED, crash_points.MANIFEST_WRITTEN])
def test_run_that_is_suspended_after_fencing_leaves_the_staged_files_of_the_newer_run(sink, steps, point):
    """What it reads when it wakes is the state of the newer run, which looks like that of a run that has died."""
    suspended = Frozen.at(steps, crash_points.FENCED, sink)
    newer = Frozen.at(steps, point, successor(sink))
    staged = sink.uploads()

    fenced = suspended.thaw()
    left = sink.uploads()
    done = newer.thaw()

    assert fenced.error["code"] == "run.fenced"
    assert set(left) == set(staged) != set()
    assert (done.status, done.records) == ("done", 30)
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_run_whose_staged_files_its_successor_has_discarded_says_that_it_was_fenced(sink, steps):
    older = Frozen.at(steps, crash_points.TASK_STAGED, sink)
    newer = Frozen.at(steps, crash_points.COPIED, successor(sink))

    fenced = older.thaw()

    assert fenced.error["code"] == "run.fenced"
    assert (newer.thaw().status, fenced.status) == ("done", "failed")
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_three_frozen_runs_wake_in_any_order_and_only_the_last_counts(sink, steps):
    frozen = [Frozen.at(steps, crash_points.AUDITED, successor(sink)) for _ in range(3)]

    reports = [frozen[index].thaw() for index in (1, 2, 0)]

    assert [r.status for r in reports] == ["failed", "done", "failed"]
    sink.assert_exactly_once(numbered(0, 30)[1])


@contextlib.contextmanager
def live_member(sink):
    """A live consumer in the connector's group, as a Kafka Connect worker's task would be."""
    consumer = Consumer({"bootstrap.servers": sink.kafka.bootstrap, "group.id": f"connect-{sink.name}"})
    assigned, stop = threading.Event(), threading.Event()
    consumer.subscribe([sink.topic], on_assign=lambda *_: assigned.set())

    def poll():
        while not stop.is_set():
            consumer.poll(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        wait_until(assigned.is_set, "the member has joined")
        yield
    finally:
        stop.set()
        thread.join()
        consumer.close()


def test_live_worker_in_the_group_is_refused_before_the_copy(sink):
    with live_member(sink):
        report = sink.try_run()

    assert report.error["type"] == "NotStoppedError"
    assert f"connect-{sink.name}" in report.error["message"]
    assert sink.engine.jobs == 0
    assert sink.run().records == 30


def test_worker_that_joins_during_the_copy_is_refused_before_anything_is_visible(sink, steps):
    with contextlib.ExitStack() as until_here:
        steps.on(crash_points.COPIED, lambda: until_here.enter_context(live_member(sink)))
        report = sink.try_run()

    assert report.error["type"] == "NotStoppedError"
    assert sink.keys() == []
    assert sink.run().records == 30
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_worker_that_joins_before_a_recovery_keeps_the_manifest_open(sink, steps):
    frozen = Frozen.at(steps, crash_points.PUBLISHED, sink)
    with live_member(sink):
        refused = successor(sink).try_run()
    report = frozen.thaw()

    assert refused.error["type"] == "NotStoppedError"
    assert report.status == "done"
    sink.assert_exactly_once(numbered(0, 30)[1])
