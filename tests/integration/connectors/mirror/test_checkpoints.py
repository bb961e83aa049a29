"""Offset syncs and checkpoints between two real clusters: what a group sees after it failed over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror.syncs.store import OffsetSyncStore
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.connectors.mirror.conftest import Mirror, checkpoints_of, commit, committed, offsets_of
from tests.support.kafka_data import produce
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.integration
SYNCS = "mm2-offset-syncs.east.internal"
BACK = {"sync_group_offsets_enabled": "true", "translate_replica_offsets_enabled": "true"}
BOTH_PATHS = pytest.mark.parametrize("columnar", [True, False], ids=["columnar", "records"])


def store_of(bootstrap: str, topic: str = SYNCS) -> OffsetSyncStore:
    settings = {"bootstrap.servers": bootstrap}
    return OffsetSyncStore.read(admin_client(settings), settings, topic)


def translate(mirror: Mirror, group: str, **more: str) -> Any:
    """One run of the checkpoint connector."""
    own = {
        "name": f"checkpoints-{group}",
        "connector_class": "MirrorCheckpointConnector",
        "groups": group,
        "checkpoints_topic_replication_factor": "1",
    }
    return mirror.run(**(own | more))


def feed(mirror: Mirror, count: int) -> None:
    """Records of three partitions: some in transactions, so that offsets have gaps, and some with headers."""
    rows = [(n % 3, str(n), f"value {n}", 1000 + n, [("h", b"1")] if n % 5 == 0 else []) for n in range(count)]
    third = count // 3
    mirror.write(mirror.topic, rows[:third])
    mirror.write.transaction(mirror.topic, rows[third : 2 * third])
    mirror.write.transaction(mirror.topic, [(0, None, "aborted", 1)], "abort")
    mirror.write(mirror.topic, rows[2 * third :])


@BOTH_PATHS
def test_offset_syncs_tell_the_place_of_every_record(mirror: Mirror, columnar: bool) -> None:
    for _ in range(2):
        feed(mirror, 300)
        mirror.run(columnar=columnar)
    store = store_of(mirror.source)
    originals, copies = offsets_of(mirror.source, mirror.topic), offsets_of(mirror.target, mirror.remote)

    for number, offsets in originals.items():
        tp = TopicPartition(mirror.topic, number)
        assert [store.downstream(tp, offset) for offset in offsets] == copies[number]
        assert [store.upstream(tp, offset) for offset in copies[number]] == offsets
        # A group that has read everything continues after the last copy.
        assert copies[number][-1] < store.downstream(tp, offsets[-1] + 1) <= copies[number][-1] + 2


def test_offset_syncs_are_in_the_target_cluster_if_configured_and_absent_if_disabled(mirror: Mirror) -> None:
    tp = TopicPartition(mirror.topic, 0)
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    mirror.run(**{"emit_offset-syncs_enabled": "false", "offset-syncs_topic_location": "target"})
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    mirror.run(**{"offset-syncs_topic_location": "target"})

    store = store_of(mirror.target, "mm2-offset-syncs.west.internal")
    assert [store.downstream(tp, offset) for offset in (0, 1)] == [None, 2]
    assert store_of(mirror.source).downstream(tp, 1) is None


def test_other_writer_of_the_target_holds_checkpoints_back_and_is_told(mirror: Mirror) -> None:
    tp = TopicPartition(mirror.topic, 0)
    mirror.write(mirror.topic, [(0, None, "1", 1), (0, None, "2", 1)])
    mirror.run()
    before = store_of(mirror.source).downstream(tp, 2)
    mirror.write(mirror.topic, [(0, None, "3", 1), (0, None, "4", 1)])

    from airflow_connect.connectors.mirror.task import MirrorSourceTask

    real = MirrorSourceTask.poll_columns

    def poll_columns(task: MirrorSourceTask) -> Any:
        produce(mirror.target, mirror.remote, [(0, None, "foreign")])
        return real(task)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MirrorSourceTask, "poll_columns", poll_columns)
        report = mirror.run(tasks_max="1")

    store = store_of(mirror.source)
    assert before == 2
    assert any("something else writes to it" in note for note in report.notes)
    # Both new records come again; neither is lost.
    assert store.downstream(tp, 4) == 3


def test_offset_syncs_that_cannot_be_written_are_told_and_the_copy_stays(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_connect.connectors.mirror.syncs.writer import OffsetSyncLog
    from airflow_connect.errors import AccessError

    def refuse(*_: object) -> None:
        raise AccessError("Kafka denied access to the topic.")

    mirror.write(mirror.topic, [(0, None, "v", 1)])
    monkeypatch.setattr(OffsetSyncLog, "_send", refuse)
    report = mirror.run()

    assert (report.status, report.records) == ("done", 1)
    assert [note for note in report.notes if note.startswith("Offset syncs were not written")]


def test_group_is_translated_exactly_and_only_forward(mirror: Mirror, unique_name: str) -> None:
    group = f"app-{unique_name}"
    feed(mirror, 600)
    mirror.run()
    originals, copies = offsets_of(mirror.source, mirror.topic), offsets_of(mirror.target, mirror.remote)
    middle = {number: offsets[len(offsets) // 2] for number, offsets in originals.items()}

    commit(mirror.source, group, mirror.topic, middle, "note")
    assert translate(mirror, group).records == 3
    found = {one.topic_partition.partition: one for one in checkpoints_of(mirror, group)}
    expected = {number: copies[number][len(offsets) // 2] for number, offsets in originals.items()}
    assert {number: (one.upstream, one.downstream, one.metadata) for number, one in found.items()} == {
        number: (middle[number], expected[number], "note") for number in originals
    }
    assert {one.topic_partition.topic for one in found.values()} == {mirror.remote}
    # By default, only checkpoints are written; nothing is written twice.
    assert committed(mirror.target, group, mirror.remote) == {}
    assert translate(mirror, group).records == 0

    translate(mirror, group, sync_group_offsets_enabled="true")
    assert committed(mirror.target, group, mirror.remote) == {n: (offset, "note") for n, offset in expected.items()}
    # The group has moved on in the target cluster, and was set back in the source cluster.
    commit(mirror.target, group, mirror.remote, {0: copies[0][-1]})
    commit(mirror.source, group, mirror.topic, {1: 0})
    assert translate(mirror, group, sync_group_offsets_enabled="true").records == 1
    assert committed(mirror.target, group, mirror.remote) == {
        0: (copies[0][-1], ""),
        1: (expected[1], "note"),
        2: (expected[2], "note"),
    }
    assert checkpoints_of(mirror, group)[-1][1:4] == (TopicPartition(mirror.remote, 1), 0, copies[1][0])


@contextmanager
def member(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """A live member of a group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    wait_until(lambda: bool(consumer.poll(0.1)) or bool(consumer.assignment()), "the member has joined")
    yield
    consumer.close()


