"""Every client key, in every layer, through both ends: what a plan rests on, and what the clients are built with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.config.resolved.client_layers import CLIENT_KINDS, is_connection_key
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.librdkafka_names import NAMES
from airflow_connect.kafka.clients.settings import ClientConfig, admin_config, consumer_config, producer_config
from airflow_connect.runtime.driver.checked_configuration import CheckedConfiguration
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
from airflow_connect.runtime.spec import RunSpec

JAVA: dict[str, dict[str, str]] = json.loads(Path("tests/data/java_client_keys.json").read_text())
"""Names and types of ConsumerConfig, ProducerConfig and AdminClientConfig of Kafka 4.3.1."""
WORKER = {
    "bootstrap.servers": "b:9092",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
SINK = {"name": "s", "connector.class": "FileStreamSink", "topics": "t", "file": "/tmp/out"}
SOURCE = {"name": "s", "connector.class": "FileStreamSource", "topic": "t", "file": "/tmp/in"}
BUILT = {"consumer": consumer_config, "producer": producer_config, "admin": admin_config}
KEYS = sorted(NAMES | {key for keys in JAVA.values() for key in keys})
OF_WORKERS = {"config.providers", "group.id"}
"""Without a prefix these are keys of the worker itself."""
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'
TEXTS = {
    "auto.offset.reset": ("latest", "smallest"),
    "isolation.level": ("read_uncommitted", "read_committed"),
    "sasl.jaas.config": (JAAS.format(1), JAAS.format(2)),
    "ssl.truststore.location": ("/1.pem", "/2.pem"),
    "ssl.keystore.location": ("/1.p12", "/2.p12"),
    "ssl.truststore.type": ("PEM", "PEM"),
    "ssl.keystore.type": ("PKCS12", "PEM"),
}


def values_of(key: str) -> tuple[str, str]:
    """Two values that the key may have."""
    kinds = {keys[key] for keys in JAVA.values() if key in keys}
    if kinds & {"INT", "LONG", "SHORT", "DOUBLE"} or key.endswith((".ms", ".bytes", ".kbytes")):
        return "20000", "30000"
    return TEXTS.get(key, ("one", "two"))


def configurations(worker: Mapping[str, Any], override: Mapping[str, Any]) -> Iterator[CheckedConfiguration[Any]]:
    """Of a sink and of a source."""
    yield SinkConfiguration.from_spec(RunSpec({**SINK, **override}, {**WORKER, **worker}))
    yield SourceConfiguration.from_spec(RunSpec({**SOURCE, **override}, {**WORKER, **worker}))


def both_ends(configuration: CheckedConfiguration[Any]) -> dict[str, ClientConfig]:
    """Settings of each kind of client; what the driver has and what a task builds are the same, and the plan's too."""
    found = {kind: getattr(configuration, kind) for kind in CLIENT_KINDS}
    # A task gets the two configurations as plain data, and builds its clients from them.
    in_task = {kind: BUILT[kind](configuration.worker, configuration.resolved.connector.raw) for kind in CLIENT_KINDS}
    assert found == in_task
    if isinstance(configuration, SinkConfiguration):
        settings = found["consumer"].settings
        reset = configuration.policy.auto_offset_reset
        assert (reset if reset != "none" else "error") == settings["auto.offset.reset"]
        assert configuration.resolved.consumer_group == settings["group.id"]
        assert found["consumer"].isolation_level == settings["isolation.level"]
    return found


def settings_of(worker: Mapping[str, Any], override: Mapping[str, Any]) -> list[dict[str, dict[str, Any]]]:
    """Settings of each kind of client, of a sink and of a source."""
    given = [both_ends(configuration) for configuration in configurations(worker, override)]
    return [{kind: config.settings for kind, config in found.items()} for found in given]


