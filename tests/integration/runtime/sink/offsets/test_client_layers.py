"""Where a run starts and ends is decided by the same client settings as what its readers read."""

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.admin.watermarks import latest_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.support.copies.s3 import numbered
from tests.support.waiting import wait_until

LAYERS = ["", "consumer.", "consumer.override."]


def given(layer, key, value):
    """(settings of the worker, settings of the connector) with `key` in one layer."""
    setting = {f"{layer}{key}": value}
    return ({}, setting) if layer == "consumer.override." else (setting, {})


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("reset", ["latest", "largest"])
def test_auto_offset_reset_in_every_layer_decides_where_a_new_connector_begins(
    make_topic, produce, make_sink, layer, reset
):
    topic = make_topic()
    produce(topic, numbered(0, 5)[0])
    sink = make_sink(topic)
    sink.worker_config, sink.config = given(layer, "auto.offset.reset", reset)

    sink.run()
    produce(topic, numbered(5, 7)[0])
    sink.run()

    # Without a prefix it is a setting of the worker's own clients, as in Kafka Connect.
    sink.assert_exactly_once([{"n": n} for n in range(5 if layer else 0, 7)])
    assert sink.offsets() == {0: 7}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("reset", ["smallest", "beginning", "earliest"])
def test_auto_offset_reset_to_the_beginning_has_three_names(make_topic, produce, make_sink, layer, reset):
    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    sink = make_sink(topic)
    sink.worker_config, sink.config = given(layer, "auto.offset.reset", reset)

    assert sink.run().records == 3


@pytest.mark.parametrize("layer", LAYERS)
def test_isolation_level_in_every_layer_holds_for_plan_and_reader(kafka, make_topic, produce, make_sink, layer):
    topic = make_topic()
    produce(topic, numbered(0, 2)[0])
    produce.transaction(topic, numbered(2, 4)[0], "abort")
    admin, partition = admin_client({"bootstrap.servers": kafka.bootstrap}), TopicPartition(topic, 0)
    # The broker writes the marker after it has answered.
    wait_until(
        lambda: latest_offsets(admin, [partition], "read_uncommitted")[partition] == 5, "the marker of the abort"
    )
    produce.transaction(topic, numbered(4, 6)[0], "open")
    sink = make_sink(topic)
    sink.worker_config, sink.config = given(layer, "isolation.level", "read_uncommitted")

    report = sink.run()

    assert report.records == (6 if layer else 2)
    # Up to the high watermark, or up to the open transaction; the marker of the aborted one counts.
    assert sink.offsets() == {0: 7 if layer else 5}


@pytest.fixture
def other_cluster():
    """A second broker: every broker that is started is a cluster of its own."""
    with KafkaBroker.start() as broker:
        yield broker


def test_clients_of_different_clusters_are_refused_before_anything_is_planned(
    make_topic, produce, make_sink, other_cluster
):
    topic = make_topic()
    produce(topic, numbered(0, 2)[0])
    sink = make_sink(topic)
    for kind in ("consumer", "producer"):
        key = f"{kind}.override.bootstrap.servers"
        sink.config = {key: other_cluster.bootstrap}
        error = sink.try_run().error
        assert error["configPath"] == key
        assert "different Kafka clusters" in error["message"]
    # Another address of the same cluster is none.
    host, port = sink.kafka.bootstrap.split(":")
    sink.config = {"consumer.override.bootstrap.servers": f"{host}:{port},{host}:{port}"}
    assert sink.run().records == 2
