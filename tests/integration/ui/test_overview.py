"""What pages say about how far a sink is behind, read from a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state import records
from airflow_connect.control.state.topics import Change, StateTopics
from airflow_connect.ui.overview.model import State
from airflow_connect.ui.overview.reader import InstallationReader
from tests.support.copies.showcase import HEALTHY, Showcase
from tests.support.kafka_data import TopicProducer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


def test_group_beyond_an_open_transaction_is_not_outside_the_log(
    kafka, make_topic, produce: TopicProducer, unique_name: str
) -> None:
    """Kafka Connect reads uncommitted by default: it has committed records of a transaction that is still open."""
    topic = make_topic()
    settings = ControlSettings.from_worker(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": unique_name,
            "config.storage.topic": f"{unique_name}-configs",
            "config.storage.replication.factor": "1",
            "status.storage.topic": f"{unique_name}-status",
            "status.storage.replication.factor": "1",
        }
    )
    sink = {"name": unique_name, "connector.class": "LocalSink", "topics": topic}
    topics = StateTopics(settings)
    topics.open()
    topics.change(lambda _: Change([records.connector_config(unique_name, sink)]), lambda _: None)
    transaction = produce.transaction(topic, [(0, None, "a", 0), (0, None, "b", 0)], "open")
    group = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"connect-{unique_name}"})
    group.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    group.close()

    reader, seen = InstallationReader(settings), []

    def is_answered() -> bool:  # A busy broker may take longer than a round waits.
        seen.append(reader.read().connectors[unique_name])
        return "in time" not in seen[-1].lag_problem

    wait_until(is_answered, "Kafka sends the committed offsets", 50)  # the transaction ends after 60 s
    transaction.abort_transaction()

    assert (seen[-1].lag_problem, seen[-1].lag) == ("", 0)


def test_sink_whose_topic_is_gone_is_not_up_to_date(
    kafka, make_topic, produce: TopicProducer, unique_name: str, tmp_path: Path
) -> None:
    topic = make_topic()
    made = Showcase(kafka.bootstrap, unique_name, tmp_path, produce, {HEALTHY: topic})
    made.herder.create(HEALTHY, made.config(HEALTHY))
    made.add(HEALTHY, 4, partitions=1)
    assert made.run(HEALTHY, made.config(HEALTHY)).status == "done"
    reader = InstallationReader(made.settings)
    wait_until(lambda: reader.read().connectors[HEALTHY].state is State.CURRENT, "everything is known to be copied")

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics([topic])[topic].result(30)

    wait_until(lambda: reader.read().connectors[HEALTHY].state is State.UNKNOWN, "the topic is known to be gone")
    found = reader.read().connectors[HEALTHY]
    assert found.lag is None
    assert f"Kafka has no topic {topic}" in found.lag_problem
