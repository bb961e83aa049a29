"""Configuration keys that all Schema Registry converters share, with Confluent's names, defaults and meaning.

Source: io.confluent.kafka.serializers.AbstractKafkaSchemaSerDeConfig and SchemaRegistryClientConfig (8.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, KeyFamily, Type
from airflow_connect.api.config.typed import KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import HostName, Range, ValidString
from airflow_connect.registry.subject_names import DEFAULT_STRATEGY, subject_names

SSL = "schema.registry.ssl."
HEADERS = "request.header."
_NO_RULES = "Rules of a schema are not executed."
_ALL = KeyGroup(None)


def _strategy(part: str) -> TypedKey[str]:
    return _ALL.medium.text(
        f"{part}.subject.name.strategy",
        DEFAULT_STRATEGY,
        f"How the subject of a {part}'s schema is named: TopicNameStrategy (<topic>-{part}), RecordNameStrategy "
        "(the full name of the record type) or TopicRecordNameStrategy (<topic>-<full name>).",
    )


def _number(name: str, default: str, documentation: str) -> TypedKey[int]:
    return _ALL.low.integer(name, default, documentation, Range(0))


class RegistryConfig(TypedConfig):
    """What a converter takes from its configuration about the registry."""

    # fmt: off
    auto_register = _ALL.medium.boolean(
        "auto.register.schemas", "true",
        "Register the schema of a written value when the subject does not have it.",
    )
    normalize = _ALL.medium.boolean(
        "normalize.schemas", "false", "Let the registry normalize a schema before it is compared or registered.",
    )
    use_latest = _ALL.medium.boolean(
        "use.latest.version", "false",
        "Write with the latest schema of the subject; only with auto.register.schemas=false.",
    )
    latest_strict = _ALL.medium.boolean(
        "latest.compatibility.strict", "true",
        "With use.latest.version, refuse values whose schema the latest one cannot read.",
    )
    id_strict = _ALL.medium.boolean(
        "id.compatibility.strict", "true", "With use.schema.id, refuse values whose schema that one cannot read.",
    )
    use_id = _ALL.medium.integer(
        "use.schema.id", "-1", "Write with the schema of this id; only with auto.register.schemas=false. -1: no id.",
    ).to(lambda schema_id: schema_id if schema_id >= 0 else None)
    key_strategy = _strategy("key")
    value_strategy = _strategy("value")
    urls = _ALL.high.words(
        "schema.registry.url", REQUIRED,
        "Base URLs of the registry, separated by commas; if one fails, the next one is used.",
    )
    login_source = _ALL.medium.text(
        "basic.auth.credentials.source", "URL",
        "Where user and password come from: URL (user:password@host in schema.registry.url), USER_INFO "
        "(basic.auth.user.info) or SASL_INHERIT (sasl.jaas.config).",
        ValidString("URL", "USER_INFO", "SASL_INHERIT"),
    )
    login = _ALL.medium.secret("basic.auth.user.info", "", "User and password as user:password.")
    old_login = _ALL.low.secret(
        "schema.registry.basic.auth.user.info", "", "The old name of basic.auth.user.info."
    )
    jaas = _ALL.medium.secret("sasl.jaas.config", "", "Login line with username and password, for SASL_INHERIT.")
    _bearer_source = _ALL.medium.text(
        "bearer.auth.credentials.source", "STATIC_TOKEN",
        "Where the bearer token comes from; only STATIC_TOKEN (bearer.auth.token) is supported.",
        ValidString("STATIC_TOKEN"),
    )
    bearer_token = _ALL.medium.secret("bearer.auth.token", "", "Token for the header Authorization: Bearer.")
    logical_cluster = _ALL.medium.text(
        "bearer.auth.logical.cluster", "", "Sent with the token as the header target-sr-cluster."
    )
    identity_pool = _ALL.medium.text(
        "bearer.auth.identity.pool.id", "", "Sent with the token as the header Confluent-Identity-Pool-Id."
    )
    connect_timeout_ms = _number("http.connect.timeout.ms", "60000", "Maximum milliseconds to connect.")
    read_timeout_ms = _number("http.read.timeout.ms", "60000", "Maximum milliseconds to wait for a response.")
    retries = _number(
        "max.retries", "3", "Retries after a failed connection or a response with status 408, 429 or 5xx."
    )
    wait_ms = _number("retries.wait.ms", "1000", "Maximum milliseconds before the first retry; doubled each time.")
    max_wait_ms = _number("retries.max.wait.ms", "20000", "Maximum milliseconds before any retry.")
    max_cached_schemas = _number(
        "max.schemas.per.subject", "1000", "Schemas cached in memory, in each direction."
    ).at_least(1)
    latest_ttl_s = _ALL.low.integer(
        "latest.cache.ttl.sec", "-1",
        "Seconds until the latest version of a subject is requested again; -1 keeps it for the whole run.",
    ).to(lambda seconds: float("inf") if seconds < 0 else float(seconds))
    proxy_host = _ALL.low.text("proxy.host", "", "Proxy; without it the environment's (HTTPS_PROXY).", HostName())
    proxy_port = _ALL.low.integer("proxy.port", "-1", "Port of the proxy.")
    _rule_executors = _ALL.medium.words("rule.executors", "", "Not used.", ignored=_NO_RULES)
    _rule_actions = _ALL.medium.words("rule.actions", "", "Not used.", ignored=_NO_RULES)
    # fmt: on

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys, and those of TLS."""
        super().define(definition)
        headers = KeyFamily(HEADERS, "Headers that are sent with every request: request.header.<name>.")
        definition.define(*tls_keys(SSL)).define_family(headers, *tls_families(SSL))


