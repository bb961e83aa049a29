from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.config.keys.sink import sink_keys
from airflow_connect.config.resolved.loading import connector_definition, load_connector_config
from airflow_connect.errors import ConfigError

CONNECTOR: dict[str, Any] = {
    "name": "m", "connector.class": "S3Sink", "topics": "t", "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}  # fmt: skip
WORKER: dict[str, Any] = {
    "bootstrap.servers": "b:1", "key.converter": "StringConverter", "value.converter": "JsonConverter",
    "value.converter.decimal.format": "NUMERIC", "security.protocol": "SSL", "consumer.client.rack": "r",
    "producer.linger.ms": "1",
}  # fmt: skip


def load(connector: dict[str, Any] | None = None, worker: dict[str, Any] | None = None) -> Any:
    return load_connector_config(CONNECTOR | (connector or {}), WORKER | (worker or {}), sink_keys())


def test_load_converters_connectors_win_and_do_not_inherit_settings() -> None:
    resolved = load()
    assert resolved.value_converter.settings == {"schemas.enable": "false", "converter.type": "value"}
    assert resolved.key_converter.plugin.path.endswith(":StringConverter")
    assert resolved.header_converter.plugin.path.endswith(":SimpleHeaderConverter")


def test_load_names_of_group_and_transactional_id_are_kafka_connects() -> None:
    resolved = load()
    assert (resolved.consumer_group, resolved.transactional_id) == ("connect-m", "airflow-connect-m")
    assert load({"consumer.override.group.id": "own"}, {"consumer.group.id": "w"}).consumer_group == "own"


def test_load_no_converter_anywhere_says_what_to_set() -> None:
    worker = {k: v for k, v in WORKER.items() if k != "key.converter"}
    with pytest.raises(ConfigError) as caught:
        load_connector_config(CONNECTOR, worker, sink_keys())
    assert caught.value.config_path == "key.converter"
    assert "JsonConverter" in caught.value.suggestion


@pytest.mark.parametrize(
    ("policy", "key", "allowed"),
    [
        ("All", "consumer.override.max.poll.records", True),
        ("None", "consumer.override.max.poll.records", False),
        ("Principal", "admin.override.retries", False),
        ("Principal", "producer.override.sasl.jaas.config", True),
        ("Allowlist", "consumer.override.client.rack", True),
        ("Allowlist", "consumer.override.max.poll.records", False),
    ],
)
def test_load_override_policy_is_enforced(policy: str, key: str, allowed: bool) -> None:
    worker = {"connector.client.config.override.policy": policy}
    arguments = ({key: "1"}, {**worker, "connector.client.config.override.allowlist": "acks, client.rack"})
    if allowed:
        assert load(*arguments).worker.override_policy.name == policy
        return
    with pytest.raises(ConfigError) as caught:
        load(*arguments)
    assert caught.value.config_path == key
    assert caught.value.message == (
        f"The '{policy}' policy does not allow '{key}' to be overridden in the connector configuration."
    )


def test_load_group_of_the_worker_is_refused_for_the_connector() -> None:
    with pytest.raises(ConfigError, match="Consumer group x conflicts with Connect worker group x"):
        load({"consumer.override.group.id": "x"}, {"group.id": "x"})


def test_load_notes_name_ignored_and_unknown_keys_without_values() -> None:
    resolved = load({"tasks.max.enforce": "true", "flush.on.edn": "geheim"}, {"plugin.discovery": "geheim"})
    text = "\n".join(resolved.notes)
    assert "connector key tasks.max.enforce is ignored: tasks.max is always enforced" in text
    assert "connector key flush.on.edn is unknown and has no effect. Did you mean flush.on.end?" in text
    assert "worker key plugin.discovery is ignored" in text
    assert "geheim" not in text + repr(resolved)


def test_connector_definition_missing_class_names_everything_missing() -> None:
    with pytest.raises(ConfigError) as caught:
        connector_definition({})
    assert '"name"' in caught.value.message and '"connector.class"' in caught.value.message


class NoConnector:
    """A class without `config_def`."""


class OwnConnector:
    """The least a connector class has."""

    config_def = ConfigDef()


def test_connector_definition_of_own_class_by_dotted_path() -> None:
    name = f"{__name__}:OwnConnector"
    assert {"name", "topics", "tasks.max"} <= set(connector_definition({"connector.class": name}).keys)
    with pytest.raises(ConfigError, match="it has no `config_def`"):
        connector_definition({"connector.class": f"{__name__}:NoConnector"})


@pytest.mark.parametrize("name", ["größe", "日本", "a\u00a0b"])
def test_name_whose_group_librdkafka_refuses_to_commit_is_refused_and_a_group_of_its_own_is_the_way_out(
    name: str,
) -> None:
    with pytest.raises(ConfigError, match=rf"Consumer group 'connect-{name[:1]}.*not printable ASCII") as caught:
        load({"name": name})
    assert "consumer.override.group.id" in caught.value.suggestion
    group = {"consumer.override.group.id": "connect-size"}
    assert load({"name": name} | group).consumer_group == "connect-size"
