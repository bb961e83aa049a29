from __future__ import annotations

import pickle
from typing import Any

import pytest

from airflow_connect.config.resolved.worker import WorkerConfig
from airflow_connect.errors import ConfigError

MINIMAL = {"bootstrap.servers": "b1:9092, b2:9092"}

CONNECT_DISTRIBUTED = {
    "bootstrap.servers": "localhost:9092", "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter", "key.converter.schemas.enable": "true",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "true",
    "offset.storage.topic": "connect-offsets", "offset.storage.replication.factor": "1",
    "config.storage.topic": "connect-configs", "config.storage.replication.factor": "1",
    "status.storage.topic": "connect-status", "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "10000", "listeners": "HTTP://:8083", "plugin.path": "/opt/connectors",
}  # fmt: skip
"""The sample worker file that comes with Kafka, without its comments."""


def test_from_properties_minimal_has_defaults() -> None:
    worker = WorkerConfig.from_properties(MINIMAL)
    assert (worker.bootstrap_servers, worker.group_id) == ("b1:9092,b2:9092", "airflow-connect")
    assert (worker.key_converter, worker.value_converter) == (None, None)
    assert worker.header_converter.plugin.path.endswith(":SimpleHeaderConverter")
    assert worker.header_converter.settings == {"converter.type": "header"}
    assert (worker.runs_topic, worker.runs_replication_factor, worker.runs_partitions) == ("connect-runs", -1, 5)
    assert worker.override_policy.name == "All"


def test_from_properties_sample_file_of_kafka_is_accepted_and_its_rest_reported() -> None:
    worker = WorkerConfig.from_properties(CONNECT_DISTRIBUTED)
    assert worker.group_id == "connect-cluster"
    assert worker.value_converter is not None
    assert worker.value_converter.settings == {"schemas.enable": "true", "converter.type": "value"}
    kept = {"bootstrap.servers", "group.id", "plugin.path"} | {k for k in CONNECT_DISTRIBUTED if ".converter" in k}
    kept |= {k for k in CONNECT_DISTRIBUTED if k.startswith(("offset.", "config.storage."))}
    assert (worker.sources.offsets_topic, worker.sources.offsets_replication_factor) == ("connect-offsets", 1)
    assert (worker.sources.config_topic, worker.sources.offset_flush_interval_ms) == ("connect-configs", 10_000)
    assert {name for name, _ in worker.ignored} == CONNECT_DISTRIBUTED.keys() - kept
    assert worker.unknown == ()


def test_from_properties_minimal_sources_are_copied_exactly_once() -> None:
    sources = WorkerConfig.from_properties(MINIMAL).sources
    assert (sources.exactly_once, sources.creates_topics, sources.offsets_file) == (True, True, "")
    assert (sources.offsets_partitions, sources.offsets_replication_factor) == (25, -1)
    # As in Kafka Connect where the file is one of its distributed workers.
    named = {"offset.storage.topic": "o", "config.storage.topic": "c", "config.storage.replication.factor": "2"}
    distributed = WorkerConfig.from_properties({**MINIMAL, **named}).sources
    assert (distributed.offsets_replication_factor, distributed.config_replication_factor) == (3, 2)
    disabled = WorkerConfig.from_properties({**MINIMAL, "exactly.once.source.support": "disabled"})
    assert not disabled.sources.exactly_once
    with pytest.raises(ConfigError, match="must be one of: disabled, preparing, enabled"):
        WorkerConfig.from_properties({**MINIMAL, "exactly.once.source.support": "on"})


def test_from_properties_settings_of_spark_providers_and_policy_are_typed() -> None:
    worker = WorkerConfig.from_properties(
        {
            **MINIMAL, "sasl.password": "geheim", "spark.master": "local[2]",
            "config.providers": "file",
            "config.providers.file.class": "x",
            "connector.client.config.override.policy": "none",
        }
    )  # fmt: skip
    assert worker.spark == {"spark.master": "local[2]"}
    assert worker.config_providers == {"config.providers": "file", "config.providers.file.class": "x"}
    assert worker.override_policy.name == "None"
    assert "geheim" not in repr(worker)
    assert pickle.loads(pickle.dumps(worker)).parsed == worker.parsed


def test_from_properties_policy_may_be_the_java_class() -> None:
    java = "org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy"
    worker = WorkerConfig.from_properties({**MINIMAL, "connector.client.config.override.policy": java})
    assert worker.override_policy.name == "Principal"


def test_from_properties_only_very_near_names_are_reported_as_unknown() -> None:
    worker = WorkerConfig.from_properties({**MINIMAL, "runs.storage.topics": "x", "some.plugin.setting": "y"})
    assert worker.unknown == (("runs.storage.topics", "runs.storage.topic"),)


@pytest.mark.parametrize(
    ("raw", "key", "text"),
    [
        ({}, "bootstrap.servers", 'Missing required configuration "bootstrap.servers"'),
        ({"bootstrap.servers": ""}, "bootstrap.servers", "must not be empty"),
        ({**MINIMAL, "group.id": ""}, "group.id", "String must be non-empty"),
        (
            {**MINIMAL, "runs.storage.replication.factor": 0},
            "runs.storage.replication.factor",
            "must be positive, or -1",
        ),
        ({**MINIMAL, "runs.storage.partitions": "-2"}, "runs.storage.partitions", "must be positive, or -1"),
        (
            {**MINIMAL, "connector.client.config.override.policy": "Some"},
            "connector.client.config.override.policy",
            "String must be one of: All, None, Principal",
        ),
        ({**MINIMAL, "key.converter": "Nope"}, "key.converter", "Class Nope could not be found"),
    ],
)
def test_from_properties_wrong_value_names_key(raw: dict[str, Any], key: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        WorkerConfig.from_properties(raw)
    assert caught.value.config_path == key
    assert text in caught.value.message
