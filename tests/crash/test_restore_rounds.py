"""A restore whose runs are killed at random and at every named step: the topic holds the backup exactly once.

2 rounds, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them. The seeds change every day of the soak;
AIRFLOW_CONNECT_SEED repeats the rounds of a failure.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_connect.runtime.crash_points import SOURCE_DRIVER_POINTS, SOURCE_TASK_POINTS, VARIABLE
from tests.crash.restore_rounds import PARTITIONS, RestoreRound, RoundRestore
from tests.crash.rounds import Victim
from tests.crash.value_rounds import CONFIG, DIVIDED, RESTORED, DividedRound, ImportRound, ValueRound
from tests.support.copies.backups import record, write_file
from tests.support.copies.restore import LOCAL_SOURCE, stored
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.session.searching import KILL_ROUNDS, seed_day

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

FIRST_SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED") or 20261127 + 1000 * (seed_day().toordinal() % 10_000))
AT_ONCE = 4
PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "")
IMPORTED = {"mode": "GENERIC"}
KINDS = ((ImportRound, CONFIG | IMPORTED), (ValueRound, RESTORED), (DividedRound, DIVIDED | IMPORTED))
# The few rounds of a short session are one of each kind; a soak plays as many of each as of other runs.
VALUE_ROUNDS = KILL_ROUNDS * (len(KINDS) if KILL_ROUNDS > AT_ONCE else 1)
EVERY_POINT = (*SOURCE_DRIVER_POINTS, *SOURCE_TASK_POINTS)


@pytest.fixture
def make_restore(kafka, unique_name, tmp_path):
    """Restores to topics of their own, which are removed, because there may be a thousand rounds."""
    made = []

    def make(name, state, **more):
        folder = tmp_path / name
        config = {"connector.class": LOCAL_SOURCE, "store.url": str(folder), "format.class": "ParquetFormat", **more}
        target, own = f"{unique_name}-{name}", f"restore-{PROCESS}{state}"
        restore = RoundRestore(kafka.bootstrap, "t", target, config, state=own, folder=folder)
        made.append(restore)
        return restore

    yield make
    for restore in made:
        delete_topic(restore.bootstrap, restore.target)


def batches(count):
    """The seeds of so many rounds, as many in each as are played at once."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    return [seeds[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_frozen_and_doubled_runs_restore_every_record_exactly_once(make_restore, seeds):
    rounds = [RestoreRound(seed, make_restore(str(seed), str(number))) for number, seed in enumerate(seeds)]
    play(rounds)


def play(rounds):
    """Play rounds at the same time."""
    with ThreadPoolExecutor(len(rounds)) as pool:
        played = [pool.submit(each.play) for each in rounds]
    failures = [failure for failure in (each.exception() for each in played) if failure is not None]
    if failures:
        raise BaseExceptionGroup("kill rounds", failures)


@pytest.mark.parametrize("seeds", batches(VALUE_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_frozen_and_doubled_runs_copy_files_of_values_exactly_once(make_restore, kafka, seeds):
    rounds = []
    for number, seed in enumerate(seeds):
        kind, config = KINDS[(seed - FIRST_SEED) % len(KINDS)]
        restore = make_restore(f"v{seed}", str(number), **config)
        if "mode" in config:
            restore.config["topic.regex.list"] = f"{restore.target}:.*"
            create_topic(kafka.bootstrap, restore.target)
        rounds.append(kind(seed, restore))
    play(rounds)


def test_restore_that_is_killed_at_every_named_step_in_turn_is_exact(make_restore):
    restore = make_restore("steps", "steps")
    survivors, expected = [], []
    for number, point in enumerate(EVERY_POINT):
        for partition in range(PARTITIONS):
            values = [b"%d" % (number * 7 + n) for n in range(7)]
            records = [record(number * 7 + n, value, "t", partition) for n, value in enumerate(values)]
            write_file(restore.folder / "topics", records)
            expected += [(partition, value) for value in values]
        if Victim(restore, {VARIABLE: point}).wait() is not None:
            survivors.append(point)
    last = [Victim(restore).wait() for _ in range(2)]

    assert survivors == []
    assert last[-1] is not None and last[-1].status == "empty"
    found = [(one.partition, one.value) for one in stored(restore.bootstrap, restore.target)]
    assert found == sorted(expected, key=lambda one: one[0])
