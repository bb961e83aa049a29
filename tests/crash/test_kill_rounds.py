"""SIGKILL at random moments and at every named step, in real processes: everything arrives exactly once.

2 rounds on each of S3, HDFS, PostgreSQL and MariaDB, 1,000 of each with AIRFLOW_CONNECT_SOAK=1, or
AIRFLOW_CONNECT_ROUNDS of them. The seeds change every day of the soak; AIRFLOW_CONNECT_SEED repeats the rounds of a
failure.
"""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_connect.runtime.crash_points import DRIVER_POINTS, TASK_POINTS, VARIABLE
from tests.crash.rounds import LARGE_EVERY, PARTITIONS, Round, Victim, Watcher
from tests.support.copies.hdfs import hdfs_sink
from tests.support.copies.jdbc_sink import jdbc_sink
from tests.support.copies.s3 import numbered
from tests.support.session.searching import KILL_ROUNDS, seed_day

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(30)]

# Other seeds each day of the soak; any four hold a round with renamed topics (seed % 3 == 0) and one with large
# records (seed % LARGE_EVERY == 0).
FIRST_SEED = int(
    os.environ.get("AIRFLOW_CONNECT_SEED") or 20261122 + 3 * LARGE_EVERY * (seed_day().toordinal() % 10_000)
)
AT_ONCE = 4
"""Half of a round is waiting: for HDFS, which takes half a second to close a file, and for the moment to strike."""
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "")
EVERY_POINT = (*DRIVER_POINTS, *TASK_POINTS)


def batches(count):
    """The seeds of so many rounds, as many in each as are played at once."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    return [seeds[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]


ROUTED = {
    "transforms": "route",
    "transforms_route_type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms_route_regex": ".*",
    "transforms_route_replacement": "renamed",
}
"""Directories of another topic: leftovers are looked for there too."""
SHARED = {"tasks_max": str(2 * PARTITIONS), "split_min_records": "1"}
"""Several tasks share a partition."""


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_runs_copy_every_record_exactly_once(make_topic, make_sink, s3, seeds):
    def sink(seed):
        made = make_sink(make_topic(partitions=PARTITIONS), **config(seed))
        made.bucket = f"{made.bucket}-{seed}"
        s3.client().create_bucket(Bucket=made.bucket)
        return made

    play(seeds, sink)


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_runs_copy_every_record_to_hdfs_exactly_once(kafka, hdfs, make_topic, seeds):
    play(seeds, lambda seed: hdfs_sink(kafka, hdfs, make_topic(partitions=PARTITIONS), **config(seed)))


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_runs_insert_every_record_exactly_once(kafka, make_topic, request, server, seeds):
    database = request.getfixturevalue(f"{server}_database")
    # Every second round writes columns: by COPY, or by statements with many rows.
    play(seeds, lambda seed: jdbc_sink(kafka, database, make_topic(partitions=PARTITIONS), in_columns=bool(seed % 2)))


def config(seed):
    return ROUTED if seed % 3 == 0 else SHARED if seed % 3 == 1 else {}


def play(seeds, make):
    """Play rounds beside each other, each with a topic of its own for its state.

    A transaction that a frozen run leaves open would hold back whoever reads the same partition, until it is fenced.
    """
    rounds = [Round(seed, make(seed)) for seed in seeds]
    for number, each in enumerate(rounds):
        each.sink.worker_config["runs.storage.topic"] = f"connect-runs-{PROCESS}{number}"
    with ThreadPoolExecutor(len(rounds)) as pool:
        played = [pool.submit(each.play) for each in rounds]
    failures = [failure for failure in (each.exception() for each in played) if failure is not None]
    if failures:
        raise BaseExceptionGroup("kill rounds", failures)


def test_kill_at_every_named_step_in_turn_copies_every_record_exactly_once(make_topic, produce, make_sink):
    check_kill_at_steps(make_sink(make_topic(partitions=PARTITIONS), flush_size="3"), produce)


def test_kill_at_every_named_step_in_turn_copies_every_record_to_hdfs_exactly_once(kafka, hdfs, make_topic, produce):
    check_kill_at_steps(hdfs_sink(kafka, hdfs, make_topic(partitions=PARTITIONS), flush_size="3"), produce)


def check_kill_at_steps(sink, produce):
    """One connector that dies at each step once, with new records each time."""
    watcher = Watcher(sink)
    written, survivors = 0, []
    for point in EVERY_POINT:
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


@pytest.mark.parametrize("forked", [True, False], ids=["forked", "started-anew"])
def test_driver_that_is_killed_leaves_no_process(make_topic, produce, make_sink, forked):
    topic = make_topic(partitions=PARTITIONS)
    produce(topic, numbered(0, 9, PARTITIONS)[0])
    victim = Victim(make_sink(topic), forked=forked)
    victim.send(signal.SIGKILL)

    assert victim.wait() is None
    assert victim.is_gone


def test_frozen_run_that_nobody_waited_for_is_ended_with_its_pipes(make_topic, make_sink):
    victim = Victim(make_sink(make_topic(partitions=PARTITIONS)))
    victim.send(signal.SIGSTOP)
    assert not victim.end_within(0.1)
    victim.end()

    assert victim.is_gone
    assert victim._process.stdin.closed
