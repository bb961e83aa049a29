"""Groups on a broker whose offsets topic, of as many partitions as by default, is not there yet, or that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.consumer_group import alter_offsets, read_committed_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.support.kafka_data import create_topic
from tests.support.processes.proc import freeze

pytestmark = pytest.mark.integration
HANG_S = 0.8

READER = """
import sys
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.admin.consumer_group import read_committed_offsets
admin = admin_client({"bootstrap.servers": sys.argv[1]})
print(read_committed_offsets(admin, "connect-first", [TopicPartition("orders", 0)]))
"""

DESCRIBER = """
import sys
from airflow_connect.kafka.admin import consumer_group
from airflow_connect.kafka.clients.short_lived import admin_client

consumer_group.TRY_TIMEOUT_S = 0.3
fresh_admin = consumer_group._fresh_admin
asked = []


def fresh_admin_and_a_pause(*args):
    client = fresh_admin(*args)
    if not asked:
        asked.append(client)
        print("about to ask", flush=True)
        sys.stdin.readline()
    return client


consumer_group._fresh_admin = fresh_admin_and_a_pause
admin = admin_client({"bootstrap.servers": sys.argv[1]})
for _ in range(3):
    asked.clear()
    print(consumer_group.group_state(admin, "connect-first"), flush=True)
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


def test_broker_that_hangs_for_longer_than_a_request_does_not_crash_who_describes_a_group(broker: KafkaBroker) -> None:
    create_topic(broker.bootstrap, "orders", 1)
    # A process of its own: an assertion of librdkafka would end it (its issue 4605).
    with subprocess.Popen(
        [sys.executable, "-c", DESCRIBER, broker.bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as describer:
        assert describer.stdin is not None and describer.stdout is not None and describer.stderr is not None
        states = []
        while line := describer.stdout.readline():
            if line != "about to ask\n":
                states.append(line.strip())
                continue
            freeze(broker.pid)
            describer.stdin.write("\n")
            describer.stdin.flush()
            time.sleep(HANG_S)
            os.kill(broker.pid, signal.SIGCONT)
        assert (describer.wait(60), states) == (0, ["('dead', ())"] * 3), describer.stderr.read()
