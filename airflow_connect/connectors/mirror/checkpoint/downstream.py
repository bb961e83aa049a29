"""Offsets of groups in the target cluster: written for groups without members there, and not moved back.

Source: org.apache.kafka.connect.mirror.MirrorCheckpointTask.syncGroupOffset (KIP-545). One difference: an offset beyond
the end of the log, which has lost its end, is moved back; a consumer would jump by `auto.offset.reset`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.errors import ConnectError, NotStoppedError
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.admin.consumer_group import (
    Committed,
    committed_with_notes_now,
    group_state,
    try_to_alter_offsets,
)
from airflow_connect.kafka.clients.short_lived import Admin

UNUSED = ("empty", "dead")
"""States of a group without members: with offsets, or without anything."""
TIMEOUT_S = 60.0


class Written(NamedTuple):
    """What became of the offsets of a group.

    Attributes:
        moved: for how many partitions an offset was committed.
        refused: what Kafka answered for partitions whose offset was not.
        is_live: nothing was committed, because the group has members in the target cluster.
    """

    moved: int = 0
    refused: Mapping[TopicPartition, ConnectError] = {}
    is_live: bool = False


def write_offsets(target: Admin, group: str, checkpoints: Sequence[Checkpoint]) -> Written:
    """Commit translated offsets that are ahead of the group's own.

    Raises:
        ConnectError: the target cluster refused the whole group, or did not answer.
    """
    state, members = group_state(target, group)
    if members or state not in UNUSED:
        return Written(is_live=True)
    current = committed_with_notes_now(target, group, [one.topic_partition for one in checkpoints], TIMEOUT_S)
    places = {tp: committed.offset for tp, committed in current.items()}
    behind = [one.topic_partition for one in checkpoints if places.get(one.topic_partition, 0) > one.downstream]
    ends = watermarks.latest_offsets(target, behind, watermarks.READ_UNCOMMITTED)
    new = {
        one.topic_partition: Committed(one.downstream, one.metadata)
        for one in checkpoints
        if one.topic_partition not in places
        or places[one.topic_partition] < one.downstream
        or places[one.topic_partition] > ends.get(one.topic_partition, places[one.topic_partition])
    }
    refused = try_to_alter_offsets(target, group, new)
    if any(isinstance(error, NotStoppedError) for error in refused.values()):
        return Written(is_live=True)  # A member has joined since: from now on the group moves by itself.
    return Written(len(new) - len(refused), refused)
