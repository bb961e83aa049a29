"""The sink's consumer group, its watermarks and its topics on a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import AccessError, ConfigError, NotStoppedError
from airflow_connect.kafka.admin import topics
from airflow_connect.kafka.admin.consumer_group import (
    alter_offsets,
    ensure_no_live_members,
    group_metadata,
    group_state,
    read_committed_offsets,
)
from airflow_connect.kafka.admin.topics import resolve_topics
from airflow_connect.kafka.admin.watermarks import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    earliest_offsets,
    latest_offsets,
    offsets_for_timestamp,
)
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.writing.transactions import TransactionalWriter
from tests.support.kafka_data import (
    TopicProducer,
    add_partitions,
    create_topic,
    delete_records,
    delete_topic,
    wait_until,
)

pytestmark = pytest.mark.integration
MakeTopic = Callable[..., str]


@pytest.fixture
def admin(kafka: KafkaBroker) -> Admin:
    return admin_client({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def live_member(kafka: KafkaBroker, make_topic: MakeTopic, unique_name: str) -> Iterator[TopicPartition]:
    """A partition that a live member of group `unique_name` owns, as a Kafka Connect worker would."""
    topic = make_topic()
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": unique_name, "client.id": "connector-consumer-x-0"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.05) is None and bool(consumer.assignment()), "an assignment")
    yield TopicPartition(topic, 0)
    consumer.close()


def test_alter_offsets_of_an_empty_group_is_read_back(admin: Admin, make_topic: MakeTopic, unique_name: str) -> None:
    topic = make_topic(partitions=3)
    tps = [TopicPartition(topic, p) for p in range(3)]
    assert read_committed_offsets(admin, unique_name, tps) == {}
    assert group_state(admin, unique_name) == ("dead", ())
    alter_offsets(admin, unique_name, {tps[0]: 5, tps[2]: 0})
    assert read_committed_offsets(admin, unique_name, tps) == {tps[0]: 5, tps[2]: 0}
    assert group_state(admin, unique_name) == ("empty", ())
    ensure_no_live_members(admin, unique_name)
    alter_offsets(admin, unique_name, {})
    assert read_committed_offsets(admin, unique_name, []) == {}


def test_group_with_a_live_member_is_refused_by_name(
    admin: Admin, live_member: TopicPartition, unique_name: str
) -> None:
    state, (member,) = group_state(admin, unique_name)
    assert (state, member.client_id, member.partitions) == ("stable", "connector-consumer-x-0", (live_member,))
    with pytest.raises(NotStoppedError, match=r"connector-consumer-x-0 \(127\.0\.0\.1\).*/stop"):
        ensure_no_live_members(admin, unique_name)
    with pytest.raises(NotStoppedError, match=f"setting offsets of group {unique_name} for {live_member}"):
        alter_offsets(admin, unique_name, {live_member: 1})
    assert read_committed_offsets(admin, unique_name, [live_member]) == {}


def test_offsets_in_a_transaction_are_accepted_despite_a_live_member_hence_the_check(
    kafka: KafkaBroker, admin: Admin, live_member: TopicPartition, unique_name: str
) -> None:
    # Why `ensure_no_live_members` exists: Kafka itself does not protect the worker's offsets from us.
    settings = {"bootstrap.servers": kafka.bootstrap}
    writer = TransactionalWriter(settings, unique_name)
    writer.fence()
    group = group_metadata(unique_name, settings)
    writer.commit([], {live_member: 7}, group)
    group.close()
    writer.close()
    assert read_committed_offsets(admin, unique_name, [live_member]) == {live_member: 7}


def test_watermarks_of_open_and_aborted_transactions(
    admin: Admin, make_topic: MakeTopic, produce: TopicProducer
) -> None:
    topic = make_topic(partitions=2)
    tps = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert latest_offsets(admin, tps, READ_COMMITTED) == {tps[0]: 0, tps[1]: 0}
    produce(topic, [(0, b"k", b"v", 1_000 * i) for i in range(1, 6)])
    produce.transaction(topic, [(0, b"k", b"v")], "abort")
    open_one = produce.transaction(topic, [(0, b"k", b"v"), (1, b"k", b"v")], "open")
    # Five records, the aborted one, its marker | the open one.
    assert latest_offsets(admin, tps, READ_COMMITTED) == {tps[0]: 7, tps[1]: 0}
    assert latest_offsets(admin, tps, READ_UNCOMMITTED) == {tps[0]: 8, tps[1]: 1}
    open_one.commit_transaction()
    wait_until(lambda: latest_offsets(admin, tps, READ_COMMITTED) == {tps[0]: 9, tps[1]: 2}, "the commit markers")
    assert offsets_for_timestamp(admin, tps, 3_500) == {tps[0]: 3, tps[1]: 0}
    assert offsets_for_timestamp(admin, tps, 99_000_000_000_000) == {tps[0]: None, tps[1]: None}
    assert earliest_offsets(admin, []) == {}


def test_earliest_offsets_follow_deleted_records(
    kafka: KafkaBroker, admin: Admin, make_topic: MakeTopic, produce: TopicProducer
) -> None:
    tp = TopicPartition(make_topic(), 0)
    produce(tp.topic, [(0, b"k", b"v")] * 10)
    delete_records(kafka.bootstrap, tp.topic, 0, 4)
    assert earliest_offsets(admin, [tp]) == {tp: 4}


def test_latest_offsets_of_a_topic_that_is_not_there_names_it(admin: Admin, unique_name: str) -> None:
    with pytest.raises(AccessError, match=f"{unique_name}-0"):
        latest_offsets(admin, [TopicPartition(unique_name, 0)], READ_COMMITTED)


def test_resolve_topics_by_name_and_regex_sees_new_partitions_and_ids(
    kafka: KafkaBroker, admin: Admin, unique_name: str
) -> None:
    for suffix in ("orders", "orders-eu", "xorders"):
        create_topic(kafka.bootstrap, f"{unique_name}.{suffix}", 2)
    names = [f"{unique_name}.orders", f"{unique_name}.orders-eu"]
    by_regex = resolve_topics(admin, None, unique_name + r"\.orders.*")
    assert list(by_regex) == names
    assert resolve_topics(admin, names[::-1], None) == by_regex
    assert [info.partitions for info in by_regex.values()] == [2, 2]
    assert resolve_topics(admin, None, f"{unique_name}nothing") == {}

    add_partitions(kafka.bootstrap, names[0], 3)
    assert resolve_topics(admin, names, None)[names[0]].partitions == 3
    delete_topic(kafka.bootstrap, names[1])
    create_topic(kafka.bootstrap, names[1], 2)
    again = resolve_topics(admin, names, None)
    assert again[names[1]].topic_id != by_regex[names[1]].topic_id
    assert again[names[0]].topic_id == by_regex[names[0]].topic_id


def test_resolve_topics_by_regex_leaves_internal_topics_out(
    admin: Admin, make_topic: MakeTopic, unique_name: str
) -> None:
    alter_offsets(admin, unique_name, {TopicPartition(make_topic(), 0): 1})  # __consumer_offsets exists now
    assert not [name for name in resolve_topics(admin, None, ".*") if name.startswith("__")]


def test_resolve_topics_with_a_typing_error_suggests_near_names(
    kafka: KafkaBroker, admin: Admin, unique_name: str
) -> None:
    create_topic(kafka.bootstrap, f"{unique_name}-orders")
    with pytest.raises(ConfigError, match=f"Did you mean {unique_name}-orders") as caught:
        resolve_topics(admin, [f"{unique_name}-oders"], None)
    assert caught.value.code == "config.topic_missing"


def test_topic_that_is_deleted_after_the_list_was_made_is_left_out(
    kafka: KafkaBroker, admin: Admin, make_topic: MakeTopic, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, gone = make_topic(name=f"{unique_name}-a"), f"{unique_name}-b"
    real, calls = topics.all_names, []

    def names_with_one_that_is_gone(client: Admin) -> list[str]:
        calls.append(client)
        return [*real(client), gone] if len(calls) == 1 else real(client)

    monkeypatch.setattr(topics, "all_names", names_with_one_that_is_gone)

    assert list(resolve_topics(admin, None, f"{unique_name}-[ab]")) == [kept]
    assert topics.deleted_topics(admin, [kept, gone]) == {gone}
