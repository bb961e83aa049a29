"""Java's JAAS lines and key stores -> librdkafka's credentials.

librdkafka reads PEM and PKCS12, not Java's JKS; the errors say how to convert.
Sources: KIP-85 (sasl.jaas.config), KIP-651 (PEM stores), KIP-768 and KIP-1139 (OAUTHBEARER), librdkafka
CONFIGURATION.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_connect.errors import ConfigError

PEM_SUFFIXES = (".pem", ".crt", ".cer", ".cert")
_OPTION = re.compile(r"""(?<![\w.])([\w.]++)\s*+=\s*+("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""")


def parse_jaas(line: str) -> tuple[str, dict[str, str]]:
    """Login module (last part of its class name) and options of a `sasl.jaas.config` value.

    Raises:
        ConfigError: not `<class> required key="value" ...;`. The line is not repeated: it holds a password.
    """
    match = re.fullmatch(r"([\w.$]+)\s+(required|requisite|sufficient|optional)(.*);", line.strip(), re.S | re.I)
    if match is None:
        raise ConfigError(
            "sasl.jaas.config cannot be read.",
            suggestion="Write: org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="..." password="...";',
            config_path="sasl.jaas.config",
        )
    options = {key: _unquoted(value) for key, value in _OPTION.findall(match[3])}
    return match[1].rsplit(".", 1)[-1], options


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def apply_sasl(config: Mapping[str, Any], settings: dict[str, Any]) -> set[str]:
    """Translate SASL keys into `settings`; returns the keys that were handled."""
    mechanism = str(config.get("sasl.mechanism") or config.get("sasl.mechanisms") or "")
    if mechanism == "AWS_MSK_IAM":
        raise ConfigError(
            "sasl.mechanism=AWS_MSK_IAM exists only in Amazon's Java library.",
            suggestion="Use SCRAM-SHA-512 with the cluster's secret, or TLS client certificates.",
            config_path="sasl.mechanism",
        )
    used: set[str] = set()
    line = config.get("sasl.jaas.config")
    if line:
        used.add("sasl.jaas.config")
        module, options = parse_jaas(str(line))
        _apply_module(module, options, settings)
    renamed = {
        "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    }
    for java, ours in renamed.items():
        if config.get(java):
            settings[ours] = str(config[java])
            used.add(java)
    if config.get("sasl.oauthbearer.token.endpoint.url"):
        settings.setdefault("sasl.oauthbearer.method", "oidc")
    return used


def _apply_module(module: str, options: Mapping[str, str], settings: dict[str, Any]) -> None:
    if module in ("PlainLoginModule", "ScramLoginModule"):
        _need(options, ("username", "password"), module)
        settings["sasl.username"], settings["sasl.password"] = options["username"], options["password"]
    elif module == "OAuthBearerLoginModule":
        subject = options.get("unsecuredLoginStringClaim_sub")
        if subject:
            settings["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
            settings["sasl.oauthbearer.config"] = f"principal={subject}"
            return
        pairs = (("clientId", "client.id"), ("clientSecret", "client.secret"), ("scope", "scope"))
        for java, ours in pairs:
            if options.get(java):
                settings[f"sasl.oauthbearer.{ours}"] = options[java]
    elif module == "Krb5LoginModule":
        for java, ours in (("keyTab", "sasl.kerberos.keytab"), ("principal", "sasl.kerberos.principal")):
            if options.get(java):
                settings[ours] = options[java]
    else:
        raise ConfigError(
            f"sasl.jaas.config names {module}, which exists only in Java.",
            suggestion="Use PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule or Krb5LoginModule.",
            config_path="sasl.jaas.config",
        )


def _need(options: Mapping[str, str], wanted: tuple[str, ...], module: str) -> None:
    for name in wanted:
        if name not in options:
            raise ConfigError(f"sasl.jaas.config of {module} has no {name}.", config_path="sasl.jaas.config")


def apply_ssl(config: Mapping[str, Any], settings: dict[str, Any]) -> set[str]:
    """Translate trust and key stores into `settings`; returns the keys that were handled."""
    used = _truststore(config, settings)
    used |= _keystore(config, settings)
    for java, ours in (
        ("ssl.truststore.certificates", "ssl.ca.pem"),
        ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        ("ssl.keystore.key", "ssl.key.pem"),
    ):
        if config.get(java):
            settings[ours] = str(config[java])
            used.add(java)
    return used


def _truststore(config: Mapping[str, Any], settings: dict[str, Any]) -> set[str]:
    location = config.get("ssl.truststore.location")
    used = {"ssl.truststore.type", "ssl.truststore.location"} & set(config)
    if not location:
        return used
    if _store_type(config, "truststore", str(location)) != "PEM":
        raise ConfigError(
            f"ssl.truststore.location={location} is not a PEM file; librdkafka cannot read a Java trust store.",
            suggestion="Export it: keytool -exportcert -rfc -keystore <store> -alias <ca> -file ca.pem; set "
            "ssl.truststore.type=PEM and ssl.truststore.location=ca.pem.",
            config_path="ssl.truststore.location",
        )
    settings["ssl.ca.location"] = str(location)
    # A PEM trust store has no password; a leftover one is harmless.
    return used | ({"ssl.truststore.password"} & set(config))


def _keystore(config: Mapping[str, Any], settings: dict[str, Any]) -> set[str]:
    location = config.get("ssl.keystore.location")
    used = {"ssl.keystore.type"} & set(config)
    if not location:
        return used
    kind = _store_type(config, "keystore", str(location))
    if kind == "PKCS12":
        return used  # librdkafka knows ssl.keystore.location and ssl.keystore.password for PKCS12
    if kind == "JKS":
        raise ConfigError(
            f"ssl.keystore.location={location} is a JKS key store; librdkafka reads PEM and PKCS12.",
            suggestion="Convert it: keytool -importkeystore -srckeystore <store> -destkeystore client.p12 "
            "-deststoretype PKCS12; then set ssl.keystore.type=PKCS12, or use PEM.",
            config_path="ssl.keystore.location",
        )
    # KIP-651: one PEM file holds the private key and the certificate chain.
    settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(location)
    return used | ({"ssl.keystore.location", "ssl.keystore.password"} & set(config))


def _store_type(config: Mapping[str, Any], store: str, location: str) -> str:
    kind = str(config.get(f"ssl.{store}.type") or "").upper()
    if kind:
        return kind
    if location.lower().endswith(PEM_SUFFIXES):
        return "PEM"
    return "PKCS12" if location.lower().endswith((".p12", ".pfx")) else "JKS"
