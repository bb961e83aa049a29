"""One of three brokers hangs at a random moment of a run, for a random time: nothing is lost, doubled or misreported.

A broker that hangs keeps its connections and answers nothing; the other two soon lead its partitions. One short round,
200 long ones with AIRFLOW_CONNECT_SOAK=1, or AIRFLOW_CONNECT_ROUNDS of them if that is more than four.
AIRFLOW_CONNECT_SEED repeats the rounds of a failure.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_connect.devstack.s3 import S3Server
from airflow_connect.documents.run import RunReport
from tests.devstack.kafka_cluster import KafkaCluster
from tests.integration.runtime.source.conftest import Numbers
from tests.support.copies.s3 import Sink, numbered
from tests.support.kafka_data import create_topic, produce
from tests.support.processes.proc import freeze
from tests.support.session.searching import KILL_ROUNDS, seed_day

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(60), pytest.mark.timeout(600)]

FIRST_SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED") or 20261129 + 1000 * (seed_day().toordinal() % 10_000))
ROUNDS = min(KILL_ROUNDS, 200) if KILL_ROUNDS > 4 else 1
STEPS = 3 if KILL_ROUNDS > 4 else 1
COPIES = 3
TOPICS = ("runs", "offset", "config")
REPLICATED = {f"{topic}.storage.replication.factor": str(COPIES) for topic in TOPICS} | {
    "offset.storage.partitions": "6"
}
MOST_RUNS = 6
MISREPORTED = ("missing", "created again", "recreated", "deleted", "lost")
"""Words of notes about topics and offsets that another program has changed. Here none has."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Three brokers."""
    with KafkaCluster.start(COPIES) as running:
        yield running


class Hang:
    """A broker that hangs from some moment on, for some time."""

    def __init__(self, cluster: KafkaCluster, rng: random.Random) -> None:
        self._pid = rng.choice(cluster.nodes).pid
        self._after_s, self._for_s = rng.uniform(0, 2.5), rng.choice((0.5, 3.0, 8.0, 14.0))
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._hang)

    def _hang(self) -> None:
        self._is_over.wait(self._after_s)
        freeze(self._pid)
        try:
            self._is_over.wait(self._for_s)
        finally:
            os.kill(self._pid, signal.SIGCONT)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._thread.join()


def until_done(run: Callable[[], RunReport]) -> None:
    """Runs, as a scheduler would start them, until one does not fail. No failure is final, and no note is wrong."""
    for _ in range(MOST_RUNS):
        report = run()
        wrong = [note for note in report.notes if any(word in note for word in MISREPORTED)]
        assert wrong == []
        if report.error is None:
            return
        assert report.error["retriable"], report.error
    raise AssertionError(report.error)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
def test_one_of_three_brokers_hangs(
    cluster: KafkaCluster, s3: S3Server, bucket: str, unique_name: str, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    cluster.wait_until_in_sync()
    numbers_topic, letters = f"{unique_name}-n", f"{unique_name}-l"
    create_topic(cluster.bootstrap, numbers_topic, 6, copies=COPIES)
    create_topic(cluster.bootstrap, letters, 6, copies=COPIES)
    source = Numbers(
        cluster.bootstrap, f"numbers-{unique_name}", numbers_topic, tmp_path / "n.json", {"numbers.batch": "10"},
        dict(REPLICATED), topic_partitions=6,
    )  # fmt: skip
    sink = Sink(cluster, s3, bucket, f"sink-{unique_name}", letters, {"flush.size": "7"}, REPLICATED)
    written = fed = 0
    for _ in range(STEPS):
        produce(cluster.bootstrap, letters, numbered(written, written + 60, 6)[0])
        written, fed = written + 60, fed + 40
        source.feed(fed, fed, fed)
        with Hang(cluster, rng):
            until_done(source.try_run)
            until_done(sink.try_run)

    cluster.wait_until_in_sync()
    sink.run()
    assert source.run().status == "empty"
    assert sink.run(flush_on_end="true").status in ("done", "empty")
    source.assert_exactly_once(fed, fed, fed)
    sink.assert_exactly_once(numbered(0, written)[1])
