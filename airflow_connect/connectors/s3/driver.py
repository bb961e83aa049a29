"""Driver role of the S3 sink: publishes, aborts, and knows how its own leftovers look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.api.transform_config import transforms_of
from airflow_connect.connectors.s3.config import S3SinkConfig
from airflow_connect.connectors.storage.opening import StorageConfig, key_pattern, key_prefixes, open_task_plan
from airflow_connect.connectors.storage.topic_names import final_topics
from airflow_connect.layout.rotation import next_schedule
from airflow_connect.stores.leftovers import PROBE_NAME, LeftoverPattern
from airflow_connect.stores.store import Publisher


class S3SinkDriver:
    """What the driver knows of one S3 sink; imports the store's client only for `publisher`."""

    def __init__(self, config: S3SinkConfig, context: RoleContext) -> None:
        """`config`: the sink's typed configuration."""
        self._config = config
        self._plan = open_task_plan(StorageConfig(config.layout, config.rotation, config.format, config.nulls), context)
        self._chain = transforms_of(context.config)
        self._overwrite = context.overwrite

    @property
    def store_name(self) -> str:
        """`s3://bucket`, with the endpoint of a store that is not Amazon's."""
        endpoint = f" at {self._config.store.endpoint}" if self._config.store.endpoint else ""
        return f"s3://{self._config.store.bucket}{endpoint}"

    @property
    def counted_role(self) -> str:
        """Key files hold every record where null values are written, value files everywhere else."""
        return "key" if self._config.nulls.behavior == "write" else "value"

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How uploads of a run over `ranges` look."""
        topics = {topic: final_topics(self._chain, topic) for topic in sorted({r.topic for r in ranges})}
        names = self._plan.layout.names
        probe_prefix = f"{names.prefix}{PROBE_NAME}-"
        return LeftoverPattern(
            store=self.store_name,
            prefixes=(*key_prefixes(self._plan, topics), probe_prefix),
            pattern=key_pattern(self._plan, topics),
            ranges=tuple(ranges),
            probe_prefix=probe_prefix,
        )

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Whether the local-time grid of `rotate.schedule.interval.ms` has a tick since the last run."""
        rotation = self._plan.layout.rotation
        interval = rotation.rotate_schedule_interval_ms
        return interval > 0 and last_run_ms > 0 and next_schedule(last_run_ms, interval, rotation.zone) <= now_ms

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """All tasks are configured alike."""
        return ()

    def publisher(self) -> Publisher:
        """The store's publisher; no request yet."""
        from airflow_connect.stores.s3_publish import S3Publisher

        store = self._config.store
        if self._overwrite:
            store = replace(store, conditional_writes=False)
        return S3Publisher(store, probe_prefix=self._plan.layout.names.prefix)


def open_driver(context: RoleContext) -> S3SinkDriver:
    """The driver role.

    Raises:
        ConfigError: a key of the sink is wrong.
    """
    return S3SinkDriver(S3SinkConfig.from_config(context.config, context.aws), context)
