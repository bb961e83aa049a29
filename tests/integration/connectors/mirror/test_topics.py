"""Topics of the target cluster, offsets that the source cluster no longer holds, offsets of MirrorMaker 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from airflow_connect.connectors.mirror.task import MirrorSourceTask
from airflow_connect.kafka.admin.copied_settings import alter_settings, topic_settings
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.connectors.mirror.conftest import Mirror
from tests.support.kafka_data import add_partitions, create_topic, delete_records, delete_topic, partition_count

pytestmark = pytest.mark.integration
CLUSTER_WIDE = "min.insync.replicas"


def settings_of(bootstrap: str, topic: str) -> dict[str, str | None]:
    """What a topic sets itself; Kafka shows one setting of the whole cluster in the same way."""
    found = topic_settings(admin_client({"bootstrap.servers": bootstrap}), [topic])[topic]
    return {one.name: one.value for one in found if one.is_copyable and not one.is_default and one.name != CLUSTER_WIDE}


def alter(bootstrap: str, topic: str, **changes: str | None) -> None:
    own = {name.replace("_", "."): value for name, value in changes.items()}
    alter_settings(admin_client({"bootstrap.servers": bootstrap}), {topic: own})


def test_remote_topic_has_partitions_and_settings_of_its_original_and_follows_them(mirror: Mirror) -> None:
    alter(mirror.source, mirror.topic, cleanup_policy="compact", max_message_bytes="2000000")
    alter(mirror.source, mirror.topic, unclean_leader_election_enable="true")  # not copied by default
    mirror.run()
    first = settings_of(mirror.target, mirror.remote)

    add_partitions(mirror.source, mirror.topic, 5)
    alter(mirror.source, mirror.topic, cleanup_policy=None, segment_bytes="2097152")
    alter(mirror.target, mirror.remote, delete_retention_ms="5000")
    mirror.write(mirror.topic, [(4, b"k", b"v", 1)])
    mirror.run()

    assert first == {"cleanup.policy": "compact", "max.message.bytes": "2000000"}
    assert partition_count(mirror.target, mirror.remote) == 5
    assert settings_of(mirror.target, mirror.remote) == {"max.message.bytes": "2000000", "segment.bytes": "2097152"}
    assert mirror.copies() == mirror.originals()


def test_settings_are_left_alone_if_not_synchronised(mirror: Mirror) -> None:
    mirror.run()
    alter(mirror.source, mirror.topic, retention_ms="6000000")

    mirror.run(sync_topic_configs_enabled="false")
    assert settings_of(mirror.target, mirror.remote) == {}
    mirror.run(config_properties_exclude="retention.*")
    assert settings_of(mirror.target, mirror.remote) == {}
    mirror.run()
    assert settings_of(mirror.target, mirror.remote) == {"retention.ms": "6000000"}


def test_replication_factor_that_the_target_cannot_give_is_named(mirror: Mirror) -> None:
    report = mirror.try_run(replication_factor="2")

    assert report.status == "failed"
    assert report.error["configPath"] == "replication.factor"


def test_unreachable_source_is_named(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_connect.kafka.clients import short_lived

    monkeypatch.setattr(short_lived, "BOOTSTRAP_TIMEOUT_S", 0.3)
    report = mirror.try_run(source_cluster_bootstrap_servers="127.0.0.1:1")

    assert report.status == "failed"
    assert "127.0.0.1:1" in report.error["message"]


def test_target_that_is_not_the_cluster_of_the_worker_is_refused(mirror: Mirror) -> None:
    report = mirror.try_run(target_cluster_bootstrap_servers=mirror.source)

    assert report.status == "failed"
    assert report.error["configPath"] == "target.cluster.bootstrap.servers"
    assert partition_count(mirror.source, mirror.remote) == 0


def test_nothing_is_mirrored_if_disabled_or_not_selected(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(0, None, "v", 1)])
    disabled = mirror.run(enabled="false")
    unselected = mirror.run(topics="no-such-topic", heartbeats_replication_enabled="false")

    assert (disabled.status, unselected.status) == ("empty", "empty")
    assert partition_count(mirror.target, mirror.remote) == 0


def test_entry_of_topics_that_selects_nothing_is_named_with_the_reason(mirror: Mirror) -> None:
    """The others are mirrored, so nothing else shows that a topic was misspelt, or is never mirrored."""
    topic = mirror.topic
    mirror.write(topic, [(0, None, "v", 1)])
    others = {"internal": f"{topic}.internal", "cycle": f"east.{topic}", "excluded": f"{topic}-old"}
    for name in others.values():
        create_topic(mirror.source, name, 1)
    entries = [topic, *others.values(), f"{topic}-typo", f"{topic}-none.*"]

    report = mirror.run(topics=",".join(entries), topics_exclude=".*-old")

    told = [note for note in report.notes if "selects no topic of the source cluster" in note]
    assert report.records == 1
    assert [note.split()[0] for note in told] == entries[1:]
    internal, cycle, excluded, *absent = told
    assert f"names of internal ones are never mirrored ({others['internal']})" in internal
    assert f"came from east, by their names, are not mirrored back to it ({others['cycle']})" in cycle
    assert f"topics.exclude excludes what it matches ({others['excluded']})" in excluded
    assert all("no topic that the principal may describe has such a name" in note for note in absent)


def test_offset_of_mirrormaker_is_resumed_after_its_record(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(0, None, str(n), n + 1) for n in range(10)])
    mirror.set_offsets({0: {"offset": 6}})

    assert mirror.run().records == 3

    assert [copy.value for copy in mirror.copies()[0]] == [b"7", b"8", b"9"]
    assert mirror.offsets()[0]["offset"] == 9


def removed_by_retention(mirror: Mirror) -> None:
    delete_records(mirror.source, mirror.topic, 0, 8)


def recreated(mirror: Mirror) -> None:
    delete_topic(mirror.source, mirror.topic)
    create_topic(mirror.source, mirror.topic, 3)
    mirror.write(mirror.topic, [(0, None, str(n), n + 1) for n in range(10)])


def recreated_smaller(mirror: Mirror) -> None:
    delete_topic(mirror.source, mirror.topic)
    create_topic(mirror.source, mirror.topic, 1)
    mirror.write(mirror.topic, [(0, None, str(n), n + 1) for n in range(10)])


@pytest.mark.parametrize(
    ("change", "message", "copied"),
    [
        (removed_by_retention, "was mirrored up to offset 4, but the source cluster now holds [8, 10)", "89"),
        (recreated, "was recreated: its id is", "0123456789"),
        (recreated_smaller, "was recreated: it has 1 partitions, but 3 were mirrored", "0123456789"),
    ],
)
def test_offset_that_the_source_no_longer_holds_fails_the_run_until_somebody_decides(
    mirror: Mirror, change: Any, message: str, copied: str
) -> None:
    mirror.write(mirror.topic, [(number, None, str(n), n + 1) for number in range(3) for n in range(5)])
    mirror.run()
    before = mirror.copies()
    mirror.write(mirror.topic, [(0, None, str(n), n + 1) for n in range(5, 10)])
    change(mirror)

    refused = mirror.try_run()
    decided = mirror.run(offsets_out_of_range="earliest")

    assert refused.status == "failed" and refused.error["code"] == "offset.out_of_range"
    assert message in refused.error["message"]
    assert any(message in note for note in decided.notes)
    assert "".join((copy.value or b"").decode() for copy in mirror.copies()[0][len(before[0]) :]) == copied
    assert mirror.copies()[1] == before[1]


def test_latest_position_is_committed_although_nothing_is_read(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(0, None, "before", 1)])

    assert mirror.run(consumer_auto_offset_reset="latest").records == 0
    mirror.write(mirror.topic, [(0, None, "after", 2)])
    mirror.run(consumer_auto_offset_reset="latest")

    assert [copy.value for copy in mirror.copies()[0]] == [b"after"]


def test_partition_that_is_added_between_two_runs_is_copied_from_its_beginning(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(0, None, "before", 1)])
    first = mirror.run(consumer_auto_offset_reset="latest")
    add_partitions(mirror.source, mirror.topic, 5)
    mirror.write(mirror.topic, [(4, None, str(n), n + 1) for n in range(10)])

    second = mirror.run(consumer_auto_offset_reset="latest")

    assert [note for note in first.notes if f"{mirror.topic}-0 [0, 1)" in note]
    assert [note for note in second.notes if f"{mirror.topic}-4 was added" in note]
    assert [copy.value for copy in mirror.copies()[4]] == [str(n).encode() for n in range(10)]


@pytest.mark.parametrize("with_ids", [True, False], ids=["own offsets", "offsets of MirrorMaker 2"])
def test_partitions_that_a_recreated_topic_gets_later_are_copied_from_their_beginning(
    mirror: Mirror, with_ids: bool
) -> None:
    mirror.write(mirror.topic, [(number, None, "old", 1) for number in range(3) for _ in range(5)])
    mirror.run()
    if not with_ids:
        mirror.set_offsets({number: {"offset": 4} for number in range(3)})
    recreated_smaller(mirror)
    mirror.run(offsets_out_of_range="earliest", consumer_auto_offset_reset="latest")
    # Decided once; without the choice, later runs go on.
    assert mirror.run().notes == ()

    add_partitions(mirror.source, mirror.topic, 3)
    mirror.write(mirror.topic, [(1, None, str(n), n + 1) for n in range(10)])
    mirror.run(consumer_auto_offset_reset="latest")

    assert [copy.value for copy in mirror.copies()[1]] == [b"old"] * 5 + [str(n).encode() for n in range(10)]


def test_plan_changes_nothing(mirror: Mirror) -> None:
    from airflow_connect.runtime.driver.entry import plan_connector

    mirror.write(mirror.topic, [(0, None, "v", 1)])
    plan = plan_connector(mirror.spec())

    assert len(plan.tasks) == 1
    topics = AdminClient({"bootstrap.servers": mirror.target}).list_topics(timeout=10).topics
    assert mirror.remote not in topics


def test_copy_that_was_deleted_is_created_again_and_the_report_says_what_it_lacks(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(0, b"k", str(n), 1) for n in range(5)])
    first = mirror.run()
    delete_topic(mirror.target, mirror.remote)
    mirror.write(mirror.topic, [(0, b"k", "5", 1)])

    report = mirror.run()

    assert not any("created again" in note for note in first.notes)
    (note,) = [note for note in report.notes if "created again" in note]
    assert f"no topic {mirror.remote} any more" in note
    assert f"it begins at {mirror.topic}-0@5, and lacks up to 5 offsets" in note
    assert [one.value for one in mirror.copies()[0]] == [b"5"]
    assert not any("created again" in note for note in mirror.run().notes)


def test_copy_that_replaces_timestamps_is_told(mirror: Mirror) -> None:
    create_topic(mirror.target, mirror.remote, 3, {"message.timestamp.type": "LogAppendTime"})
    mirror.write(mirror.topic, [(0, b"k", b"v", 1)])

    told = mirror.run()
    alter(mirror.target, mirror.remote, message_timestamp_type="CreateTime")
    mirror.write(mirror.topic, [(0, b"k", b"v", 2)])
    kept = mirror.run()

    assert any(f"{mirror.remote} has message.timestamp.type=LogAppendTime" in note for note in told.notes)
    assert not any("LogAppendTime" in note for note in kept.notes)
    assert [one.timestamp == 2 for one in mirror.copies()[0]] == [False, True]


def test_first_run_that_fails_keeps_where_latest_began(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(0, None, "before", 1)])
    refused = mirror.try_run(consumer_auto_offset_reset="latest", replication_factor="9")
    mirror.write(mirror.topic, [(0, None, "after", 2)])

    report = mirror.run(consumer_auto_offset_reset="latest")

    assert refused.status == "failed"
    assert [copy.value for copy in mirror.copies()[0]] == [b"after"]
    assert not any("created again" in note for note in report.notes), "there never was a copy"


def test_copy_that_somebody_else_recreated_is_named_once_with_what_it_lacks(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(n % 2, b"k", str(n), 1) for n in range(10)])
    mirror.run()
    delete_topic(mirror.target, mirror.remote)
    create_topic(mirror.target, mirror.remote, 3)
    mirror.write(mirror.topic, [(0, b"k", "10", 1)])

    report = mirror.run()

    (note,) = [note for note in report.notes if "was recreated" in note]
    assert f"Topic {mirror.remote} of the target cluster was recreated" in note
    assert f"it lacks up to 10 offsets before {mirror.topic}-0@5, {mirror.topic}-1@5." in note
    assert [one.value for one in mirror.copies()[0]] == [b"10"]
    assert not any("was recreated" in note for note in mirror.run().notes)


@pytest.fixture
def changed_after_the_plan(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], Any]:
    """A run during which something is done before its first task starts."""
    start = MirrorSourceTask.start

    def run(change: Callable[[], None]) -> Any:
        def begin(task: MirrorSourceTask, config: Any) -> None:
            monkeypatch.setattr(MirrorSourceTask, "start", start)
            change()
            start(task, config)

        monkeypatch.setattr(MirrorSourceTask, "start", begin)
        return mirror.try_run()

    return run


def test_copy_that_is_deleted_before_a_task_starts_is_named(mirror: Mirror, changed_after_the_plan: Any) -> None:
    mirror.write(mirror.topic, [(0, b"k", "v", 1)])

    report = changed_after_the_plan(lambda: delete_topic(mirror.target, mirror.remote))

    assert report.status == "failed"
    assert mirror.remote in report.error["message"]
    assert report.error["code"] != "task.plugin_failed", report.error


def test_copy_that_is_recreated_before_a_task_starts_is_named_by_this_run_and_the_next(
    mirror: Mirror, changed_after_the_plan: Any
) -> None:
    mirror.write(mirror.topic, [(0, b"k", str(n), 1) for n in range(5)])
    mirror.run()
    mirror.write(mirror.topic, [(0, b"k", str(n), 1) for n in range(5, 10)])

    def recreate() -> None:
        delete_topic(mirror.target, mirror.remote)
        create_topic(mirror.target, mirror.remote, 3)

    report, following = changed_after_the_plan(recreate), mirror.run()

    assert any("was recreated while records were copied to it" in note for note in report.notes), report.notes
    (note,) = [note for note in following.notes if "was recreated" in note]
    assert f"it lacks up to 10 offsets before {mirror.topic}-0@10." in note
    assert "it holds the last records of that run" in note
    assert [one.value for one in mirror.copies()[0]] == [b"5", b"6", b"7", b"8", b"9"]


def test_topic_that_the_source_no_longer_has_is_named(mirror: Mirror) -> None:
    mirror.write(mirror.topic, [(0, b"k", "v", 1)])
    mirror.run()
    delete_topic(mirror.source, mirror.topic)

    report = mirror.run()

    (note,) = [note for note in report.notes if "no longer has topic" in note]
    assert f"topic {mirror.topic}. It was mirrored up to {mirror.topic}-0@1; its copy stays" in note
