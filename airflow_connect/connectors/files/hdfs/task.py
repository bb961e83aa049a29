"""The task of the HDFS sink: stages temporary files. It has no way to rename one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.files.shared.writing.sink_task import StorageSinkTask

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import RoleContext
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.stores.store import Store


class HdfsSinkTask(StorageSinkTask):
    """See `StorageSinkTask`."""

    def storage(self, run: RoleContext) -> tuple[StorageConfig, Store]:
        """Read the configuration; no request yet."""
        config = HdfsSinkConfig.from_config(run.config)
        return config, config.store
