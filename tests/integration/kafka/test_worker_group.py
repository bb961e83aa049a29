"""Who counts as a live Kafka Connect worker; with a real one: tests/integration/connect_handover."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import UnavailableError
from airflow_connect.kafka.admin import worker_group
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.conftest import MakeTopic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


def test_group_that_nobody_is_in_has_no_workers(kafka: KafkaBroker, unique_name: str):
    assert worker_group.live_workers(admin_client({"bootstrap.servers": kafka.bootstrap}), unique_name) == []


def test_consumers_in_a_group_of_that_name_are_no_workers(kafka: KafkaBroker, make_topic: MakeTopic, unique_name: str):
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": unique_name})
    try:
        consumer.subscribe([make_topic()])

        def has_joined() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(has_joined, "a member of the group")
        assert worker_group.live_workers(admin_client({"bootstrap.servers": kafka.bootstrap}), unique_name) == []
    finally:
        consumer.close()


def test_cluster_that_does_not_answer_is_not_taken_for_one_without_workers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(worker_group, "API_TIMEOUT_S", 1.0)
    with KafkaBroker.start() as broker:
        admin = admin_client({"bootstrap.servers": broker.bootstrap})
        broker.kill()
        with pytest.raises(UnavailableError, match="looking for live workers of group g"):
            worker_group.live_workers(admin, "g")
