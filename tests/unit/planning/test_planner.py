"""Where a run starts and ends in each partition, for every state of log, group and memory."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.errors import OffsetError
from airflow_connect.planning.limits import RunLimits
from airflow_connect.planning.planner import REFRESH_AFTER_MS, LogState, Memory, Policy, plan_positions

TP = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)


def log(low=0, end=100, committed=None, high=None, topic_id="id"):
    return LogState(
        {"t": topic_id},
        {TP: low},
        {TP: end},
        {} if committed is None else {TP: committed},
        high={} if high is None else {TP: high},
    )


def plan(state, memory=None, policy=None, now_ms=0):
    return plan_positions(state, memory or Memory(), policy or Policy(), now_ms)


def test_committed_offset_is_where_the_run_starts():
    found = plan(log(committed=40), Memory({TP: 40}, {"t": "id"}))

    assert found.ranges == (OffsetRange("t", 0, 40, 100),)
    assert (found.to_commit, found.notes, found.total) == ({}, (), 60)


def test_first_run_that_finds_offsets_in_the_group_tells_once_what_it_passes_over():
    """The group may be another connector's, or Kafka Connect has run this one."""
    state = LogState({"t": "id"}, {TP: 10, P1: 0}, {TP: 100, P1: 40}, {TP: 40, P1: 5})

    found = plan(state, policy=Policy(group="connect-other"))

    (note,) = found.notes
    assert "its group connect-other has committed: t-0@40, t-1@5. The 35 offsets before them" in note
    # They are in the state from now on, also if there is nothing to copy.
    assert found.to_commit == {TP: 40, P1: 5}
    assert plan(state, Memory(found.to_commit, {"t": "id"})).notes == ()


def test_first_run_passes_over_nothing_at_the_beginning_of_the_log_or_where_another_note_says_why():
    assert plan(log(low=40, committed=40)).notes == ()
    assert plan_positions(log(committed=40), Memory(), Policy(), 0, {TP}).notes == ()


@pytest.mark.parametrize(("reset", "start"), [("earliest", 5), ("latest", 100)])
def test_first_sight_follows_the_reset_and_is_committed(reset, start):
    found = plan(log(low=5), policy=Policy(auto_offset_reset=reset))

    assert found.ranges == (OffsetRange("t", 0, start, 100),)
    assert found.to_commit == {TP: start}


def test_first_sight_at_latest_lies_behind_an_open_transaction():
    """What is written but not committed yet is older than the first run."""
    found = plan(log(end=60, high=80), policy=Policy(auto_offset_reset="latest"))

    assert found.ranges == (OffsetRange("t", 0, 80, 80),)


def test_committed_offset_between_last_stable_offset_and_high_watermark_is_kept():
    assert plan(log(end=60, high=80, committed=70)).ranges == (OffsetRange("t", 0, 70, 70),)


@pytest.mark.parametrize("committed", [9, 101])
def test_offset_outside_the_log_is_refused_with_both_values(committed):
    with pytest.raises(OffsetError, match=rf"{committed} of t-0 is outside the log, which holds \[10, 100\)"):
        plan(log(low=10, committed=committed))


@pytest.mark.parametrize(
    ("out_of_range", "committed", "start"),
    [("earliest", 9, 10), ("latest", 9, 100), ("nearest", 9, 10), ("earliest", 101, 10), ("nearest", 101, 100)],
)
def test_offset_outside_the_log_goes_where_the_policy_says(out_of_range, committed, start):
    found = plan(log(low=10, committed=committed), policy=Policy(out_of_range=out_of_range))

    assert found.ranges[0].start == start
    assert found.to_commit == {TP: start}
    assert f"starting at {start}" in found.notes[0]


@pytest.mark.parametrize(
    ("known", "policy", "left_out"),
    [
        ({"committed": 5}, "latest", "The 90 offsets in [10, 100) are not copied"),
        ({"committed": 101}, "nearest", "The 90 offsets in [10, 100) are not copied"),
        ({"topic_id": "new", "committed": 30}, "nearest", "The 20 offsets in [10, 30) are not copied"),
        ({"committed": 5}, "earliest", ""),
    ],
)
def test_policy_that_leaves_records_out_counts_them(known, policy, left_out):
    (note,) = plan(log(low=10, **known), Memory({TP: 30}, {"t": "id"}), Policy(out_of_range=policy)).notes

    assert left_out in note
    assert ("are not copied" in note) == bool(left_out)


@pytest.mark.parametrize("edge", [10, 100])
def test_offsets_at_the_edges_of_the_log_are_inside(edge):
    assert plan(log(low=10, committed=edge)).ranges[0].start == edge


def test_group_without_offsets_is_resumed_from_memory_and_committed_again():
    found = plan(log(), Memory({TP: 30}, {"t": "id"}))

    assert found.ranges[0].start == 30
    assert found.to_commit == {TP: 30}
    assert "resumed at 30" in found.notes[0]


def test_group_wins_over_memory():
    assert plan(log(committed=20), Memory({TP: 30}, {"t": "id"})).ranges[0].start == 20


