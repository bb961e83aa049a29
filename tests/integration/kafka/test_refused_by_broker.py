"""A real broker that gives no permission to write: no offset is stored behind what it refused.

Brokers with too few replicas: tests/integration/runtime/source/test_cluster.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.permissions import missing_on_group, missing_on_topics
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from airflow_connect.runtime.inspecting.doctor import examine
from airflow_connect.testing.topics import Topics
from tests.support.copies.refused_units import answer_to_a_record, problems
from tests.support.kafka_data import create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

CLOSED = "closed"
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


def test_what_is_not_permitted_is_named_before_a_run_needs_it(guarded: KafkaBroker) -> None:
    admin = admin_client({"bootstrap.servers": guarded.bootstrap})
    assert missing_on_topics(admin, [CLOSED], ("READ", "WRITE")) == {CLOSED: ["WRITE"]}
    assert missing_on_group(admin, "connect-any", ("READ", "DESCRIBE")) == []
    worker = {"bootstrap.servers": guarded.bootstrap, "runs.storage.topic": CLOSED}
    found = {check.did: check for check in examine(worker, [], deep=True)}["permissions on state topics"]
    assert (found.is_ok, found.found) == (False, f"WRITE on {CLOSED} is not permitted.")
    assert "--operation WRITE" in found.to_do
