"""Which offsets are translated back, and which of them may move a group."""

from __future__ import annotations

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.mirror.checkpoint.config import CheckpointConfig
from airflow_connect.connectors.mirror.checkpoint.history import CheckpointHistory
from airflow_connect.connectors.mirror.checkpoint.task import is_newer
from airflow_connect.connectors.mirror.checkpoint.translation import Translation, WayBack
from airflow_connect.connectors.mirror.policy import ReplicationPolicy
from airflow_connect.connectors.mirror.protocol.records import Checkpoint, OffsetSync
from airflow_connect.connectors.mirror.syncs.store import RANGE_HEADER, OffsetSyncStore
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.admin.consumer_group import Committed

ORIGINAL, COPY = TopicPartition("orders", 0), TopicPartition("west.orders", 0)
CLUSTERS = {
    "source.cluster.alias": "east",
    "target.cluster.alias": "west",
    "source.cluster.bootstrap.servers": "east:9092",
    "target.cluster.bootstrap.servers": "west:9092",
}


def translation(*told: int) -> Translation:
    """The mirror from east to west; the opposite one has copied 1000 records.

    Args:
        told: offsets in the copy of all checkpoints of the group `billing` that it has written.
    """
    sync = OffsetSync(ORIGINAL, 0, 0)
    syncs = OffsetSyncStore([KafkaRecord("s", 0, 0, sync.key(), sync.value(), headers=((RANGE_HEADER, b"1000"),))])
    checkpoints = [Checkpoint("billing", COPY, offset, offset, "") for offset in told]
    records = [KafkaRecord("c", 0, n, one.key(), one.value()) for n, one in enumerate(checkpoints)]
    back = WayBack(ReplicationPolicy("west", "east"), syncs, CheckpointHistory(records))
    return Translation(ReplicationPolicy("east", "west"), OffsetSyncStore(), back)


def test_offset_of_a_copy_is_translated_to_its_original() -> None:
    (found,) = translation(1000).checkpoints("billing", {COPY: Committed(700, "note")})
    assert found == Checkpoint("billing", ORIGINAL, 700, 700, "note")


@pytest.mark.parametrize(
    ("told", "known", "may_move"),
    [
        ([600], None, True),
        ([700], None, False),  # the offset came from the original
        ([700, 0], None, False),  # the group was set back in the original since
        ([], None, False),  # it is unknown where the offset came from
        ([600], 650, True),
        ([600], 700, False),  # it was translated back before
    ],
)
def test_group_follows_only_what_it_has_read_in_the_copy_itself(
    told: list[int], known: int | None, may_move: bool
) -> None:
    checkpoint = Checkpoint("billing", ORIGINAL, 700, 700, "")
    before = None if known is None else checkpoint._replace(upstream=known, downstream=known)
    assert translation(*told).may_move(checkpoint, before) is may_move


def test_partition_without_a_checkpoint_of_a_group_that_has_others_was_read_by_the_group_itself() -> None:
    other = translation(600)
    checkpoint = Checkpoint("billing", ORIGINAL, 5, 5, "")
    assert not other.may_move(checkpoint, None)
    record = Checkpoint("billing", TopicPartition("west.orders", 7), 9, 9, "")
    history = CheckpointHistory([KafkaRecord("c", 0, 0, record.key(), record.value())])
    assert [history.farthest(group, COPY) for group in ("billing", "other")] == [0, None]


@pytest.mark.parametrize(
    ("upstream", "downstream", "is_written"), [(50, 50, False), (60, 70, True), (40, 40, True), (50, 0, True)]
)
def test_checkpoint_is_written_if_the_group_or_its_place_has_changed(
    upstream: int, downstream: int, is_written: bool
) -> None:
    assert is_newer(Checkpoint("g", COPY, upstream, downstream, ""), Checkpoint("g", COPY, 50, 50, "")) is is_written


@pytest.mark.parametrize(
    "wrong",
    [
        {"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "true"},
        {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"},
    ],
)
def test_translation_back_without_what_it_needs_is_refused(wrong: dict[str, str]) -> None:
    assert CheckpointConfig.from_config({**CLUSTERS, "translate.replica.offsets.enabled": "true"}).translates_back
    with pytest.raises(ConfigError, match=r"translate\.replica\.offsets\.enabled is true"):
        CheckpointConfig.from_config({**CLUSTERS, **wrong, "translate.replica.offsets.enabled": "true"})
    assert not CheckpointConfig.from_config({**CLUSTERS, **wrong}).translates_back
