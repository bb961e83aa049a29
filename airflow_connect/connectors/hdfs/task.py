"""Executor role of the HDFS sink: stages temporary files. It has no way to rename one."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.storage.sink_task import StorageSinkTask
from airflow_connect.connectors.storage.task import open_storage_task


def open_task(context: RoleContext, ranges: Sequence[OffsetRange]) -> StorageSinkTask:
    """A task that copies `ranges`; no request yet.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = HdfsSinkConfig.from_config(context.config)
    return open_storage_task(config.storage, config.store, context, ranges)
