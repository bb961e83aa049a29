"""Executor role of the local sink: stages files below `+tmp`. It has no way to publish one."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.local.config import LocalSinkConfig
from airflow_connect.connectors.storage.sink_task import StorageSinkTask
from airflow_connect.connectors.storage.task import open_storage_task


def open_task(context: RoleContext, ranges: Sequence[OffsetRange]) -> StorageSinkTask:
    """A task that copies `ranges`; nothing is written yet.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = LocalSinkConfig.from_config(context.config)
    return open_storage_task(config.storage, config.store, context, ranges)
