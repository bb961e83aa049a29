"""Fair shares and the limits made of them."""

import hypothesis.strategies as st
from hypothesis import given

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.planning.limits import fair_shares, max_records, until_timestamp

demands = st.lists(st.integers(0, 40), max_size=8)


def slow_shares(wanted, supply):
    """One by one, to whoever has least and still wants more; the first of equals comes first."""
    shares = [0] * len(wanted)
    for _ in range(supply):
        hungry = [i for i, want in enumerate(wanted) if shares[i] < want]
        if not hungry:
            break
        shares[min(hungry, key=lambda i: (shares[i], i))] += 1
    return shares


@given(demands, st.integers(0, 200))
def test_fair_shares_are_those_of_a_slow_model(wanted, supply):
    assert fair_shares(wanted, supply) == slow_shares(wanted, supply)


@given(demands, st.integers(0, 200))
def test_max_records_keeps_starts_and_never_exceeds_the_limit(lengths, limit):
    ranges = [OffsetRange("t", p, 10 * p, 10 * p + length) for p, length in enumerate(lengths)]

    found = max_records(ranges, limit)

    assert [r.start for r in found] == [r.start for r in ranges]
    assert all(new.end <= old.end for new, old in zip(found, ranges, strict=True))
    total = sum(lengths)
    assert sum(map(len, found)) == (total if limit == 0 else min(limit, total))


def test_repeated_runs_with_a_limit_copy_everything():
    ranges = [OffsetRange("t", 0, 0, 7), OffsetRange("t", 1, 0, 0), OffsetRange("t", 2, 0, 31)]
    runs = 0
    while any(not r.is_empty for r in ranges):
        done = max_records(ranges, 5)
        ranges = [OffsetRange(r.topic, r.partition, d.end, r.end) for r, d in zip(ranges, done, strict=True)]
        runs += 1

    assert runs == 8


@given(st.integers(0, 20), st.integers(0, 20), st.none() | st.integers(0, 60))
def test_until_timestamp_cuts_before_the_first_later_record_and_never_before_the_start(start, length, first_later):
    planned = OffsetRange("t", 0, start, start + length)
    later = {} if first_later is None else {TopicPartition("t", 0): first_later}

    (found,) = until_timestamp([planned], later)

    expected = planned.end if first_later is None else min(planned.end, max(start, first_later))
    assert (found.start, found.end) == (start, expected)
