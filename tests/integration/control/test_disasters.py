"""What docs/operations.md says about lost state: each step is tried."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.topics import Topics
from tests.support.copies.s3 import InProcessEngine, Sink, numbered
from tests.support.kafka_data import delete_topic

pytestmark = pytest.mark.integration


@pytest.fixture
def sink(make_sink, make_topic, produce, unique_name) -> Sink:
    """A sink with state topics of its own that has copied ten records."""
    made: Sink = make_sink(make_topic(), flush_size="5")
    made.worker_config |= {
        "group.id": unique_name,
        **{f"{kind}.storage.topic": f"{unique_name}-{kind}" for kind in ("config", "status", "offset", "runs")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "status", "offset", "runs")},
    }
    produce(made.topic, numbered(0, 10)[0])
    assert made.run().records == 10
    produce(made.topic, numbered(10, 13)[0])
    return made


def lose_group(sink: Sink) -> None:
    group = f"connect-{sink.name}"
    admin = AdminClient({"bootstrap.servers": sink.kafka.bootstrap})
    admin.delete_consumer_groups([group])[group].result(10)
    assert sink.offsets() == {}


def herder_of(sink: Sink) -> Herder:
    settings = ControlSettings.from_worker(sink.worker())
    topics = StateTopics(settings)
    topics.open()
    return Herder(topics, settings, "me:1")


def test_offsets_of_the_group_are_lost_and_a_run_goes_on_where_the_last_one_ended(sink: Sink):
    lose_group(sink)
    assert sink.run().records == 3
    sink.assert_exactly_once(numbered(0, 13)[1])


def test_the_runs_topic_is_lost_and_a_run_goes_on_from_the_offsets_of_the_group(sink: Sink):
    delete_topic(sink.kafka.bootstrap, sink.worker_config["runs.storage.topic"])
    assert sink.run().records == 3
    sink.assert_exactly_once(numbered(0, 13)[1])


def test_both_are_lost_and_offsets_from_the_names_of_the_last_objects_continue_the_copy(sink: Sink):
    lose_group(sink)
    delete_topic(sink.kafka.bootstrap, sink.worker_config["runs.storage.topic"])
    herder = herder_of(sink)
    herder.create(sink.name, sink.connector(), "STOPPED")
    # The name of the last object of each partition has its first offset; the object tells how many records follow.
    last = sink.keys()[-1]
    partition, first = (int(part) for part in last.split("/")[-1].partition(".")[0].split("+")[1:])
    end = first + len(sink.body(last).splitlines())
    place = {"kafka_topic": sink.topic, "kafka_partition": partition}
    herder.alter_offsets(sink.name, {"offsets": [{"partition": place, "offset": {"kafka_offset": end}}]})
    assert sink.run().records == 3
    sink.assert_exactly_once(numbered(0, 13)[1])


def test_config_and_status_topics_are_lost_and_connectors_are_registered_again(sink: Sink):
    herder_of(sink).create(sink.name, sink.connector())
    for kind in ("config", "status"):
        delete_topic(sink.kafka.bootstrap, sink.worker_config[f"{kind}.storage.topic"])
    herder = herder_of(sink)
    assert herder.names() == []
    herder.create(sink.name, sink.connector())
    assert herder.offsets(sink.name)["offsets"][0]["offset"] == {"kafka_offset": 10}
    assert sink.run().records == 3
    sink.assert_exactly_once(numbered(0, 13)[1])


def test_the_bucket_is_lost_and_what_the_topic_still_holds_is_copied_again(sink: Sink):
    sink.remove_all()
    herder = herder_of(sink)
    herder.create(sink.name, sink.connector(), "STOPPED")
    herder.reset_offsets(sink.name)
    assert sink.run().records == 13
    sink.assert_exactly_once(numbered(0, 13)[1])


def test_both_are_lost_and_a_run_that_starts_over_writes_the_same_objects_again(sink: Sink):
    before = sink.keys()
    lose_group(sink)
    delete_topic(sink.kafka.bootstrap, sink.worker_config["runs.storage.topic"])
    assert sink.run().records == 13
    assert set(before) <= set(sink.keys())
    sink.assert_exactly_once(numbered(0, 13)[1])


def test_the_offsets_topic_is_lost_and_a_source_goes_on_from_offsets_that_are_set(sink: Sink, make_topic, tmp_path):
    file, topic, name = tmp_path / "lines.txt", make_topic(), f"source-{sink.name}"
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": topic, "name": name}
    spec = RunSpec(config, sink.worker())
    file.write_text("one\ntwo\n")
    assert run_connector(spec, engine=InProcessEngine()).records == 2
    herder = herder_of(sink)
    herder.create(name, config, "STOPPED")
    (before,) = herder.offsets(name)["offsets"]
    delete_topic(sink.kafka.bootstrap, sink.worker_config["offset.storage.topic"])
    herder.alter_offsets(name, {"offsets": [before]})
    with file.open("a") as out:
        out.write("three\n")
    assert run_connector(spec, engine=InProcessEngine()).records == 1
    lines = [message.value() for message in Topics(sink.kafka.bootstrap).read(topic)]
    assert lines == [b'"one"', b'"two"', b'"three"']
