"""Executor role of the S3 sink: stages multipart uploads. It has no way to complete one."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.s3.config import S3SinkConfig
from airflow_connect.connectors.storage.sink_task import StorageSinkTask
from airflow_connect.connectors.storage.task import open_storage_task
from airflow_connect.stores.s3_store import S3Store


def open_task(context: RoleContext, ranges: Sequence[OffsetRange]) -> StorageSinkTask:
    """A task that copies `ranges`; no request yet.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = S3SinkConfig.from_config(context.config, context.aws)
    return open_storage_task(config.storage, S3Store(config.store), context, ranges)
