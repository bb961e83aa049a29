"""Driver role of the S3 sink."""

from __future__ import annotations

from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.s3.config import S3SinkConfig
from airflow_connect.connectors.s3.foreign_objects import ForeignObjects
from airflow_connect.connectors.storage.driver import StorageSinkDriver
from airflow_connect.connectors.storage.opening import open_names
from airflow_connect.stores.s3_store import S3Store


def open_driver(context: RoleContext) -> StorageSinkDriver:
    """The driver role.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = S3SinkConfig.from_config(context.config, context.aws)
    step = ForeignObjects(open_names(config.layout))
    return StorageSinkDriver(config.storage, S3Store(config.store), context, (step,))
