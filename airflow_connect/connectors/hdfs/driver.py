"""Driver role of the HDFS sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.storage.driver import AfterPublish, StorageSinkDriver
from airflow_connect.connectors.storage.opening import open_partitioner
from airflow_connect.stores.hdfs_store import HdfsStore


class HdfsSinkDriver(StorageSinkDriver):
    """What the driver knows of one HDFS sink."""

    def __init__(self, config: HdfsSinkConfig, context: RoleContext) -> None:
        """No request yet."""
        super().__init__(config.storage, config.store, context, _steps(config, context))
        self._config = config

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Also whether `rotate.interval.ms` has passed since the last run, where it counts by the wall clock."""
        interval = self._config.storage.rotation.rotate_interval_ms
        passed = self._config.rotates_by_clock and 0 < interval <= now_ms - last_run_ms and last_run_ms > 0
        return passed or super().schedule_expired(last_run_ms, now_ms)

    def taken_over(self, partitions: Iterable[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        """Where files of Confluent's sink, or of an earlier connector, end; see `TakingOver.offsets`."""
        from airflow_connect.connectors.hdfs.file_trees import open_tree
        from airflow_connect.connectors.hdfs.taking_over import TakingOver

        tree = open_tree(self._config.store)
        try:
            taking_over = TakingOver(tree, self._plan.layout.names, self._config.logs_dir)
            return taking_over.offsets(partitions, apply=apply)
        finally:
            tree.close()

    def last_schemas(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, str] | None:
        """What the last published files say, where `schema.compatibility` goes on with it; see `LastSchemas.of`."""
        if not self._plan.remembers_schemas:
            return None
        wanted = tuple(partitions)
        if not wanted:
            return {}
        from airflow_connect.connectors.hdfs.file_trees import open_tree
        from airflow_connect.connectors.hdfs.last_schemas import LastSchemas

        tree = open_tree(self._config.store)
        try:
            return LastSchemas(tree, self._plan.layout.names, self._config.storage.formats).of(wanted)
        finally:
            tree.close()


def _steps(config: HdfsSinkConfig, context: RoleContext) -> tuple[AfterPublish, ...]:
    """What follows publishing."""
    if config.hive is None:
        return ()
    from airflow_connect.connectors.hdfs.hive_tables import HiveTables

    partitioner = open_partitioner(config.storage.layout, context.config)
    return (HiveTables(config.hive, config.storage, config.store.name, partitioner),)


def open_driver(context: RoleContext) -> HdfsSinkDriver:
    """The driver role.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    config = HdfsSinkConfig.from_config(context.config)
    if isinstance(config.store, HdfsStore):
        config = replace(config, store=replace(config.store, start_jvm=context.start_jvm))
    return HdfsSinkDriver(config, context)
