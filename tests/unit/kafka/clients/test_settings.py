from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer

from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.settings import admin_config, consumer_config, producer_config

WORKER = {"bootstrap.servers": "b:9092", "group.id": "workers", "key.converter": "x", "offset.flush.interval.ms": "9"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"

TRANSLATIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"fetch.max.wait.ms": "20"}, {"fetch.wait.max.ms": 20}),
    ({"request.timeout.ms": "30000"}, {"socket.timeout.ms": 30000}),
    ({"request.timeout.ms": "2147483647"}, {"socket.timeout.ms": 300000}),
    ({"receive.buffer.bytes": "-1"}, {"socket.receive.buffer.bytes": 0}),
    ({"send.buffer.bytes": 131072}, {"socket.send.buffer.bytes": 131072}),
    ({"max.partition.fetch.bytes": "1048576"}, {"max.partition.fetch.bytes": "1048576"}),
    ({"isolation.level": "read_uncommitted"}, {"isolation.level": "read_uncommitted"}),
    ({"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
    ({"auto.offset.reset": "latest"}, {"auto.offset.reset": "latest"}),
    ({"group.id": "mine"}, {"group.id": "mine"}),
    ({"check.crcs": True}, {"check.crcs": "true"}),
    ({"enable.auto.commit": "true"}, {"enable.auto.commit": False}),
    ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
    ({"ssl.endpoint.identification.algorithm": "HTTPS"}, {"ssl.endpoint.identification.algorithm": "https"}),
    ({"ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
    ({"ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM"}, {"ssl.ca.location": "/ca"}),
    ({"ssl.truststore.certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
    (
        {"ssl.keystore.location": "/k.pem", "ssl.key.password": "p"},
        {"ssl.certificate.location": "/k.pem", "ssl.key.location": "/k.pem", "ssl.key.password": "p"},
    ),
    (
        {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"},
        {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"},
    ),
    (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} username="u" password="p;=\\"q";'},
        {"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": 'p;="q'},
    ),
    (
        {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f"{SCRAM}\n  username='u'\n  password='p';"},
        {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p"},
    ),
    (
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://i/t",
            "sasl.jaas.config": f'{OAUTH} clientId="c" clientSecret="s" scope="k";',
        },
        {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "c",
            "sasl.oauthbearer.client.secret": "s",
            "sasl.oauthbearer.scope": "k",
            "sasl.oauthbearer.token.endpoint.url": "https://i/t",
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("java", "expected"), TRANSLATIONS, ids=[" ".join(j) for j, _ in TRANSLATIONS])
def test_consumer_config_of_java_keys_gives_librdkafka_settings(java: dict[str, Any], expected: dict[str, Any]) -> None:
    override = {f"consumer.override.{key}": value for key, value in java.items()}
    settings = consumer_config(WORKER, {"name": "s", **override}).settings
    assert {key: settings.get(key) for key in expected} == expected


def test_consumer_config_without_overrides_is_committed_earliest_and_in_connects_group() -> None:
    config = consumer_config(WORKER, {"name": "sink"})
    assert config.ignored == ()
    assert config.settings == {
        "bootstrap.servers": "b:9092",
        "group.id": "connect-sink",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }


def test_consumer_config_of_java_only_keys_names_them_as_written() -> None:
    config = consumer_config(
        {**WORKER, "consumer.key.deserializer": "x.Y"},
        {
            "name": "s",
            "consumer.override.partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
            "consumer.override.plugin.library.paths": "/tmp/x.so",
        },
    )
    assert config.ignored == (
        "consumer.key.deserializer",
        "consumer.override.partition.assignment.strategy",
        "consumer.override.plugin.library.paths",
    )
    assert not {"plugin.library.paths", "partition.assignment.strategy"} & set(config.settings)


def test_max_poll_records_is_kept_beside_librdkafkas_settings() -> None:
    assert consumer_config(WORKER, {"name": "s"}).max_poll_records == 500
    config = consumer_config(
        {**WORKER, "consumer.max.poll.records": "7"}, {"name": "s", "consumer.override.max.poll.records": "5"}
    )
    assert (config.max_poll_records, config.ignored) == (5, ())
    assert "max.poll.records" not in config.settings
    assert producer_config(WORKER, {"producer.override.max.poll.records": "5"}).ignored == (
        "producer.override.max.poll.records",
    )


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_max_poll_records_that_is_no_positive_number_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=f"consumer.override.max.poll.records.*{value}"):
        consumer_config(WORKER, {"name": "s", "consumer.override.max.poll.records": value})


def test_consumer_config_layers_let_the_later_spelling_win() -> None:
    worker = {**WORKER, "security.protocol": "SSL", "consumer.fetch.wait.max.ms": "1", "consumer.client.id": "w"}
    settings = consumer_config(worker, {"name": "s", "consumer.override.fetch.max.wait.ms": "2"}).settings
    assert settings["fetch.wait.max.ms"] == 2
    assert (settings["security.protocol"], settings["client.id"]) == ("SSL", "w")


def test_consumer_config_with_overridden_bootstrap_keeps_no_worker_server() -> None:
    settings = consumer_config(
        {"metadata.broker.list": "old:1"}, {"name": "s", "consumer.override.bootstrap.servers": "new:1"}
    ).settings
    assert settings["bootstrap.servers"] == "new:1"
    assert "metadata.broker.list" not in settings


def test_configs_of_each_kind_read_only_their_own_prefix() -> None:
    connector = {"name": "s", "producer.override.max.request.size": "5000000", "admin.override.client.id": "a"}
    assert producer_config(WORKER, connector).settings == {
        "bootstrap.servers": "b:9092",
        "acks": "all",
        "message.max.bytes": 5000000,
    }
    assert admin_config(WORKER, connector).settings == {"bootstrap.servers": "b:9092", "client.id": "a"}


def test_producer_config_of_java_timeouts_and_memory_converts_units() -> None:
    connector = {
        "producer.override.buffer.memory": "33554432",
        "producer.override.delivery.timeout.ms": "9223372036854775807",
        "producer.override.transactional.id": "stolen",
        "producer.override.max.block.ms": "9",
    }
    config = producer_config(WORKER, connector)
    assert config.settings["queue.buffering.max.kbytes"] == 32768
    assert config.settings["message.timeout.ms"] == 2147483647
    assert "transactional.id" not in config.settings
    assert config.ignored == ("producer.override.max.block.ms",)


@pytest.mark.parametrize(
    ("override", "where"),
    [
        ({"ssl.truststore.location": "/t.jks"}, "ssl.truststore.location"),
        ({"ssl.keystore.location": "/k.jks", "ssl.keystore.password": "hush"}, "ssl.keystore.location"),
        ({"sasl.jaas.config": "PlainLoginModule password=hush"}, "sasl.jaas.config"),
        ({"sasl.jaas.config": f"{PLAIN} username=hush;"}, "sasl.jaas.config"),
        ({"sasl.jaas.config": 'com.x.SecretModule required password="hush";'}, "sasl.jaas.config"),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, "sasl.mechanism"),
        ({"fetch.max.wait.ms": "soon"}, "fetch.max.wait.ms"),
        ({"auto.offset.reset": "by_duration:PT1H"}, "auto.offset.reset"),
    ],
)
def test_consumer_config_of_unusable_values_names_the_key_and_no_secret(override: dict[str, str], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        consumer_config(WORKER, {f"consumer.override.{key}": value for key, value in override.items()})
    assert caught.value.config_path == f"consumer.override.{where}"
    assert caught.value.config_path in caught.value.message
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "allowlist", "refused"),
    [
        ("All", "", ""),
        ("None", "", "consumer.override.client.id"),
        ("org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy", "",
         "consumer.override.client.id"),
        ("Principal", "", "consumer.override.client.id"),
        ("Allowlist", "security.protocol, client.id", ""),
        ("Allowlist", "client.id", "consumer.override.security.protocol"),
    ],
)  # fmt: skip
def test_consumer_config_under_an_override_policy_refuses_what_it_forbids(
    policy: str, allowlist: str, refused: str
) -> None:
    worker = {
        **WORKER,
        "connector.client.config.override.policy": policy,
        "connector.client.config.override.allowlist": allowlist,
    }
    connector = {"consumer.override.client.id": "c", "consumer.override.security.protocol": "PLAINTEXT"}
    if not refused:
        assert consumer_config(worker, connector).settings["client.id"] == "c"
        return
    with pytest.raises(ConfigError) as caught:
        consumer_config(worker, connector)
    assert caught.value.config_path == refused


def test_consumer_config_with_an_unknown_policy_says_which_exist() -> None:
    with pytest.raises(ConfigError, match="Use All, None, Principal or Allowlist"):
        consumer_config({"connector.client.config.override.policy": "Some"}, {})


def test_consumer_config_is_accepted_by_librdkafka() -> None:
    connector = {
        "name": "s",
        "consumer.override.security.protocol": "SASL_PLAINTEXT",
        "consumer.override.sasl.mechanism": "SCRAM-SHA-256",
        "consumer.override.sasl.jaas.config": f'{SCRAM} username="u" password="p";',
        "consumer.override.retry.backoff.max.ms": "900",
        "consumer.override.metadata.max.age.ms": "60000",
        "consumer.override.client.dns.lookup": "use_all_dns_ips",
    }
    config = consumer_config({"bootstrap.servers": "127.0.0.1:1"}, connector)
    assert config.ignored == ()
    consumer = Consumer({**config.settings, "log_level": 0})
    assert consumer.assignment() == []
    consumer.close()
