"""A mirror between two real clusters whose runs are killed at random and at every named step: the copy is exact.

2 rounds, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them. The seeds change every day of the soak;
AIRFLOW_CONNECT_SEED repeats the rounds of a failure.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_connect.runtime.crash_points import SOURCE_DRIVER_POINTS, SOURCE_TASK_POINTS, VARIABLE
from tests.crash.mirror_rounds import PARTITIONS, MirrorRound, RoundMirror
from tests.crash.rounds import Victim
from tests.support.kafka_data import TopicProducer, create_topic, delete_topic
from tests.support.session.searching import KILL_ROUNDS, seed_day

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

FIRST_SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED") or 20261123 + 1000 * (seed_day().toordinal() % 10_000))
AT_ONCE = 4
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "")
EVERY_POINT = (*SOURCE_DRIVER_POINTS, *SOURCE_TASK_POINTS)


@pytest.fixture
def make_mirror(kafka, upstream_kafka, unique_name):
    """Mirrors of topics of their own; both topics are removed, because there may be a thousand rounds."""
    made = []

    def make(name, state):
        topic = f"{unique_name}-{name}"
        create_topic(upstream_kafka.bootstrap, topic, PARTITIONS)
        writer = TopicProducer(upstream_kafka.bootstrap)
        mirror = RoundMirror(upstream_kafka.bootstrap, kafka.bootstrap, topic, writer, state=f"mirror-{PROCESS}{state}")
        made.append(mirror)
        return mirror

    yield make
    for mirror in made:
        mirror.write.close()
        delete_topic(mirror.source, mirror.topic)
        delete_topic(mirror.target, mirror.remote)


def batches(count):
    """The seeds of so many rounds, as many in each as are played at once."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    return [seeds[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_frozen_and_doubled_runs_mirror_every_record_exactly_once(make_mirror, seeds):
    rounds = [MirrorRound(seed, make_mirror(str(seed), str(number))) for number, seed in enumerate(seeds)]
    with ThreadPoolExecutor(len(rounds)) as pool:
        played = [pool.submit(each.play) for each in rounds]
    failures = [failure for failure in (each.exception() for each in played) if failure is not None]
    if failures:
        raise BaseExceptionGroup("kill rounds", failures)


def test_mirror_that_is_killed_at_every_named_step_in_turn_is_exact(make_mirror):
    mirror = make_mirror("steps", "steps")
    survivors = []
    for number, point in enumerate(EVERY_POINT):
        mirror.write(mirror.topic, [(n % PARTITIONS, str(n), f"{number}", 1_000 + n, [("h", b"1")]) for n in range(20)])
        if Victim(mirror, {VARIABLE: point}).wait() is not None:
            survivors.append(point)
    last = [Victim(mirror).wait() for _ in range(2)]

    assert survivors == []
    assert last[-1] is not None and last[-1].status == "empty"
    assert mirror.copies() == mirror.originals()
