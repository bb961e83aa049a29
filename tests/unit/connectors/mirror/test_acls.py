"""Which access control lists a remote topic gets."""

from __future__ import annotations

import pytest

from airflow_connect.connectors.mirror.acls import is_copied, remote_acl
from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.kafka.admin.topic_acls import TopicAcl

POLICY = ReplicationPolicy("west", "east")


@pytest.mark.parametrize(
    ("permission", "operation", "remote"),
    [
        ("ALLOW", "READ", "READ"),
        ("ALLOW", "ALL", "READ"),
        ("ALLOW", "DESCRIBE", "DESCRIBE"),
        ("DENY", "ALL", "ALL"),
        ("DENY", "WRITE", "WRITE"),
    ],
)
def test_rule_is_copied_without_the_right_to_write(permission: str, operation: str, remote: str) -> None:
    rule = TopicAcl("orders", "User:app", "10.0.0.1", operation, permission)
    assert is_copied(rule)
    assert remote_acl(POLICY, rule) == TopicAcl("west.orders", "User:app", "10.0.0.1", remote, permission)


def test_right_to_write_is_not_copied() -> None:
    assert not is_copied(TopicAcl("orders", "User:app", "*", "WRITE", "ALLOW"))
