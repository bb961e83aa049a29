"""What a task has copied, and the offset syncs that follow from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.mirror.protocol.records import OffsetSync
from airflow_connect.connectors.mirror.syncs.ledger import MOST_RANGES, CopiedRange, PartitionLedger, syncs_of
from airflow_connect.connectors.mirror.syncs.store import RANGE_HEADER, TOPIC_IDS_HEADER, OffsetSyncStore
from tests.support.session.searching import examples

ORDERS = TopicPartition("orders", 3)


def ledger_of(*transactions: list[list[int]]) -> PartitionLedger:
    """A ledger of transactions, each a list of batches with their offsets."""
    ledger = PartitionLedger()
    for batches in transactions:
        for offsets in batches:
            ledger.returned(np.array(offsets, dtype=np.int64))
        ledger.committed()
    return ledger


def store_of(*syncs: tuple[int, int, int], ids: Sequence[str] = ()) -> OffsetSyncStore:
    """A store that has read these syncs.

    Args:
        syncs: upstream, downstream, length (1: without a header, as MirrorMaker 2's).
        ids: of the topics, for each of them; (): none.
    """
    records = []
    for number, (upstream, downstream, length) in enumerate(syncs):
        sync = OffsetSync(ORDERS, upstream, downstream)
        headers = [(RANGE_HEADER, str(length).encode())] if length != 1 else []
        headers += [(TOPIC_IDS_HEADER, ids[number].encode())] if ids else []
        records.append(KafkaRecord("syncs", 0, number, sync.key(), sync.value(), headers=tuple(headers)))
    return OffsetSyncStore(records)


def test_transactions_are_apart_by_their_markers() -> None:
    ledger = ledger_of([[5, 6], [7]], [[8, 9]])
    assert ledger.ranges(100, 107, has_markers=True) == [CopiedRange(5, 100, 3), CopiedRange(8, 104, 2)]


def test_without_transactions_there_are_no_markers() -> None:
    assert ledger_of([[5, 6]], [[7]]).ranges(100, 103, has_markers=False) == [
        CopiedRange(5, 100, 2),
        CopiedRange(7, 102, 1),
    ]


def test_gaps_of_the_source_end_a_range() -> None:
    assert ledger_of([[5, 6, 9, 10, 11, 20]]).ranges(0, 7, has_markers=True) == [
        CopiedRange(5, 0, 2),
        CopiedRange(9, 2, 3),
        CopiedRange(20, 5, 1),
    ]


@pytest.mark.parametrize("end", [102, 105])
def test_log_that_grew_by_something_else_tells_nothing(end: int) -> None:
    assert ledger_of([[5, 6, 7]]).ranges(100, end, has_markers=True) is None


def test_as_many_missing_or_foreign_records_as_transactions_are_not_taken_for_markers() -> None:
    assert ledger_of([[5, 6, 7]]).ranges(100, 103, has_markers=True) is None
    assert ledger_of([[5, 6, 7]]).ranges(100, 104, has_markers=False) is None


def test_what_is_not_committed_does_not_count() -> None:
    ledger = ledger_of([[5]])
    ledger.returned(np.array([6, 7]))
    assert ledger.ranges(0, 2, has_markers=True) == [CopiedRange(5, 0, 1)]


def test_memory_is_bounded_and_the_newest_ranges_are_kept() -> None:
    ledger = PartitionLedger()
    for number in range(5 * MOST_RANGES):
        ledger.returned(np.array([2 * number]))
        ledger.committed()
    found = ledger.ranges(0, 10 * MOST_RANGES, has_markers=True)
    assert found is not None and len(found) <= MOST_RANGES
    assert found[-1] == CopiedRange(2 * (5 * MOST_RANGES - 1), 10 * MOST_RANGES - 2, 1)
    assert found[0].upstream == ledger.first == 0


def test_syncs_are_dense_at_the_end_and_exponential_before() -> None:
    found = syncs_of([CopiedRange(1000, 0, 1000)], 100)
    assert [one.upstream for one in found] == [1000, 1199, 1599, 1799, 1899, 1999]
    assert sum(one.length for one in found) == 1000


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(0, 20),
)
def test_every_offset_is_translated_exactly_from_the_syncs(parts: list[tuple[int, int, int]], distance: int) -> None:
    copied, upstream, downstream = [], 7, 3
    places = {}
    for length, gap, marker in parts:
        copied.append(CopiedRange(upstream, downstream, length))
        places |= {upstream + n: downstream + n for n in range(length)}
        upstream, downstream = upstream + length + gap, downstream + length + marker
    store = store_of(*syncs_of(copied, distance))

    for offset in range(7, upstream + 2):
        found = store.downstream(ORDERS, offset)
        assert found is not None
        # Every record from the offset on comes, and none before it.
        assert {up for up, down in places.items() if down >= found} == {up for up in places if up >= offset}
    for offset in range(3, downstream + 2):
        back = store.upstream(ORDERS, offset)
        assert back is not None
        assert {up for up in places if up >= back} == {up for up, down in places.items() if down >= offset}


def test_sync_of_mirrormaker_says_nothing_about_later_records() -> None:
    store = store_of((10, 4, 1), (50, 30, 1))
    assert [store.downstream(ORDERS, offset) for offset in (9, 10, 11, 49, 50, 51, 99)] == [None, 4, 5, 5, 30, 31, 31]
    assert store.downstream(TopicPartition("orders", 4), 10) is None


def test_topic_that_begins_again_replaces_what_was_known() -> None:
    store = store_of((10, 4, 30), (0, 60, 5))
    assert [store.downstream(ORDERS, offset) for offset in (0, 3, 20)] == [60, 63, 65]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((0, 0, 1000), (1000, 0, 1000)),  # the copy was recreated, and is filled again from its first offset
        ((0, 5, 1000), (1000, 900, 50)),  # it has lost its end
        ((0, 0, 1), (1000, 0, 1)),  # the same by MirrorMaker 2
        ((0, 40, 30), (20, 70, 5)),  # the mirror was set back
    ],
)
def test_ranges_of_a_copy_that_has_changed_are_not_used_any_more(
    before: tuple[int, int, int], after: tuple[int, int, int]
) -> None:
    store, later = store_of(before, after), store_of(after)
    for offset in (0, 10, 500, 990, 1000, 1010):
        assert store.downstream(ORDERS, offset) == later.downstream(ORDERS, offset)


def test_ranges_of_a_topic_with_another_id_are_not_used_any_more() -> None:
    store = store_of((0, 0, 100), (100, 400, 50), ids=["west-1,east-1", "west-1,east-2"])
    assert [store.downstream(ORDERS, offset) for offset in (50, 100, 120)] == [None, 400, 420]
    assert store.topic_ids(ORDERS) == ("west-1", "east-2")
    assert store_of((0, 0, 100)).topic_ids(ORDERS) == ("", "")


def test_group_before_the_first_copy_begins_at_the_beginning_of_the_log() -> None:
    assert store_of((1000, 0, 50)).downstream(ORDERS, 500) == 0
    assert store_of((1000, 1, 50)).downstream(ORDERS, 500) is None


@pytest.mark.parametrize("begin", [0, 60])
def test_sync_without_a_known_copy_leads_to_where_the_run_began(begin: int) -> None:
    store = store_of((10, begin - 1, 0), (50, begin + 90, 5))
    assert [store.downstream(ORDERS, offset) for offset in (10, 11, 49, 50, 52)] == [begin] * 3 + [
        begin + 90,
        begin + 92,
    ]
    assert [store.upstream(ORDERS, offset) for offset in (begin, begin + 3)] == [10, 10]


def test_way_back_does_not_lead_before_the_beginning_of_the_original() -> None:
    store = store_of((10, 4, 30))
    store.begin_at({ORDERS: 0}, {ORDERS: 25})
    assert [store.upstream(ORDERS, offset) for offset in (4, 18, 19, 20)] == [25, 25, 25, 26]
