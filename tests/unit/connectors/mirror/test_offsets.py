"""Offsets in MirrorMaker 2's form, where a partition is resumed, and how ranges are divided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror.connector import MirrorSourceConnector
from airflow_connect.connectors.mirror.offsets import (
    Committed,
    LogBounds,
    StartRules,
    offset_of,
    partition_of,
    start_of,
)
from airflow_connect.connectors.mirror.work import MirroredRange, divided, ranges_of, task_config
from airflow_connect.errors import ConfigError, OffsetError

TP = TopicPartition("orders", 2)
LOG = LogBounds(low=10, end=90, high=100, topic_id="id-1")


def test_offset_is_that_of_the_last_mirrored_record() -> None:
    assert partition_of("west", TP) == {"cluster": "west", "partition": 2, "topic": "orders"}
    assert offset_of(500, "id-1") == {"offset": 499, "topic_id": "id-1"}
    assert Committed.of({"offset": 499}) == (500, "", "", False)


@pytest.mark.parametrize(
    ("committed", "position"),
    [(Committed(10, ""), 10), (Committed(50, "id-1"), 50), (Committed(90, "id-1"), 90), (Committed(95, ""), 95)],
)
def test_offset_inside_the_log_is_resumed(committed: Committed, position: int) -> None:
    assert start_of(TP, committed, LOG, StartRules("earliest", ""), is_known=True) == (position, False, "")


@pytest.mark.parametrize(
    ("reset", "position", "must_commit"),
    [("earliest", 10, False), ("latest", 90, True)],
)
def test_new_partition_begins_where_the_consumer_says(reset: str, position: int, must_commit: bool) -> None:
    assert start_of(TP, None, LOG, StartRules(reset, ""), is_known=False) == (position, must_commit, "")


@pytest.mark.parametrize(("end", "is_told"), [(90, True), (10, False)])
def test_new_partition_of_a_topic_that_is_mirrored_already_begins_at_its_beginning(end: int, is_told: bool) -> None:
    start = start_of(TP, None, replace(LOG, end=end), StartRules("latest", "latest"), is_known=True)

    assert (start.position, start.must_commit) == (10, False)
    assert ("orders-2 was added to a topic that is mirrored already" in start.note) is is_told


def test_new_partition_without_reset_is_refused() -> None:
    with pytest.raises(OffsetError, match="never mirrored"):
        start_of(TP, None, LOG, StartRules("none", ""), is_known=True)


@pytest.mark.parametrize(
    ("committed", "message"),
    [
        (Committed(9, ""), r"orders-2 was mirrored up to offset 8, but the source cluster now holds \[10, 100\)"),
        (Committed(101, "id-1"), r"mirrored up to offset 100, .* \[10, 100\)"),
        (Committed(50, "id-0"), "recreated: its id is id-1, but orders-2@49 was mirrored from id-0"),
    ],
)
def test_offset_that_the_log_does_not_hold_fails_with_both_values(committed: Committed, message: str) -> None:
    with pytest.raises(OffsetError, match=message) as refused:
        start_of(TP, committed, LOG, StartRules("earliest", ""), is_known=True)

    assert refused.value.config_path == "offsets.out.of.range"


@pytest.mark.parametrize(
    ("committed", "policy", "position", "left_out"),
    [
        (Committed(5, ""), "earliest", 10, ""),
        (Committed(5, ""), "latest", 100, "[10, 100)"),
        (Committed(5, ""), "nearest", 10, ""),
        (Committed(200, ""), "nearest", 100, "[10, 100)"),
        (Committed(50, "id-0"), "earliest", 10, ""),
        (Committed(50, "id-0"), "nearest", 50, "[10, 50)"),
        (Committed(50, "id-0"), "latest", 100, "[10, 100)"),
    ],
)
def test_chosen_position_is_committed_and_told_with_what_is_left_out(
    committed: Committed, policy: str, position: int, left_out: str
) -> None:
    start = start_of(TP, committed, LOG, StartRules("earliest", policy), is_known=True)

    assert (start.position, start.must_commit) == (position, True)
    assert start.note.endswith(f"It continues at {position} (offsets.out.of.range={policy}).")
    assert (f"What it holds in {left_out} is not mirrored." in start.note) if left_out else "not" not in start.note


@pytest.mark.parametrize("offset", [{}, {"offset": "5"}, {"offset": True}, {"offset": None}])
def test_committed_offset_of_another_form_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(OffsetError, match="no whole number as offset"):
        Committed.of(offset)


GOOD = {"cluster": "west", "topic": "orders", "partition": 0}


@pytest.mark.parametrize(
    ("partition", "offset", "is_accepted"),
    [
        (GOOD, {"offset": 0}, True),
        (GOOD, {"offset": 5, "topic_id": "x"}, True),
        ({"anything": 1}, None, True),
        (GOOD, {"offset": -1}, False),
        (GOOD, {"offset": "5"}, False),
        (GOOD, {}, False),
        ({**GOOD, "partition": -1}, {"offset": 5}, False),
        ({**GOOD, "topic": ""}, {"offset": 5}, False),
        ({"topic": "orders", "partition": 0}, {"offset": 5}, False),
    ],
)
def test_altered_offset_must_have_the_form(
    partition: dict[str, Any], offset: dict[str, Any] | None, is_accepted: bool
) -> None:
    def alter() -> bool:
        return MirrorSourceConnector().alter_offsets({}, {tuple(sorted(partition.items())): offset})

    if is_accepted:
        assert alter()
        return
    with pytest.raises(ConfigError) as refused:
        alter()
    assert refused.value.code == "offset.refused"


def test_ranges_are_divided_by_size_and_survive_a_configuration() -> None:
    ranges = [MirroredRange("t", n, 0, size, "id") for n, size in enumerate([5, 100, 40, 70, 0])]

    parts = divided(ranges, 2)

    assert [sum(one.end - one.start for one in part) for part in parts] == [105, 110]
    assert [ranges_of(task_config({}, part)) for part in parts] == parts
    assert divided(ranges[:1], 3) == [ranges[:1]] and divided([], 3) == []
