"""Tasks that are members of the consumer group of their sink, with the partitions that a plan has for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import JavaGroupError, JavaPluginError
from airflow_connect.jvm.frames import encode
from airflow_connect.jvm.host import PluginHost
from airflow_connect.kafka.admin.consumer_group import group_state, read_committed_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.conftest import MakeTopic
from tests.integration.jvm.hosting import configuration, frame_of
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

StartMember = Callable[..., PluginHost]


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic(2)


@pytest.fixture
def start_member(start_host: Callable[[], PluginHost], kafka: KafkaBroker, topic: str) -> StartMember:
    """`start_member([0], everyone=[0, 1])`: a task with these partitions, that has joined."""

    def start(own: Sequence[int], everyone: Sequence[int], timeout_ms: int = 20_000) -> PluginHost:
        host = start_host()
        config = configuration("GroupSink", topics=topic)
        host.call(
            "sink",
            config=config,
            task=config,
            task_class="plugins.GroupSink$Writes",
            task_id=own[0],
            assignment=[[topic, number] for number in own],
            group={
                "id": f"connect-{topic}",
                "config": {"bootstrap.servers": kafka.bootstrap, "session.timeout.ms": "30000"},
                "partitions": [[topic, number] for number in everyone],
                "timeout_ms": timeout_ms,
            },
        )
        return host

    return start


def put(host: PluginHost, topic: str, count: int) -> Any:
    encoded = encode(replace(frame_of([(None, b"v")] * count), topics=[topic]))
    return host.call("put", encoded.body, **encoded.members).result


def both(start_member: StartMember) -> list[PluginHost]:
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(partial(start_member, everyone=[0, 1]), ([0], [1])))


def test_members_have_what_is_planned_and_commit_as_members(
    start_member: StartMember, kafka: KafkaBroker, topic: str, lines: list[str]
) -> None:
    first, _second = both(start_member)
    admin = admin_client({"bootstrap.servers": kafka.bootstrap})
    state, members = group_state(admin, f"connect-{topic}")
    assert state == "stable"
    assert sorted(member.partitions for member in members) == [((topic, 0),), ((topic, 1),)]

    assert put(first, topic, 3)["delivered"] == 3
    place = TopicPartition(topic, 0)
    assert read_committed_offsets(admin, f"connect-{topic}", [place]) == {place: 3}
    assert first.call("group_committed", partitions=[[topic, 0], [topic, 1]]).result["value"] == [[topic, 0, 3, ""]]
    first.call("group_commit", offsets=[[topic, 0, 3, "a note"]])
    assert first.call("group_committed", partitions=[[topic, 0]]).result["value"] == [[topic, 0, 3, "a note"]]


def test_member_that_is_left_alone_fails(start_member: StartMember, topic: str) -> None:
    first, second = both(start_member)
    second.close()

    def is_told() -> bool:
        try:
            put(first, topic, 0)
        except JavaGroupError as error:
            return "have changed while the run copied" in error.message
        return False

    wait_until(is_told, "the error of the member that is left", 30, every_s=0.1)


def test_records_that_the_group_has_as_written_are_only_converted(
    start_member: StartMember, topic: str, lines: list[str]
) -> None:
    first = start_member([0], everyone=[0])
    put(first, topic, 3)
    first.close()
    again = start_member([0], everyone=[0])
    result = put(again, topic, 5)
    assert (result["delivered"], result["dropped"]) == (2, 0)
    again.close()
    assert [line for line in lines if line.startswith("got")] == [f"got 0@{offset}" for offset in range(5)]


def test_task_whose_wait_times_out_names_the_missing_partitions(start_member: StartMember, topic: str) -> None:
    # On a busy machine the only task may not have joined by then, either.
    missing = f"No task has joined the consumer group connect-{topic} for ({topic}-0, )?{topic}-1 "
    with pytest.raises(JavaGroupError, match=missing):
        start_member([0], everyone=[0, 1], timeout_ms=1_500)


def test_group_with_another_consumer_is_named(start_member: StartMember, kafka: KafkaBroker, topic: str) -> None:
    other = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"connect-{topic}"})
    try:
        other.subscribe([topic])
        wait_until(lambda: other.poll(0.1) is None and bool(other.assignment()), "the other consumer", 60)
        with pytest.raises(JavaGroupError, match="Another consumer is a member"):
            start_member([0], everyone=[0])
    finally:
        other.close()


def test_plugin_without_a_member_gets_no_consumer(start_task: Callable[..., PluginHost]) -> None:
    host = start_task("GroupSink")
    with pytest.raises(JavaPluginError):
        put(host, "t", 1)
