"""A real broker that gives no permission to write: no offset is stored behind what it refused.

Brokers with too few replicas: tests/integration/runtime/source/test_cluster.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.control.installation_checks import check_installation
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.permissions import missing_on_group, missing_on_topics
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading import batch_reader, unreadable_topics
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.writing import missing_topics
from airflow_connect.kafka.writing.produced import ProducedColumns, ProducedRecord
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.kafka.writing.transactions import CommitUnknownError, TransactionalWriter
from airflow_connect.observe.inspecting.doctor import Check, examine
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.topics import Topics
from tests.support.copies.local import local_sink
from tests.support.copies.refused_units import answer_to_a_record, problems
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.servers.rest import worker_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

CLOSED = "closed"
FILTER = AclBindingFilter(
    ResourceType.TRANSACTIONAL_ID, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.DENY
)
WITH_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Clients without a login are one user, ANONYMOUS; what has no rule is open to it.
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """A broker whose topic `closed` may be seen and read by everybody, and written by nobody."""
    with KafkaBroker.start(properties=WITH_AUTHORIZER) as broker:
        create_topic(broker.bootstrap, CLOSED)
        rules = [rule(AclOperation.ALL, AclPermissionType.ALLOW), rule(AclOperation.WRITE, AclPermissionType.DENY)]
        admin = admin_client({"bootstrap.servers": broker.bootstrap})  # It has to live until it has the answers.
        for done in admin.create_acls(rules).values():
            done.result(30)
        refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
        wait_until(lambda: answer_to_a_record(broker.bootstrap, CLOSED) == refused, "the rules are known")
        yield broker


def rule(operation: AclOperation, permission: AclPermissionType) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, CLOSED, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission
    )


def test_topic_that_may_not_be_written_stores_no_offset(guarded: KafkaBroker) -> None:
    assert problems(guarded.bootstrap, CLOSED, AccessError) == []


def test_transaction_to_a_topic_that_may_not_be_written_is_called_denied(guarded: KafkaBroker) -> None:
    create_topic(guarded.bootstrap, "open")
    writer = TransactionalWriter({"bootstrap.servers": guarded.bootstrap}, "denied")
    writer.fence()
    writer.commit([("open", 0, b"k", b"v")])

    with pytest.raises(AccessError, match=f"denied access to the topic .* to {CLOSED}, open: ") as caught:
        writer.commit([("open", 0, b"k", b"w"), (CLOSED, 0, b"k", b"v")])

    writer.close()
    assert (caught.value.code, caught.value.retriable) == ("kafka.denied", False)
    assert [message.value() for message in Topics(guarded.bootstrap).read("open")] == [b"v"]


def deny(
    broker: KafkaBroker, kind: ResourceType, name: str, operation: AclOperation, is_known: Callable[[], bool]
) -> None:
    """Everything else stays permitted."""
    rules = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation_, permission)
        for operation_, permission in (
            (AclOperation.ALL, AclPermissionType.ALLOW),
            (operation, AclPermissionType.DENY),
        )
    ]
    admin = admin_client({"bootstrap.servers": broker.bootstrap})
    for done in admin.create_acls(rules).values():
        done.result(30)
    wait_until(is_known, "the rules are known")


def test_transactional_id_that_is_denied_before_the_commit_is_named_with_its_acls(guarded: KafkaBroker) -> None:
    settings = {"bootstrap.servers": guarded.bootstrap}
    create_topic(guarded.bootstrap, "written")
    writer = TaskProducer(settings, "denied-id", 60_000)
    writer.fence()
    writer.send(ProducedRecord("written", None, None, b"v"))
    writer.flush()

    def is_denied() -> bool:
        admin = admin_client(settings)
        found = admin.describe_acls(FILTER).result(30)
        return any(one.name == "denied-id" and one.operation == AclOperation.WRITE for one in found)

    deny(guarded, ResourceType.TRANSACTIONAL_ID, "denied-id", AclOperation.WRITE, is_denied)

    with pytest.raises(CommitUnknownError, match=r"Kafka denied access to transactional\.id denied-id") as caught:
        writer.commit()

    writer.close()
    assert caught.value.code == "transaction.unknown"
    assert "ACLs Write and Describe on transactional id denied-id" in str(caught.value.suggestion)


def test_topic_that_may_not_be_described_any_more_is_named_by_a_reader(
    guarded: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unreadable_topics, "LOOK_AFTER_S", 0.05)
    monkeypatch.setattr(batch_reader, "HAND_OVER_S", 0.1)
    settings = {"bootstrap.servers": guarded.bootstrap}
    create_topic(guarded.bootstrap, "hidden")

    def is_hidden() -> bool:
        found = admin_client(settings).list_topics("hidden", timeout=30).topics["hidden"]
        return found.error is not None

    deny(guarded, ResourceType.TOPIC, "hidden", AclOperation.DESCRIBE, is_hidden)

    with pytest.raises(AccessError, match="denied access to the topic while looking for topic hidden, ") as caught:
        list(RangeReader(settings, [OffsetRange("hidden", 0, 0, 1)]).columns())

    assert caught.value.code == "kafka.denied" and "hidden-0@0" in caught.value.message
    assert "ACLs Describe and Read on topic hidden" in str(caught.value.suggestion)


def test_partition_that_a_topic_does_not_have_is_named_by_all_writers(guarded: KafkaBroker) -> None:
    settings = {"bootstrap.servers": guarded.bootstrap}
    create_topic(guarded.bootstrap, "small")

    def write() -> None:
        writer.commit([("small", 5, b"k", b"v")])

    def send() -> None:
        producer.send_columns(ProducedColumns("small", None, pa.array([b"v"], pa.large_binary()), partition=5))
        producer.flush()

    def send_record() -> None:
        producer.send(ProducedRecord("small", 5, None, b"v"))

    writer, producer = TransactionalWriter(settings, "small"), TaskProducer(settings, "small-0", 60_000)
    writer.fence()
    producer.fence()
    for call in (write, send, send_record):
        with pytest.raises(AccessError, match=r"small-5.*1 partition") as caught:
            call()
        assert caught.value.code == "kafka.no_topic"
    writer.close()
    producer.close()


def test_partition_that_a_topic_does_not_have_is_named_when_the_client_knows_the_topic(guarded: KafkaBroker) -> None:
    """The client refuses such a record at once, without a delivery report."""
    create_topic(guarded.bootstrap, "known")
    producer = TaskProducer({"bootstrap.servers": guarded.bootstrap}, "known-0", 60_000)
    producer.fence()
    producer.send_columns(ProducedColumns("known", None, pa.array([b"v"], pa.large_binary()), partition=0))
    producer.flush()

    with pytest.raises(AccessError, match=r"known-5.*1 partition") as caught:
        producer.send_columns(ProducedColumns("known", None, pa.array([b"v"], pa.large_binary()), partition=5))

    producer.close()
    assert caught.value.code == "kafka.no_topic"


def test_topic_that_is_deleted_while_a_run_commits_is_named_at_once(
    guarded: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing_topics, "LOOK_AFTER_S", 0.05)
    create_topic(guarded.bootstrap, "runs")
    writer = TransactionalWriter({"bootstrap.servers": guarded.bootstrap}, "deleting")
    writer.fence()
    writer.commit([("runs", 0, b"k", b"v")])
    delete_topic(guarded.bootstrap, "runs")

    with pytest.raises(AccessError, match="Kafka does not have topic runs, which has records to be written") as caught:
        writer.commit([("runs", 0, b"k", b"v")])

    writer.close()
    assert caught.value.code == "kafka.no_topic"


def test_what_is_not_permitted_is_named_before_a_run_needs_it(guarded: KafkaBroker) -> None:
    admin = admin_client({"bootstrap.servers": guarded.bootstrap})
    assert missing_on_topics(admin, [CLOSED], ("READ", "WRITE")) == {CLOSED: ["WRITE"]}
    assert missing_on_group(admin, "connect-any", ("READ", "DESCRIBE")) == []
    worker = {"bootstrap.servers": guarded.bootstrap, "runs.storage.topic": CLOSED}
    found = {check.did: check for check in examine(worker, [], deep=True)}["permissions on state topics"]
    assert (found.is_ok, found.found) == (False, f"WRITE on {CLOSED} is not permitted.")
    assert "--operation WRITE" in found.to_do


def test_doctor_asks_for_the_dead_letter_queue_and_for_what_changes_of_connectors_need(
    guarded: KafkaBroker, tmp_path: Path
) -> None:
    create_topic(guarded.bootstrap, "read")
    sink = local_sink(guarded, tmp_path, "read", errors_tolerance="all", errors_deadletterqueue_topic_name=CLOSED)
    worker = worker_of(guarded.bootstrap, "doctor")
    checks = {check.did: check for check in examine(worker, [RunSpec(sink.connector(), worker)], deep=True)}
    found = checks[f"{sink.name}: dead letter queue"]
    assert (found.is_ok, found.found) == (False, f"WRITE on {CLOSED} is not permitted.")

    topics = StateTopics(ControlSettings.from_worker(worker))
    topics.open()
    assert change_of(worker).is_ok
    admin, name = admin_client({"bootstrap.servers": guarded.bootstrap}), "connect-cluster-doctor"

    def is_denied() -> bool:
        return any(one.name == name for one in admin.describe_acls(FILTER).result(30))

    deny(guarded, ResourceType.TRANSACTIONAL_ID, name, AclOperation.WRITE, is_denied)
    denied = change_of(worker)
    assert not denied.is_ok and name in denied.found
    assert f"--transactional-id {name}" in denied.to_do


def change_of(worker: dict[str, str]) -> Check:
    return next(check for check in check_installation(worker) if check.did == "changes of connectors")
