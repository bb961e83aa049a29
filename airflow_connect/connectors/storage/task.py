"""The executor role of every storage sink. It has no way to publish."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.storage.config import StorageConfig
from airflow_connect.connectors.storage.opening import open_task_plan
from airflow_connect.connectors.storage.sink_task import StorageSinkTask
from airflow_connect.stores.store import Store


def open_storage_task(
    config: StorageConfig, store: Store, context: RoleContext, ranges: Sequence[OffsetRange]
) -> StorageSinkTask:
    """A task that copies `ranges`; no request yet."""
    return StorageSinkTask(open_task_plan(config, context), store.stager(context.run_id), ranges)
