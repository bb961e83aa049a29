"""Executor role of the S3 sink: stages multipart uploads. It has no way to complete one."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.s3.config import S3SinkConfig
from airflow_connect.connectors.storage.opening import StorageConfig, open_task_plan
from airflow_connect.connectors.storage.sink_task import StorageSinkTask
from airflow_connect.stores.s3_staging import S3Stager


def open_task(context: RoleContext, ranges: Sequence[OffsetRange]) -> StorageSinkTask:
    """A task that copies `ranges`; no request yet.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = S3SinkConfig.from_config(context.config, context.aws)
    plan = open_task_plan(StorageConfig(config.layout, config.rotation, config.format, config.nulls), context)
    return StorageSinkTask(plan, S3Stager(config.store, context.run_id), ranges)
