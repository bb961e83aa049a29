"""What must not happen to a group that fails over: it is never sent past a record that it has not read."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.mirror.checkpoint import downstream, history
from airflow_connect.connectors.mirror.protocol.records import Checkpoint, OffsetSync
from airflow_connect.connectors.mirror.syncs.writer import OffsetSyncLog
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.connectors.mirror.conftest import Mirror, checkpoints_of, commit, committed, offsets_of
from tests.integration.connectors.mirror.test_checkpoints import BACK, SYNCS, translate
from tests.support.kafka_data import create_topic, delete_records, delete_topic, produce

pytestmark = pytest.mark.integration
TOMBSTONES = {
    "transforms": "drop",
    "transforms_drop_type": "org.apache.kafka.connect.transforms.Filter",
    "transforms_drop_predicate": "empty",
    "predicates": "empty",
    "predicates_empty_type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
}
WITHOUT_SYNCS = {"emit_offset-syncs_enabled": "false"}
SYNCED = {"sync_group_offsets_enabled": "true"}


def unread(mirror: Mirror, group: str) -> list[bytes | None]:
    """Values of partition 0 of the copy that a group has before it, if its offset was written there."""
    (place, _) = committed(mirror.target, group, mirror.remote)[0]
    where = offsets_of(mirror.target, mirror.remote)[0]
    return [one.value for one, offset in zip(mirror.copies()[0], where, strict=True) if offset >= place]


def write(mirror: Mirror, first: int, end: int) -> None:
    mirror.write(mirror.topic, [(0, b"k", str(n), 1) for n in range(first, end)])


@pytest.mark.parametrize("dropped", [1, 2])
def test_group_of_a_mirror_that_drops_records_gets_every_record_that_it_has_not_read(
    mirror: Mirror, unique_name: str, dropped: int
) -> None:
    """One dropped record for one transaction looks, from the end of the log, as if nothing was dropped."""
    mirror.write(mirror.topic, [(0, b"k", None, 1)] * dropped)
    write(mirror, dropped, 10)
    commit(mirror.source, unique_name, mirror.topic, {0: 3})

    report = mirror.run(**TOMBSTONES)
    translate(mirror, unique_name, **SYNCED)

    assert report.filtered == dropped
    assert any("may leave records out" in note for note in report.notes)
    # Records from 3 on are not read; those before come again.
    assert unread(mirror, unique_name) == [str(n).encode() for n in range(dropped, 10)]

    # The next run begins behind them.
    write(mirror, 10, 20)
    mirror.run(**TOMBSTONES)
    commit(mirror.source, unique_name, mirror.topic, {0: 15})
    translate(mirror, unique_name, **SYNCED)
    assert unread(mirror, unique_name) == [str(n).encode() for n in range(10, 20)]


def test_group_in_the_part_before_a_recreated_copy_begins_at_its_beginning(mirror: Mirror, unique_name: str) -> None:
    write(mirror, 0, 100)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 50})
    translate(mirror, unique_name, **SYNCED)
    delete_topic(mirror.target, mirror.remote)
    write(mirror, 100, 200)
    mirror.run()

    translate(mirror, unique_name, **SYNCED)

    assert unread(mirror, unique_name) == [str(n).encode() for n in range(100, 200)]
    # The last checkpoint leads an application there, too, that asks for it.
    assert checkpoints_of(mirror, unique_name)[-1][2:4] == (50, 0)


def test_copy_that_was_recreated_but_not_yet_filled_is_not_translated_and_told(
    mirror: Mirror, unique_name: str
) -> None:
    write(mirror, 0, 100)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 50})
    delete_topic(mirror.target, mirror.remote)
    create_topic(mirror.target, mirror.remote, 3)

    report = translate(mirror, unique_name, **SYNCED)

    assert [note for note in report.notes if f"{mirror.remote}-0: the topic or its original was recreated" in note]
    assert (checkpoints_of(mirror, unique_name), committed(mirror.target, unique_name, mirror.remote)) == ([], {})


def test_deleted_copy_does_not_keep_other_copies_of_a_group_from_being_translated(
    mirror: Mirror, unique_name: str
) -> None:
    other = Mirror(mirror.source, mirror.target, f"{unique_name}-b", mirror.write)
    create_topic(mirror.source, other.topic, 3)
    for one in (mirror, other):
        write(one, 0, 10)
        one.run()
        commit(one.source, unique_name, one.topic, {0: 5})
    delete_topic(mirror.target, mirror.remote)

    report = translate(mirror, unique_name, **SYNCED, topics=f"{mirror.topic}, {other.topic}")

    assert [note for note in report.notes if f"{mirror.remote}-0: the topic does not exist" in note]
    assert committed(mirror.target, unique_name, other.remote) == {0: (5, "")}
    assert committed(mirror.target, unique_name, mirror.remote) == {}


def test_offset_that_is_refused_is_named_and_the_others_are_written(mirror: Mirror, unique_name: str) -> None:
    """A topic that is deleted between the look at the logs and the commit."""
    write(mirror, 0, 10)
    mirror.run()
    there, gone = TopicPartition(mirror.remote, 0), TopicPartition(f"{mirror.remote}-gone", 0)
    checkpoints = [Checkpoint(unique_name, tp, 5, 5, "") for tp in (gone, there)]

    written = downstream.write_offsets(admin_client({"bootstrap.servers": mirror.target}), unique_name, checkpoints)

    assert (written.moved, list(written.refused)) == (1, [gone])
    assert str(gone) in written.refused[gone].message
    assert committed(mirror.target, unique_name, mirror.remote) == {0: (5, "")}


def test_offset_beyond_the_end_of_the_copy_is_moved_back_to_what_is_there(mirror: Mirror, unique_name: str) -> None:
    write(mirror, 0, 10)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 4})
    commit(mirror.target, unique_name, mirror.remote, {0: 5000})

    translate(mirror, unique_name, **SYNCED)

    assert committed(mirror.target, unique_name, mirror.remote) == {0: (4, "")}


def active_active(mirror: Mirror) -> Mirror:
    """The mirror in the opposite direction."""
    return Mirror(mirror.target, mirror.source, mirror.remote, mirror.write, {"target.cluster.alias": "west"}, "east")


def rounds(mirror: Mirror, group: str, back: dict[str, str]) -> None:
    """Translate a group in both directions, as `airflow-connect mirror` does."""
    translate(mirror, group, **SYNCED)
    translate(active_active(mirror), group, **back, topics=mirror.topic, name=f"back-{group}")


@pytest.mark.parametrize("back", [SYNCED, BACK], ids=["default", "translated back"])
def test_group_that_is_set_back_on_purpose_stays_there(mirror: Mirror, unique_name: str, back: dict[str, str]) -> None:
    write(mirror, 0, 100)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 100})
    rounds(mirror, unique_name, back)
    assert committed(mirror.target, unique_name, mirror.remote) == {0: (100, "")}

    commit(mirror.source, unique_name, mirror.topic, {0: 0})
    for _ in range(2):
        rounds(mirror, unique_name, back)
        assert committed(mirror.source, unique_name, mirror.topic) == {0: (0, "")}


def test_offset_is_translated_back_once_if_the_group_has_moved_in_the_copy(mirror: Mirror, unique_name: str) -> None:
    write(mirror, 0, 100)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 50})
    rounds(mirror, unique_name, BACK)
    commit(mirror.target, unique_name, mirror.remote, {0: 70})
    rounds(mirror, unique_name, SYNCED)
    assert committed(mirror.source, unique_name, mirror.topic) == {0: (50, "")}

    rounds(mirror, unique_name, BACK)
    assert committed(mirror.source, unique_name, mirror.topic) == {0: (70, "")}

    # What was translated back before is not again.
    commit(mirror.source, unique_name, mirror.topic, {0: 10})
    rounds(mirror, unique_name, BACK)
    assert committed(mirror.source, unique_name, mirror.topic) == {0: (10, "")}


def test_group_that_is_set_back_stays_there_although_compaction_has_deleted_its_farthest_checkpoint(
    mirror: Mirror, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets are translated back from now on, as before an application moves: nothing was translated back before."""
    real = history.committed_records

    def compacted(*arguments: Any) -> list[KafkaRecord]:
        return list({record.key: record for record in real(*arguments)}.values())

    monkeypatch.setattr(history, "committed_records", compacted)
    write(mirror, 0, 100)
    mirror.run()
    for place in (100, 0, 10):
        commit(mirror.source, unique_name, mirror.topic, {0: place})
        translate(mirror, unique_name, **SYNCED)

    rounds(mirror, unique_name, BACK)
    assert committed(mirror.source, unique_name, mirror.topic) == {0: (10, "")}

    # What the group reads of the copy is still told.
    write(mirror, 100, 120)
    mirror.run()
    end = offsets_of(mirror.target, mirror.remote)[0][-1]
    commit(mirror.target, unique_name, mirror.remote, {0: end})
    rounds(mirror, unique_name, BACK)
    assert committed(mirror.source, unique_name, mirror.topic) == {0: (119, "")}


