"""Fencing and transactions on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition as KafkaPartition

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError, ConfigError, FencedError, UnavailableError
from airflow_connect.exactly_once.journal import TopicRecord
from airflow_connect.kafka.admin import consumer_group
from airflow_connect.kafka.admin.consumer_group import group_metadata, read_committed_offsets
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, READ_UNCOMMITTED, latest_offsets
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from tests.support.kafka_data import wait_until

pytestmark = pytest.mark.integration
NewWriter = Callable[..., TransactionalWriter]


@pytest.fixture
def settings(kafka: KafkaBroker) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap}


@pytest.fixture
def admin(settings: dict[str, Any]) -> Admin:
    return admin_client(settings)


@pytest.fixture
def writer(settings: dict[str, Any], unique_name: str) -> Iterator[NewWriter]:
    """A writer that has fenced; every call of one test shares the transactional.id."""
    made: list[TransactionalWriter] = []

    def make(**more: Any) -> TransactionalWriter:
        made.append(TransactionalWriter({**settings, **more}, unique_name))
        made[-1].fence()
        return made[-1]

    yield make
    for one in made:
        one.close()


def committed_values(settings: dict[str, Any], admin: Admin, tp: TopicPartition) -> list[bytes | None]:
    # `commit` returns when the coordinator has decided; it writes the markers a moment later.
    wait_until(
        lambda: latest_offsets(admin, [tp], READ_COMMITTED) == latest_offsets(admin, [tp], READ_UNCOMMITTED),
        "the transaction markers",
    )
    end = latest_offsets(admin, [tp], READ_COMMITTED)[tp]
    batches = RangeReader(settings, [OffsetRange(*tp, 0, end)]).columns()
    return [value for batch in batches for value in batch.values.to_pylist()]


def test_commit_of_records_and_offsets_makes_both_visible(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str], unique_name: str
) -> None:
    topic = make_topic(partitions=2)
    tps = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    group = group_metadata(unique_name, settings)
    writer().commit([(topic, 0, b"k", b"v"), (topic, 0, None, None)], {tps[0]: 17, tps[1]: 3}, group)
    group.close()
    assert committed_values(settings, admin, tps[0]) == [b"v", None]
    assert read_committed_offsets(admin, unique_name, tps) == {tps[0]: 17, tps[1]: 3}


def test_commit_of_offsets_alone_and_of_nothing_is_fine(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str], unique_name: str
) -> None:
    tp = TopicPartition(make_topic(), 0)
    one = writer()
    one.commit([])
    one.commit([], {tp: 5}, group_metadata(unique_name, settings))
    one.commit([], {tp: 6}, group_metadata(unique_name, settings))
    assert read_committed_offsets(admin, unique_name, [tp]) == {tp: 6}
    with pytest.raises(ValueError, match="metadata"):
        one.commit([], {tp: 7})


def test_commit_of_a_fenced_writer_fails_and_leaves_nothing(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str], unique_name: str
) -> None:
    tp = TopicPartition(make_topic(), 0)
    older = writer()
    older.commit([(*tp, b"k", b"before")])
    newer = writer()
    for _ in range(2):  # a fenced writer stays fenced
        with pytest.raises(FencedError, match="newer run"):
            older.commit([(*tp, b"k", b"zombie")], {tp: 99}, group_metadata(unique_name, settings))
    newer.commit([(*tp, b"k", b"after")])
    assert committed_values(settings, admin, tp) == [b"before", b"after"]
    assert read_committed_offsets(admin, unique_name, [tp]) == {}


def test_fence_aborts_what_a_dead_run_left_open(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str]
) -> None:
    tp = TopicPartition(make_topic(), 0)
    dead = writer()
    dead._producer.begin_transaction()
    dead._producer.produce(tp.topic, b"never", partition=0)
    dead._producer.flush(30)
    assert latest_offsets(admin, [tp], READ_COMMITTED) == {tp: 0}
    assert latest_offsets(admin, [tp], READ_UNCOMMITTED) == {tp: 1}
    writer()
    assert committed_values(settings, admin, tp) == []
    # The record and the abort marker: stable again.
    assert latest_offsets(admin, [tp], READ_COMMITTED) == {tp: 2}


def test_commit_of_a_record_that_is_too_large_aborts_and_the_writer_goes_on(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str]
) -> None:
    tp = TopicPartition(make_topic(config={"max.message.bytes": "20000"}), 0)
    one = writer()
    for size in (19_999_999, 50_000):  # refused by the client, refused by the broker
        with pytest.raises(ConfigError, match="larger than Kafka accepts"):
            one.commit([(*tp, b"k", b"small"), (*tp, b"k", b"x" * size)])
    one.commit([(*tp, b"k", b"fits")])
    assert committed_values(settings, admin, tp) == [b"fits"]


def test_commit_to_an_unknown_partition_says_that_nothing_was_committed(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    one = writer()
    with pytest.raises(Exception, match="partition") as caught:
        one.commit([(topic, 0, b"k", b"lost"), (topic, 7, b"k", b"x")])
    assert type(caught.value).__name__ == "AccessError"
    one.commit([(topic, 0, b"k", b"kept")])
    assert committed_values(settings, admin, TopicPartition(topic, 0)) == [b"kept"]


@pytest.mark.parametrize("patience", [{}, {"topic.metadata.propagation.max.ms": 1000}], ids=["times out", "refused"])
def test_topic_that_does_not_exist_is_named_also_if_the_transaction_times_out(
    settings: dict[str, Any], make_topic: Callable[..., str], unique_name: str, patience: dict[str, int]
) -> None:
    one = TransactionalWriter({**settings, **patience}, unique_name, transaction_timeout_ms=2_000)
    one.fence()
    letter = TopicRecord(
        topic=f"{unique_name}-nowhere", key=b"k", value=b"v", headers=(), timestamp=None, origin="a-0@1"
    )
    try:
        with pytest.raises(AccessError, match=f"does not have topic {unique_name}-nowhere") as caught:
            one.commit([(make_topic(), 0, b"k", b"v")], messages=[letter])
    finally:
        one.close()
    assert caught.value.code == "kafka.no_topic"


def test_offsets_of_a_topic_that_does_not_exist_are_named_also_if_the_cluster_ends_the_transaction(
    settings: dict[str, Any],
    admin: Admin,
    make_topic: Callable[..., str],
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = TransactionalWriter(settings, unique_name, transaction_timeout_ms=1_000)
    one.fence()
    tp = TopicPartition(make_topic(), 0)
    abort = one._producer.abort_transaction

    def abort_late(timeout: float) -> None:
        """When the cluster has ended the transaction, which it looks for once a second."""
        wait_until(lambda: latest_offsets(admin, [tp], READ_COMMITTED)[tp] == 2, "the marker behind the record")
        abort(timeout)

    monkeypatch.setattr(one._producer, "abort_transaction", abort_late)
    gone = TopicPartition(f"{unique_name}-gone", 0)
    try:
        with pytest.raises(AccessError, match="ended it: because of its age, or because a newer run") as caught:
            one.commit([(*tp, b"k", b"v")], {gone: 5}, group_metadata(unique_name, settings))
    finally:
        one.close()
    assert caught.value.code == "kafka.no_topic"
    assert gone.topic in caught.value.message


def test_writer_takes_no_setting_that_would_break_transactions(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str]
) -> None:
    tp = TopicPartition(make_topic(), 0)
    stubborn = {"acks": "0", "enable.idempotence": "false", "message.timeout.ms": 2147483647, "retries": "0"}
    writer(**stubborn, **{"max.in.flight.requests.per.connection": 100}).commit([(*tp, b"k", b"v")])
    assert committed_values(settings, admin, tp) == [b"v"]


def test_fence_with_a_timeout_beyond_the_brokers_limit_is_a_configuration_error(
    settings: dict[str, Any], unique_name: str
) -> None:
    greedy = TransactionalWriter(settings, unique_name, transaction_timeout_ms=1_000_000)
    with pytest.raises(ConfigError, match="Transaction timeout is larger"):
        greedy.fence()
    greedy.close()


def test_fence_without_a_broker_fails_within_the_bootstrap_bound(
    unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_connect.kafka.clients.short_lived.ensure_reachable.__defaults__", (0.4,))
    lonely = TransactionalWriter({"bootstrap.servers": "127.0.0.1:1"}, unique_name)
    with pytest.raises(UnavailableError, match="No Kafka broker"):
        lonely.fence()
    lonely.close()


def test_offsets_of_an_open_transaction_are_waited_for(
    settings: dict[str, Any], admin: Admin, writer: NewWriter, make_topic: Callable[..., str], unique_name: str
) -> None:
    tp = TopicPartition(make_topic(), 0)
    group = group_metadata(unique_name, settings)
    one = writer()
    one.commit([], {tp: 5}, group)
    one._producer.begin_transaction()
    one._producer.send_offsets_to_transaction([KafkaPartition(*tp, 9)], group.metadata, 30)
    ending = threading.Timer(0.3, one._producer.commit_transaction)
    ending.start()
    assert read_committed_offsets(admin, unique_name, [tp]) == {tp: 9}
    ending.join()
    group.close()


def test_offsets_of_a_transaction_that_stays_open_give_up_by_name(
    settings: dict[str, Any],
    admin: Admin,
    writer: NewWriter,
    make_topic: Callable[..., str],
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_group, "STABLE_TIMEOUT_S", 0.2)
    tp = TopicPartition(make_topic(), 0)
    group = group_metadata(unique_name, settings)
    one = writer()
    one._producer.begin_transaction()
    one._producer.send_offsets_to_transaction([KafkaPartition(*tp, 9)], group.metadata, 30)
    with pytest.raises(
        UnavailableError, match=f"of group {unique_name} is still open.*of {tp} are.*UNSTABLE_OFFSET_COMMIT"
    ):
        read_committed_offsets(admin, unique_name, [tp])
    writer()  # the next fence ends it
    assert read_committed_offsets(admin, unique_name, [tp]) == {}
    group.close()
