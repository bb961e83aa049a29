"""Tables whose copying runs are killed at random and at every named step, on real servers: each row is copied once.

2 rounds on each of PostgreSQL and MariaDB, 1,000 with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them. The
seeds change every day of the soak; AIRFLOW_CONNECT_SEED repeats the rounds of a failure.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_connect.runtime.crash_points import SOURCE_DRIVER_POINTS, SOURCE_TASK_POINTS, VARIABLE
from tests.crash.jdbc_source_rounds import MODES, JdbcSourceRound, TablesSource
from tests.crash.rounds import Victim
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.session.searching import KILL_ROUNDS, seed_day

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

# Four rounds in a row have all modes.
FIRST_SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED") or 20261124 + 1000 * (seed_day().toordinal() % 10_000))
AT_ONCE = 4
EVERY_POINT = (*SOURCE_DRIVER_POINTS, *SOURCE_TASK_POINTS)


@pytest.fixture(params=["postgresql", "mariadb"])
def make_source(request, kafka, unique_name):
    """Connectors with tables and topics of their own; topics are removed, because there may be a thousand rounds."""
    database = request.getfixturevalue(f"{request.param}_database")
    made = []

    def make(name, mode):
        source = TablesSource(kafka.bootstrap, database, f"{unique_name}-{name}", mode)
        source.create()
        for topic in source.topics:
            create_topic(kafka.bootstrap, topic, 1)
        made.append(source)
        return source

    yield make
    for source in made:
        for topic in (*source.topics, *(f"{source.name}-{kind}" for kind in ("runs", "offset", "config"))):
            delete_topic(kafka.bootstrap, topic)


def batches(count):
    """The seeds of so many rounds, as many in each as are played at once."""
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    return [seeds[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]


@pytest.mark.parametrize("seeds", batches(KILL_ROUNDS), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_frozen_and_doubled_runs_copy_every_row_exactly_once(make_source, seeds):
    rounds = [JdbcSourceRound(seed, make_source(str(seed), MODES[seed % len(MODES)])) for seed in seeds]
    with ThreadPoolExecutor(len(rounds)) as pool:
        played = [pool.submit(each.play) for each in rounds]
    failures = [failure for failure in (each.exception() for each in played) if failure is not None]
    if failures:
        raise BaseExceptionGroup("kill rounds", failures)


def test_source_that_is_killed_at_every_named_step_in_turn_copies_every_row_once(make_source):
    source = make_source("steps", MODES[0])
    (first, second), written, survivors = source.tables, 0, []
    source.add(second, 0, 1, at_once=True)
    for point in EVERY_POINT:
        source.add(first, written, 20, at_once=False)
        written += 20
        if Victim(source, {VARIABLE: point}).wait() is not None:
            survivors.append(point)
    last = [Victim(source).wait() for _ in range(2)]

    assert survivors == []
    assert last[-1] is not None and last[-1].status == "empty"
    assert [source.copied(topic) for topic in source.topics] == [list(range(written)), [0]]
