"""Three brokers: coordinators and leaders die or move while a transaction is open, and every record arrives once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from airflow_connect.devstack.s3 import S3Server
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import FencedError, UnavailableError
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.writing import task_producer
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from tests.devstack.kafka_cluster import GROUPS, TRANSACTIONS, KafkaCluster, coordinator_partition
from tests.integration.runtime.source.conftest import Numbers
from tests.support.copies.refused_units import answer_to_a_record, problems
from tests.support.copies.s3 import Sink, numbered
from tests.support.kafka_data import create_topic, produce
from tests.support.session.searching import IS_SOAK
from tests.support.steps import HookedEngine, Steps
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.integration]

COPIES = 3
TOPICS = ("runs", "offset", "config")
REPLICATED = {
    **{f"{topic}.storage.replication.factor": str(COPIES) for topic in TOPICS},
    # The default of 25 partitions would be 75 copies, which follow each other after every restart.
    "offset.storage.partitions": "3",
}
MOST_RUNS = 5


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Three brokers; a test that ends one starts it again."""
    with KafkaCluster.start(COPIES) as running:
        yield running


@pytest.fixture
def healthy(cluster: KafkaCluster) -> KafkaCluster:
    """The same, with every broker there and every copy up to date."""
    cluster.start_missing()
    return cluster


@pytest.fixture
def source(healthy: KafkaCluster, unique_name: str, tmp_path: Path) -> Numbers:
    """A numbers source of one task, on topics with three copies."""
    create_topic(healthy.bootstrap, unique_name, 1, copies=COPIES)
    config = {"tasks.max": "1", "numbers.batch": "3"}
    file = tmp_path / "counts.json"
    return Numbers(healthy.bootstrap, f"numbers-{unique_name}", unique_name, file, config, dict(REPLICATED))


def transactional_id(source: Numbers) -> str:
    """Of the source's only task."""
    return SourceConfiguration.from_spec(source.spec()).resolved.task_transactional_id(0)


def until_done(run: Callable[[], RunReport]) -> list[RunReport]:
    """Runs, as a scheduler would start them, until one does not fail; no other failure than a passing one."""
    reports = [run()]
    while reports[-1].error is not None and len(reports) < MOST_RUNS:
        assert reports[-1].error["retriable"], reports[-1].error
        reports.append(run())
    assert reports[-1].error is None, reports[-1].error
    return reports


BOUNDARIES = {
    "inside a transaction": {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "60000"},
    "between transactions": {"transaction.boundary": "poll"},
}


@pytest.mark.parametrize("where", BOUNDARIES)
def test_broker_that_coordinates_a_tasks_transactions_dies(
    healthy: KafkaCluster, source: Numbers, monkeypatch: pytest.MonkeyPatch, where: str
):
    source.feed(30)
    source.run()
    source.feed(90)
    source.config |= BOUNDARIES[where]
    killed: list[int] = []

    def kill() -> None:
        node = healthy.coordinator(transactional_id(source))
        node.kill()
        killed.append(node.node_id)

    Steps(monkeypatch).on(crash_points.SOURCE_TASK_SENT, kill, skip=5)
    until_done(source.try_run)

    assert len(killed) == 1 and healthy.coordinator(transactional_id(source)).node_id not in killed
    assert source.run().status == "empty"
    source.assert_exactly_once(90)


@pytest.mark.parametrize("where", BOUNDARIES)
def test_coordinator_of_a_tasks_transactions_moves_to_another_healthy_broker(
    healthy: KafkaCluster, source: Numbers, monkeypatch: pytest.MonkeyPatch, where: str
):
    source.feed(30)
    source.run()
    source.feed(90)
    source.config |= BOUNDARIES[where]
    partition = coordinator_partition(transactional_id(source))
    before, after = healthy.displace(TRANSACTIONS, partition), []

    def move() -> None:
        after.append(healthy.move_back(TRANSACTIONS, partition))

    Steps(monkeypatch).on(crash_points.SOURCE_TASK_SENT, move, skip=5)
    report = source.try_run()

    assert (report.status, report.records) == ("done", 60), report.error
    assert len(after) == 1 and after != [before]
    source.assert_exactly_once(90)


def test_leader_of_the_topic_dies_in_the_middle_of_a_transaction(
    healthy: KafkaCluster, source: Numbers, monkeypatch: pytest.MonkeyPatch
):
    source.feed(90)
    source.config |= BOUNDARIES["inside a transaction"]
    Steps(monkeypatch).on(crash_points.SOURCE_TASK_SENT, lambda: healthy.leader(source.topic, 0).kill(), skip=5)

    until_done(source.try_run)

    assert source.run().status == "empty"
    source.assert_exactly_once(90)


