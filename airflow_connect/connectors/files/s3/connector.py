"""The S3 sink as a connector class: its keys, its task and its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.connectors.files.shared.connector import StorageSinkConnector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_connect.connectors.files.shared.connector import AfterPublish
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.stores.store import Store


class S3SinkConnector(StorageSinkConnector):
    """`io.confluent.connect.s3.S3SinkConnector`: Kafka topics to S3 objects, published by multipart completion."""

    config_def = S3SinkConfig.config_def()
    task_class = "airflow_connect.connectors.files.s3.task:S3SinkTask"

    def storage(self, config: Mapping[str, str]) -> tuple[StorageConfig, Store]:
        """A bucket."""
        from airflow_connect.stores.s3.store import S3Store

        parsed = S3SinkConfig.from_config(config, self.context.aws)
        return parsed, S3Store(parsed.store)

    def after_publish(self, config: Mapping[str, str], storage: StorageConfig, store: Store) -> Sequence[AfterPublish]:
        """Notes about objects that another program left."""
        from airflow_connect.connectors.files.s3.foreign_objects import ForeignObjects
        from airflow_connect.connectors.files.shared.writing.opening import open_names

        return (ForeignObjects(open_names(storage)),)
