"""What a replay remembers: an offset, and what was passed over below it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConfigError, StateError
from airflow_connect.kafka.state.replay_positions import NOTE_CHARACTERS, ReplayPosition, ReplayProgress

QUEUE = TopicPartition("dlq", 0)


def step(position, letters, chosen, last=None):
    """Replay the letters (offsets) that `chosen` accepts, up to the offset `last`; what was replayed, and after."""
    progress, done = ReplayProgress(position), []
    for offset in letters:
        if offset < position.first or (last is not None and offset > last):
            continue
        if position.is_replayed(offset):
            progress.replayed(offset)
        elif chosen(offset):
            progress.replayed(offset)
            done.append(offset)
        else:
            progress.passed_over(offset)
    return done, progress.position()


def test_position_without_filters_is_an_offset_alone():
    done, after = step(ReplayPosition(0), [0, 1, 5, 6], lambda offset: True)

    assert (done, after) == ([0, 1, 5, 6], ReplayPosition(7))
    assert after.note(QUEUE) == ""


def test_letters_that_are_passed_over_are_remembered_as_ranges_without_those_behind():
    _, after = step(ReplayPosition(0), [0, 1, 3, 4, 8, 9], lambda offset: offset in (1, 8))

    assert after == ReplayPosition(9, ((0, 1), (3, 5)))
    assert after.first == 0


def test_range_never_covers_a_letter_that_was_replayed_before():
    _, first = step(ReplayPosition(0), [0, 1, 2], lambda offset: offset == 1)
    _, second = step(first, [0, 1, 2, 3], lambda offset: offset == 3)

    assert second == ReplayPosition(4, ((0, 1), (2, 3)))


@given(
    letters=st.lists(st.integers(0, 300), unique=True, max_size=60).map(sorted),
    rounds=st.lists(st.tuples(st.sets(st.integers(0, 300)), st.one_of(st.none(), st.integers(0, 300))), max_size=5),
)
def test_every_letter_is_replayed_once_whatever_was_chosen_before(letters, rounds):
    position, done = ReplayPosition(0), []
    for chosen, last in rounds:
        now, position = step(position, letters, chosen.__contains__, last)
        done += now
        position = ReplayPosition.parse(position.offset, position.note(QUEUE), QUEUE)
    now, position = step(position, letters, lambda offset: True)

    assert sorted(done + now) == letters
    assert position.passed_over == ()
    assert step(position, letters, lambda offset: True)[0] == []


def test_too_many_ranges_are_refused_before_they_are_written():
    _, after = step(ReplayPosition(0), range(4000), lambda offset: offset % 2)

    with pytest.raises(ConfigError, match="more than Kafka can store"):
        after.note(QUEUE)


def test_some_hundred_ranges_fit():
    _, after = step(ReplayPosition(0), range(1900), lambda offset: offset % 2)

    assert len(after.note(QUEUE)) < NOTE_CHARACTERS


@pytest.mark.parametrize("note", ["consumer-1", "passed-over/1 x", "passed-over/1 1+", "passed-over/2 1+1"])
def test_note_of_another_program_is_refused(note):
    with pytest.raises(StateError, match="dlq-0"):
        ReplayPosition.parse(3, note, QUEUE)
