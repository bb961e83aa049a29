"""SIGKILL at random moments and at every named step, in real processes: everything arrives exactly once.

10 rounds, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them; AIRFLOW_CONNECT_SEED repeats the
rounds of a failure.
"""

import os
import signal

import pytest

from airflow_connect.runtime.crash_points import DRIVER_POINTS, TASK_POINTS, VARIABLE
from tests.crash.rounds import PARTITIONS, Round, Victim, Watcher
from tests.support.runs import numbered

pytestmark = [pytest.mark.crash, pytest.mark.integration]

FIRST_SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED", "20261121"))
ROUNDS = int(os.environ.get("AIRFLOW_CONNECT_ROUNDS", "1000" if os.environ.get("AIRFLOW_CONNECT_SOAK") else "10"))


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


def test_kill_at_every_named_step_in_turn_copies_every_record_exactly_once(make_topic, produce, make_sink):
    """One connector that dies at each step once, with new records each time."""
    sink = make_sink(make_topic(partitions=PARTITIONS), flush_size="3")
    watcher = Watcher(sink)
    written, survivors = 0, []
    for point in (*DRIVER_POINTS, *TASK_POINTS):
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
