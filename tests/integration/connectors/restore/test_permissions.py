"""What a restore may not do is found before it writes or creates anything, all at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.groups.step import GroupOffset, GroupOffsets, foresee
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.admin.permissions import missing_on_group, missing_on_topics, not_creatable
from airflow_connect.kafka.admin.topics import all_names
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.runtime.driver.kinds import kind_of
from tests.integration.kafka.test_refused_by_broker import WITH_AUTHORIZER
from tests.support.copies.backups import record, write_file
from tests.support.copies.restore import LOCAL_SOURCE, Restore
from tests.support.kafka_data import create_topic
from tests.support.waiting import wait_until

# The first of them starts a broker of its own.
pytestmark = [pytest.mark.integration, pytest.mark.budget(25)]

DENIED = {
    "closed": AclOperation.WRITE,
    "fixed": AclOperation.ALTER_CONFIGS,
    "dark": AclOperation.DESCRIBE_CONFIGS,
    "hidden": AclOperation.DESCRIBE,
    "unread": AclOperation.READ,
    "new": AclOperation.CREATE,
}
"""What nobody may do with topics of the tests, by topic."""


def rules(kind: Any, name: str, denied: AclOperation) -> list[AclBinding]:
    """Everything is allowed but one operation."""
    who = (ResourcePatternType.LITERAL, "User:ANONYMOUS", "*")
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
    return [AclBinding(kind, name, *who, AclOperation.ALL, allow), AclBinding(kind, name, *who, denied, deny)]


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """A broker with an authorizer."""
    with KafkaBroker.start(properties=WITH_AUTHORIZER) as broker:
        for topic in DENIED.keys() - {"new"}:
            create_topic(broker.bootstrap, topic, config={"retention.ms": "86400000"})
        admin = admin_client({"bootstrap.servers": broker.bootstrap})
        wanted = [one for topic, denied in DENIED.items() for one in rules(ResourceType.TOPIC, topic, denied)]
        wanted += rules(ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE)
        for done in admin.create_acls(wanted).values():
            done.result(30)
        wait_until(lambda: missing_on_topics(admin, ["closed"], ["WRITE"])["closed"], "the rules of topics are known")
        wait_until(lambda: "new" in not_creatable(admin, ["new", "free"]), "the rules of the cluster are known")
        yield broker


@pytest.fixture
def restore(guarded: KafkaBroker, tmp_path: Path, unique_name: str) -> Restore:
    """A restore of a directory to every such topic."""
    for topic in DENIED:
        write_file(tmp_path / "topics", [record(0, topic=f"of-{topic}")])
    topics = ",".join(f"of-{topic}" for topic in DENIED)
    renamed = ",".join(f"of-{topic}:{topic}" for topic in DENIED)
    config = {
        "connector.class": LOCAL_SOURCE, "store.url": str(tmp_path), "format.class": "ParquetFormat",
        "topics": topics, "topic.rename": renamed, "accept.loss": "retention",
    }  # fmt: skip
    return Restore(guarded.bootstrap, topics, unique_name, config)


NOT_PERMITTED = "This client is not permitted"
ALWAYS = [
    f"{NOT_PERMITTED} WRITE on topic closed.",
    f"{NOT_PERMITTED} DESCRIBE_CONFIGS on topic dark.",
    "hidden exists, and this client is not permitted DESCRIBE on it.",
    "new does not exist, and this client is not permitted CREATE on it.",
]


@pytest.mark.parametrize("lifts", ["false", "true"])
def test_everything_that_is_not_permitted_is_told_before_the_first_record(restore: Restore, lifts: str) -> None:
    expected = [*ALWAYS, *([f"{NOT_PERMITTED} ALTER_CONFIGS on topic fixed."] if lifts == "true" else [])]
    report = restore.try_run(**{"target.retention.lifted": lifts})
    assert report.error is not None and report.error["code"] == "restore.target"
    message = str(report.error["message"])
    assert f"because of {len(expected)} findings" in message
    assert [sentence for sentence in expected if sentence not in message] == []
    assert restore.offsets() == {}
    notes = kind_of(restore.spec(**{"target.retention.lifted": lifts})).plan().notes
    assert [sentence for sentence in expected if f"A run would be refused: {sentence}" not in notes] == []
    assert "new" not in all_names(admin_client({"bootstrap.servers": restore.bootstrap}))


def test_what_is_permitted_is_restored(restore: Restore) -> None:
    report = restore.run(topics="of-fixed", **{"topic.rename": "of-fixed:fixed"})
    assert report.records == 1


def test_dry_run_names_groups_that_may_not_be_set(guarded: KafkaBroker) -> None:
    admin = admin_client({"bootstrap.servers": guarded.bootstrap})
    for done in admin.create_acls(rules(ResourceType.GROUP, "shut", AclOperation.READ)).values():
        done.result(30)
    wait_until(lambda: missing_on_group(admin, "shut", ["READ"]), "the rules of the group are known")
    to = [("shut", "fixed"), ("free", "fixed"), ("free", "unread")]
    offsets = [GroupOffset(group, TopicPartition("t", 0), 1, TopicPartition(topic, 0), 1, "") for group, topic in to]
    found = GroupOffsets("document", 0, offsets)
    foresee(found, admin)
    assert {group: (error.code, error.message.partition(", which")[0]) for group, error in found.failures.items()} == {
        "shut": ("kafka.denied", f"{NOT_PERMITTED} READ on group shut"),
        "free": ("kafka.denied", f"{NOT_PERMITTED} READ on topic unread"),
    }
