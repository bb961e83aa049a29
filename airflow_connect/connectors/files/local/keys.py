"""Keys of the local sink: those of all storage sinks, the S3 sink's keys for contents, and a directory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_connect.api.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import Lambda
from airflow_connect.api.config.values import invalid
from airflow_connect.connectors.files.s3 import keys as s3
from airflow_connect.connectors.files.shared.settings import keys as storage
from airflow_connect.errors import ConfigError
from airflow_connect.stores.local.store import local_path

STORE_URL = "store.url"

_CONTENT = (
    s3.COMPRESSION_TYPE, s3.COMPRESSION_LEVEL, s3.JSON_DECIMAL_FORMAT, s3.BYTES_EXTENSION, s3.BYTES_SEPARATOR,
    s3.NULL_BEHAVIOR, s3.REPORT_NULLS, s3.TOMBSTONE_DIRECTORY,
)  # fmt: skip
_COMPANIONS = (s3.STORE_KEYS, s3.STORE_HEADERS, s3.KEYS_FORMAT, s3.HEADERS_FORMAT)
_IGNORED = {
    storage.STORAGE_CLASS: "The local sink writes to only one kind of store.",
    storage.DIRECTORY_DELIM: "Directories of a file system are separated by a slash.",
    storage.FILE_DELIM: "The parts of a file name are separated by +, as in names of Confluent's HDFS sink.",
    storage.RETRY_BACKOFF_MS: "A failed run is started again by its scheduler.",
}
_GROUP = "Local"


def local_keys() -> ConfigDef:
    """Every key except those of all sinks."""
    definition = ConfigDef().define(
        ConfigKey(
            STORE_URL, Type.STRING, REQUIRED,
            "Directory to write to, such as file:///data/out. It is created if it does not exist. The driver and all"
            " executors must see it under this path.",
            Lambda(_check_directory, "file:///directory"), Importance.HIGH, _GROUP,
        )
    )  # fmt: skip
    theirs = s3.s3_keys().keys
    definition.define(*(replace(theirs[name], group=_GROUP) for name in _CONTENT))
    definition.define(*(theirs[name] for name in _COMPANIONS))
    shared = storage.storage_keys()
    definition.define(*(_for_files(key) for key in shared.keys.values()))
    for names, rule in shared.rules:
        definition.define_rule(names, rule)
    return definition


def _for_files(key: ConfigKey) -> ConfigKey:
    why = _IGNORED.get(key.name)
    if why is None:
        return key
    if key.name == storage.STORAGE_CLASS:
        # The formats of any sink: a configuration of another sink can be tried out by changing three keys.
        return replace(key, type=Type.STRING, default="", plugin=None, importance=Importance.LOW, ignored=why)
    return replace(key, ignored=why)


def _check_directory(name: str, value: Any) -> None:
    try:
        local_path(str(value or ""), name)
    except ConfigError as error:
        raise invalid(name, value, f"{error.suggestion.rstrip('.')}") from error
