"""A mirror whose source or target misbehaves during a run: the copy is exact, or the run says what is lost."""

import os
import signal
import threading

import pytest

from airflow_connect.connectors.mirror import task
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.reading import batch_fetch
from airflow_connect.runtime import crash_points
from tests.integration.connectors.mirror.conftest import Mirror
from tests.support.kafka_data import TopicProducer, create_topic, delete_records, delete_topic
from tests.support.processes.proc import freeze
from tests.support.steps import Steps

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

FROZEN_S = 30.0 if os.environ.get("AIRFLOW_CONNECT_SOAK") else 4.0
PARTITIONS, RECORDS = 3, 3_000
# Most records must still be in the source when something happens to it, on a fast machine too. So the source's batches
# are small, librdkafka fetches the next one only when its queue is empty, and a batch of the task has no more records
# than one of them: the task waits for that number, and what is fetched meanwhile would go into its batch.
RECORDS_AT_ONCE = 50
LITTLE_AT_ONCE = {
    "consumer.max.partition.fetch.bytes": "4000",
    "consumer.queued.min.messages": "1",
    "consumer.queued.max.messages.kbytes": "1",
}
ONE_TRANSACTION = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}
BOUNDARIES = [pytest.param({}, id="each batch"), pytest.param(ONE_TRANSACTION, id="one transaction")]


@pytest.fixture(scope="module")
def own_kafka():
    """A broker that may be restarted, frozen, and lose topics."""
    with KafkaBroker.start() as broker:
        yield broker


@pytest.fixture
def make(kafka, upstream_kafka, own_kafka, unique_name, monkeypatch):
    """A mirror, whose `own` side, source or target, is the broker that things happen to."""
    monkeypatch.setattr(batch_fetch, "MAX_MESSAGES", RECORDS_AT_ONCE)
    monkeypatch.setattr(task, "RECORDS_OF_BATCH", RECORDS_AT_ONCE)  # with `poll`, each is a transaction
    writers = []

    def make(own):
        source, target = (own_kafka, kafka) if own == "source" else (upstream_kafka, own_kafka)
        create_topic(source.bootstrap, unique_name, PARTITIONS)
        writers.append(TopicProducer(source.bootstrap))
        config = {"tasks.max": "1", **LITTLE_AT_ONCE}
        mirror = Mirror(source.bootstrap, target.bootstrap, unique_name, writers[-1], config)
        write(mirror, 0)
        return mirror

    yield make
    for writer in writers:
        writer.close()


def write(mirror, first):
    """Numbered records, every third one with headers."""
    numbers = range(first, first + RECORDS)
    rows = [(n % PARTITIONS, str(n), f"value {n} " * 50, 1_000 + n, [("h", b"1")] * (n % 3)) for n in numbers]
    mirror.write(mirror.topic, rows, {"batch.num.messages": RECORDS_AT_ONCE})


def until_done(mirror):
    """Runs until one finds nothing more; errors before must be such that another run may help."""
    for _ in range(6):
        report = mirror.try_run()
        if report.status == "empty":
            return
        assert report.error is None or report.error["retriable"], report.error
    raise AssertionError(f"no end: {report.error}")


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("own", ["source", "target"])
def test_broker_that_restarts_while_a_mirror_copies_changes_nothing(make, own_kafka, monkeypatch, own, boundary):
    mirror = make(own)
    mirror.config |= boundary
    restarted = []
    Steps(monkeypatch).on(crash_points.SOURCE_TASK_SENT, lambda: restarted.append(own_kafka.restart()), skip=3)

    report = mirror.try_run()
    until_done(mirror)

    assert len(restarted) == 1
    assert report.error is None or report.error["retriable"], report.error
    assert mirror.copies() == mirror.originals()


@pytest.mark.parametrize("own", ["source", "target"])
def test_broker_that_is_frozen_for_a_while_changes_nothing(make, own_kafka, monkeypatch, own):
    mirror = make(own)
    thaw = threading.Timer(FROZEN_S, os.kill, (own_kafka.pid, signal.SIGCONT))

    def freeze_for_a_while():
        freeze(own_kafka.pid)
        thaw.start()

    Steps(monkeypatch).on(crash_points.SOURCE_TASK_SENT, freeze_for_a_while, skip=3)
    try:
        report = mirror.try_run()
    finally:
        if thaw.ident is not None:
            thaw.join()
    until_done(mirror)

    assert report.error is None or report.error["retriable"], report.error
    assert mirror.copies() == mirror.originals()


def test_retention_that_overtakes_a_mirror_fails_the_run_until_somebody_decides(make, monkeypatch):
    mirror = make("source")

    def remove():
        for partition in range(PARTITIONS):
            delete_records(mirror.source, mirror.topic, partition, RECORDS // PARTITIONS - 10)

    # After four batches of at most 50; librdkafka holds one or two of each partition.
    Steps(monkeypatch).on(crash_points.SOURCE_TASK_SENT, remove, skip=3)
    overtaken, refused = mirror.try_run(), mirror.try_run()
    decided = mirror.run(offsets_out_of_range="nearest")

    assert overtaken.error is not None and "no longer holds" in overtaken.error["message"], overtaken.error
    assert refused.error is not None and refused.error["code"] == "offset.out_of_range"
    assert any("offsets.out.of.range=nearest" in note for note in decided.notes)
    assert_no_doubles(mirror)
    for partition, copies in mirror.copies().items():
        assert copies[-10:] == mirror.originals()[partition][-10:]


@pytest.mark.parametrize("count", [RECORDS, 2 * RECORDS], ids=["as many", "more"])
def test_topic_that_is_recreated_while_a_mirror_copies_fails_the_run(make, monkeypatch, count):
    mirror = make("source")
    mirror.config |= ONE_TRANSACTION

    def recreate():
        delete_topic(mirror.source, mirror.topic)
        create_topic(mirror.source, mirror.topic, PARTITIONS)
        for first in range(10 * RECORDS, 10 * RECORDS + count, RECORDS):
            write(mirror, first)

    Steps(monkeypatch).on(crash_points.SOURCE_TASK_SENT, recreate, skip=3)
    report = mirror.try_run()

    assert report.error is not None and report.error["code"] == "offset.out_of_range", report.error
    assert "was recreated while it was mirrored" in report.error["message"]
    # Nothing was committed, neither of the old topic nor of the new one.
    assert mirror.copies() == {partition: [] for partition in range(PARTITIONS)}
    mirror.run()
    assert mirror.copies() == mirror.originals()


def assert_no_doubles(mirror):
    """No record was copied twice, and each partition is in order."""
    for copies in mirror.copies().values():
        stamps = [copy.timestamp for copy in copies]
        assert stamps == sorted(set(stamps))
