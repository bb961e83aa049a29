"""SIGKILL at random moments and at every named step, in real processes: everything arrives exactly once.

10 rounds on S3 and 2 on HDFS, 1,000 of each with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them;
AIRFLOW_CONNECT_SEED repeats the rounds of a failure.
"""

import os
import signal

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import DRIVER_POINTS, TASK_POINTS, VARIABLE
from tests.crash.rounds import PARTITIONS, Round, Victim, Watcher
from tests.support.hdfs_runs import hdfs_sink
from tests.support.runs import numbered

pytestmark = [pytest.mark.crash, pytest.mark.integration]

FIRST_SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED", "20261121"))
ROUNDS = int(os.environ.get("AIRFLOW_CONNECT_ROUNDS", "1000" if os.environ.get("AIRFLOW_CONNECT_SOAK") else "10"))
HDFS_ROUNDS = ROUNDS if ROUNDS != 10 else 2
"""An HDFS takes half a second to close a file, so that the short dose is shorter."""
EVERY_POINT = (*DRIVER_POINTS, *TASK_POINTS)
STORE_POINTS = (
    crash_points.COMMITTED,
    crash_points.TASK_STAGED,
    crash_points.MANIFEST_WRITTEN,
    crash_points.PUBLISHING,
)
"""Where a store matters; the other steps are the same for all, and are tried on S3 every time. The last one leaves
something to do."""

ROUTED = {
    "transforms": "route",
    "transforms_route_type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms_route_regex": ".*",
    "transforms_route_replacement": "renamed",
}
"""Directories of another topic: leftovers are looked for there too."""


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
def test_killed_and_frozen_runs_copy_every_record_exactly_once(make_topic, make_sink, seed):
    config = ROUTED if seed % 3 == 0 else {}
    Round(seed, make_sink(make_topic(partitions=PARTITIONS), **config)).play()


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + HDFS_ROUNDS))
def test_killed_and_frozen_runs_copy_every_record_to_hdfs_exactly_once(kafka, hdfs, make_topic, seed):
    config = ROUTED if seed % 3 == 0 else {}
    Round(seed, hdfs_sink(kafka, hdfs, make_topic(partitions=PARTITIONS), **config)).play()


def test_kill_at_every_named_step_in_turn_copies_every_record_exactly_once(make_topic, produce, make_sink):
    check_kill_at_steps(make_sink(make_topic(partitions=PARTITIONS), flush_size="3"), produce, EVERY_POINT)


def test_kill_at_steps_in_turn_copies_every_record_to_hdfs_exactly_once(kafka, hdfs, make_topic, produce):
    points = EVERY_POINT if os.environ.get("AIRFLOW_CONNECT_SOAK") else STORE_POINTS
    check_kill_at_steps(hdfs_sink(kafka, hdfs, make_topic(partitions=PARTITIONS), flush_size="3"), produce, points)


def check_kill_at_steps(sink, produce, points):
    """One connector that dies at each step once, with new records each time."""
    watcher = Watcher(sink)
    written, survivors = 0, []
    for point in points:
        produce(sink.topic, numbered(written, written + 20, PARTITIONS)[0])
        written += 20
        if Victim(sink, {VARIABLE: point}).wait() is not None:
            survivors.append(point)
    last = [Victim(sink).wait() for _ in range(3)]
    watcher.end()

    assert survivors == []
    assert [report.status for report in last] == ["done", "empty", "empty"]
    assert watcher.violations == []
    assert watcher.looks > 10
    sink.assert_exactly_once(numbered(0, written)[1])


def test_driver_that_is_killed_leaves_no_process(make_topic, produce, make_sink):
    topic = make_topic(partitions=PARTITIONS)
    produce(topic, numbered(0, 9, PARTITIONS)[0])
    victim = Victim(make_sink(topic))
    victim.send(signal.SIGKILL)

    assert victim.wait() is None
    assert victim.is_gone
