"""Access control lists of remote topics; a broker with an authorizer is mirrored into itself, under two aliases."""

from __future__ import annotations

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.admin.topic_acls import TopicAcl, create_acls, topic_acls
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.connectors.mirror.conftest import Mirror
from tests.support.kafka_data import TopicProducer, create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


# It may be the one that starts the broker.
@pytest.mark.budget(25)
def test_rules_are_copied_once_and_without_the_right_to_write(own_kafka: KafkaBroker, unique_name: str) -> None:
    settings = {"bootstrap.servers": own_kafka.bootstrap}
    admin = admin_client(settings)
    create_topic(own_kafka.bootstrap, unique_name)

    def rules_of(*topics: str) -> set[TopicAcl]:
        return {acl for acl in topic_acls(admin) if acl.topic in topics}

    create_acls(
        admin,
        [
            TopicAcl(unique_name, "User:reader", "*", "READ", "ALLOW"),
            TopicAcl(unique_name, "User:writer", "*", "WRITE", "ALLOW"),
            TopicAcl(unique_name, "User:ANONYMOUS", "*", "ALL", "ALLOW"),
            TopicAcl(unique_name, "User:nobody", "*", "ALL", "DENY"),
            TopicAcl(f"other-{unique_name}", "User:reader", "*", "READ", "ALLOW"),
        ],
    )
    wait_until(lambda: len(rules_of(unique_name, f"other-{unique_name}")) == 5, "the rules are known")
    writer = TopicProducer(own_kafka.bootstrap)
    mirror = Mirror(own_kafka.bootstrap, own_kafka.bootstrap, unique_name, writer)
    remote = mirror.remote

    mirror.run(sync_topic_acls_enabled="false")
    assert rules_of(remote) == set()
    mirror.run()
    wait_until(lambda: len(rules_of(remote)) == 3, "the new rules are known")
    mirror.run()

    assert rules_of(remote) == {
        TopicAcl(remote, "User:reader", "*", "READ", "ALLOW"),
        TopicAcl(remote, "User:ANONYMOUS", "*", "READ", "ALLOW"),
        TopicAcl(remote, "User:nobody", "*", "ALL", "DENY"),
    }
    writer.close()


def test_target_without_authorizer_is_told(own_kafka: KafkaBroker, kafka: KafkaBroker, unique_name: str) -> None:
    create_topic(own_kafka.bootstrap, unique_name)
    admin = admin_client({"bootstrap.servers": own_kafka.bootstrap})
    rule = TopicAcl(unique_name, "User:ANONYMOUS", "*", "ALL", "ALLOW")
    create_acls(admin, [rule])
    wait_until(lambda: rule in topic_acls(admin), "the rule is known")
    writer = TopicProducer(own_kafka.bootstrap)

    report = Mirror(own_kafka.bootstrap, kafka.bootstrap, unique_name, writer).run()

    assert [note for note in report.notes if note.startswith("The target cluster has no authorizer")]
    writer.close()
