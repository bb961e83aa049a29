"""Our settings as properties of Kafka's Java clients."""

from __future__ import annotations

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.java_properties import java_properties


def test_layers_of_a_consumer() -> None:
    worker = {"bootstrap.servers": "b:9092", "group.id": "workers", "consumer.fetch.min.bytes": "5"}
    connector = {"consumer.override.client.id": "mine", "producer.override.acks": "all"}
    assert java_properties(worker, connector, "consumer") == {
        "bootstrap.servers": "b:9092",
        "fetch.min.bytes": "5",
        "client.id": "mine",
    }


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")],
)
def test_names_of_librdkafka(mechanism: str, module: str) -> None:
    worker = {
        "metadata.broker.list": "b:9092",
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": mechanism,
        "sasl.username": "me",
        "sasl.password": 'a"b\\c',
        "ssl.ca.location": "/ca.crt",
        "socket.nagle.disable": "true",
        "enable.ssl.certificate.verification": "true",
    }
    assert java_properties(worker, {}, "consumer") == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="me" password="a\\"b\\\\c";',
        "ssl.truststore.location": "/ca.crt",
        "ssl.truststore.type": "PEM",
    }


def test_stores_that_are_pem_files_get_their_type() -> None:
    worker = {
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.location": "/own.p12",
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.password": "unused",
    }
    found = java_properties(worker, {}, "consumer")
    assert found == {**worker, "ssl.truststore.type": "PEM"}
    both = {"ssl.certificate.location": "/own.pem", "ssl.key.location": "/own.pem"}
    assert java_properties(both, {}, "consumer") == {
        "ssl.keystore.location": "/own.pem",
        "ssl.keystore.type": "PEM",
    }
    texts = {"ssl.ca.pem": "CA", "ssl.certificate.pem": "CERT", "ssl.key.pem": "KEY"}
    assert java_properties(texts, {}, "consumer") == {
        "ssl.truststore.certificates": "CA",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERT",
        "ssl.keystore.key": "KEY",
        "ssl.keystore.type": "PEM",
    }


def test_certificate_and_key_in_two_files_are_refused() -> None:
    with pytest.raises(ConfigError, match="one PEM file"):
        java_properties({"ssl.certificate.location": "/a.pem", "ssl.key.location": "/b.pem"}, {}, "consumer")
