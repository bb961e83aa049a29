"""Configuration keys that all Schema Registry converters share, with Confluent's names, defaults and meaning.

Source: io.confluent.kafka.serializers.AbstractKafkaSchemaSerDeConfig and SchemaRegistryClientConfig (8.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, KeyFamily, Type
from airflow_connect.api.config.validators import HostName, Range, ValidString
from airflow_connect.registry.subject_names import DEFAULT_STRATEGY, SubjectNames, subject_names

URL = "schema.registry.url"
MAX_CACHED_SCHEMAS = "max.schemas.per.subject"
AUTO_REGISTER = "auto.register.schemas"
NORMALIZE = "normalize.schemas"
USE_LATEST = "use.latest.version"
LATEST_STRICT = "latest.compatibility.strict"
USE_ID = "use.schema.id"
ID_STRICT = "id.compatibility.strict"
BASIC_SOURCE = "basic.auth.credentials.source"
USER_INFO = "basic.auth.user.info"
OLD_USER_INFO = "schema.registry.basic.auth.user.info"
BEARER_SOURCE = "bearer.auth.credentials.source"
BEARER_TOKEN = "bearer.auth.token"
LOGICAL_CLUSTER = "bearer.auth.logical.cluster"
IDENTITY_POOL = "bearer.auth.identity.pool.id"
SSL = "schema.registry.ssl."
HEADERS = "request.header."
_NO_RULES = "Rules of a schema are not executed."

_SHORT_BOOLEAN_KEYS = (
    (AUTO_REGISTER, "true", "Register the schema of a written value when the subject does not have it."),
    (NORMALIZE, "false", "Let the registry normalize a schema before it is compared or registered."),
    (USE_LATEST, "false", "Write with the latest schema of the subject; only with auto.register.schemas=false."),
    (LATEST_STRICT, "true", "With use.latest.version, refuse values whose schema the latest one cannot read."),
    (ID_STRICT, "true", "With use.schema.id, refuse values whose schema that one cannot read."),
)


def shared_keys() -> ConfigDef:
    """The keys; each converter includes them in its own `config_def`."""
    return ConfigDef().define(*_writing_keys(), *_access_keys(), *_http_keys()).define_family(*_families())


def _writing_keys() -> list[ConfigKey]:
    booleans = [ConfigKey(name, Type.BOOLEAN, default, text) for name, default, text in _SHORT_BOOLEAN_KEYS]
    strategies = [
        ConfigKey(
            f"{part}.subject.name.strategy",
            Type.STRING,
            DEFAULT_STRATEGY,
            f"How the subject of a {part}'s schema is named: TopicNameStrategy (<topic>-{part}), RecordNameStrategy "
            "(the full name of the record type) or TopicRecordNameStrategy (<topic>-<full name>).",
        )
        for part in ("key", "value")
    ]
    return [
        *booleans,
        ConfigKey(
            USE_ID,
            Type.INT,
            "-1",
            "Write with the schema of this id; only with auto.register.schemas=false. -1: no id.",
        ),
        *strategies,
    ]


def _access_keys() -> list[ConfigKey]:
    return [
        ConfigKey(
            URL,
            Type.LIST,
            documentation="Base URLs of the registry, separated by commas; if one fails, the next one is used.",
            importance=Importance.HIGH,
        ),
        ConfigKey(
            BASIC_SOURCE,
            Type.STRING,
            "URL",
            "Where user and password come from: URL (user:password@host in schema.registry.url), USER_INFO "
            "(basic.auth.user.info) or SASL_INHERIT (sasl.jaas.config).",
            ValidString("URL", "USER_INFO", "SASL_INHERIT"),
        ),
        ConfigKey(USER_INFO, Type.PASSWORD, "", "User and password as user:password."),
        ConfigKey(OLD_USER_INFO, Type.PASSWORD, "", "The old name of basic.auth.user.info.", importance=Importance.LOW),
        ConfigKey("sasl.jaas.config", Type.PASSWORD, "", "Login line with username and password, for SASL_INHERIT."),
        ConfigKey(
            BEARER_SOURCE,
            Type.STRING,
            "STATIC_TOKEN",
            "Where the bearer token comes from; only STATIC_TOKEN (bearer.auth.token) is supported.",
            ValidString("STATIC_TOKEN"),
        ),
        ConfigKey(BEARER_TOKEN, Type.PASSWORD, "", "Token for the header Authorization: Bearer."),
        ConfigKey(LOGICAL_CLUSTER, Type.STRING, "", "Sent with the token as the header target-sr-cluster."),
        ConfigKey(IDENTITY_POOL, Type.STRING, "", "Sent with the token as the header Confluent-Identity-Pool-Id."),
    ]


def _http_keys() -> list[ConfigKey]:
    low, positive = Importance.LOW, Range(0)
    numbers = (
        ("http.connect.timeout.ms", "60000", "Maximum milliseconds to connect."),
        ("http.read.timeout.ms", "60000", "Maximum milliseconds to wait for a response."),
        ("max.retries", "3", "Retries after a failed connection or a response with status 408, 429 or 5xx."),
        ("retries.wait.ms", "1000", "Maximum milliseconds before the first retry; doubled each time."),
        ("retries.max.wait.ms", "20000", "Maximum milliseconds before any retry."),
        (MAX_CACHED_SCHEMAS, "1000", "Schemas cached in memory, in each direction."),
    )
    return [
        *(ConfigKey(name, Type.INT, default, text, positive, low) for name, default, text in numbers),
        ConfigKey(
            "latest.cache.ttl.sec",
            Type.INT,
            "-1",
            "Seconds until the latest version of a subject is requested again; -1 keeps it for the whole run.",
            importance=low,
        ),
        ConfigKey(
            "proxy.host",
            Type.STRING,
            "",
            "Proxy; without it the environment's (HTTPS_PROXY).",
            HostName(),
            low,
        ),
        ConfigKey("proxy.port", Type.INT, "-1", "Port of the proxy.", importance=low),
        *tls_keys(SSL),
        *(
            ConfigKey(name, Type.LIST, "", "Not used.", ignored=_NO_RULES)
            for name in ("rule.executors", "rule.actions")
        ),
    ]


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


def _families() -> list[KeyFamily]:
    headers = KeyFamily(HEADERS, "Headers that are sent with every request: request.header.<name>.")
    return [headers, *tls_families(SSL)]


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


@dataclass(frozen=True, slots=True)
class WritingSettings:
    """How the schema of a written value is found. The attributes correspond to the configuration keys.

    Attributes:
        use_id: an id, or None.
        subject: (topic, full name of the record type or None) to the subject.
    """

    auto_register: bool
    normalize: bool
    use_latest: bool
    latest_strict: bool
    use_id: int | None
    id_strict: bool
    subject: Callable[[str, str | None], str]
    max_cached_schemas: int


def writing_settings(parsed: Mapping[str, Any], is_key: bool) -> WritingSettings:
    """From the values that `config_def.parse` gave.

    Raises:
        ConfigError: an unknown strategy.
    """
    strategy = f"{'key' if is_key else 'value'}.subject.name.strategy"
    names: SubjectNames = subject_names(parsed[strategy], strategy)
    return WritingSettings(
        auto_register=parsed[AUTO_REGISTER],
        normalize=parsed[NORMALIZE],
        use_latest=parsed[USE_LATEST],
        latest_strict=parsed[LATEST_STRICT],
        use_id=parsed[USE_ID] if parsed[USE_ID] >= 0 else None,
        id_strict=parsed[ID_STRICT],
        subject=lambda topic, record: names(topic, is_key, record),
        max_cached_schemas=max(1, parsed[MAX_CACHED_SCHEMAS]),
    )