def test_log_that_is_shorter_than_the_syncs_of_mirrormaker_say_is_not_translated(
    mirror: Mirror, unique_name: str
) -> None:
    write(mirror, 0, 10)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 5})
    sync = OffsetSync(TopicPartition(mirror.topic, 0), 10, 500)
    produce(mirror.source, SYNCS, [(0, sync.key(), sync.value())])

    report = translate(mirror, unique_name, **SYNCED)

    assert [note for note in report.notes if f"{mirror.remote}-0: the topic has lost records at its end" in note]
    assert checkpoints_of(mirror, unique_name) == []


@pytest.mark.parametrize("read", [0, 5])
def test_group_before_the_beginning_of_the_copy_begins_there(mirror: Mirror, unique_name: str, read: int) -> None:
    """At an offset that retention has deleted, a consumer would jump by `auto.offset.reset`, by default to the end."""
    write(mirror, 0, 50)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: read})
    delete_records(mirror.target, mirror.remote, 0, 20)

    translate(mirror, unique_name, **SYNCED)

    assert committed(mirror.target, unique_name, mirror.remote) == {0: (20, "")}
    assert checkpoints_of(mirror, unique_name)[-1][2:4] == (read, 20)


def test_group_that_is_translated_back_to_before_the_beginning_of_the_original_begins_there(
    mirror: Mirror, unique_name: str
) -> None:
    write(mirror, 0, 100)
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 20})
    rounds(mirror, unique_name, BACK)
    commit(mirror.target, unique_name, mirror.remote, {0: 40})
    delete_records(mirror.source, mirror.topic, 0, 60)

    rounds(mirror, unique_name, BACK)

    assert committed(mirror.source, unique_name, mirror.topic) == {0: (60, "")}


