"""When a bookmark is confirmed by what follows it, and which records are worth being written again."""

from __future__ import annotations

import pytest

from airflow_connect.kafka.state.bookmarks import LogMark
from airflow_connect.kafka.state.own_records import LONG, OFFSETS_A_RECORD, OwnRecords

MARK = LogMark(start=10, end=20, epoch=3)


@pytest.mark.parametrize(
    ("passed", "confirms"),
    [
        ([], False),  # nothing is left: nothing is known
        ([(10, 3)], True),
        ([(19, 1)], True),
        ([(20, 3)], False),
        ([(20, 4), (30, 5)], False),
        ([(11, 2), (20, 4)], True),  # another leader, after the mark was set
        ([(10, 4)], False),  # another leader wrote below the end: what was there is lost
        ([(10, 3), (15, 3), (19, 4)], False),
    ],
)
def test_mark_is_confirmed_by_records_of_the_epochs_of_then(passed: list[tuple[int, int]], confirms: bool):
    own = OwnRecords(MARK)
    for offset, epoch in passed:
        own.passed(offset, epoch)
    assert own.confirms_mark is confirms


def owned(*offsets: int) -> OwnRecords:
    own = OwnRecords()
    for offset in offsets:
        own.take(b"k%d" % offset, b"v", offset)
    return own


def held_back(own: OwnRecords, end: int) -> list[bytes]:
    return [key for key, _ in own.holding_back(end)]


def test_first_is_the_oldest_record_that_counts():
    own = owned(5, 7, 9)
    assert own.first == 5
    own.take(b"k5", b"v", 12)
    assert own.first == 7
    own.take(b"k7", None, 13)
    assert own.first == 9
    assert owned().first is None


def test_record_that_is_far_behind_is_written_again():
    assert held_back(owned(), LONG * 2) == []
    assert held_back(owned(0), LONG - 1) == []
    assert held_back(owned(0), LONG) == [b"k0"]
    assert held_back(owned(100, 0, LONG * 3), LONG * 3) == [b"k0", b"k100"]


def test_more_records_are_written_again_the_more_is_saved():
    many = range(0, 2 * LONG, 100)
    assert held_back(owned(*many), 2 * LONG) == []
    assert len(held_back(owned(*many), len(many) * OFFSETS_A_RECORD * 2)) == len(many)


def test_what_others_wrote_before_a_record_that_is_written_again_comes_once_more():
    own = owned(1, 2, 3, 4, 5)
    for number in (1, 2, 3, 4):
        own.write_again(b"k%d" % number, b"v")
    own.take(b"k1", b"set", 6)
    own.take(b"k2", None, 7)
    own.take(b"k5", b"set", 8)
    for number in (1, 2, 3, 4):
        own.take(b"k%d" % number, b"v", 10 + number)
    own.take(b"k4", b"set", 20)  # behind ours it counts as it is
    assert own.take_covered() == {b"k1": b"set", b"k2": None}
    assert own.take_covered() == {}
