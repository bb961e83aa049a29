"""No offset is stored behind a record that Kafka has not got: every answer, every guarantee, both ways to send."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from airflow_connect.api.errors import ConnectError, DataError
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.exactly_once.task_transaction import TaskDelivery, delivery_of
from airflow_connect.kafka import task_producer
from airflow_connect.kafka.clients import admin_client
from airflow_connect.kafka.offsets_topic import OffsetRecord
from airflow_connect.kafka.task_producer import ProducedRecord, TaskProducer
from airflow_connect.testing.topics import Topics
from tests.support.mock_kafka import MockKafka

pytestmark = pytest.mark.integration

GUARANTEES = ["exactly_once", "at_least_once", "at_most_once"]
WAYS = ["columns", "records"]
# What the brokers of Kafka answer to Produce (ProduceResponse.java, ReplicaManager, UnifiedLog), and what they could.
ANSWERS = [
    "UNKNOWN", "INVALID_MSG", "UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION",
    "REQUEST_TIMED_OUT", "MSG_SIZE_TOO_LARGE", "NETWORK_EXCEPTION", "TOPIC_EXCEPTION", "RECORD_LIST_TOO_LARGE",
    "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "INVALID_REQUIRED_ACKS", "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED", "INVALID_TIMESTAMP", "UNSUPPORTED_VERSION", "POLICY_VIOLATION",
    "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING",
    "CONCURRENT_TRANSACTIONS", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "SECURITY_DISABLED", "KAFKA_STORAGE_ERROR",
    "UNKNOWN_PRODUCER_ID", "UNSUPPORTED_COMPRESSION_TYPE", "FENCED_LEADER_EPOCH", "INVALID_RECORD",
    "UNSTABLE_OFFSET_COMMIT", "THROTTLING_QUOTA_EXCEEDED", "PRODUCER_FENCED", "UNKNOWN_TOPIC_ID", "INVALID_REQUEST",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT", "TRANSACTION_ABORTABLE", "REBOOTSTRAP_REQUIRED",
]  # fmt: skip
VALUES = [f"secret-{n}" for n in range(20)]


@pytest.fixture
def mock() -> Iterator[MockKafka]:
    with MockKafka() as cluster:
        yield cluster


def send(producer: TaskProducer, guarantee: str, way: str, topic: str, values: list[str] = VALUES) -> None:
    """One unit: records, then their offset."""
    producer.fence()
    send_unit(delivery_of(guarantee, producer, [f"{topic}-offsets"]), way, topic, values)


def send_unit(delivery: TaskDelivery, way: str, topic: str, values: list[str]) -> None:
    if way == "columns":
        delivery.send_columns(topic, None, pa.array(values))
    else:
        for value in values:
            delivery.send(ProducedRecord(topic, None, None, value.encode()))
    delivery.store([OffsetRecord(b"key", b"offset")])


def opened(bootstrap: str, guarantee: str, topic: str, **more: Any) -> TaskProducer:
    settings = {"bootstrap.servers": bootstrap, "retry.backoff.ms": 1, "retry.backoff.max.ms": 5, **more}
    return TaskProducer(settings, topic if guarantee == "exactly_once" else "", 60_000)


def problem_with(answer: str, guarantee: str, way: str) -> tuple[bool, str]:
    """Whether the unit was refused, and what is wrong."""
    with MockKafka() as mock:
        mock.create("records")
        mock.create("records-offsets")
        # At most once writes the offset first: the second request holds the records.
        mock.answer_produce(*([0] if guarantee == "at_most_once" else []), getattr(KafkaError, answer))
        producer = opened(mock.bootstrap, guarantee, "records")
        try:
            send(producer, guarantee, way, "records")
        except ConnectError as error:
            if guarantee == "at_least_once" and mock.values("records-offsets"):
                return True, f"{answer}: {error.message} But the offset was stored."
            told = VALUES[0] in error.message or "Purged" in error.message
            return True, f"{answer}: {error.message}" if told else ""
        finally:
            producer.close()
        found = mock.values("records")
    whole = found == [value.encode() for value in VALUES]
    return False, "" if whole else f"{answer}: stored, and {len(found)} of {len(VALUES)} records are in Kafka"


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("way", WAYS)
def test_offset_is_stored_only_behind_records_that_are_in_kafka(guarantee: str, way: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda answer: problem_with(answer, guarantee, way), ANSWERS))
    assert [problem for _, problem in found if problem] == []
    assert sum(refused for refused, _ in found) >= 25


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("way", WAYS)
def test_message_timeout_stores_no_offset(
    mock: MockKafka, guarantee: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"message.timeout.ms", "transaction.timeout.ms"}
    monkeypatch.setattr(task_producer, "_DECIDED", task_producer._DECIDED - kept)
    times_out = {} if guarantee == "exactly_once" else {"message.timeout.ms": 500}
    monkeypatch.setattr(task_producer, "API_TIMEOUT_S", 3.0)
    topic = "records"
    for name in (topic, f"{topic}-offsets"):
        mock.create(name)
    producer = TaskProducer(
        {"bootstrap.servers": mock.bootstrap, **times_out}, topic if guarantee == "exactly_once" else "", 2_000
    )
    always = [KafkaError.NOT_ENOUGH_REPLICAS] * 10_000
    mock.answer_produce(*([0] if guarantee == "at_most_once" else []), *always)
    try:
        with pytest.raises(ConnectError, match="Kafka"):
            send(producer, guarantee, way, topic)
    finally:
        mock.answer_produce()
        producer.close()
    assert mock.values(topic) == []
    assert guarantee == "at_most_once" or mock.values(f"{topic}-offsets") == []


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("way", WAYS)
def test_topic_that_is_deleted_meanwhile_loses_nothing_unheard(
    kafka: KafkaBroker, make_topic: Any, guarantee: str, way: str
) -> None:
    topic = make_topic()
    make_topic(name=f"{topic}-offsets")
    hasty = {"topic.metadata.propagation.max.ms": 1000, "topic.metadata.refresh.fast.interval.ms": 50}
    producer = opened(kafka.bootstrap, guarantee, topic, **hasty)
    admin = admin_client({"bootstrap.servers": kafka.bootstrap})
    try:
        send(producer, guarantee, way, topic)
        for done in admin.delete_topics([topic]).values():
            done.result(30)
        try:
            delivery = delivery_of(guarantee, producer, [f"{topic}-offsets"])
            send_unit(delivery, way, topic, ["later"])
        except ConnectError:
            return
    finally:
        producer.close()
    # Brokers that create topics took the record into a new one.
    assert [m.value() for m in Topics(kafka.bootstrap).read(topic)] == [b"later"]


def test_only_the_refused_records_of_a_batch_are_left_out(kafka: KafkaBroker, make_topic: Any) -> None:
    topic = make_topic(config={"cleanup.policy": "compact"})
    producer = opened(kafka.bootstrap, "at_least_once", topic)
    refused: list[tuple[int, str]] = []
    delivered: list[int] = []
    try:
        for n in range(100):
            key = None if n in (3, 50) else b"%d" % n
            producer.send(
                ProducedRecord(topic, None, key, b"%d" % n),
                lambda _, n=n: delivered.append(n),
                lambda error, n=n: refused.append((n, error.code)),
            )
        producer.flush()
    finally:
        producer.close()
    assert refused == [(3, "data.refused_by_kafka"), (50, "data.refused_by_kafka")]
    wanted = [n for n in range(100) if n not in (3, 50)]
    assert sorted(int(m.value() or b"-1") for m in Topics(kafka.bootstrap).read(topic)) == wanted


def test_refused_record_that_may_not_be_left_out_ends_the_task(kafka: KafkaBroker, make_topic: Any) -> None:
    topic = make_topic(config={"cleanup.policy": "compact"})
    producer = opened(kafka.bootstrap, "at_least_once", topic)

    def refuse(error: ConnectError) -> None:
        raise error

    try:
        producer.send(ProducedRecord(topic, None, None, b"secret"), None, refuse)
        with pytest.raises(DataError, match=f"Kafka refused a record while writing to topic {topic}"):
            producer.flush()
    finally:
        producer.close()


@pytest.mark.parametrize("way", WAYS)
def test_columns_and_records_in_turns_keep_their_order(kafka: KafkaBroker, make_topic: Any, way: str) -> None:
    topic, txn = make_topic(), way == "columns"
    producer = opened(kafka.bootstrap, "exactly_once" if txn else "at_least_once", topic)
    producer.fence()
    try:
        for n in range(0, 300, 3):
            producer.send_columns(topic, None, pa.array([str(n), str(n + 1)]))
            producer.send(ProducedRecord(topic, None, None, b"%d" % (n + 2)))
        producer.commit() if txn else producer.flush()
    finally:
        producer.close()
    assert [int(m.value() or b"-1") for m in Topics(kafka.bootstrap).read(topic)] == list(range(300))