def test_group_with_live_members_in_the_target_is_left_alone(mirror: Mirror, unique_name: str) -> None:
    group = f"app-{unique_name}"
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    mirror.run()
    commit(mirror.source, group, mirror.topic, {0: 1})

    with member(mirror.target, group, mirror.remote):
        report = translate(mirror, group, sync_group_offsets_enabled="true")
    assert (report.records, committed(mirror.target, group, mirror.remote)) == (1, {})
    assert any("1 consumer group has members in the target cluster" in n and f"{group}." in n for n in report.notes)

    translate(mirror, group, sync_group_offsets_enabled="true", emit_checkpoints_enabled="false")
    assert committed(mirror.target, group, mirror.remote) == {0: (1, "")}


def test_offsets_that_no_sync_translates_are_counted_and_named(mirror: Mirror, unique_name: str) -> None:
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    mirror.run()
    mirror.write(mirror.topic, [(2, None, "not mirrored yet", 1)])
    commit(mirror.source, f"behind-{unique_name}", mirror.topic, {0: 1, 2: 1})
    commit(mirror.source, f"done-{unique_name}", mirror.topic, {0: 1})

    report = translate(mirror, f".*-{unique_name}")

    (note,) = [note for note in report.notes if "no offset sync" in note]
    assert note.startswith("1 offset of 1 consumer group has no place in the target cluster")
    assert note.endswith(f": behind-{unique_name} ({mirror.topic}-2).")


