"""Access control lists of remote topics, between a broker with an authorizer and itself, under two aliases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.admin.topic_acls import TopicAcl, create_acls, topic_acls
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.connectors.mirror.conftest import Mirror
from tests.support.kafka_data import TopicProducer, create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration
WITH_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Clients without a login are one user, ANONYMOUS; what has no rule is open to it.
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """A broker with an authorizer. Topics are mirrored inside it: both clusters have one then, with one server."""
    with KafkaBroker.start(properties=WITH_AUTHORIZER) as broker:
        yield broker


# It starts a broker of its own, because the shared ones have no authorizer.
@pytest.mark.budget(25)
def test_rules_are_copied_once_and_without_the_right_to_write(guarded: KafkaBroker, unique_name: str) -> None:
    settings = {"bootstrap.servers": guarded.bootstrap}
    admin = admin_client(settings)
    create_topic(guarded.bootstrap, unique_name)
    create_acls(
        admin,
        [
            TopicAcl(unique_name, "User:reader", "*", "READ", "ALLOW"),
            TopicAcl(unique_name, "User:writer", "*", "WRITE", "ALLOW"),
            TopicAcl(unique_name, "User:ANONYMOUS", "*", "ALL", "ALLOW"),
            TopicAcl(unique_name, "User:nobody", "*", "ALL", "DENY"),
            TopicAcl("other", "User:reader", "*", "READ", "ALLOW"),
        ],
    )
    wait_until(lambda: len(topic_acls(admin) or ()) == 5, "the rules are known")
    writer = TopicProducer(guarded.bootstrap)
    mirror = Mirror(guarded.bootstrap, guarded.bootstrap, unique_name, writer)
    remote = mirror.remote

    mirror.run(sync_topic_acls_enabled="false")
    assert len(topic_acls(admin) or ()) == 5
    mirror.run()
    wait_until(lambda: len(topic_acls(admin) or ()) == 8, "the new rules are known")
    mirror.run()

    assert {acl for acl in topic_acls(admin) or () if acl.topic == remote} == {
        TopicAcl(remote, "User:reader", "*", "READ", "ALLOW"),
        TopicAcl(remote, "User:ANONYMOUS", "*", "READ", "ALLOW"),
        TopicAcl(remote, "User:nobody", "*", "ALL", "DENY"),
    }
    assert len(topic_acls(admin) or ()) == 8
    writer.close()


def test_target_without_authorizer_is_told(guarded: KafkaBroker, kafka: KafkaBroker, unique_name: str) -> None:
    create_topic(guarded.bootstrap, unique_name)
    admin = admin_client({"bootstrap.servers": guarded.bootstrap})
    rule = TopicAcl(unique_name, "User:ANONYMOUS", "*", "ALL", "ALLOW")
    create_acls(admin, [rule])
    wait_until(lambda: rule in (topic_acls(admin) or ()), "the rule is known")
    writer = TopicProducer(guarded.bootstrap)

    report = Mirror(guarded.bootstrap, kafka.bootstrap, unique_name, writer).run()

    assert [note for note in report.notes if note.startswith("The target cluster has no authorizer")]
    writer.close()
