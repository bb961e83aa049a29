"""Java connectors whose drivers, tasks and JVMs are killed and frozen at random moments: nothing is lost or doubled.

One round of a source and one of a sink, 200 of each with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them if
that is more than four and less than 200. The seeds change every day of the soak; AIRFLOW_CONNECT_SEED repeats the
rounds of a failure.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import AdminClient

from tests.crash.java_rounds import PARTITIONS, TOPICS, JavaSinkRound, JavaSourceRound
from tests.integration.jvm.conftest import plugin_path as plugin_path  # noqa: PLC0414 (the fixture of that folder)
from tests.integration.jvm.hosting import STRING
from tests.support.copies.java_plugin import JavaConnector
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.session.searching import KILL_ROUNDS, seed_day

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

# The first round kills a task between large polls of a source, and the Python processes of a sink, once each.
FIRST_SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED") or 20261136 + 1000 * (seed_day().toordinal() % 10_000))
AT_ONCE = 2
"""Each round starts two JVMs for each run, one after the other."""
# A round takes ten seconds: a short session has one of each kind, a soak as many as of workers.
ROUNDS = min(KILL_ROUNDS, 200) if KILL_ROUNDS > 4 else 1


@pytest.fixture
def make_connector(kafka, plugin_path, unique_name):
    """Connectors whose state has topics of its own; topics are removed, because there may be a thousand rounds."""
    made = []

    def make(plugin, seed, **config):
        name = f"{unique_name}-{seed}"
        states = {f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("runs", "offset", "config")}
        keys = {
            "connector.class": f"plugins.{plugin}",
            "airflow.java.start.grace.ms": "0",
            "airflow.java.idle.ms": "100",
            "airflow.java.heap.mb": "128",
            **config,
        }
        worker = {"key.converter": STRING, "value.converter": STRING, **states}
        made.extend(states.values())
        return JavaConnector(kafka.bootstrap, name, plugin_path, keys, worker)

    yield make
    there = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=10).topics
    for topic in made:
        if topic in there:  # Sinks have no offsets of their own.
            delete_topic(kafka.bootstrap, topic)


def batches():
    """The seeds of all rounds, as many in each as are played at once."""
    seeds = range(FIRST_SEED, FIRST_SEED + ROUNDS)
    return [seeds[start : start + AT_ONCE] for start in range(0, ROUNDS, AT_ONCE)]


def play(rounds):
    """Play rounds at the same time."""
    with ThreadPoolExecutor(len(rounds)) as pool:
        played = [pool.submit(each.play) for each in rounds]
    failures = [failure for failure in (each.exception() for each in played) if failure is not None]
    if failures:
        raise BaseExceptionGroup("kill rounds", failures)


@pytest.mark.parametrize("seeds", batches(), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_sources_copy_every_record_once_and_in_order(kafka, make_connector, seeds):
    rounds = [JavaSourceRound(seed, make_connector("ResumingSource", seed)) for seed in seeds]
    topics = [f"{each.prefix}{number}" for each in rounds for number in range(TOPICS)]
    for topic in topics:
        create_topic(kafka.bootstrap, topic, PARTITIONS)
    play(rounds)
    for topic in topics:
        delete_topic(kafka.bootstrap, topic)


@pytest.mark.parametrize("seeds", batches(), ids=lambda seeds: f"rounds-{seeds[0] - FIRST_SEED}")
def test_killed_and_frozen_sinks_miss_no_record(make_connector, make_topic, tmp_path, seeds):
    rounds = []
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        rounds.append(JavaSinkRound(seed, make_connector("Upserts", seed), folder, make_topic(partitions=PARTITIONS)))
    play(rounds)
