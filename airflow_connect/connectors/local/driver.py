"""Driver role of the local sink."""

from __future__ import annotations

from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.local.config import LocalSinkConfig
from airflow_connect.connectors.storage.driver import StorageSinkDriver


def open_driver(context: RoleContext) -> StorageSinkDriver:
    """The driver role.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = LocalSinkConfig.from_config(context.config)
    return StorageSinkDriver(config.storage, config.store, context)
