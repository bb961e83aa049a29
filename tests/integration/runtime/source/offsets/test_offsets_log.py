"""A source whose topic with offsets ends earlier than when it was read: for a moment, or for good."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from confluent_kafka import Message

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.admin.watermarks import LogEnd
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.kafka.state.offsets import offsets_view
from tests.integration.runtime.source.conftest import Numbers

pytestmark = pytest.mark.integration

Ends = Callable[[Admin, Iterable[TopicPartition]], dict[TopicPartition, LogEnd]]


def earlier_ends(monkeypatch: pytest.MonkeyPatch, ends_before: dict[TopicPartition, LogEnd], times: int) -> None:
    """A broker that led the partitions until then answers so many times, and has no later records."""
    real: Ends = offsets_view.log_ends
    read_to = compacted_topics.read_to
    calls = itertools.count()

    def answered(admin: Admin, tps: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        found, is_old = real(admin, tps), next(calls) < times
        return {tp: ends_before.get(tp, end) for tp, end in found.items()} if is_old else found

    def up_to_the_end(settings: Any, starts: Any, ends: Any, take: Callable[[Message], None]) -> None:
        def taken(message: Message) -> None:
            if message.offset() < ends[TopicPartition(message.topic(), message.partition())]:
                take(message)

        read_to(settings, starts, ends, taken)

    monkeypatch.setattr(offsets_view, "log_ends", answered)
    monkeypatch.setattr(compacted_topics, "read_to", up_to_the_end)


@pytest.fixture
def ends_after_the_first_run(numbers: Numbers, monkeypatch: pytest.MonkeyPatch) -> dict[TopicPartition, LogEnd]:
    """Two runs are done; where the topic with offsets ended after the first of them."""
    seen: dict[TopicPartition, LogEnd] = {}
    real: Ends = offsets_view.log_ends

    def watched(admin: Admin, tps: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        found = real(admin, tps)
        seen.update(found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(offsets_view, "log_ends", watched)
        numbers.feed(20, 30)
        numbers.run()
    numbers.feed(40, 60)
    numbers.run()
    return seen


def test_a_broker_that_answers_with_an_earlier_end_is_asked_again(
    numbers: Numbers, ends_after_the_first_run: dict[TopicPartition, LogEnd], monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier_ends(monkeypatch, ends_after_the_first_run, times=3)
    numbers.feed(50, 60)

    report = numbers.run()

    assert (report.records, report.notes) == (10, ())
    numbers.assert_exactly_once(50, 60)


def test_a_topic_that_has_lost_its_end_is_named_once(
    numbers: Numbers, ends_after_the_first_run: dict[TopicPartition, LogEnd], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets_view, "BEHIND_TIMEOUT_S", 0.0)
    with monkeypatch.context() as patched:
        earlier_ends(patched, ends_after_the_first_run, times=1_000)
        lost = numbers.run()

    then = numbers.run()

    note = next(note for note in lost.notes if "lost their end" in note)
    assert note.startswith("Topics with offsets have lost their end since it was read: connect-offsets-")
    assert lost.records == 50, "what the offsets of the second run stood for"
    assert then.notes == ()
