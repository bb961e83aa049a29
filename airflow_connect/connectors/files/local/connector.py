"""The local sink as a connector class: its keys, its task and its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.files.local.config import LocalSinkConfig
from airflow_connect.connectors.files.shared.connector import StorageSinkConnector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.stores.store import Store


class LocalSinkConnector(StorageSinkConnector):
    """Kafka topics to files in a directory, published by giving staged files their names."""

    config_def = LocalSinkConfig.config_def()
    task_class = "airflow_connect.connectors.files.local.task:LocalSinkTask"

    def storage(self, config: Mapping[str, str]) -> tuple[StorageConfig, Store]:
        """A directory."""
        parsed = LocalSinkConfig.from_config(config)
        return parsed, parsed.store
