"""Whether a live Kafka Connect worker may be running a connector.

A distributed worker is a member of the group that its `group.id` names, by the protocol `connect`. What it runs is
decided by the config topic: a registered connector runs unless its target state is STOPPED.
"""

from __future__ import annotations

from confluent_kafka import KafkaException

from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, translate

PROTOCOL = "connect"


def live_workers(admin: Admin, group: str) -> list[str]:
    """Client ids and hosts of the live workers of a group of Kafka Connect.

    Raises:
        AccessError: the group may not be described.
        UnavailableError: Kafka does not answer.
    """
    try:
        found = admin.list_groups(group, timeout=API_TIMEOUT_S)
    except KafkaException as error:
        raise translate(error, f"looking for live workers of group {group}") from error
    return [
        f"{member.client_id} ({str(member.client_host).lstrip('/')})"
        for entry in found
        if entry.protocol_type == PROTOCOL
        for member in entry.members
    ]