@pytest.mark.parametrize("kind", CLIENT_KINDS)
def test_every_key_with_prefix_reaches_its_kind_alone_and_an_override_wins(kind: str) -> None:
    plain = settings_of({}, {})
    for key in KEYS:
        first, second = values_of(key)
        in_worker = settings_of({f"{kind}.{key}": first}, {})
        for found, base in zip(in_worker, plain, strict=True):
            changed = [other for other in CLIENT_KINDS if found[other] != base[other]]
            assert changed in ([], [kind]), key
        overridden = settings_of({f"{kind}.{key}": first}, {f"{kind}.override.{key}": second})
        assert overridden == settings_of({}, {f"{kind}.override.{key}": second}), key
        assert in_worker == settings_of({}, {f"{kind}.override.{key}": first}), key


def test_every_key_without_prefix_reaches_all_clients_if_it_is_about_the_connection_else_none() -> None:
    plain = settings_of({}, {})
    for key in sorted(set(KEYS) - OF_WORKERS):
        first, second = values_of(key)
        found = settings_of({key: first}, {})
        if not is_connection_key(key):
            assert found == plain, key
            continue
        assert found == settings_of({f"{kind}.{key}": first for kind in CLIENT_KINDS}, {}), key
        prefixed = {f"{kind}.{key}": second for kind in CLIENT_KINDS}
        assert settings_of({key: first, **prefixed}, {}) == settings_of(prefixed, {}), key


@pytest.mark.parametrize(
    ("text", "planned", "built"),
    [
        ("earliest", "earliest", "earliest"), ("smallest", "earliest", "earliest"),
        ("beginning", "earliest", "earliest"), ("latest", "latest", "latest"), ("largest", "latest", "latest"),
        ("end", "latest", "latest"), ("none", "none", "error"), ("error", "none", "error"),
        (" Latest ", "latest", "latest"),
    ],
)  # fmt: skip
def test_auto_offset_reset_under_any_name_is_one_of_three(text: str, planned: str, built: str) -> None:
    configuration = next(configurations({"consumer.auto.offset.reset": text}, {}))
    assert isinstance(configuration, SinkConfiguration)
    assert configuration.policy.auto_offset_reset == planned
    assert configuration.consumer.settings["auto.offset.reset"] == built


@pytest.mark.parametrize(
    ("key", "value"), [("isolation.level", "committed"), ("auto.offset.reset", "by_duration:PT1H"), ("group.id", "")]
)
def test_wrong_values_are_refused_under_the_name_that_the_user_wrote(key: str, value: str) -> None:
    for full, given in ((f"consumer.{key}", {}), (f"consumer.override.{key}", {f"consumer.override.{key}": value})):
        worker = {} if given else {full: value}
        with pytest.raises(ConfigError, match=full.replace(".", r"\.")) as caught:
            _ = next(configurations(worker, given)).consumer
        assert caught.value.config_path == full


def test_isolation_level_in_capitals_is_read_alike_by_plan_and_reader() -> None:
    configuration = next(configurations({"consumer.isolation.level": "READ_COMMITTED"}, {}))
    assert configuration.consumer.isolation_level == "read_committed"


def test_group_of_worker_prefix_holds_the_offsets_as_in_kafka_connect() -> None:
    configuration = next(configurations({"consumer.group.id": "shared"}, {}))
    assert (configuration.resolved.consumer_group, configuration.consumer.settings["group.id"]) == ("shared", "shared")
    with pytest.raises(ConfigError, match="conflicts with Connect worker group shared"):
        next(configurations({"consumer.group.id": "shared", "group.id": "shared"}, {}))


def test_keys_without_prefix_that_reach_no_connector_are_named() -> None:
    worker = {"auto.offset.reset": "latest", "isolation.level": "read_uncommitted", "security.protocol": "PLAINTEXT"}
    for configuration in configurations(worker, {}):
        assert {"auto.offset.reset", "isolation.level"} <= set(configuration.ignored_keys)
        assert "security.protocol" not in configuration.ignored_keys
        findings = type(configuration).findings(configuration.spec)
        told = {finding["key"]: finding["message"] for finding in findings if finding["level"] == "ignored"}
        assert "Write consumer.auto.offset.reset" in told["auto.offset.reset"]
