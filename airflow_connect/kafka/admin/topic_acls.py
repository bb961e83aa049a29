"""Access control lists of topics, as another cluster takes them over."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from airflow_connect.errors import ConnectError
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, kafka_error, translate, wait


class TopicAcl(NamedTuple):
    """A rule about one topic that is named in full.

    Attributes:
        operation, permission: Kafka's names: `READ`, `ALL`, ...; `ALLOW`, `DENY`.
    """

    topic: str
    principal: str
    host: str
    operation: str
    permission: str


def topic_acls(admin: Admin) -> list[TopicAcl]:
    """Every rule about a topic that is named in full; none if the cluster has no authorizer.

    Raises:
        AccessError: the rules may not be described.
        UnavailableError: Kafka does not answer.
    """
    anything: Any = None
    every = AclBindingFilter(
        ResourceType.TOPIC,
        anything,
        ResourcePatternType.LITERAL,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    doing = "describing access control lists"
    future: Future[Any] = admin.describe_acls(every, request_timeout=API_TIMEOUT_S)
    try:
        found = future.result(API_TIMEOUT_S + 1)
    except KafkaException as error:
        if _has_no_authorizer(error):
            return []
        raise translate(error, doing) from error
    except TimeoutError as error:
        raise translate(KafkaError(KafkaError._TIMED_OUT), doing) from error
    return [TopicAcl(one.name, one.principal, one.host, one.operation.name, one.permission_type.name) for one in found]


def _has_no_authorizer(error: BaseException) -> bool:
    """Whether Kafka answered that it has no rules at all."""
    inner = kafka_error(error)
    return inner is not None and inner.code() == KafkaError.SECURITY_DISABLED


def create_acls(admin: Admin, acls: Iterable[TopicAcl]) -> bool:
    """Add rules; those that exist stay as they are. False: the cluster has no authorizer.

    Raises:
        ConnectError: Kafka refused, or did not answer.
    """
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            one.topic,
            ResourcePatternType.LITERAL,
            one.principal,
            one.host,
            AclOperation[one.operation],
            AclPermissionType[one.permission],
        )
        for one in acls
    ]
    if not bindings:
        return True
    for binding, future in admin.create_acls(bindings, request_timeout=API_TIMEOUT_S).items():
        try:
            wait(future, f"adding an access control list to topic {binding.name}")
        except ConnectError as error:
            if error.__cause__ is not None and _has_no_authorizer(error.__cause__):
                return False
            raise
    return True
