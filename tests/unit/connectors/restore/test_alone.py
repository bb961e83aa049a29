"""Whether a restore is the first to write to a partition: what the check learns, and what it must not guess."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore import alone
from airflow_connect.connectors.restore.alone import Alone
from airflow_connect.errors import OffsetError, UnavailableError
from airflow_connect.kafka.reading.first_timestamps import FirstRecord

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked of Kafka, and what it says: by partition the first that is visible."""
    found: list[Any] = []

    def visible(settings: Any, partitions: Any) -> Any:
        found.append((dict(settings), sorted(partitions)))
        return {ZERO: FirstRecord(7, None), ONE: FirstRecord(3, 5_000)}

    monkeypatch.setattr(alone, "first_visible", visible)
    return found


def test_first_record_of_a_topic_needs_no_request(asked: list[Any]) -> None:
    one = Alone([ZERO, ONE], {})
    one.sent(ZERO)
    one.check({ZERO: 0, TopicPartition("offsets", 2): 9})
    one.sent(ZERO)
    one.check({ZERO: 50})  # after its first transaction a partition is not looked at
    assert asked == []


def test_what_lies_before_the_first_record_is_read_from_the_leader(asked: list[Any]) -> None:
    one = Alone([ZERO, ONE], {"client.rack": "a", "client.id": "c"})
    one.check({ZERO: 7})
    assert asked == [({"client.id": "c"}, [ZERO])]


@pytest.mark.parametrize(
    ("first", "words"),
    [({ZERO: 8}, "a transaction that has begun at offset 7"), ({ONE: 4}, "a record at offset 3 now")],
)
def test_anything_before_it_is_an_error(asked: list[Any], first: dict[TopicPartition, int], words: str) -> None:
    with pytest.raises(OffsetError, match=words) as caught:
        Alone([ZERO, ONE], {}).check(first)
    assert (caught.value.code, len(asked)) == ("restore.not_alone", 1)


@pytest.mark.parametrize("first", [{}, {ZERO: -1001}])
def test_place_that_is_not_known_is_no_good_place(asked: list[Any], first: dict[TopicPartition, int]) -> None:
    one = Alone([ZERO], {})
    one.sent(ZERO)
    with pytest.raises(UnavailableError, match="It is unknown whether t-0 has records"):
        one.check(first)
    assert len(asked) == len(first)
