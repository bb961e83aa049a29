"""What a commit keeps of topics that its run has seen, has not seen, or that were created again."""

from __future__ import annotations

from dataclasses import replace

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink_state import StateAfter
from airflow_connect.exactly_once.commit import state_after
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import CLOSED, COPYING, MOST_ABSENT, BegunTopic, ConnectorState

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def known() -> ConnectorState:
    """A connector that has copied two topics."""
    offsets = {T0: 7, T1: 8, U0: 9}
    return ConnectorState(
        "c",
        "r1",
        CLOSED,
        0,
        committed=offsets,
        topic_ids={"t": "1", "u": "2"},
        bytes_per_record={"t": 10.0, "u": 20.0},
        kept={"of": "the connector"},
    )


def test_topic_that_a_run_did_not_see_keeps_id_and_offsets() -> None:
    after = known().seeing({"u": "2"})

    assert list(after.topic_ids.items()) == [("t", "1"), ("u", "2")]
    assert after == known()


def test_topic_with_another_id_loses_what_belongs_to_the_topic_that_is_gone() -> None:
    after = known().seeing({"t": "3", "u": "2"})

    assert dict(after.topic_ids) == {"t": "3", "u": "2"}
    assert after.committed == {U0: 9}
    assert (after.kept, after.gone) == (known().kept, {"t"})
    assert after.bytes_per_record == {"u": 20.0}


def test_topic_without_an_id_is_not_taken_for_another_one() -> None:
    assert known().seeing({"t": "", "u": "2"}).committed == known().committed


def test_commit_of_a_recreated_topic_keeps_no_offset_of_partitions_that_it_does_not_have() -> None:
    manifest = Manifest("c", "r2", 1, (), (), topic_ids={"t": "3"}, also_commit={T0: 4})

    after = state_after(manifest, known())

    assert after.committed == {T0: 4, U0: 9}
    assert after.topic_ids == {"t": "3", "u": "2"}


def test_deleted_topic_is_remembered_by_its_id_alone() -> None:
    after = known().seeing({}, {"t"})

    assert after.committed == {U0: 9}
    assert after.topic_ids == {"t": "1", "u": "2"}
    assert (after.gone, after.forgotten) == ({"t"}, frozenset())


def test_connector_is_told_of_a_topic_that_is_gone_whatever_happens_before() -> None:
    state = ConnectorState.from_json(known().seeing({}, {"t"}).seeing({"u": "2"}).to_json())
    assert state.gone == {"t"}

    document = StateAfter({"of": "the next run"})
    told = state_after(Manifest("c", "r2", 1, (), (), topic_ids={"u": "2"}, after=document), state)
    assert (told.kept, told.gone) == (document.kept, frozenset())


def test_connector_without_a_document_is_told_nothing() -> None:
    assert replace(known(), kept={}).seeing({}, {"t"}).gone == frozenset()


def test_state_does_not_grow_with_every_deleted_topic() -> None:
    state = known()
    for number in range(MOST_ABSENT + 5):
        name = f"day-{number}"
        state = state.seeing({"u": "2", name: f"id-{number}"})
        state = state.seeing({}, {name})

    state = state.seeing({"u": "2"})

    assert len(state.topic_ids) == MOST_ABSENT + 2
    assert "t" in state.topic_ids and "u" in state.topic_ids  # They have offsets.
    assert "day-4" not in state.topic_ids and "day-5" in state.topic_ids
    assert "day-4" in state.forgotten and "day-5" not in state.forgotten


def test_topics_that_a_run_begins_to_copy_are_kept_until_one_commits() -> None:
    ids = {"t": "1", "u": "2", "v": "3"}
    begun = known().beginning(
        "r2", ids, [OffsetRange("u", 0, 9, 12), OffsetRange("v", 0, 0, 5), OffsetRange("v", 1, 2, 4)]
    )
    again = begun.beginning("r3", {**ids, "v": "4"}, [OffsetRange("v", 0, 0, 1)])

    assert (begun.run_id, begun.phase, begun.begun) == ("r2", COPYING, {"v": BegunTopic("3", "r2", 7)})
    assert again.begun == begun.begun
    assert ConnectorState.from_json(begun.to_json()) == begun
    assert begun.seeing({"u": "2"}).begun == begun.begun
    assert begun.seeing(ids).begun == begun.seeing({}, {"v"}).begun == {}
