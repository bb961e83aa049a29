"""Where partitions end while they get a new leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import AccessError, UnavailableError
from airflow_connect.kafka.admin import many_offsets, watermarks
from airflow_connect.kafka.admin.watermarks import (
    READ_COMMITTED,
    earliest_offsets,
    latest_offsets,
    offsets_for_timestamp,
)
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from tests.support.servers.mock_kafka import MockKafka

pytestmark = pytest.mark.integration

PARTITION = TopicPartition("records", 0)


@pytest.mark.parametrize(
    "answer",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
    ],
)
def test_end_is_asked_for_again_while_the_leader_is_new(answer: int) -> None:
    with MockKafka() as mock:
        mock.create("records")
        mock.answer_list_offsets(answer, answer)
        assert latest_offsets(admin_client({"bootstrap.servers": mock.bootstrap}), [PARTITION], READ_COMMITTED) == {
            PARTITION: 0
        }


def test_other_refusals_are_reported() -> None:
    with MockKafka() as mock:
        mock.create("records")
        mock.answer_list_offsets(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(AccessError, match="asking for an offset of records-0"):
            latest_offsets(admin_client({"bootstrap.servers": mock.bootstrap}), [PARTITION], READ_COMMITTED)


HERE, THERE = TopicPartition("two", 0), TopicPartition("two", 1)


@pytest.fixture
def half() -> Iterator[MockKafka]:
    """Two brokers; the second, which leads the second partition, has just died."""
    with MockKafka(2) as mock:
        mock.create("two", 2)
        mock.lead("two", 0, 1)
        mock.lead("two", 1, 2)
        yield mock


def asked_after_its_end(mock: MockKafka) -> Admin:
    """A client that knew the second broker."""
    admin = admin_client({"bootstrap.servers": mock.bootstrap})
    assert latest_offsets(admin, [HERE, THERE], READ_COMMITTED) == {HERE: 0, THERE: 0}
    mock.stop(2)
    return admin


QUESTIONS: dict[str, Callable[[Admin, list[TopicPartition]], dict[TopicPartition, int | None]]] = {
    "end": lambda admin, tps: dict(latest_offsets(admin, tps, READ_COMMITTED)),
    "start": lambda admin, tps: dict(earliest_offsets(admin, tps)),
    "time": lambda admin, tps: {tp: offset or 0 for tp, offset in offsets_for_timestamp(admin, tps, 1).items()},
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("tps", [[HERE, THERE], [THERE]], ids=["some answer", "none answers"])
def test_partition_whose_broker_has_died_is_not_empty(
    half: MockKafka, monkeypatch: pytest.MonkeyPatch, question: str, tps: list[TopicPartition]
) -> None:
    admin = asked_after_its_end(half)
    monkeypatch.setattr(watermarks, "FIRST_ANSWER_TIMEOUT_S", 0.4)
    refresh = watermarks._refresh_leaders
    again: list[list[TopicPartition]] = []

    def elected(client: Admin, missing: list[TopicPartition], **limits: object) -> None:
        again.append(missing)
        half.lead("two", 1, 1)
        refresh(client, missing, **limits)

    monkeypatch.setattr(watermarks, "_refresh_leaders", elected)

    assert QUESTIONS[question](admin, tps) == dict.fromkeys(tps, 0)
    assert again[0] == [THERE]


def test_partition_whose_broker_stays_away_fails(half: MockKafka) -> None:
    admin = asked_after_its_end(half)

    with pytest.raises(UnavailableError, match="asking for an offset of two-1"):
        latest_offsets(admin, [HERE, THERE], READ_COMMITTED, patience_s=1.0)


def test_one_of_many_partitions_has_an_error_of_its_own(half: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = asked_after_its_end(half)
    monkeypatch.setattr(many_offsets, "REQUEST_TIMEOUT_S", 1.0)

    found = many_offsets.offset_of_each(admin, dict.fromkeys([HERE, THERE], many_offsets.LATEST), READ_COMMITTED)

    assert found[HERE] == 0
    assert isinstance(found[THERE], UnavailableError)
