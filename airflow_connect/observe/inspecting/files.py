"""The files that a storage sink has published, as its store lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.api.offsets import OffsetRange
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.driver.sink.of_spec import sink_of

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec
    from airflow_connect.stores.file_system import FileSystem
    from airflow_connect.stores.store import Store


@dataclass(frozen=True, slots=True)
class PublishedFile(JsonDocument):
    """A file.

    Attributes:
        name: path or URL.
        topic, partition, start: of its first record, as its name says.
        size_bytes: in the store.
        modified_ms: when it was published, milliseconds since the epoch.
    """

    name: str
    topic: str
    partition: int
    start: int
    size_bytes: int
    modified_ms: int


def published_files(spec: RunSpec, since_ms: int = 0) -> Iterator[PublishedFile]:
    """Files of a sink's topics, in the order of the store; what else lies there is left out.

    Args:
        spec: the connector and its worker.
        since_ms: only files that were published at this time or later.

    Raises:
        ConfigError: the connector does not write files of this kind, or its configuration is wrong.
        UnavailableError, AccessError: the store or Kafka cannot be read.
    """
    from airflow_connect.connectors.files.shared.writing.opening import open_names

    configuration = _storage_sink(spec)
    config = dict(configuration.resolved.connector.raw)
    with configuration.references.hiding_errors(), configuration.sink as sink:
        topics = _topics(configuration)
        prefixes = sink.leftovers([OffsetRange(topic, 0, 0, 0) for topic in topics]).prefixes
        storage, store = sink.call("storage", lambda connector: connector.storage(config))
        name_of = _name_pattern(topics, open_names(storage).file_delimiter)
        files, root = file_system_of(store)
        try:
            for prefix in prefixes:
                for file in files.walk(root + prefix, recursive=True):
                    place = name_of.search(file.name)
                    if place is not None and file.modified_ms >= since_ms and "/+tmp/" not in file.name:
                        where = place["topic"], int(place["partition"]), int(place["start"])
                        yield PublishedFile(file.name, *where, file.size, file.modified_ms)
        finally:
            files.close()


@contextmanager
def file_system_for(spec: RunSpec) -> Iterator[FileSystem]:
    """The file system that a sink writes to, with its credentials.

    Raises:
        ConfigError: as `published_files`.
    """
    configuration = _storage_sink(spec)
    config = dict(configuration.resolved.connector.raw)
    with configuration.references.hiding_errors(), configuration.sink as sink:
        _, store = sink.call("storage", lambda connector: connector.storage(config))
        files, _ = file_system_of(store)
        try:
            yield files
        finally:
            files.close()


def file_system_of(store: Store) -> tuple[FileSystem, str]:
    """The file system of a store, and the beginning of all names in it.

    Raises:
        ConfigError: files of this store cannot be listed.
    """
    from airflow_connect.stores.hdfs.store import HdfsStore
    from airflow_connect.stores.local.store import LocalStore
    from airflow_connect.stores.s3.store import S3Store

    if isinstance(store, S3Store):
        from airflow_connect.stores.s3.file_system import S3FileSystem

        return S3FileSystem(store.settings), f"s3://{store.settings.bucket}/"
    if isinstance(store, HdfsStore):
        from airflow_connect.stores.file_systems import root_of
        from airflow_connect.stores.hdfs.file_system import HdfsFileSystem

        return HdfsFileSystem(root_of(store.name), store.settings.conf_dir), f"{store.name}/"
    if isinstance(store, LocalStore):
        from airflow_connect.stores.local.file_system import LocalFileSystem

        return LocalFileSystem(), f"{store.root}/"
    raise ConfigError(f"Files of the store {store.name} cannot be listed.", config_path="connector.class")


def _storage_sink(spec: RunSpec) -> SinkConfiguration:
    from airflow_connect.connectors.files.shared.connector import StorageSinkConnector

    configuration = sink_of(spec)
    if configuration is None or not issubclass(configuration.connector_class, StorageSinkConnector):
        raise ConfigError(
            f"Connector {spec.connector.get('name')} does not write files into a store.",
            config_path="connector.class",
            suggestion="S3SinkConnector, HdfsSinkConnector and LocalSinkConnector do.",
        )
    return configuration


def _topics(configuration: SinkConfiguration) -> list[str]:
    connector = configuration.resolved.connector
    if connector.topics:
        return sorted(connector.topics)
    from airflow_connect.kafka.admin.topics import resolve_topics
    from airflow_connect.kafka.clients.short_lived import admin_client

    return sorted(resolve_topics(admin_client(configuration.admin.settings), None, connector.topics_regex or None))


def _name_pattern(topics: list[str], delimiter: str) -> re.Pattern[str]:
    fd, names = re.escape(delimiter), "|".join(re.escape(topic) for topic in topics)
    place = rf"(?P<topic>{names}){fd}(?P<partition>\d+){fd}(?P<start>\d+)"
    return re.compile(rf"(?:^|[^A-Za-z0-9._-]){place}(?:{fd}\d+)?(?:\.[^/]*)?$")