def test_brokers_are_restarted_one_after_the_other_while_sources_run(healthy: KafkaCluster, source: Numbers):
    source.feed(300)
    rolled = threading.Event()

    def roll() -> None:
        try:
            for node in healthy.nodes:
                node.restart()
                healthy.wait_until_in_sync()
        finally:
            rolled.set()

    rolling = threading.Thread(target=roll)
    rolling.start()
    reports: list[RunReport] = []
    fed = 300
    while not rolled.is_set():
        reports += until_done(lambda: source.try_run(numbers_pause="0.1"))
        fed += 30
        source.feed(fed)
    rolling.join()
    source.run()

    assert sum(report.records for report in reports) > 0
    source.assert_exactly_once(fed)


KILLED: dict[str, Callable[[KafkaCluster, Sink], None]] = {
    "of the transaction": lambda cluster, sink: cluster.coordinator(f"test-workers-{sink.name}").kill(),
    "of the group": lambda cluster, sink: cluster.group_coordinator(f"connect-{sink.name}").kill(),
}
MOMENTS = [
    ("of the transaction", crash_points.AUDITED),
    ("of the transaction", crash_points.PUBLISHED),
    ("of the group", crash_points.PUBLISHED),
    # The manifest is written without the group: its next coordinator is there long before the commit.
    *([("of the group", crash_points.AUDITED)] if IS_SOAK else []),
]


@pytest.mark.soak
@pytest.mark.parametrize(("coordinator", "moment"), MOMENTS)
def test_coordinator_of_a_sink_dies_before_its_manifest_or_its_commit(
    healthy: KafkaCluster, s3: S3Server, bucket: str, unique_name: str, monkeypatch: pytest.MonkeyPatch,
    coordinator: str, moment: str,
):  # fmt: skip
    create_topic(healthy.bootstrap, unique_name, 2, copies=COPIES)
    engine = HookedEngine()
    sink = Sink(healthy, s3, bucket, f"sink-{unique_name}", unique_name, {"flush.size": "4"}, REPLICATED, engine)
    produce(healthy.bootstrap, unique_name, numbered(0, 20, 2)[0])
    sink.run()
    produce(healthy.bootstrap, unique_name, numbered(20, 40, 2)[0])
    Steps(monkeypatch).on(moment, lambda: KILLED[coordinator](healthy, sink))

    until_done(sink.try_run)

    assert sink.run().status == "empty"
    sink.run()
    sink.assert_exactly_once(numbered(0, 40)[1])
    assert sink.offsets() == {0: 20, 1: 20}


def test_coordinator_of_a_group_moves_to_another_healthy_broker_before_the_commit(
    healthy: KafkaCluster, s3: S3Server, bucket: str, unique_name: str, monkeypatch: pytest.MonkeyPatch
):
    create_topic(healthy.bootstrap, unique_name, 2, copies=COPIES)
    engine = HookedEngine()
    sink = Sink(healthy, s3, bucket, f"sink-{unique_name}", unique_name, {"flush.size": "4"}, REPLICATED, engine)
    produce(healthy.bootstrap, unique_name, numbered(0, 20, 2)[0])
    sink.run()
    partition = coordinator_partition(f"connect-{sink.name}")
    healthy.displace(GROUPS, partition)
    produce(healthy.bootstrap, unique_name, numbered(20, 40, 2)[0])
    Steps(monkeypatch).on(crash_points.PUBLISHED, lambda: healthy.move_back(GROUPS, partition))

    report = sink.try_run()

    assert (report.status, report.records) == ("done", 20), report.error
    sink.assert_exactly_once(numbered(0, 40)[1])
    assert sink.offsets() == {0: 20, 1: 20}


def test_topic_without_enough_replicas_stores_no_offset(
    healthy: KafkaCluster, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wants three copies of each record, two brokers are left. Clients repeat until their time is over."""
    kept = {"message.timeout.ms", "transaction.timeout.ms"}
    monkeypatch.setattr(task_producer, "_DECIDED", task_producer._DECIDED - kept)
    monkeypatch.setattr(task_producer, "API_TIMEOUT_S", 3.0)
    create_topic(healthy.bootstrap, unique_name, 1, {"min.insync.replicas": str(COPIES)}, copies=COPIES)
    healthy.nodes[-1].kill()
    wait_until(lambda: copies_in_sync(healthy, unique_name) == COPIES - 1, "its end is seen by the others")
    left = ",".join(node.bootstrap for node in healthy.nodes[:-1])
    # One broker may still take the ended one for the leader, or for a copy that is in sync.
    wait_until(lambda: answer_to_a_record(left, unique_name) == KafkaError.NOT_ENOUGH_REPLICAS, "records are refused")

    # The cluster fences a producer whose transaction is older than its timeout, which may be first.
    expected = (UnavailableError, FencedError)
    assert problems(left, unique_name, expected, **{"message.timeout.ms": 2_000}) == []


def copies_in_sync(cluster: KafkaCluster, topic: str) -> int:
    found = admin_client({"bootstrap.servers": cluster.nodes[0].bootstrap}).list_topics(topic, timeout=30)
    partition = found.topics[topic].partitions.get(0)  # It is missing while a leader is looked for.
    return 0 if partition is None else len(partition.isrs)