REACH = (
    "basic.auth.", "bearer.auth.", "sasl.jaas.config", "http.connect.timeout.ms", "http.read.timeout.ms",
    "max.retries", "retries.wait.ms", "retries.max.wait.ms", "proxy.host", "proxy.port",
    "schema.registry.basic.auth.user.info", HEADERS, SSL,
)  # fmt: skip
"""Beginnings of the keys that say how a registry is reached, and not what is written."""


def families_to_reach(prefix: str, what: str) -> list[KeyFamily]:
    """Keys of a connector that reach a registry: those of converters, after a prefix of its own.

    Args:
        prefix: `store.kafka.records.`.
        what: whose registry: "of a backup".
    """
    return [KeyFamily(f"{prefix}{name}", f"{name} of the Schema Registry {what}, as in a converter.") for name in REACH]


def settings_to_reach(prefix: str, raw: Mapping[str, Any]) -> dict[str, str]:
    """The settings of such a registry without the prefix; {} if the connector names none."""
    names = (RegistryConfig.urls.name, *REACH)
    found = {key.removeprefix(prefix): str(value) for key, value in raw.items() if key.startswith(prefix)}
    return (
        {key: value for key, value in found.items() if key.startswith(names)}
        if found.get(RegistryConfig.urls.name)
        else {}
    )


def shared_keys() -> ConfigDef:
    """A new definition with the keys; each converter adds its own."""
    return ConfigDef().include(RegistryConfig.config_def())


class WritingSettings(RegistryConfig):
    """How the schema of a written value is found.

    Attributes:
        subject: (topic, full name of the record type or None) to the subject.
    """

    def __init__(self, parsed: Mapping[str, Any], is_key: bool) -> None:
        """From the values that `config_def.parse` gave.

        Raises:
            ConfigError: an unknown strategy.
        """
        super().__init__({}, parsed)
        strategy = RegistryConfig.key_strategy if is_key else RegistryConfig.value_strategy
        names = subject_names(strategy.of(parsed), strategy.name)
        self.subject: Callable[[str, str | None], str] = lambda topic, record: names(topic, is_key, record)


def tls_keys(prefix: str) -> list[ConfigKey]:
    """Java's keys for TLS, for `tls_context`, after a prefix such as `schema.registry.ssl.`."""
    texts = (
        ("truststore.location", Type.STRING, "", "PEM file with the certificate authorities to trust."),
        ("truststore.certificates", Type.PASSWORD, "", "The same certificates, as PEM text."),
        ("truststore.type", Type.STRING, "PEM", "PEM; other stores cannot be read."),
        ("keystore.location", Type.STRING, "", "PEM file with the client's private key and certificate chain."),
        ("keystore.certificate.chain", Type.PASSWORD, "", "The client's certificate chain as PEM text."),
        ("keystore.key", Type.PASSWORD, "", "The client's private key as PEM text."),
        ("keystore.type", Type.STRING, "PEM", "PEM; other stores cannot be read."),
        ("key.password", Type.PASSWORD, "", "Password of the client's private key."),
    )
    made = [ConfigKey(prefix + name, kind, default, text) for name, kind, default, text in texts]
    algorithm = ConfigKey(
        f"{prefix}endpoint.identification.algorithm",
        Type.STRING,
        "https",
        "https compares the server's name with its certificate; an empty value does not.",
        ValidString("https", "HTTPS", ""),
        Importance.LOW,
    )
    return [*made, algorithm]


def tls_families(prefix: str) -> list[KeyFamily]:
    """Keys of Java's TLS that have no effect here, after the same prefix."""
    tls = "It selects one of Java's TLS implementations, which are not used."
    return [
        KeyFamily(f"{prefix}enabled.protocols", "Java's TLS versions.", tls),
        KeyFamily(f"{prefix}protocol", "Java's TLS version.", tls),
        KeyFamily(f"{prefix}provider", "Java's security provider.", tls),
        KeyFamily(f"{prefix}truststore.password", "A PEM file has none.", "A PEM trust store has no password."),
        KeyFamily(f"{prefix}keystore.password", "A PEM file has none.", "A PEM key store has no password of its own."),
    ]
