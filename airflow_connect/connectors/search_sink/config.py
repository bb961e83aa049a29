"""Typed configuration of the search sink."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from airflow_connect.connectors.search_sink import keys
from airflow_connect.connectors.search_sink.conflicts import Versions
from airflow_connect.registry.tls import tls_context
from airflow_connect.retrying import Backoff, Jitter

LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Where a node listens."""

    scheme: str
    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """How to reach the server.

    Attributes:
        nodes: at least one.
        authorization: value of the header, or "".
        proxy: URL of the proxy, or "".
        proxy_authorization: value of the header for the proxy, or "".
        connect_timeout_s: None: no limit but that of the operating system.
        read_timeout_s: how long an answer is waited for.
        tls: for https.
        in_flight: connections to each node.
    """

    nodes: tuple[NodeAddress, ...]
    authorization: str = field(repr=False)
    proxy: str
    proxy_authorization: str = field(repr=False)
    compresses: bool
    connect_timeout_s: float | None
    read_timeout_s: float
    in_flight: int
    tls: ssl.SSLContext | None

    @classmethod
    def from_parsed(cls, parsed: Mapping[str, Any]) -> ConnectionConfig:
        """Read the keys of the connection.

        Raises:
            ConfigError: a PEM file cannot be used.
        """
        urls = [url if "://" in url else f"http://{url}" for url in parsed[keys.URL]]
        is_secure = any(url.startswith("https:") for url in urls)
        tls = None
        if is_secure and parsed[keys.SECURITY_PROTOCOL].lower() == "ssl":
            tls = tls_context(parsed, keys.SSL)
        elif is_secure:
            tls = ssl.create_default_context()
        return cls(
            nodes=tuple(dict.fromkeys(_address(url, is_secure=is_secure) for url in urls)),
            authorization=_authorization(parsed),
            proxy=f"http://{parsed[keys.PROXY_HOST]}:{parsed[keys.PROXY_PORT]}" if parsed[keys.PROXY_HOST] else "",
            proxy_authorization=_proxy_authorization(parsed),
            compresses=parsed[keys.COMPRESSION],
            connect_timeout_s=parsed[keys.CONNECT_TIMEOUT_MS] / 1000 or None,
            # Without a limit of its own a request may take as long as all of them: it must not outlive its task.
            read_timeout_s=(parsed[keys.READ_TIMEOUT_MS] or parsed[keys.FLUSH_TIMEOUT_MS]) / 1000,
            in_flight=parsed[keys.IN_FLIGHT],
            tls=tls,
        )


@dataclass(frozen=True, slots=True)
class DocumentConfig:
    """How records become documents.

    Attributes:
        id_strategy: how ids are made; see `ids_of`.
        ignores_key_of: topics for which `key.ignore` is true in any case.
        ignores_schema: `schema.ignore`; `ignores_schema_of`: topics for which it is true in any case.
        on_null: `ignore`, `delete` or `fail`.
        timestamp_fields: `data.stream.timestamp.field`.
    """

    ignores_key: bool
    id_strategy: str
    ignores_key_of: frozenset[str]
    ignores_schema: bool
    ignores_schema_of: frozenset[str]
    compacts_maps: bool
    on_null: str
    version_header: str
    upserts: bool
    generates_ids: bool
    is_stream: bool
    timestamp_fields: tuple[str, ...]
    conflict_retries: int

    def ids_of(self, topic: str) -> str:
        """What the ids of a topic's documents are: one of `BY_OFFSET`, `BY_KEY` and `BY_SERVER`."""
        if self.generates_ids and not self.upserts:
            return keys.BY_SERVER
        return self.id_strategy if self.ignores_key or topic in self.ignores_key_of else keys.BY_KEY

    def versions_of(self, topic: str) -> Versions:
        """What the documents of a topic have as versions; for those that the server refuses because it has them."""
        if self.ids_of(topic) != keys.BY_KEY:
            return Versions.NONE
        if self.is_stream:
            return Versions.FIRST
        return Versions.HEADER if self.version_header else Versions.OFFSETS

    def has_schema(self, topic: str) -> bool:
        """Whether mappings and documents of a topic follow the schema."""
        return not (self.ignores_schema or topic in self.ignores_schema_of)

    @property
    def may_use_keys(self) -> bool:
        """Whether the ids of some topics are keys."""
        return self.ids_of("") == keys.BY_KEY or self.on_null == keys.DELETE

    @property
    def is_idempotent(self) -> bool:
        """Whether a record may be written at any time, and any number of times."""
        used = {self.ids_of(""), *map(self.ids_of, self.ignores_key_of)}
        return keys.BY_SERVER not in used and not (self.upserts and keys.BY_KEY in used)

    @classmethod
    def from_parsed(cls, parsed: Mapping[str, Any]) -> DocumentConfig:
        """Read the keys about documents."""
        return cls(
            ignores_key=parsed[keys.IGNORE_KEY],
            id_strategy=parsed[keys.ID_STRATEGY].lower(),
            ignores_key_of=frozenset(parsed[keys.IGNORE_KEY_TOPICS]),
            ignores_schema=parsed[keys.IGNORE_SCHEMA],
            ignores_schema_of=frozenset(parsed[keys.IGNORE_SCHEMA_TOPICS]),
            compacts_maps=parsed[keys.COMPACT_MAPS],
            on_null=parsed[keys.NULL_VALUES].lower(),
            version_header=parsed[keys.VERSION_HEADER] or "",
            upserts=parsed[keys.WRITE_METHOD].lower() == keys.UPSERT,
            generates_ids=parsed[keys.GENERATED_IDS],
            is_stream=keys.is_data_stream(parsed),
            timestamp_fields=tuple(parsed[keys.STREAM_TIMESTAMP]),
            conflict_retries=min(parsed[keys.IN_FLIGHT], 5),
        )


