"""The HDFS sink as a connector class: its keys, its task, its store, and how it continues the files of another sink."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.files.shared.connector import StorageSinkConnector

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.connectors.files.shared.connector import AfterPublish
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.stores.store import Store


class HdfsSinkConnector(StorageSinkConnector):
    """`io.confluent.connect.hdfs.HdfsSinkConnector`: Kafka topics to files in HDFS, published by renaming."""

    config_def = HdfsSinkConfig.config_def()
    task_class = "airflow_connect.connectors.files.hdfs.task:HdfsSinkTask"
    _hdfs: HdfsSinkConfig

    def storage(self, config: Mapping[str, str]) -> tuple[StorageConfig, Store]:
        """HDFS, or a directory."""
        from airflow_connect.stores.hdfs.store import HdfsStore

        self._hdfs = HdfsSinkConfig.from_config(config)
        if isinstance(self._hdfs.store, HdfsStore):
            self._hdfs.store = replace(self._hdfs.store, start_jvm=self.context.start_jvm)
        return self._hdfs, self._hdfs.store

    def after_publish(self, config: Mapping[str, str], storage: StorageConfig, store: Store) -> Sequence[AfterPublish]:
        """Tables over the files, if configured."""
        if not self._hdfs.hive_integration:
            return ()
        from airflow_connect.connectors.files.hdfs.hive_tables import HiveTables
        from airflow_connect.connectors.files.shared.writing.opening import open_partitioner

        partitioner = open_partitioner(storage, config)
        return (HiveTables(self._hdfs, store.name, partitioner),)

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Also true if `rotate.interval.ms` uses the wall clock and has passed since the last run."""
        interval = self._hdfs.rotate_interval_ms
        passed = self._hdfs.rotates_by_clock and 0 < interval <= now_ms - last_run_ms and last_run_ms > 0
        return passed or super().schedule_expired(last_run_ms, now_ms)

    @classmethod
    def uses_current(cls, key: str, staged: Mapping[str, str]) -> bool:
        """Tables over files do not change them: a metastore that has moved must not prevent the commit of files.

        But a run without tables is finished without tables.
        """
        switch = HdfsSinkConfig.hive_integration.name
        has_tables = staged.get(switch, "false").lower() != "false"
        is_of_tables = key.startswith("hive.") and (has_tables or key != switch)
        return is_of_tables or super().uses_current(key, staged)

    def first_offsets(self, partitions: Collection[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        """Where the files of Confluent's sink, or of an earlier connector, end; see `TakingOver.offsets`."""
        from airflow_connect.connectors.files.hdfs.file_trees import open_tree
        from airflow_connect.connectors.files.hdfs.taking_over import TakingOver

        names = self._open(self.config).plan.layout.names
        with closing(open_tree(self._hdfs.store)) as tree:
            return TakingOver(tree, names, self._hdfs.logs_dir).offsets(partitions, apply=apply)

    def last_schemas(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str] | None:
        """Schemas of the last published files, if `schema.compatibility` continues from them; see `LastSchemas.of`."""
        plan = self._open(self.config).plan
        if not plan.remembers_schemas:
            return None
        if not partitions:
            return {}
        from airflow_connect.connectors.files.hdfs.file_trees import open_tree
        from airflow_connect.connectors.files.hdfs.last_schemas import LastSchemas

        with closing(open_tree(self._hdfs.store)) as tree:
            return LastSchemas(tree, plan.layout.names, self._hdfs).of(partitions)
