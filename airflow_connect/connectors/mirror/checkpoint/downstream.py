"""Offsets of groups in the target cluster: written for groups without members there, and never moved back.

Source: org.apache.kafka.connect.mirror.MirrorCheckpointTask.syncGroupOffset (KIP-545).
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.errors import NotStoppedError
from airflow_connect.kafka.admin.consumer_group import (
    Committed,
    alter_offsets,
    committed_with_notes_now,
    group_state,
)
from airflow_connect.kafka.clients.short_lived import Admin

UNUSED = ("empty", "dead")
"""States of a group without members: with offsets, or without anything."""
TIMEOUT_S = 60.0


def write_offsets(target: Admin, group: str, checkpoints: Sequence[Checkpoint]) -> int:
    """Commit translated offsets that are ahead of the group's own; returns for how many partitions.

    Raises:
        ConnectError: the target cluster refused, or did not answer.
    """
    state, members = group_state(target, group)
    if members or state not in UNUSED:
        return 0
    current = committed_with_notes_now(target, group, [one.topic_partition for one in checkpoints], TIMEOUT_S)
    ahead = {
        one.topic_partition: Committed(one.downstream, one.metadata)
        for one in checkpoints
        if one.topic_partition not in current or current[one.topic_partition].offset < one.downstream
    }
    try:
        alter_offsets(target, group, ahead)
    except NotStoppedError:
        return 0  # A member has joined since: from now on the group moves by itself.
    return len(ahead)