@dataclass(frozen=True, slots=True)
class BulkConfig:
    """Bounds of requests: records, bytes, and milliseconds. `bulk_bytes` is None without a limit."""

    batch_size: int
    bulk_bytes: int | None
    in_flight: int
    buffered: int
    linger_ms: int
    flush_timeout_ms: int
    retries: int
    backoff_ms: int

    @property
    def backoff(self) -> Backoff:
        """The pauses between repetitions."""
        return Backoff(self.backoff_ms / 1000, LONGEST_PAUSE_S, Jitter.HALF)


@dataclass(frozen=True, slots=True)
class SearchSinkConfig:
    """Configuration of one sink.

    Attributes:
        resources: topic to existing resource; empty: resources are named after topics, and created.
        resource_usage: what kind of resource that is.
        stream_prefix, stream_namespace: of names of data streams, if `documents.is_stream`.
        drops_invalid: `drop.invalid.message`.
        on_malformed: `ignore`, `warn` or `fail`.
    """

    connection: ConnectionConfig
    documents: DocumentConfig
    bulks: BulkConfig
    resources: Mapping[str, str]
    resource_usage: str
    stream_prefix: str
    stream_namespace: str
    drops_invalid: bool
    on_malformed: str

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> SearchSinkConfig:
        """Read a connector configuration.

        Raises:
            ConfigError: a key is wrong.
        """
        parsed = keys.config_def().parse(raw)
        bulk_bytes = parsed[keys.BULK_BYTES]
        return cls(
            connection=ConnectionConfig.from_parsed(parsed),
            documents=DocumentConfig.from_parsed(parsed),
            bulks=BulkConfig(
                batch_size=parsed[keys.BATCH_SIZE],
                bulk_bytes=None if bulk_bytes < 0 else bulk_bytes,
                in_flight=parsed[keys.IN_FLIGHT],
                buffered=parsed[keys.BUFFERED],
                linger_ms=parsed[keys.LINGER_MS],
                flush_timeout_ms=parsed[keys.FLUSH_TIMEOUT_MS],
                retries=parsed[keys.MAX_RETRIES],
                backoff_ms=parsed[keys.BACKOFF_MS],
            ),
            resources=keys.resources(parsed),
            resource_usage=parsed[keys.RESOURCE_USAGE].lower(),
            stream_prefix=f"{parsed[keys.STREAM_TYPE].lower()}-{parsed[keys.STREAM_DATASET]}",
            stream_namespace=parsed[keys.STREAM_NAMESPACE],
            drops_invalid=parsed[keys.DROP_INVALID],
            on_malformed=parsed[keys.MALFORMED].lower(),
        )


def _address(url: str, *, is_secure: bool) -> NodeAddress:
    """As in Confluent's sink, one https URL makes all of them secure."""
    parts = urlsplit(url)
    scheme = "https" if is_secure else parts.scheme
    return NodeAddress(scheme, parts.hostname or "", parts.port or (443 if is_secure else 80), parts.path.rstrip("/"))


def _authorization(parsed: Mapping[str, Any]) -> str:
    if parsed[keys.API_KEY] is not None:
        return f"ApiKey {parsed[keys.API_KEY].value}"
    if parsed[keys.USERNAME] is None:
        return ""
    return _basic(parsed[keys.USERNAME], parsed[keys.PASSWORD].value)


def _proxy_authorization(parsed: Mapping[str, Any]) -> str:
    if not parsed[keys.PROXY_USERNAME] or parsed[keys.PROXY_PASSWORD] is None:
        return ""
    return _basic(parsed[keys.PROXY_USERNAME], parsed[keys.PROXY_PASSWORD].value)


def _basic(username: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
