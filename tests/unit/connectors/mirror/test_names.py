"""Names of remote topics, and which topics are mirrored."""

from __future__ import annotations

import pytest

from airflow_connect.connectors.mirror.config import MirrorConfig
from airflow_connect.connectors.mirror.policy import DEFAULT_POLICY, IDENTITY_POLICY, ReplicationPolicy
from airflow_connect.errors import ConfigError

CLUSTERS = {
    "source.cluster.alias": "west",
    "target.cluster.alias": "east",
    "source.cluster.bootstrap.servers": "west:9092",
    "target.cluster.bootstrap.servers": "east:9092",
}


def config(**overrides: str) -> MirrorConfig:
    return MirrorConfig.from_config({**CLUSTERS, **{k.replace("_", "."): v for k, v in overrides.items()}})


def selected(*topics: str, **overrides: str) -> list[str]:
    return list(config(**overrides).selection.select(topics))


@pytest.mark.parametrize(
    ("policy", "topic", "remote"),
    [
        (DEFAULT_POLICY, "orders", "west.orders"),
        (DEFAULT_POLICY, "north.orders", "west.north.orders"),
        (IDENTITY_POLICY, "orders", "orders"),
        (IDENTITY_POLICY, "heartbeats", "west.heartbeats"),
    ],
)
def test_remote_topic_is_named_as_in_mirrormaker(policy: str, topic: str, remote: str) -> None:
    assert config(replication_policy_class=policy).policy.remote_topic(topic) == remote


def test_separator_is_part_of_remote_names_and_of_internal_topics() -> None:
    policy = config(replication_policy_separator="_").policy

    assert policy.remote_topic("orders") == "west_orders"
    assert policy.is_internal("mm2-offset-syncs_east_internal") and not policy.is_internal("a_external")
    own = {MirrorConfig.separator.name: "_", MirrorConfig.internal_separator.name: "false", **CLUSTERS}
    assert not MirrorConfig.from_config(own).policy.is_internal("mm2-offset-syncs_east_internal")


@pytest.mark.parametrize(
    ("topic", "is_cycle"),
    [
        ("orders", False),
        ("east.orders", True),
        ("north.east.orders", True),
        ("north.orders", False),
        ("east", False),
        ("east.", False),  # Java's split drops the empty part at the end
        (".east", False),
    ],
)
def test_topic_that_came_from_the_target_is_a_cycle(topic: str, is_cycle: bool) -> None:
    assert ReplicationPolicy("west", "east").is_cycle(topic) is is_cycle


@pytest.mark.parametrize(
    ("source", "topic", "goes_round"),
    [
        ("west", "orders", False),
        ("west", "west.orders", False),
        ("west", "sales.west.orders", False),
        ("west", "west.west.orders", True),
        ("west", "b.west.b.west.orders", True),
        ("west", "west.midwest.orders", False),
        ("us.west", "us.west.us.east.us.west.orders", True),
        ("us.west", "us.west.orders", False),
    ],
)
def test_topic_with_the_alias_of_its_own_cluster_twice_goes_round(source: str, topic: str, goes_round: bool) -> None:
    assert ReplicationPolicy(source, "east").goes_round(topic) is goes_round
    assert not ReplicationPolicy(source, "east", keeps_names=True).goes_round(topic)


def test_identity_policy_recognises_cycles_of_heartbeats_only() -> None:
    policy = ReplicationPolicy("west", "east", keeps_names=True)

    assert not policy.is_cycle("east.orders")
    assert policy.is_cycle("east.heartbeats")


def test_every_topic_is_mirrored_but_internal_ones_and_cycles() -> None:
    found = selected(
        "orders", "north.orders", "east.orders", "__consumer_offsets", ".hidden", "a.internal", "a-internal",
        "a.replica", "mm2-offset-syncs.east.internal", "west.checkpoints.internal",
    )  # fmt: skip

    assert found == ["north.orders", "orders"]


def test_internal_topic_is_not_mirrored_even_if_it_is_named() -> None:
    assert selected("__x", "a.internal", "b", topics="__x,a.internal,b", topics_exclude="nothing") == ["b"]


def test_patterns_match_whole_names_and_exclusion_takes_precedence() -> None:
    topics = ("orders", "orders-eu", "my-orders", "users")

    assert selected(*topics, topics="orders.*, users", topics_exclude=".*-eu") == ["orders", "users"]
    assert selected(*topics, topics="orders.*", topics_blacklist="orders") == ["orders-eu"]


def test_heartbeats_are_mirrored_although_no_pattern_names_them() -> None:
    topics = ("heartbeats", "north.heartbeats", "east.heartbeats", "orders")

    assert selected(*topics, topics="orders") == ["heartbeats", "north.heartbeats", "orders"]
    assert selected(*topics, topics="orders", heartbeats_replication_enabled="false") == ["orders"]


def test_consumer_is_read_committed_and_takes_keys_of_mirrormaker_in_their_order() -> None:
    client = config(
        source_cluster_security_protocol="SSL",
        source_cluster_max_poll_records="5",
        consumer_fetch_min_bytes="10",
        source_consumer_fetch_min_bytes="20",
        consumer_poll_timeout_ms="7",
        consumer_override_fetch_min_bytes="30",
    ).source_consumer()

    assert client.isolation_level == "read_committed" and client.auto_offset_reset == "earliest"
    assert client.settings["bootstrap.servers"] == "west:9092"
    assert client.settings["security.protocol"] == "SSL"
    assert client.settings["fetch.min.bytes"] == "20"


def test_admin_clients_have_the_settings_of_their_cluster() -> None:
    typed = config(admin_retry_backoff_ms="9", target_admin_retry_backoff_ms="11")

    assert typed.source_admin()["bootstrap.servers"] == "west:9092"
    assert typed.source_admin()["retry.backoff.ms"] == "9"
    assert typed.target_admin()["bootstrap.servers"] == "east:9092"
    assert typed.target_admin()["retry.backoff.ms"] == "11"


def test_wrong_setting_is_named_with_its_prefix() -> None:
    with pytest.raises(ConfigError) as of_cluster:
        config(source_cluster_request_timeout_ms="soon").source_consumer()
    with pytest.raises(ConfigError) as of_consumer:
        config(consumer_isolation_level="some").source_consumer()

    assert of_cluster.value.config_path == "source.cluster.request.timeout.ms"
    assert of_consumer.value.config_path == "consumer.isolation.level"
