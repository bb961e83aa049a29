"""Typed configuration of the search sink."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.conflicts import Versions
from airflow_connect.connectors.search.keys import SearchKeys
from airflow_connect.proxies import Proxy
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
        proxy: None: there is none.
        connect_timeout_s: None: no limit but that of the operating system.
        read_timeout_s: how long an answer is waited for.
        tls: for https.
        in_flight: connections to each node.
    """

    nodes: tuple[NodeAddress, ...]
    authorization: str = field(repr=False)
    proxy: Proxy | None
    compresses: bool
    connect_timeout_s: float | None
    read_timeout_s: float
    in_flight: int
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, config: SearchKeys) -> ConnectionConfig:
        """Read the keys of the connection.

        Raises:
            ConfigError: a PEM file cannot be used.
        """
        urls = [url if "://" in url else f"http://{url}" for url in config.urls]
        is_secure = any(url.startswith("https:") for url in urls)
        tls = None
        if is_secure and config.security_protocol == "ssl":
            tls = tls_context(config.parsed, keys.SSL)
        elif is_secure:
            tls = ssl.create_default_context()
        return cls(
            nodes=tuple(dict.fromkeys(_address(url, is_secure=is_secure) for url in urls)),
            authorization=_authorization(config),
            proxy=_proxy(config),
            compresses=config.compresses,
            connect_timeout_s=config.connect_timeout_ms / 1000 or None,
            # Without a limit of its own a request may take as long as all of them: it must not outlive its task.
            read_timeout_s=(config.read_timeout_ms or config.flush_timeout_ms) / 1000,
            in_flight=config.in_flight,
            tls=tls,
        )


class DocumentConfig(SearchKeys):
    """How records become documents."""

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

    def are_in_order(self, topic: str) -> bool:
        """Whether a document has the newest record of its key only if all of them are in one partition."""
        has_keys = self.ids_of(topic) == keys.BY_KEY and not self.is_stream
        return has_keys and (self.upserts or not self.version_header)

    def has_schema(self, topic: str) -> bool:
        """Whether mappings and documents of a topic follow the schema."""
        return not (self.ignores_schema or topic in self.ignores_schema_of)

    @property
    def may_use_keys(self) -> bool:
        """Whether the ids of some topics are keys."""
        return self.ids_of("") == keys.BY_KEY or self.on_null == keys.DELETE

    @cached_property
    def used_ids(self) -> frozenset[str]:
        """What the ids of any topic's documents are; see `ids_of`."""
        return frozenset({self.ids_of(""), *map(self.ids_of, self.ignores_key_of)})

    @property
    def is_idempotent(self) -> bool:
        """Whether a record may be written at any time, and any number of times."""
        return keys.BY_SERVER not in self.used_ids and not (self.upserts and keys.BY_KEY in self.used_ids)

    @cached_property
    def is_stream(self) -> bool:
        """Whether documents go to data streams."""
        return keys.is_data_stream(self.parsed)

    @property
    def conflict_retries(self) -> int:
        """How often the server tries an update again, if another one came between."""
        return min(self.in_flight, 5)


class SearchSinkConfig(DocumentConfig):
    """Configuration of one sink."""

    @cached_property
    def connection(self) -> ConnectionConfig:
        """How to reach the server.

        Raises:
            ConfigError: a PEM file cannot be used.
        """
        return ConnectionConfig.of(self)

    @property
    def backoff(self) -> Backoff:
        """The pauses between repetitions."""
        return Backoff(self.backoff_ms / 1000, LONGEST_PAUSE_S, Jitter.HALF)

    @property
    def most_bytes(self) -> int | None:
        """Of a request; None: no limit."""
        return None if self.bulk_bytes < 0 else self.bulk_bytes

    @cached_property
    def resources(self) -> Mapping[str, str]:
        """Topic to existing resource; empty: resources are named after topics, and created."""
        pairs = (entry.split(":", 1) for entry in self.resource_mapping)
        return {topic.strip(): resource.strip() for topic, resource in pairs}

    @property
    def stream_prefix(self) -> str:
        """Of the names of data streams, if `is_stream`."""
        return f"{self.stream_type}-{self.stream_dataset}"


def _address(url: str, *, is_secure: bool) -> NodeAddress:
    """As in Confluent's sink, one https URL makes all of them secure."""
    parts = urlsplit(url)
    scheme = "https" if is_secure else parts.scheme
    return NodeAddress(scheme, parts.hostname or "", parts.port or (443 if is_secure else 80), parts.path.rstrip("/"))


def _authorization(config: SearchKeys) -> str:
    if config.api_key is not None:
        return f"ApiKey {config.api_key.value}"
    if config.username is None or config.password is None:
        return ""
    return _basic(config.username, config.password.value)


def _proxy(config: SearchKeys) -> Proxy | None:
    if not config.proxy_host:
        return None
    user, password = config.proxy_username, config.proxy_password
    login = (user, password.value) if user and password is not None else ()
    return Proxy(f"http://{config.proxy_host}:{config.proxy_port}", *login)


def _basic(username: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"
