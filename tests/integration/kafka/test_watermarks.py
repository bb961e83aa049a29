"""Where partitions end while they get a new leader."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.watermarks import READ_COMMITTED, latest_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
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
