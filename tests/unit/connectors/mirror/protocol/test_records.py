"""Records of MirrorMaker 2's own topics, compared with those that the real MirrorMaker 2 4.3.1 has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror.protocol.records import Checkpoint, Heartbeat, OffsetSync
from airflow_connect.errors import DataError

RECORDED = json.loads((Path(__file__).parents[4] / "data" / "mirror_maker_records.json").read_text())


def recorded(kind: str) -> list[tuple[bytes, bytes]]:
    return [(bytes.fromhex(one["key"]), bytes.fromhex(one["value"])) for one in RECORDED[kind]]


def test_offset_syncs_are_those_of_mirrormaker() -> None:
    found = [OffsetSync.of(key, value) for key, value in recorded("offset_syncs")]
    assert found[2] == OffsetSync(TopicPartition("orders", 1), 19, 19)
    assert [(one.key(), one.value()) for one in found] == recorded("offset_syncs")


def test_checkpoints_are_those_of_mirrormaker() -> None:
    found = [Checkpoint.of(key, value) for key, value in recorded("checkpoints")]
    assert found[0] == Checkpoint("app", TopicPartition("west.orders", 1), 7, 1, "")
    assert [(one.key(), one.value()) for one in found] == recorded("checkpoints")


def test_heartbeats_are_those_of_mirrormaker() -> None:
    assert [
        (Heartbeat("west", "east", int.from_bytes(value[2:])).key(), value) for _, value in recorded("heartbeats")
    ] == recorded("heartbeats")
    (_, value) = recorded("heartbeats")[0]
    assert Heartbeat("west", "east", int.from_bytes(value[2:])).value() == value


@pytest.mark.parametrize("key", [None, b"", b"\x00\x06ord", b"\x00\x06orders\x00", b"\xff\xff"])
def test_other_records_are_refused(key: bytes | None) -> None:
    with pytest.raises(DataError, match="not an offset sync"):
        OffsetSync.of(key, b"\x00" * 16)
    with pytest.raises(DataError, match="not a checkpoint"):
        Checkpoint.of(key, b"\x00" * 20)
