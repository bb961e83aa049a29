"""The driver role of every storage sink: the store's publisher, and how the sink's own leftovers look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.run import PublishedRun
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.api.transform_config import transforms_of
from airflow_connect.connectors.storage.config import StorageConfig
from airflow_connect.connectors.storage.markers import Markers
from airflow_connect.connectors.storage.opening import WRITE_NULLS, key_pattern, key_prefixes, open_task_plan
from airflow_connect.connectors.storage.time_keeper import StorageTimeKeeper
from airflow_connect.connectors.storage.topic_names import final_topics
from airflow_connect.layout.partitioners import innermost
from airflow_connect.layout.rotation import next_schedule
from airflow_connect.layout.timestamp_extractors import WallclockTimestampExtractor
from airflow_connect.stores.leftovers import PROBE_NAME, LeftoverPattern
from airflow_connect.stores.store import FilePublisher, Store


class AfterPublish(Protocol):
    """A step that follows publishing, such as partitions of a table; one small class each."""

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> Sequence[str] | None:
        """Do it; idempotent. Every file of `run` is visible, its offsets are not committed.

        Returns:
            notes for people, if there are any.

        Raises:
            ConnectError: it did not work; the next run calls again.
        """


class StorageSinkDriver:
    """What the driver knows of one storage sink; the store loads its client when `publisher` is called."""

    def __init__(
        self, config: StorageConfig, store: Store, context: RoleContext, after_publish: Sequence[AfterPublish] = ()
    ) -> None:
        """`config`: what does not depend on the store. `after_publish`: steps of the sink's own, in this order."""
        self._store = store
        self._plan = open_task_plan(config, context)
        self._writes_nulls = config.nulls.behavior == WRITE_NULLS
        self._chain = transforms_of(context.config)
        self._overwrite = context.overwrite
        self._complete = config.layout.complete
        marker = self._complete.marker
        names = self._plan.layout.names
        # The marker comes last: it says that everything else is done.
        self._after_publish = (*after_publish, *([Markers(marker, names.directory_delimiter)] if marker else []))

    @property
    def store_name(self) -> str:
        """Where files go."""
        return self._store.name

    @property
    def counted_role(self) -> str:
        """Key files hold every record where null values are written, value files everywhere else."""
        return "key" if self._writes_nulls else "value"

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How files look that a run over `ranges` stages."""
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

    def publisher(self) -> FilePublisher:
        """The store's publisher; no request yet."""
        return self._store.publisher(probe_prefix=self._plan.layout.names.prefix, overwrite=self._overwrite)

    def time_keeper(self, topics: Iterable[str]) -> StorageTimeKeeper | None:
        """What finds out which directories are complete, where the configuration asks for it."""
        layout = self._plan.layout
        if layout.late is None:
            return None
        partitioner = innermost(layout.partitioner)
        follows_clock = isinstance(getattr(partitioner, "extractor", None), WallclockTimestampExtractor)
        return StorageTimeKeeper(
            self._complete,
            layout.late.grid,
            layout.names,
            follows_clock=follows_clock,
            final_topics={topic: final_topics(self._chain, topic) for topic in topics},
        )

    def last_schemas(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, str] | None:
        """Every run begins without a schema."""
        return None

    def published(self, run: PublishedRun, publisher: FilePublisher) -> Sequence[str]:
        """Each step that follows publishing, in order."""
        return [note for step in self._after_publish for note in step(run, publisher) or ()]
