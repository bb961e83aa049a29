from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.coverage import COVERAGE, MOST_RANGES, Coverage, Covered
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport
from tests.support.session.searching import examples


def report(start: int, end: int, commit: int | None = None, **counts: int) -> PartitionReport:
    return PartitionReport(OffsetRange("t", 0, start, end), end, end if commit is None else commit, 0, 0, **counts)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
def test_ranges_are_the_offsets_that_were_copied(copied: list[tuple[int, int]]) -> None:
    found = Coverage()
    for start, size in copied:
        found = found.after([report(start, start + size)])
    offsets = {offset for start, size in copied for offset in range(start, start + size)}
    if not offsets:
        assert found == {}
        return
    covered = found[TopicPartition("t", 0)]
    assert {offset for start, end in covered.ranges for offset in range(start, end)} == offsets
    gaps = {offset for start, end in covered.gaps for offset in range(start, end)}
    assert gaps == set(range(covered.start, covered.end)) - offsets
    assert (covered.start, covered.end) == (min(offsets), max(offsets) + 1)
    assert Coverage.of({COVERAGE: found.to_json()}) == found


def test_only_what_is_committed_was_copied() -> None:
    found = Coverage().after([report(0, 10, 7, filtered=1, dead_lettered=2), report(10, 20, 10)])
    assert found == {TopicPartition("t", 0): Covered(((0, 7),), 3)}


def test_files_are_counted_until_offsets_are_copied_again() -> None:
    files = [StagedFile(f"{n}", "t", 0, n, n + 1, 1, 1) for n in range(3)]
    # Two ranges of a partition in one run, as parallel tasks have them.
    found = Coverage().after([report(0, 5), report(5, 9)], files[:2])
    assert found[TopicPartition("t", 0)] == Covered(((0, 9),), 0, 2)
    found = found.after([report(20, 30)], files[2:])
    assert found[TopicPartition("t", 0)] == Covered(((0, 9), (20, 30)), 0, 3)
    found = found.after([report(4, 6)], files[:1]).after([report(30, 31)], files[:1])
    assert found[TopicPartition("t", 0)] == Covered(((0, 9), (20, 31)), 0, None)


def test_the_oldest_of_many_ranges_are_not_kept() -> None:
    covered = Covered(())
    for n in range(MOST_RANGES + 5):
        covered = covered.and_also(10 * n, 10 * n + 1)
    assert (len(covered.ranges), covered.start) == (MOST_RANGES, 50)


def test_what_two_connectors_have_copied() -> None:
    one, other = Coverage().after([report(0, 5)]), Coverage().after([report(7, 9), report(12, 13)])
    place = TopicPartition("t", 0)
    assert one.and_also({}) == one and Coverage().and_also(one) == one
    assert one.and_also(other)[place].ranges == ((0, 5), (7, 9), (12, 13)) == other.and_also(one)[place].ranges
    assert one.and_also(other)[place].files == 0
    assert one.and_also(Coverage().after([report(4, 6)]))[place].files is None
