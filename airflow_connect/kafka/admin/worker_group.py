"""Whether a live Kafka Connect worker may be running a connector.

A distributed worker is a member of the group that its `group.id` names, by the protocol `connect`. What it runs is
decided by the config topic: a registered connector runs unless its target state is STOPPED.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, kafka_error, translate
from airflow_connect.retrying import Backoff, Retry

PROTOCOL = "connect"
_COORDINATOR_COMES = frozenset({KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE})


def live_workers(admin: Admin, group: str) -> list[str]:
    """Client ids and hosts of the live workers of a group of Kafka Connect.

    Raises:
        AccessError: the group may not be described.
        UnavailableError: Kafka does not answer.
    """
    found = described(admin, group, f"looking for live workers of group {group}")
    return [
        f"{member.client_id} ({str(member.client_host).lstrip('/')})"
        for entry in found
        if entry.protocol_type == PROTOCOL
        for member in entry.members
    ]


def described(admin: Admin, group: str, doing: str) -> list[Any]:
    """What all brokers say of a group, with its members; empty: nobody knows it.

    Every broker is asked. One that has just started still loads its groups and says so; it is asked again.

    Raises:
        AccessError: the group may not be described.
        UnavailableError: Kafka does not answer.
    """
    tries = Retry(Backoff(0.05, longest_s=1.0), within_s=API_TIMEOUT_S)
    while True:
        try:
            found = list(admin.list_groups(group, timeout=max(tries.left_s, 1.0)))
            problem = next((entry.error for entry in found if entry.error is not None), None)
            if problem is None:
                return found
            raise KafkaException(problem)
        except KafkaException as error:
            inner = kafka_error(error)
            if inner is None or inner.code() not in _COORDINATOR_COMES or not tries.pause():
                raise translate(error, doing) from error
