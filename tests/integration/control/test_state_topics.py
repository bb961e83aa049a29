"""The config and status topics on a real broker: several writers, topics that cannot be used, many records."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest
from confluent_kafka import Producer

from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state import records
from airflow_connect.control.state.status_fold import Status
from airflow_connect.control.state.topics import Change, State, StateTopics
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import compacted_topics
from tests.support.kafka_data import delete_topic

pytestmark = pytest.mark.integration


@pytest.fixture
def worker(kafka, unique_name) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": unique_name,
        "config.storage.topic": f"{unique_name}-configs",
        "config.storage.replication.factor": "1",
        "status.storage.topic": f"{unique_name}-status",
        "status.storage.replication.factor": "1",
    }


def opened(worker: Mapping[str, str]) -> StateTopics:
    topics = StateTopics(ControlSettings.from_worker(worker))
    topics.open()
    return topics


def config_of(topics: StateTopics, name: str) -> dict[str, str | None]:
    return topics.look(lambda state: dict(state.config.connectors[name].config))


def test_what_one_process_writes_another_one_reads_at_once(worker):
    ours, theirs = opened(worker), opened(worker)
    change = Change(
        [records.connector_config("c", {"a": "b"}), records.target_state("c", "STOPPED")],
        [records.connector_status("c", Status("STOPPED", "w:1").to_json())],
    )
    ours.change(lambda _: change, lambda _: None)
    assert config_of(theirs, "c") == {"a": "b"}
    assert theirs.look(lambda state: (state.config.target("c"), state.status.connectors["c"].state)) == (
        "STOPPED",
        "STOPPED",
    )


def test_a_process_that_died_inside_a_change_keeps_no_other_one_from_reading_and_writing(worker, unique_name):
    settings = ControlSettings.from_worker(worker)
    dead = Producer(
        {"bootstrap.servers": worker["bootstrap.servers"], "transactional.id": f"connect-cluster-{unique_name}"}
    )
    ours = opened(worker)
    ours.change(lambda _: Change([records.connector_config("c", {"n": "1"})]), lambda _: None)
    dead.init_transactions()
    dead.begin_transaction()
    key, value = records.connector_config("c", {"n": "2"})
    dead.produce(settings.config_topic.name, value, key, partition=0)
    dead.flush()
    # Its transaction stays open for a minute; a read that waited for its end would fail.
    assert config_of(ours, "c") == config_of(opened(worker), "c") == {"n": "1"}
    ours.change(lambda _: Change([records.connector_config("d", {"n": "3"})]), lambda _: None)
    for topics in (ours, opened(worker)):
        assert (config_of(topics, "c"), config_of(topics, "d")) == ({"n": "1"}, {"n": "3"})


def test_no_increment_of_two_writers_at_once_is_lost(worker):
    opened(worker).change(lambda _: Change([records.connector_config("c", {"n": "0"})]), lambda _: None)

    def increment(state: State) -> Change:
        number = int(state.config.connectors["c"].config["n"] or 0)
        return Change([records.connector_config("c", {"n": str(number + 1)})])

    def work(topics: StateTopics) -> None:
        for _ in range(10):
            topics.change(increment, lambda _: None)

    writers = [threading.Thread(target=work, args=(opened(worker),)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert config_of(opened(worker), "c") == {"n": "20"}


def test_a_change_that_is_refused_writes_nothing(worker):
    topics = opened(worker)

    def refuse(_: State) -> Change:
        raise ConfigError("The connector exists.")

    with pytest.raises(ConfigError, match="The connector exists"):
        topics.change(refuse, lambda _: None)
    assert topics.look(lambda state: (state.config.connectors, state.config.next_offset)) == ({}, 0)


def test_a_config_topic_with_several_partitions_is_refused(worker, make_topic):
    name = make_topic(partitions=2, config={"cleanup.policy": "compact"})
    with pytest.raises(ConfigError, match=f"The topic {name} has 2 partitions"):
        opened({**worker, "config.storage.topic": name})


def test_a_status_topic_that_is_not_compacted_is_refused(worker, make_topic):
    name = make_topic(config={"cleanup.policy": "delete"})
    with pytest.raises(ConfigError, match=r"cleanup\.policy=delete"):
        opened({**worker, "status.storage.topic": name})


def test_a_status_topic_that_is_missing_beside_an_existing_config_topic_is_created(worker):
    """As where sources have run before the first worker starts."""
    settings = ControlSettings.from_worker(worker)
    compacted_topics.ensure(admin_client(settings.admin), settings.config_topic)
    assert opened(worker).look(lambda state: state.config.next_offset) == 0


def test_a_topic_that_was_recreated_is_read_from_its_beginning(worker, kafka):
    topics = opened(worker)
    for number in range(3):
        topics.change(lambda _, n=number: Change([records.connector_config(f"c{n}", {})]), lambda _: None)
    delete_topic(kafka.bootstrap, worker["config.storage.topic"])
    again = opened(worker)
    again.change(lambda _: Change([records.connector_config("new", {})]), lambda _: None)
    assert topics.look(lambda state: list(state.config.connectors)) == ["new"]
