"""Events of a control topic, recorded from iceberg-kafka-connect-events 1.11.0 (one in each line, as hexadecimal)."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.java.iceberg_events import (
    COMMIT_COMPLETE,
    COMMIT_TO_TABLE,
    DATA_COMPLETE,
    DATA_WRITTEN,
    ControlEvent,
    Table,
    control_event,
)
from airflow_connect.errors import StateError

RECORDED = Path(__file__).parents[3] / "data" / "java_plugins" / "iceberg_events.txt"
TABLE = Table("lake.orders", "00000000-0000-0000-0000-0000000000aa")


def test_recorded_events() -> None:
    found = [control_event(bytes.fromhex(line)) for line in RECORDED.read_text().split()]
    ends = {TopicPartition("t", 0): 5, TopicPartition("t", 1): None}
    assert found == [
        ControlEvent(0, "connect-x"),
        ControlEvent(DATA_WRITTEN, "connect-x", TABLE, files=2, records=14),
        ControlEvent(DATA_COMPLETE, "connect-x", ends=ends),
        ControlEvent(COMMIT_TO_TABLE, "connect-x", TABLE),
        ControlEvent(COMMIT_COMPLETE, "connect-x"),
    ]
    assert str(TABLE) == "lake.orders (uuid 00000000-0000-0000-0000-0000000000aa)"


@pytest.mark.parametrize("value", [b"", b"{}", b"\xc2\x01\x00\x02{}", b"\xc2\x01\x00\x06null!!"])
def test_what_is_no_event(value: bytes) -> None:
    with pytest.raises(StateError, match=r"no event of Iceberg's sink") as caught:
        control_event(value)
    assert caught.value.code == "java.control_event"