@pytest.mark.parametrize("place", [None, 1], ids=["deleted", "set back"])
def test_group_is_not_translated_back_by_syncs_from_before_a_partition_was_mirrored_again(
    mirror: Mirror, unique_name: str, monkeypatch: pytest.MonkeyPatch, place: int | None
) -> None:
    """The copy holds 50-99, and then everything again; the run was killed before it wrote where."""
    write(mirror, 0, 100)
    mirror.set_offsets({0: {"offset": 49}})
    mirror.run()
    commit(mirror.source, unique_name, mirror.topic, {0: 5})
    rounds(mirror, unique_name, BACK)
    mirror.set_offsets({0: None if place is None else {**mirror.offsets()[0], "offset": place - 1}})
    with monkeypatch.context() as patch:
        patch.setattr(OffsetSyncLog, "write", lambda *_, **__: None)
        mirror.run()
    # The group has read ten of the new copies.
    where = offsets_of(mirror.target, mirror.remote)[0][60]
    commit(mirror.target, unique_name, mirror.remote, {0: where})

    for _ in range(2):
        rounds(mirror, unique_name, BACK)
        assert committed(mirror.source, unique_name, mirror.topic) == {0: (5, "")}
        mirror.run()  # nothing new


def test_partition_that_is_mirrored_again_without_offset_syncs_is_told(mirror: Mirror) -> None:
    write(mirror, 0, 10)
    first = mirror.run(**WITHOUT_SYNCS)
    mirror.set_offsets({0: None})

    report = mirror.run(**WITHOUT_SYNCS)

    assert not [note for note in first.notes if "translated back" in note]
    (note,) = [note for note in report.notes if "translated back" in note]
    assert f"{mirror.remote}-0" in note
    assert SYNCS in note
