"""Our client settings -> properties of Kafka's Java clients, which plugins in Java create.

Configurations mostly have Java's names already. librdkafka's own names, which Airflow's Kafka connections hold, are
translated, and the forms that only `kafka/clients/java_security.py` accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.config.resolved.client_layers import client_layers
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.clients.java_security import PEM_SUFFIXES
from airflow_connect.kafka.clients.librdkafka_names import NAMES

_RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.timeout.ms": "request.timeout.ms",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.key.password": "ssl.key.password",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
}
_IN_BOTH = frozenset(
    {
        "bootstrap.servers", "security.protocol", "client.id", "client.dns.lookup", "client.rack", "group.id",
        "sasl.kerberos.service.name", "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms",
        "reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "connections.max.idle.ms",
        "metadata.max.age.ms", "ssl.keystore.location", "ssl.keystore.password",
        "ssl.endpoint.identification.algorithm", "isolation.level", "auto.offset.reset", "fetch.min.bytes",
        "fetch.max.bytes", "max.partition.fetch.bytes", "check.crcs", "ssl.cipher.suites",
    }
)  # fmt: skip
"""Names that both have, with the same meaning."""
_MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM": "scram.ScramLoginModule"}


def java_properties(worker: Mapping[str, Any], connector: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Properties of a Java client of one kind, including secrets: never print them.

    Settings that only librdkafka knows are left out.

    Args:
        worker, connector: whole configurations, references resolved.
        kind: `consumer`, `producer` or `admin`.

    Raises:
        ConfigError: certificate and key are in different files.
    """
    given: dict[str, str] = {}
    for layer in client_layers(worker, connector, kind):
        for name, value in layer.settings.items():
            given[_RENAMED.get(name, name)] = value
    found = {name: value for name, value in given.items() if name not in NAMES or name in _IN_BOTH or _is_java(name)}
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].upper()
    _add_login(given, found)
    _add_stores(given, found)
    return found


def _is_java(name: str) -> bool:
    return name in _RENAMED.values()


def _add_login(given: Mapping[str, str], found: dict[str, str]) -> None:
    """Source: KIP-85."""
    user, password = given.get("sasl.username"), given.get("sasl.password")
    module = _MODULES.get(found.get("sasl.mechanism", "").upper().partition("-")[0])
    if user is None or password is None or module is None or "sasl.jaas.config" in found:
        return
    found["sasl.jaas.config"] = (
        f"org.apache.kafka.common.security.{module} required username={_quoted(user)} password={_quoted(password)};"
    )


def _add_stores(given: Mapping[str, str], found: dict[str, str]) -> None:
    """Source: KIP-651. Java needs the type of a store that is a PEM file."""
    if "ssl.ca.location" in given:
        found["ssl.truststore.location"] = given["ssl.ca.location"]
        found["ssl.truststore.type"] = "PEM"
    certificate, key = given.get("ssl.certificate.location"), given.get("ssl.key.location")
    if certificate != key:
        raise ConfigError(
            f"ssl.certificate.location={certificate} and ssl.key.location={key}: clients in Java read certificates and"
            " private key from one PEM file.",
            suggestion="Write both into one file, and set both keys to it, or ssl.keystore.location and"
            " ssl.keystore.type=PEM.",
            config_path="ssl.certificate.location" if key is None else "ssl.key.location",
        )
    if certificate is not None:
        found["ssl.keystore.location"] = certificate
        found["ssl.keystore.type"] = "PEM"
    for store in ("truststore", "keystore"):
        location = found.get(f"ssl.{store}.location", "")
        if location.lower().endswith(PEM_SUFFIXES):
            found.setdefault(f"ssl.{store}.type", "PEM")
        content = "certificates" if store == "truststore" else "certificate.chain"
        if f"ssl.{store}.{content}" in found:
            found.setdefault(f"ssl.{store}.type", "PEM")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
