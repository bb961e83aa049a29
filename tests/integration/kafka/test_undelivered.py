"""No offset is stored behind a record that Kafka has not got: every answer, every guarantee, both ways to send."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError, ConnectError, DataError, FencedError
from airflow_connect.exactly_once.guarantee import Guarantee
from airflow_connect.exactly_once.task_transaction import TaskDelivery, delivery_of
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state.offsets.offsets_topic import OffsetRecord
from airflow_connect.kafka.writing import task_producer
from airflow_connect.kafka.writing.produced import ProducedColumns, ProducedRecord
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.kafka.writing.transactions import OutgoingRecord, TransactionalWriter
from airflow_connect.testing.topics import Topics
from tests.support.kafka_data import create_topic
from tests.support.servers.mock_kafka import MockKafka
from tests.support.session.searching import IS_SOAK
from tests.support.waiting import wait_until

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
    send_unit(delivery_of(Guarantee.of(guarantee), producer, [f"{topic}-offsets"]), way, topic, values)


def send_unit(delivery: TaskDelivery, way: str, topic: str, values: list[str]) -> None:
    send_records(delivery, way, topic, values)
    delivery.store([OffsetRecord(b"key", b"offset")])


def send_records(delivery: TaskDelivery, way: str, topic: str, values: list[str]) -> None:
    if way == "columns":
        delivery.send_columns(ProducedColumns(topic, None, pa.array(values)))
    else:
        for value in values:
            delivery.send(ProducedRecord(topic, None, None, value.encode()))


def opened(bootstrap: str, guarantee: str, topic: str, timeout_ms: int = 60_000, **more: Any) -> TaskProducer:
    settings = {"bootstrap.servers": bootstrap, "retry.backoff.ms": 1, "retry.backoff.max.ms": 5, **more}
    return TaskProducer(settings, topic if guarantee == "exactly_once" else "", timeout_ms)


@contextmanager
def exactly_once(mock: MockKafka) -> Iterator[tuple[TaskProducer, TaskDelivery]]:
    """A fenced producer, and a delivery that sends records and offsets in its transactions."""
    mock.create("records")
    mock.create("records-offsets")
    producer = opened(mock.bootstrap, "exactly_once", "records", 3_000)
    try:
        producer.fence()
        yield producer, delivery_of(Guarantee.of("exactly_once"), producer, ["records-offsets"])
    finally:
        producer.close()


@pytest.mark.parametrize("way", WAYS)
def test_record_after_a_refused_one_reports_why_that_was_refused(mock: MockKafka, way: str):
    """The client accepts no more records of a failed transaction, even before it has reported the refused one."""
    with exactly_once(mock) as (producer, delivery):
        mock.answer_produce(KafkaError.MSG_SIZE_TOO_LARGE)
        send_records(delivery, way, "records", VALUES)
        wait_until(lambda: refuses_records(producer), "the transaction has failed")
        with pytest.raises(ConfigError, match="larger than Kafka accepts") as refused:
            send_records(delivery, way, "records", VALUES)
    assert refused.value.code == "kafka.too_large"


@pytest.mark.parametrize("way", WAYS)
def test_offsets_after_a_refused_record_report_why_that_was_refused(mock: MockKafka, way: str):
    """Offsets are sent record by record, so another reader of delivery reports takes over between the two."""
    with exactly_once(mock) as (producer, delivery):
        mock.answer_produce(KafkaError.INVALID_RECORD)
        send_records(delivery, way, "records", VALUES)
        wait_until(lambda: must_abort(producer), "the transaction has failed")
        with pytest.raises(DataError, match="INVALID_RECORD"):
            delivery.store([OffsetRecord(b"key", b"offset")])


def test_transaction_of_the_journal_reports_why_its_record_was_refused(mock: MockKafka):
    """As above: a manifest has many records, and the answer to the first may come before the last is queued."""
    mock.create("records")
    writer = TransactionalWriter({"bootstrap.servers": mock.bootstrap}, "journal")

    def paced() -> Iterator[OutgoingRecord]:
        yield ("records", 0, b"key", b"1")
        wait_until(lambda: refuses_records(writer), "the transaction has failed")
        yield ("records", 0, b"key", b"2")

    try:
        writer.fence()
        mock.answer_produce(KafkaError.MSG_SIZE_TOO_LARGE)
        with pytest.raises(ConfigError, match="too large") as refused:
            writer.commit(paced())  # type: ignore[arg-type]
    finally:
        writer.close()
    assert refused.value.code == "kafka.too_large"


@pytest.mark.parametrize("way", WAYS)
def test_too_large_batch_is_named_whatever_is_reported_first(kafka: KafkaBroker, unique_name: str, way: str):
    """What is queued behind the batch is removed, and in one of four cases that is reported first."""
    create_topic(kafka.bootstrap, unique_name, config={"max.message.bytes": "4000"})
    refused = [refusal_of_a_batch(kafka.bootstrap, unique_name, way, wait_ms=n % 4) for n in range(40)]
    assert {error.code for error in refused} == {"kafka.too_large"}


def refusal_of_a_batch(bootstrap: str, topic: str, way: str, wait_ms: int) -> ConnectError:
    values = [f"line {n} {'y' * 100}" for n in range(2_000)]
    producer = opened(bootstrap, "exactly_once", topic, **{"linger.ms": wait_ms, "batch.num.messages": 200})
    try:
        producer.fence()
        delivery = delivery_of(Guarantee.of("exactly_once"), producer, [f"{topic}-offsets"])
        for start in range(0, len(values), 20):
            send_records(delivery, way, topic, values[start : start + 20])
        producer.commit()
    except ConnectError as error:
        return error
    finally:
        producer.close()
    raise AssertionError("Kafka accepted a batch that is too large.")


def test_too_large_transaction_of_the_journal_is_named(kafka: KafkaBroker, unique_name: str):
    create_topic(kafka.bootstrap, unique_name, config={"max.message.bytes": "4000"})
    records = [(unique_name, 0, b"key", b"y" * 100) for _ in range(500)]
    codes = set()
    for n in range(20 if IS_SOAK else 4):
        writer = TransactionalWriter({"bootstrap.servers": kafka.bootstrap}, f"{unique_name}-{n}")
        try:
            writer.fence()
            with pytest.raises(ConnectError) as refused:
                writer.commit(records)
        finally:
            writer.close()
        codes.add(refused.value.code)
    assert codes == {"kafka.too_large"}


def refuses_records(writer: TaskProducer | TransactionalWriter) -> bool:
    """Whether librdkafka accepts no record; it is asked without reading the reports that it has."""
    try:
        writer._producer.produce("records", b"one more")
    except KafkaException as error:
        return bool(error.args[0].code() == KafkaError._STATE)
    return False


def must_abort(producer: TaskProducer) -> bool:
    """Whether the open transaction has failed; unlike `refuses_records` this adds nothing to it."""
    try:
        producer._producer.begin_transaction()
    except KafkaException as error:
        return bool(error.args[0].txn_requires_abort())
    raise AssertionError("no transaction is open")


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
    producer = opened(kafka.bootstrap, guarantee, topic, timeout_ms=5_000, **hasty)
    admin = admin_client({"bootstrap.servers": kafka.bootstrap})
    try:
        send(producer, guarantee, way, topic)
        for done in admin.delete_topics([topic]).values():
            done.result(30)
        # The controller answers before the broker refuses records.
        wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, "the broker knows of the deletion")
        try:
            delivery = delivery_of(Guarantee.of(guarantee), producer, [f"{topic}-offsets"])
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
            producer.send_columns(ProducedColumns(topic, None, pa.array([str(n), str(n + 1)])))
            producer.send(ProducedRecord(topic, None, None, b"%d" % (n + 2)))
        producer.commit() if txn else producer.flush()
    finally:
        producer.close()
    assert [int(m.value() or b"-1") for m in Topics(kafka.bootstrap).read(topic)] == list(range(300))


@pytest.mark.parametrize("way", WAYS)
def test_task_that_is_fenced_before_its_offsets_says_so(kafka: KafkaBroker, unique_name: str, way: str):
    """The client removes the records that it still has, and may report that before it reports why."""
    create_topic(kafka.bootstrap, unique_name)
    create_topic(kafka.bootstrap, f"{unique_name}-offsets")
    older, newer = (opened(kafka.bootstrap, "exactly_once", unique_name) for _ in range(2))
    try:
        older.fence()
        delivery = delivery_of(Guarantee.of("exactly_once"), older, [f"{unique_name}-offsets"])
        send_unit(delivery, way, unique_name, VALUES)
        newer.fence()
        with pytest.raises(FencedError):
            send_unit(delivery, way, unique_name, VALUES)
    finally:
        older.close()
        newer.close()
