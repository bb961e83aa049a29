"""Typed configuration of the local sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.values import coerce_config
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.connectors.files.local import keys
from airflow_connect.connectors.files.s3 import keys as s3
from airflow_connect.connectors.files.s3.config import define_content_rules, formats_of
from airflow_connect.connectors.files.shared.settings.config import (
    LayoutConfig,
    NullConfig,
    RotationConfig,
    StorageConfig,
)
from airflow_connect.stores.local.store import LocalStore


@cache
def config_def() -> ConfigDef:
    """Every key of a local sink: Connect's and ours, the shared ones of storage sinks, and its own."""
    return define_content_rules(sink_keys.sink_keys().include(keys.local_keys()))


@dataclass(frozen=True, slots=True)
class LocalSinkConfig:
    """Everything the local sink takes from a connector configuration.

    Attributes:
        store: the directory.
        storage: layout, rotation, formats, null values.
    """

    store: LocalStore
    storage: StorageConfig

    @classmethod
    def from_config(cls, raw: Mapping[str, Any]) -> LocalSinkConfig:
        """Check and type a connector configuration, config providers resolved.

        Raises:
            ConfigError: names every wrong key.
        """
        parsed = config_def().parse(raw)
        text = {name: value for name, value in coerce_config(raw).items() if value is not None}
        layout = LayoutConfig.from_parsed(
            parsed, tombstone_directory=parsed[s3.TOMBSTONE_DIRECTORY], in_file_system=True
        )
        nulls = NullConfig(parsed[s3.NULL_BEHAVIOR].lower(), parsed[s3.REPORT_NULLS])
        storage = StorageConfig(layout, RotationConfig.from_parsed(parsed), formats_of(parsed, text), nulls)
        return cls(LocalStore(parsed[keys.STORE_URL]), storage)
