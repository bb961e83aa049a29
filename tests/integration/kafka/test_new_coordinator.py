"""Offsets of groups on a broker whose offsets topic, of as many partitions as by default, is not there yet."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.consumer_group import alter_offsets, read_committed_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.support.kafka_data import create_topic

pytestmark = pytest.mark.integration

READER = """
import sys
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.admin.consumer_group import read_committed_offsets
admin = admin_client({"bootstrap.servers": sys.argv[1]})
print(read_committed_offsets(admin, "connect-first", [TopicPartition("orders", 0)]))
"""


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    """A broker that nobody has asked for a group, with access control that denies nothing yet."""
    properties = {
        "offsets.topic.num.partitions": "50",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    broker = KafkaBroker.start(properties=properties)
    yield broker
    broker.stop()


def test_first_question_for_offsets_waits_for_the_coordinator(broker: KafkaBroker) -> None:
    create_topic(broker.bootstrap, "orders", 1)
    # A process of its own: what is tested is that librdkafka does not end it (its issue 5040).
    asked = subprocess.run(
        [sys.executable, "-c", READER, broker.bootstrap], check=False, capture_output=True, text=True, timeout=120
    )
    assert (asked.returncode, asked.stdout.strip()) == (0, "{}"), asked.stderr
    admin = admin_client({"bootstrap.servers": broker.bootstrap})
    tp = TopicPartition("orders", 0)
    # Another group, another partition of the offsets topic: it may be on its way still.
    alter_offsets(admin, "connect-second", {tp: 7})
    assert read_committed_offsets(admin, "connect-second", [tp]) == {tp: 7}

    deny = (AclOperation.ALL, AclPermissionType.DENY)
    binding = AclBinding(
        ResourceType.GROUP, "connect-second", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", *deny
    )
    admin.create_acls([binding])[binding].result(30)
    with pytest.raises(AccessError, match=r"the consumer group while .* group connect-second"):
        read_committed_offsets(admin, "connect-second", [tp])
