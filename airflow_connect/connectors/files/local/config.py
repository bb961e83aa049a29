"""Typed configuration of the local sink: all storage sinks' keys, the S3 sink's keys for contents, and a directory."""

from __future__ import annotations

from functools import partial
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.files.shared.settings.config import FileSystemConfig
from airflow_connect.connectors.files.shared.settings.content import ContentConfig, tombstone_directory
from airflow_connect.errors import ConfigError
from airflow_connect.stores.local.store import LocalStore, local_path

_LOCAL, _STORAGE = KeyGroup("Local"), KeyGroup("Storage")


def _check_directory(name: str, value: Any) -> None:
    try:
        local_path(str(value or ""), name)
    except ConfigError as error:
        raise invalid(name, value, f"{error.suggestion.rstrip('.')}") from error


class _Directory(TypedConfig):
    store = _LOCAL.high.text(
        "store.url",
        REQUIRED,
        "Directory to write to, such as file:///data/out. It is created if it does not exist. The driver and all"
        " executors must see it under this path.",
        Lambda(_check_directory, "file:///directory"),
    ).to(LocalStore)


class LocalSinkConfig(_Directory, ContentConfig, FileSystemConfig):
    """Everything the local sink takes from a connector configuration."""

    tombstone_directory = ContentConfig.tombstone_directory.to(partial(tombstone_directory, in_file_system=True))
    # The formats of any sink: a configuration of another sink can be tried out by changing three keys.
    _storage_class = _STORAGE.low.text(
        "storage.class",
        "",
        FileSystemConfig.storage_class.key.documentation,
        ignored="The local sink writes to only one kind of store.",
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """The keys of every sink, then those of the local sink."""
        definition.include(sink_keys.sink_keys())
        super().define(definition)
        for key in ContentConfig.declared():
            if key.key.group == "S3":
                definition.redefine(key.name, group="Local")
        for name, why in {
            cls.directory_delim.name: "Directories of a file system are separated by a slash.",
            cls.file_delim.name: "The parts of a file name are separated by +, as in names of Confluent's HDFS sink.",
            cls.retry_backoff_ms.name: "A failed run is started again by its scheduler.",
        }.items():
            definition.redefine(name, ignored=why)