def test_recreated_topic_is_refused_whatever_the_offset_is():
    with pytest.raises(OffsetError, match=r"recreated: its id is new, and an earlier run saw id and committed t-0@30"):
        plan(log(topic_id="new", committed=30), Memory({TP: 30}, {"t": "id"}))


@pytest.mark.parametrize(("out_of_range", "start"), [("earliest", 0), ("latest", 100), ("nearest", 0)])
def test_recreated_topic_starts_where_the_policy_says(out_of_range, start):
    found = plan(log(topic_id="new"), Memory({TP: 30}, {"t": "id"}), Policy(out_of_range=out_of_range))

    assert found.ranges[0].start == start
    assert found.to_commit == {TP: start}


def test_recreated_topic_whose_offsets_are_forgotten_is_still_refused():
    with pytest.raises(OffsetError, match=r"its id is new, and an earlier run saw id\. Records may be lost"):
        plan(log(topic_id="new"), Memory({}, {"t": "id"}))


def test_offset_of_an_unknown_topic_id_that_the_group_has_lost_is_refused_with_both_readings():
    """A state that an earlier release wrote after a run that did not see the topic."""
    with pytest.raises(OffsetError, match=r"offsets have expired and t-0 continues at 30, or t was recreated"):
        plan(log(), Memory({TP: 30}, {}))
    assert plan(log(), Memory({TP: 30}, {}), Policy(out_of_range="nearest")).ranges[0].start == 30
    assert plan(log(), Memory({TP: 30}, {}), Policy(out_of_range="earliest")).ranges[0].start == 0
    assert plan(log(committed=40), Memory({TP: 30}, {})).ranges[0].start == 40
    assert plan(log(topic_id=""), Memory({TP: 30}, {})).ranges[0].start == 30


@pytest.mark.parametrize(
    ("committed", "memory"),
    [({TP: 100}, Memory()), ({}, Memory({TP: 100}, {"t": "id"})), ({}, Memory({}, {"t": "id"}))],
    ids=["group", "state", "id only"],
)
def test_latest_reads_a_new_partition_of_a_known_topic_from_its_first_record(committed, memory):
    state = LogState({"t": "id"}, {TP: 0, P1: 3}, {TP: 100, P1: 40}, committed)

    found = plan(state, memory, Policy(auto_offset_reset="latest"))

    assert found.ranges[1] == OffsetRange("t", 1, 3, 40)
    assert "t-1 has no offset" in found.notes[-1] and "deleted those before 3" in found.notes[-1]
    assert found.at_latest == {}


def test_latest_counts_what_it_skips_of_a_topic_that_is_read_for_the_first_time():
    state = LogState({"t": "id"}, {TP: 10, P1: 0}, {TP: 100, P1: 40}, {})

    found = plan(state, policy=Policy(auto_offset_reset="latest"))

    assert found.at_latest == {TP: 100, P1: 40}
    assert len(found.notes) == 1
    assert "latest, the 130 offsets before its end are not copied" in found.notes[0]


def test_offsets_are_committed_again_after_a_day():
    memory = Memory({TP: 100}, {"t": "id"}, at_ms=1)

    assert plan(log(committed=100), memory, now_ms=REFRESH_AFTER_MS).to_commit == {}
    assert plan(log(committed=100), memory, now_ms=REFRESH_AFTER_MS + 1).to_commit == {TP: 100}


@given(
    low=st.integers(0, 50),
    length=st.integers(0, 50),
    beyond=st.integers(0, 20),
    committed=st.none() | st.integers(0, 130),
    remembered=st.none() | st.integers(0, 130),
    ids=st.tuples(st.sampled_from(["", "a"]), st.sampled_from(["a", "b"])),
    reset=st.sampled_from(["earliest", "latest"]),
    out_of_range=st.sampled_from(["", "earliest", "latest", "nearest"]),
    max_records=st.integers(0, 30),
)
def test_any_plan_lies_inside_the_log_and_stores_every_start_that_the_group_does_not_have(
    low, length, beyond, committed, remembered, ids, reset, out_of_range, max_records
):
    end = low + length
    state = log(low, end, committed, end + beyond, topic_id=ids[1])
    memory = Memory({} if remembered is None else {TP: remembered}, {"t": ids[0]} if ids[0] else {})
    policy = Policy(reset, out_of_range, RunLimits(max_records=max_records))
    try:
        found = plan(state, memory, policy)
    except OffsetError:
        if out_of_range:
            raise
        return
    (copied,) = found.ranges
    assert low <= copied.start <= end + beyond
    assert copied.start <= copied.end <= max(end, copied.start)
    assert max_records == 0 or len(copied) <= max_records
    assert copied.start == committed or found.to_commit[TP] == copied.start


@pytest.mark.parametrize(
    ("committed", "what"),
    [(35, "The 5 offsets in [30, 35) are not copied"), (29, "The 1 offset in [29, 30) is copied again")],
)
def test_offset_that_another_client_has_changed_is_named_and_committed_again(committed, what):
    found = plan(log(committed=committed), Memory({TP: 30}, {"t": "id"}))

    assert what in found.notes[0]
    assert found.to_commit == {TP: committed}
