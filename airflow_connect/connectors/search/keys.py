"""Keys of the search sink: names, defaults and messages of Confluent's, and ours.

Source: io.confluent.connect.elasticsearch.ElasticsearchSinkConnectorConfig of kafka-connect-elasticsearch 15;
`key.ignore.id.strategy` is a key of Aiven's sink for OpenSearch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Problem, Rule, Type
from airflow_connect.api.config.typed import KeyGroup, TypedConfig, TypedKey
from airflow_connect.api.config.validators import EnumString, HostName, Lambda, Range
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.registry.settings import tls_families, tls_keys

SSL = "elastic.https.ssl."
KERBEROS = ("kerberos.user.principal", "kerberos.keytab.path")

DISABLED, DATASTREAM, ALIAS_INDEX, ALIAS_DATASTREAM = "disabled", "datastream", "alias_index", "alias_datastream"
USAGES = (DISABLED, "index", DATASTREAM, ALIAS_INDEX, ALIAS_DATASTREAM)
INSERT, UPSERT = "insert", "upsert"
IGNORE, DELETE, FAIL, WARN = "ignore", "delete", "fail", "warn"
BY_OFFSET, BY_KEY, BY_SERVER = "topic.partition.offset", "record.key", "none"
TOPIC_PLACEHOLDER = "${topic}"
_CONNECTOR, _CONVERSION = KeyGroup("Connector"), KeyGroup("Data Conversion")
_PROXY, _SECURITY = KeyGroup("Proxy"), KeyGroup("Security")
_DAY_MS, _INT_MAX = 24 * 3600 * 1000, (1 << 31) - 1
_LOW = Importance.LOW


def _check_urls(name: str, value: Any) -> None:
    from urllib.parse import urlsplit

    for url in value or ():
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
            is_right = is_right and url.isprintable() and " " not in url
        except ValueError:
            is_right = False
        if not is_right or parts.query or parts.fragment or parts.username:
            raise invalid(name, "[hidden]" if "@" in url else url, "It must be http://host:port or https://host:port")
    if not value:
        raise invalid(name, value, "It must have at least one URL")


def _check_stream_part(name: str, value: Any) -> None:
    text = (value or "").replace(TOPIC_PLACEHOLDER, "")
    if len(text) > 100 or text != text.lower() or any(letter in '/\\*"<>|,#:- ' for letter in text):
        raise invalid(name, value, 'It may have 100 lower-case characters, and none of /\\*"<>|,#:- and spaces')


class SearchKeys(TypedConfig):
    """Every key of the sink."""

    urls = _CONNECTOR.high.words(
        "connection.url",
        REQUIRED,
        "URLs of one or more nodes, separated by commas. Without a scheme, http is meant.",
        Lambda(_check_urls, "http or https URLs"),
    )
    username = _CONNECTOR.medium.text("connection.username", None, "User of the basic authentication.")
    password = _CONNECTOR.medium.password("connection.password", None, "Password of that user.")
    api_key = _CONNECTOR.medium.password(
        "connection.api.key",
        None,
        "API key, encoded in Base64 as the server shows it; in place of user and password. (Not a key of"
        " Confluent's sink.)",
    )
    compresses = _CONNECTOR.low.boolean("connection.compression", False, "Whether requests are compressed with gzip.")
    connect_timeout_ms = _CONNECTOR.low.integer(
        "connection.timeout.ms", 1000, "Milliseconds to wait for a connection; 0: no limit.", Range(0, _DAY_MS // 2)
    )
    read_timeout_ms = _CONNECTOR.low.integer(
        "read.timeout.ms",
        3000,
        "Milliseconds to wait for an answer; 0: flush.timeout.ms. The request is then sent again, in halves.",
        Range(0, 7 * _DAY_MS),
    )
    resource_usage = _CONNECTOR.high.text(
        "external.resource.usage",
        DISABLED,
        "What topic.to.external.resource.mapping names: index, datastream, alias_index or alias_datastream."
        " disabled: indices and data streams are named after topics, and created if missing.",
        EnumString(*USAGES),
    ).to(str.lower)
    resource_mapping = _CONNECTOR.high.words(
        "topic.to.external.resource.mapping",
        "",
        "topic:resource pairs: the existing index, data stream or alias that each topic is written to.",
    )
    max_mappings = _CONNECTOR.medium.integer(
        "max.external.resource.mappings", 15, "Maximum number of these pairs.", Range(1)
    )
    stream_type = _CONNECTOR.low.text(
        "data.stream.type",
        "none",
        "First part of the data stream's name, logs or metrics; none: topics are written to indices.",
        EnumString("logs", "metrics", "none"),
    ).to(str.lower)
    stream_dataset = _CONNECTOR.low.text(
        "data.stream.dataset",
        "",
        "Second part of the data stream's name.",
        Lambda(_check_stream_part, 'at most 100 lower-case characters, none of /\\*"<>|,#:- and spaces'),
    )
    stream_namespace = _CONNECTOR.low.text(
        "data.stream.namespace",
        TOPIC_PLACEHOLDER,
        "Third part of the data stream's name, in which ${topic} stands for the topic.",
        Lambda(_check_stream_part, 'at most 100 lower-case characters, none of /\\*"<>|,#:- and spaces'),
    )
    timestamp_fields = _CONNECTOR.low.words(
        "data.stream.timestamp.field",
        "",
        "Fields of the value for @timestamp: the first one that a document has. Empty: the record's timestamp.",
    )
    batch_size = _CONNECTOR.medium.integer(
        "batch.size", 2000, "Maximum number of records of a bulk request.", Range(1, 1_000_000)
    )
    bulk_bytes = _CONNECTOR.low.long(
        "bulk.size.bytes",
        5 << 20,
        "Maximum size of a bulk request in bytes; -1: no limit. A larger document is sent alone.",
        Range(-1, _INT_MAX),
    )
    in_flight = _CONNECTOR.medium.integer(
        "max.in.flight.requests", 5, "Maximum number of bulk requests of a task at the same time.", Range(1, 1000)
    )
    buffered = _CONNECTOR.low.integer(
        "max.buffered.records",
        20_000,
        "Records of a task that wait or are being sent; beyond them, no more are read.",
        Range(1),
    )
    linger_ms = _CONNECTOR.low.long(
        "linger.ms",
        1,
        "Milliseconds after which a bulk request that is not full is sent, if no other is being sent.",
        Range(0, 7 * _DAY_MS),
    )
    flush_timeout_ms = _CONNECTOR.low.long(
        "flush.timeout.ms",
        180_000,
        "Milliseconds that a task waits for its bulk requests, or for space for more records, before it fails.",
        Range(1000, 7 * _DAY_MS),
    )
    retries = _CONNECTOR.low.integer(
        "max.retries", 5, "How often a request is sent again without any progress, before the task fails.", Range(0)
    )
    backoff_ms = _CONNECTOR.low.long(
        "retry.backoff.ms", 100, "Milliseconds before the first repetition; the pauses double.", Range(0, _DAY_MS)
    )
    ignores_key = _CONVERSION.high.boolean(
        "key.ignore",
        False,
        "Whether document ids are topic+partition+offset (see key.ignore.id.strategy), and not the record's key.",
    )
    ignores_key_of = _CONVERSION.low.words(
        "topic.key.ignore", "", "Topics for which key.ignore is true, by their names after transformations."
    ).to(frozenset)
    id_strategy = _CONVERSION.low.text(
        "key.ignore.id.strategy",
        BY_OFFSET,
        "Document ids when key.ignore is true. topic.partition.offset: topic+partition+offset. record.key: the key."
        " none: the server chooses them, and delivery is at least once.",
        EnumString(BY_OFFSET, BY_KEY, BY_SERVER),
    ).to(str.lower)
    ignores_schema = _CONVERSION.low.boolean(
        "schema.ignore",
        False,
        "Whether the server derives the types of fields from documents. false: the mapping of an index is created"
        " from the schema of the first record.",
    )
    ignores_schema_of = _CONVERSION.low.words(
        "topic.schema.ignore", "", "Topics for which schema.ignore is true, by their names after transformations."
    ).to(frozenset)
    compacts_maps = _CONVERSION.low.boolean(
        "compact.map.entries",
        True,
        'Whether maps with text as keys are written as {"key": "value"}. false: as a list of'
        ' {"key": ..., "value": ...}, as all other maps are.',
    )
    drops_invalid = _CONVERSION.low.boolean(
        "drop.invalid.message",
        False,
        "Whether a record that cannot become a document is dropped. false: errors.tolerance decides. A dead letter"
        " queue gets it in both cases.",
    )
    on_null = _CONVERSION.low.text(
        "behavior.on.null.values",
        FAIL,
        "Records without value. ignore: dropped. delete: the document with the record's key is deleted. fail: they"
        " cannot be written, and errors.tolerance applies.",
        EnumString(IGNORE, DELETE, FAIL),
    ).to(str.lower)
    on_malformed = _CONVERSION.low.text(
        "behavior.on.malformed.documents",
        FAIL,
        "Documents that the server rejects. ignore: dropped. warn: dropped, with a warning in the log. fail:"
        " errors.tolerance decides. A dead letter queue gets them in all cases, with the server's reason.",
        EnumString(IGNORE, WARN, FAIL),
    ).to(str.lower)
    version_header = _CONVERSION.low.text(
        "external.version.header",
        "",
        "Header that holds the version of a document, a whole number; empty: the offset is the version.",
    )
    upserts = _CONVERSION.low.text(
        "write.method",
        INSERT,
        "insert: a document replaces the one with the same id. upsert: its fields are added to that document, or"
        " replace those there.",
        EnumString(INSERT, UPSERT),
    ).to(lambda method: method.lower() == UPSERT)
    generates_ids = _CONVERSION.medium.boolean(
        "use.autogenerated.ids",
        False,
        "Whether the server chooses the ids of documents, with write.method=insert. Delivery is at least once.",
    )
    proxy_host = _PROXY.low.text("proxy.host", "", "HTTP proxy.", HostName())
    proxy_port = _PROXY.low.integer("proxy.port", 8080, "Port of the proxy.", Range(1, 65535))
    proxy_username = _PROXY.low.text("proxy.username", "", "User of the proxy.")
    proxy_password = _PROXY.low.password("proxy.password", None, "Password of that user.")
    security_protocol = _SECURITY.medium.text(
        "elastic.security.protocol",
        "plaintext",
        "ssl: the keys elastic.https.ssl.* apply. plaintext: https URLs use the system's authorities.",
        EnumString("plaintext", "ssl"),
    ).to(str.lower)

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """After the keys of every sink; before those of TLS, and some that have no effect here."""
        definition.include(sink_keys.sink_keys())
        super().define(definition)
        definition.define(*tls_keys(SSL), *_without_effect())
        definition.define_family(*tls_families(SSL))
        definition.define_rule(KERBEROS, _no_kerberos)

    @classmethod
    def checks(cls) -> Iterable[tuple[Sequence[TypedKey[Any]], Rule]]:
        """What several keys must have together."""
        yield (cls.resource_mapping, cls.resource_usage, cls.max_mappings), _resources_fit
        stream = (cls.stream_type, cls.stream_dataset, cls.resource_usage)
        yield (*stream, cls.timestamp_fields), _stream_is_complete
        yield (*stream, cls.upserts, cls.on_null), _streams_only_append
        yield (cls.username, cls.password, cls.api_key), _one_login


Keys = SearchKeys


def is_data_stream(parsed: Mapping[str, Any]) -> bool:
    """Whether documents go to data streams."""
    usage = Keys.resource_usage.of(parsed)
    if usage != DISABLED:
        return usage in (DATASTREAM, ALIAS_DATASTREAM)
    return Keys.stream_type.of(parsed) != "none" and bool(Keys.stream_dataset.of(parsed))


def _without_effect() -> list[ConfigKey]:
    return [
        ConfigKey(
            "max.connection.idle.time.ms", Type.INT, 60_000, "Milliseconds after which an idle connection is closed.",
            Range(-1, _DAY_MS), _LOW, "Connector", ignored="A closed connection is opened again.",
        ),
        ConfigKey(
            "flush.synchronously", Type.BOOLEAN, False, "Whether a flush waits for all requests.", None, _LOW,
            "Connector", ignored="A run commits after all requests are answered.",
        ),
        *(ConfigKey(name, Type.STRING, None, "Not supported.", None, _LOW, "Security") for name in KERBEROS),
    ]  # fmt: skip


def _resources_fit(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    key, used_as, most = Keys.resource_mapping, Keys.resource_usage, Keys.max_mappings
    entries, usage = key.of(parsed), used_as.of(parsed)
    if (usage == DISABLED) != (not entries):
        yield Problem(
            key.name,
            f"{used_as}={usage} and {key} do not fit: either both are used, or neither.",
            f"Set {used_as} to what the pairs name, or remove them.",
        )
    pairs = [tuple(part.strip() for part in entry.split(":")) for entry in entries]
    if wrong := [entry for entry, pair in zip(entries, pairs, strict=True) if len(pair) != 2 or not all(pair)]:
        yield Problem(key.name, f"{wrong[0]} is not a topic and a resource.", f"{key}: write topic:resource.")
        return
    for side, what in enumerate(("topic", "resource")):
        names = [pair[side] for pair in pairs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield Problem(key.name, f"The {what} {twice[0]} is in several pairs.", f"Write each one once in {key}.")
    if len(pairs) > most.of(parsed):
        yield Problem(
            key.name, f"There are {len(pairs)} pairs, more than {most}={most.of(parsed)}.", f"Set {most} higher."
        )


def _stream_is_complete(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    kind, dataset, usage = Keys.stream_type, Keys.stream_dataset, Keys.resource_usage
    has_type = kind.of(parsed) != "none"
    if has_type != bool(dataset.of(parsed)):
        key = dataset if has_type else kind
        yield Problem(key.name, f"{kind} and {dataset} must be set together.", "Set both, or remove both.")
    if has_type and usage.of(parsed) != DISABLED:
        yield Problem(
            kind.name,
            f"{kind} names data streams after topics, but {usage} names them itself.",
            f"Remove {kind} and {dataset}.",
        )
    timestamp = Keys.timestamp_fields
    if timestamp.of(parsed) and not is_data_stream(parsed):
        yield Problem(
            timestamp.name, f"{timestamp} is for data streams only.", f"Remove it, or set {kind} and {dataset}."
        )


def _streams_only_append(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not is_data_stream(parsed):
        return
    if Keys.upserts.of(parsed):
        yield Problem(
            Keys.upserts.name, "Documents of a data stream cannot be updated.", f"Set {Keys.upserts}={INSERT}."
        )
    if Keys.on_null.of(parsed) == DELETE:
        yield Problem(
            Keys.on_null.name, "Documents of a data stream cannot be deleted.", f"Set {Keys.on_null}={IGNORE}."
        )


def _one_login(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    has_key = Keys.api_key.of(parsed) is not None
    if has_key and (Keys.username.of(parsed) is not None or Keys.password.of(parsed) is not None):
        yield Problem(
            Keys.api_key.name,
            f"{Keys.api_key} takes the place of {Keys.username} and {Keys.password}.",
            "Remove one of them.",
        )
    if (Keys.username.of(parsed) is None) != (Keys.password.of(parsed) is None):
        missing = Keys.username if Keys.username.of(parsed) is None else Keys.password
        yield Problem(missing.name, f"{Keys.username} and {Keys.password} must be set together.", f"Set {missing}.")


def _no_kerberos(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    for name in KERBEROS:
        if parsed[name]:
            yield Problem(
                name,
                f"Kerberos is not supported, so {name} cannot be used.",
                f"Use {Keys.username} and {Keys.password}, or {Keys.api_key}.",
            )
