"""The task of the S3 sink: stages multipart uploads. It has no way to complete one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.connectors.files.shared.writing.sink_task import StorageSinkTask
from airflow_connect.stores.s3.store import S3Store

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import RoleContext
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.stores.store import Store


class S3SinkTask(StorageSinkTask):
    """See `StorageSinkTask`."""

    def storage(self, run: RoleContext) -> tuple[StorageConfig, Store]:
        """Read the configuration; no request yet."""
        config = S3SinkConfig.from_config(run.config, run.aws)
        return config, S3Store(config.store)