def test_groups_and_topics_are_selected(mirror: Mirror, unique_name: str) -> None:
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    mirror.run()
    for name in ("taken", "left"):
        commit(mirror.source, f"{name}-{unique_name}", mirror.topic, {0: 1})

    excluded = translate(mirror, f".*-{unique_name}", groups_exclude="left-.*")
    other = translate(mirror, f"left-{unique_name}", topics="other")
    none = translate(mirror, "no-such-group")

    assert (excluded.records, other.records, none.status) == (1, 0, "empty")
    assert not checkpoints_of(mirror, f"left-{unique_name}")


def test_entry_of_groups_that_selects_nothing_is_named_with_the_reason(mirror: Mirror, unique_name: str) -> None:
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    mirror.run()
    taken, left = f"taken-{unique_name}", f"left-{unique_name}"
    for name in (taken, left):
        commit(mirror.source, name, mirror.topic, {0: 1})

    report = translate(mirror, f"{taken},{left},{unique_name}-typo", groups_exclude="left-.*", name=taken)

    told = [note for note in report.notes if "selects no consumer group" in note]
    assert report.records == 1
    assert [note.split()[0] for note in told] == [left, f"{unique_name}-typo"]
    assert f"groups.exclude excludes what it matches ({left})" in told[0]
    assert "no group that the principal may describe has such a name" in told[1]


def test_checkpoints_without_offset_syncs_are_refused(mirror: Mirror) -> None:
    report = mirror.try_run(connector_class="MirrorCheckpointConnector", **{"emit_offset-syncs_enabled": "false"})

    assert report.error["configPath"] == "emit.offset-syncs.enabled"


def test_application_fails_over_and_back_and_sees_every_record(mirror: Mirror, unique_name: str) -> None:
    """From west to east and back; after each change it begins exactly where it has stopped."""
    group = f"app-{unique_name}"
    back = Mirror(mirror.target, mirror.source, mirror.remote, mirror.write, {"target.cluster.alias": "west"}, "east")
    feed(mirror, 300)
    mirror.run()
    seen = consume(mirror.source, group, mirror.topic, 100)

    translate(mirror, group, sync_group_offsets_enabled="true")
    seen += consume(mirror.target, group, mirror.remote, 100)
    # Meanwhile west gets more records.
    feed(mirror, 30)
    mirror.run()
    seen += consume(mirror.target, group, mirror.remote, 20)

    translate(back, group, **BACK, topics=mirror.topic)
    seen += consume(mirror.source, group, mirror.topic, None)

    assert sorted(seen) == sorted(copy.value for copies in mirror.originals().values() for copy in copies)


def consume(bootstrap: str, group: str, topic: str, count: int | None) -> list[bytes | None]:
    """Read as a member of the group, commit, and leave; `count` None: to the end."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "enable.partition.eof": True,
         "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    )  # fmt: skip
    consumer.subscribe([topic])
    found: list[bytes | None] = []
    ended: set[int] = set()
    positions: dict[int, int] = {}
    while len(ended) < 3 and len(found) != count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"{topic} could not be read to its end."
        if message.error() is not None:
            ended.add(int(message.partition() or 0))
            continue
        found.append(message.value())
        positions[int(message.partition() or 0)] = int(message.offset() or 0) + 1
    consumer.commit(offsets=[Place(topic, n, offset) for n, offset in positions.items()], asynchronous=False)
    consumer.close()
    assert count is None or len(found) == count
    return found
