"""What connectors and workers inherit from a MirrorMaker 2 properties file, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.connectors.mirror.flows.maker_config import FlowConnector, connectors_of
from airflow_connect.errors import ConfigError
from airflow_connect.java.properties_file import parse_properties

FILE = """
clusters = west, east
west.bootstrap.servers = west:9092
east.bootstrap.servers = east:9092
west.security.protocol = SASL_SSL
west.consumer.fetch.max.bytes = 1000
east.producer.compression.type = zstd
ssl.truststore.location = /etc/trust.jks
topics = orders.*
groups = app-.*
tasks.max = 4
replication.policy.separator = _
offset.storage.replication.factor = 1
spark.master = local[1]
west->east.enabled = true
west->east.topics = orders, users
west->east.sync.group.offsets.enabled = true
east->west.enabled = false
unknown.key = 1
"""


def found(text: str = FILE, only: tuple[str, ...] = ()) -> list[FlowConnector]:
    return connectors_of(parse_properties(text), "mm2.properties", only)


def test_heartbeats_go_both_ways_and_records_where_a_flow_is_enabled() -> None:
    assert [(one.flow, one.kind) for one in found()] == [
        ("west->east", "MirrorHeartbeatConnector"),
        ("east->west", "MirrorHeartbeatConnector"),
        ("west->east", "MirrorSourceConnector"),
        ("west->east", "MirrorCheckpointConnector"),
    ]


def test_flows_to_other_clusters_are_left_out() -> None:
    assert [(one.flow, one.kind) for one in found(only=("west",))] == [("east->west", "MirrorHeartbeatConnector")]


def test_heartbeats_can_be_disabled_for_all_or_one_flow() -> None:
    one = found(FILE + "east->west.emit.heartbeats.enabled = false\n")
    none = found(FILE + "emit.heartbeats.enabled = false\n")
    assert [c.flow for c in one if c.kind == "MirrorHeartbeatConnector"] == ["west->east"]
    assert [c.flow for c in none if c.kind == "MirrorHeartbeatConnector"] == []


def test_connector_inherits_from_file_clusters_and_flow() -> None:
    source, checkpoint = found()[2:]
    expected = {
        "name": "MirrorSourceConnector",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "enabled": "true",
        "source.cluster.alias": "west",
        "target.cluster.alias": "east",
        "source.cluster.bootstrap.servers": "west:9092",
        "target.cluster.bootstrap.servers": "east:9092",
        "source.cluster.security.protocol": "SASL_SSL",
        "source.consumer.security.protocol": "SASL_SSL",
        "source.cluster.ssl.truststore.location": "/etc/trust.jks",
        "source.consumer.fetch.max.bytes": "1000",
        "target.producer.compression.type": "zstd",
        "topics": "orders, users",
        "tasks.max": "4",
        "replication.policy.separator": "_",
        "sync.group.offsets.enabled": "true",
    }
    assert expected.items() <= source.config.items()
    assert not {"groups", "unknown.key", "clusters", "target.cluster.security.protocol"} & set(source.config)
    assert {"groups": "app-.*", "topics": "orders, users"}.items() <= checkpoint.config.items()


def test_worker_has_the_groups_and_topics_of_mirrormaker() -> None:
    worker = found()[2].worker
    expected = {
        "bootstrap.servers": "east:9092",
        "group.id": "west-mm2",
        "offset.storage.topic": "mm2-offsets.west.internal",
        "config.storage.topic": "mm2-configs.west.internal",
        "status.storage.topic": "mm2-status.west.internal",
        "runs.storage.topic": "mm2-runs.west.internal",
        "offset.storage.replication.factor": "1",
        "runs.storage.replication.factor": "1",
        "producer.compression.type": "zstd",
        "ssl.truststore.location": "/etc/trust.jks",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "spark.master": "local[1]",
    }
    assert expected.items() <= worker.items()
    assert "security.protocol" not in worker


@pytest.mark.parametrize(
    ("change", "key", "message"),
    [
        (("clusters = west, east", ""), "clusters", "no cluster is named"),
        (("east.bootstrap.servers = east:9092", ""), "east.bootstrap.servers", "the address of cluster east"),
        (("west->east.enabled = true", ""), "west->east.enabled", "no flow is enabled"),
        (("west->east.topics", "west->est.topics"), "west->est.topics", "there is no cluster est"),
    ],
)
def test_what_is_wrong_is_named_with_its_key_and_file(change: tuple[str, str], key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        found(FILE.replace(*change))
    assert error.value.config_path == key
    assert "mm2.properties" in error.value.message


def test_unknown_cluster_of_the_command_line_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no cluster eastt") as error:
        found(only=("eastt",))
    assert error.value.suggestion == "Did you mean east?"


def test_file_of_the_how_to_has_two_flows() -> None:
    page = (Path(__file__).parents[5] / "docs" / "how-to" / "mirror-clusters.md").read_text("utf-8")
    text = page.partition("```properties mirror\n")[2].partition("```")[0]
    connectors = found(text)
    assert [(one.flow, one.config["topics"]) for one in connectors if one.kind == "MirrorSourceConnector"] == [
        ("west->east", "orders.*, users"),
        ("east->west", "payments"),
    ]
    for one in connectors:
        assert one.config["source.cluster.security.protocol" if one.source == "west" else "name"]
        assert not {"sasl.mechanism"} & set(one.worker) or one.target == "west"
