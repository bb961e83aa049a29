from __future__ import annotations

import pickle
from typing import Any

import pytest

from airflow_connect.config.keys.sink import sink_keys
from airflow_connect.config.resolved.sink import SinkConnectorConfig
from airflow_connect.errors import ConfigError

MINIMAL: dict[str, Any] = {"name": "meetups", "connector.class": "S3SinkConnector", "topics": "a, b"}


def test_from_config_minimal_has_connects_defaults() -> None:
    config = SinkConnectorConfig.from_config(MINIMAL)
    assert (config.name, config.tasks_max, config.topics, config.topics_regex) == ("meetups", 1, ("a", "b"), "")
    assert config.connector.path == "airflow_connect.connectors.files.s3.connector:S3SinkConnector"
    assert (config.key_converter, config.value_converter, config.header_converter) == (None, None, None)
    assert (config.errors.tolerate, config.errors.retry_timeout_ms, config.errors.retry_delay_max_ms) == (
        False,
        0,
        60000,
    )
    assert (config.errors.dead_letter_topic, config.errors.dead_letter_replication_factor) == ("", 3)
    assert (config.flush_on_end, config.delivery_guarantee, config.offsets_out_of_range) == (True, "exactly_once", "")
    assert (config.run_max_records, config.run_max_bytes, config.run_max_seconds) == (0, 0, 0)
    assert config.run_until_timestamp_ms is None
    assert (config.ignored, config.unknown) == ((), ())


def test_from_config_every_key_reaches_its_attribute() -> None:
    config = SinkConnectorConfig.from_config(
        {
            "name": "n", "connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics.regex": "t.*",
            "tasks.max": 4, "errors.tolerance": "all", "errors.log.enable": True, "errors.log.include.messages": "true",
            "errors.deadletterqueue.topic.name": "dlq", "errors.deadletterqueue.topic.replication.factor": 1,
            "errors.deadletterqueue.context.headers.enable": "true", "errors.retry.timeout": "-1",
            "errors.retry.delay.max.ms": 5, "flush.on.end": False, "delivery.guarantee": "at_least_once",
            "run.max.records": 7, "run.max.bytes": 8, "run.max.seconds": 9,
            "run.until.timestamp": "1970-01-01T00:00:02Z",
            "offsets.out.of.range": "nearest", "value.converter": "JsonConverter",
            "value.converter.schemas.enable": False, "header.converter": "StringConverter",
            "consumer.override.group.id": "g", "producer.override.linger.ms": 5,
            "admin.override.retries": 2,
        }
    )  # fmt: skip
    assert (config.tasks_max, config.topics, config.topics_regex) == (4, (), "t.*")
    errors = config.errors
    assert (errors.tolerate, errors.log, errors.log_records, errors.dead_letter_headers) == (True, True, True, True)
    assert (errors.dead_letter_topic, errors.dead_letter_replication_factor) == ("dlq", 1)
    assert (errors.retry_timeout_ms, errors.retry_delay_max_ms) == (-1, 5)
    assert (config.flush_on_end, config.delivery_guarantee) == (False, "at_least_once")
    assert (config.run_max_records, config.run_max_bytes, config.run_max_seconds) == (7, 8, 9)
    assert (config.run_until_timestamp_ms, config.offsets_out_of_range) == (2000, "nearest")
    assert config.value_converter is not None and config.header_converter is not None
    assert config.value_converter.settings == {"schemas.enable": "false", "converter.type": "value"}
    assert config.header_converter.settings == {"converter.type": "header"}
    assert config.header_converter.plugin.path.endswith(":StringConverter")
    assert (config.consumer_override, config.producer_override) == ({"group.id": "g"}, {"linger.ms": "5"})
    assert (config.consumer_override, config.admin_override) == ({"group.id": "g"}, {"retries": "2"})
    assert vars(pickle.loads(pickle.dumps(config))) == vars(config)


@pytest.mark.parametrize(
    ("change", "key", "text"),
    [
        ({"transforms": "route"}, "transforms.route.type", 'Missing required configuration "transforms.route.type"'),
        ({"predicates": "p"}, "predicates.p.type", 'Missing required configuration "predicates.p.type"'),
        ({"delivery.guarantee": "twice"}, "delivery.guarantee", "one of: exactly_once, at_least_once, at_most_once"),
        ({"run.max.records": 0}, "run.max.records", "Value must be at least 1"),
        ({"run.until.timestamp": "soon"}, "run.until.timestamp", "milliseconds since the epoch or ISO 8601"),
        ({"offsets.out.of.range": "middle"}, "offsets.out.of.range", "one of: , earliest, latest, nearest"),
        (
            {"connector.class": "S3SinkConector"},
            "connector.class",
            "Failed to find any class that implements Connector",
        ),
        ({"value.converter": "JsonConvertor"}, "value.converter", "Class JsonConvertor could not be found"),
    ],
)
def test_from_config_wrong_value_names_key_and_expectation(change: dict[str, Any], key: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SinkConnectorConfig.from_config({**MINIMAL, **change})
    assert caught.value.config_path == key
    assert text in caught.value.message
    assert caught.value.suggestion


def test_from_config_misspelt_class_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean S3SinkConnector"):
        SinkConnectorConfig.from_config({**MINIMAL, "connector.class": "S3SinkConector"})
    with pytest.raises(ConfigError, match="Did you mean JsonConverter"):
        SinkConnectorConfig.from_config({**MINIMAL, "value.converter": "JsonConvertor"})


def test_from_config_empty_transforms_are_fine_and_their_leftovers_reported() -> None:
    config = SinkConnectorConfig.from_config({**MINIMAL, "transforms": "", "transforms.a.type": "x"})
    assert config.ignored == (("transforms.a.type", "No transformation is listed in `transforms`."),)


def test_from_config_keys_without_meaning_are_reported_by_name() -> None:
    given = {"tasks.max.enforce": "false", "config.action.reload": "none", "confluent.topic.replication.factor": "1"}
    config = SinkConnectorConfig.from_config({**MINIMAL, **given, "confluent.license": "abc"})
    assert {name for name, _ in config.ignored} == {*given, "confluent.license"}
    assert all(reason.endswith(".") for _, reason in config.ignored)


def test_from_config_nested_converter_keys_without_converter_are_reported() -> None:
    config = SinkConnectorConfig.from_config({**MINIMAL, "value.converter.schemas.enable": "false"})
    assert [name for name, _ in config.ignored] == ["value.converter.schemas.enable"]
    assert config.value_converter is None


def test_from_config_unknown_keys_need_the_whole_definition() -> None:
    raw = {**MINIMAL, "flush.on.ent": "true"}
    assert SinkConnectorConfig.from_config(raw).unknown == ()
    assert SinkConnectorConfig.from_config(raw, sink_keys()).unknown == (("flush.on.ent", "flush.on.end"),)


def test_repr_never_shows_settings_that_may_be_secret() -> None:
    raw = {
        **MINIMAL, "value.converter": "JsonConverter", "value.converter.basic.auth.user.info": "geheim",
        "consumer.override.sasl.jaas.config": "geheim", "aws.secret.access.key": "geheim",
    }  # fmt: skip
    assert "geheim" not in repr(SinkConnectorConfig.from_config(raw))


def test_documentation_every_key_has_a_sentence_and_a_group() -> None:
    for key in sink_keys().keys.values():
        assert key.documentation.endswith("."), key.name
        assert key.group, key.name
        assert not key.ignored or key.ignored.endswith("."), key.name
