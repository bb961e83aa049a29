"""The connector of every storage sink: where files go, how to recognise its leftovers, what follows publishing.

A connector class is loaded when a DAG is parsed, so the methods import what only a run needs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.api.sink import Splitting, StagingSinkConnector
from airflow_connect.api.sink_state import PlannedState, StateAfter

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.schema import Schema
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun
    from airflow_connect.config.resolved.transforms import TransformConfig
    from airflow_connect.connectors.files.shared.publishing.backup_document import BackupDocuments
    from airflow_connect.connectors.files.shared.publishing.time_keeper import StorageTimeKeeper
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.connectors.files.shared.writing.task_plan import StorageTaskPlan
    from airflow_connect.documents.run import PublishedRun
    from airflow_connect.stores.store import FilePublisher, Publisher, Store


class AfterPublish(Protocol):
    """A step that follows publishing, such as adding partitions to a table; each is one small class."""

    def __call__(self, run: PublishedRun, publisher: FilePublisher) -> Sequence[str] | None:
        """Do it; idempotent. Every file of `run` is visible, its offsets are not committed.

        Returns:
            Notes for the report, if any.

        Raises:
            ConnectError: it failed; the next run calls it again.
        """


class _Opened(NamedTuple):
    """What is created from the configuration; sends no request yet.

    Attributes:
        config: what does not depend on the store.
        store: where files go; it loads its client when a publisher is opened.
        plan: layout and formats, as tasks have them.
        chain: transformations, which may rename topics.
        steps: what follows publishing, in this order.
        backups: the one of them that writes what a backup needs beside its records; None: the files are no backup.
    """

    config: StorageConfig
    store: Store
    plan: StorageTaskPlan
    chain: tuple[TransformConfig, ...]
    steps: tuple[AfterPublish, ...]
    backups: BackupDocuments | None


class StorageSinkConnector(StagingSinkConnector):
    """A sink that lays records out in files of a store. A subclass defines the store and its keys."""

    _opened: _Opened | None = None

    @abstractmethod
    def storage(self, config: Mapping[str, str]) -> tuple[StorageConfig, Store]:
        """What to write and where; no request yet.

        Raises:
            ConfigError: a key of the sink is wrong.
        """

    def after_publish(self, config: Mapping[str, str], storage: StorageConfig, store: Store) -> Sequence[AfterPublish]:
        """The sink's own steps, which precede the marker of complete directories.

        Args:
            config: the configuration as text.
            storage, store: the result of `storage` for it.

        Raises:
            ConfigError: a key of a step is wrong.
        """
        return ()

    def check_config(self, config: Mapping[str, str]) -> None:
        """Create everything that needs no request.

        Raises:
            ConfigError: a key of the sink is wrong, or a class that it names refuses its settings.
        """
        self._open(config)

    def start(self, config: Mapping[str, str]) -> None:
        """As `check_config`."""
        super().start(config)
        self._open(config)

    def _open(self, config: Mapping[str, str]) -> _Opened:
        if self._opened is None:
            self._opened = self._opened_with(config)
        return self._opened

    def _opened_with(self, config: Mapping[str, str]) -> _Opened:
        from airflow_connect.api.sink_roles import RoleContext
        from airflow_connect.config.resolved.transforms import transforms_of
        from airflow_connect.connectors.files.shared.publishing.markers import Markers
        from airflow_connect.connectors.files.shared.writing.opening import open_task_plan

        storage, store = self.storage(config)
        plan = open_task_plan(storage, RoleContext(config))
        marker = storage.marker
        # The marker comes last: it shows that everything else is done.
        markers = [Markers(marker, plan.layout.names.directory_delimiter)] if marker else []
        backups = self._backup_documents(config, plan) if storage.stores_records else None
        steps = (*self.after_publish(config, storage, store), *([backups] if backups else []), *markers)
        return _Opened(storage, store, plan, transforms_of(config), steps, backups)

    def _backup_documents(self, config: Mapping[str, str], plan: StorageTaskPlan) -> BackupDocuments:
        from airflow_connect.connectors.files.shared.publishing.backup_document import BackupDocuments
        from airflow_connect.connectors.files.shared.settings.whole_records import REGISTRY
        from airflow_connect.registry.settings import settings_to_reach

        name, registry = config["name"], settings_to_reach(REGISTRY, config)
        own_group = config.get("consumer.override.group.id") or f"connect-{name}"
        return BackupDocuments(name, own_group, plan.layout.names, lambda: self.context.cluster, registry)

    @classmethod
    def uses_current(cls, key: str, staged: Mapping[str, str]) -> bool:
        """No file depends on the registry of a backup, which may have moved."""
        from airflow_connect.connectors.files.shared.settings.whole_records import REGISTRY

        return key.startswith(REGISTRY)

    @property
    def counted_role(self) -> str:
        """Key files contain every record if null values are written; otherwise value files do."""
        from airflow_connect.connectors.files.shared.settings.content import WRITE_NULLS

        return "key" if self._open(self.config).config.on_null == WRITE_NULLS else "value"

    def store_name(self, config: Mapping[str, str]) -> str:
        """Where files go."""
        return self._open(config).store.name

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How to recognise files staged by a run over `ranges`."""
        from airflow_connect.connectors.files.shared.publishing.topic_names import final_topics
        from airflow_connect.connectors.files.shared.writing.opening import key_pattern, key_prefixes
        from airflow_connect.stores.store import PROBE_NAME

        opened = self._open(self.config)
        store, plan, chain = opened.store, opened.plan, opened.chain
        topics = {topic: final_topics(chain, topic) for topic in sorted({r.topic for r in ranges})}
        probe_prefix = f"{plan.layout.names.prefix}{PROBE_NAME}-"
        return LeftoverPattern(
            store=store.name,
            prefixes=(*key_prefixes(plan, topics), probe_prefix),
            pattern=key_pattern(plan, topics),
            ranges=tuple(ranges),
            probe_prefix=probe_prefix,
        )

    def stage_without_columns(self) -> str:
        """See `ColumnarSinkConnector`."""
        from airflow_connect.connectors.files.shared.writing.columns import stage_without_columns

        return stage_without_columns(self._open(self.config).plan)

    def stage_without_columns_of(self, schema: Schema | None) -> str:
        """See `ColumnarSinkConnector`."""
        from airflow_connect.connectors.files.shared.writing.columns import row_encoder

        written_by = self._open(self.config).plan.value.format
        if row_encoder(written_by, schema) is not None:
            return ""
        return f"values that the format ({type(written_by).__name__}) does not write in columns"

    def takes_whole_records(self) -> bool:
        """See `ColumnarSinkConnector`."""
        return self._open(self.config).config.stores_records

    def needs_headers(self) -> bool:
        """See `ColumnarSinkConnector`."""
        return self._open(self.config).plan.headers is not None

    def splitting(self) -> Splitting:
        """A cut is like the end of a run, where files end anyway. It is refused where more than offsets passes it.

        Cuts are at multiples of `flush.size`: if that key alone ends files, and offsets have no gaps, files are the
        same with and without cuts.
        """
        from airflow_connect.connectors.files.shared.settings.config import COMPACT
        from airflow_connect.connectors.files.shared.settings.config import StorageConfig as Keys

        storage, plan = self._open(self.config).config, self._open(self.config).plan
        if plan.remembers_schemas:
            return Splitting(f"with {Keys.schema_compatibility}, a file begins with the schema of the file before it")
        if storage.is_compact:
            return Splitting(f"{Keys.is_compact}={COMPACT} is for as few files as possible")
        return Splitting(multiple_of=storage.flush_size)

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """Which records are late, and the schemas that files begin with.

        Raises:
            ConnectError: the store refused, or did not answer; or a file cannot be read.
        """
        from airflow_connect.connectors.files.shared.publishing import schemas_between_runs
        from airflow_connect.connectors.files.shared.publishing.state_document import KeptState, TaskState

        opened = self._open(self.config)
        if opened.backups is not None and run.ranges:
            opened.backups.check({r.topic for r in run.ranges})
        before = KeptState.from_json(run.kept)
        kept = before.without_topics_of(run)
        topics = sorted({tp.topic for tp in run.partitions})
        keeper = self.time_keeper(topics)
        late_before = {} if keeper is None else keeper.late_before(kept.time.without(run.again), topics)
        schemas = schemas_between_runs.before(kept.value_schemas, run, self.last_schemas)
        return PlannedState(
            for_tasks=TaskState(late_before, schemas).to_json(),
            kept=None if kept == before else kept.to_json(),
            leaves_nothing=self.schedule_expired(run.last_run_ms, run.now_ms),
        )

    def state_after(self, run: CopiedRun) -> StateAfter:
        """The progress of time directories, those that are complete, and the schemas of the last files."""
        from airflow_connect.connectors.files.shared.publishing import schemas_between_runs
        from airflow_connect.connectors.files.shared.publishing.state_document import (
            KeptState,
            TaskState,
            copied_partitions,
            schema_ids_of,
        )
        from airflow_connect.connectors.files.shared.publishing.time_progress import CopiedTimes, TimeStep

        planned = run.planned
        known, began = KeptState.from_json(planned.kept), TaskState.from_json(run.for_tasks)
        keeper = self.time_keeper(sorted({tp.topic for tp in planned.partitions}))
        copied = copied_partitions(run.reports)
        step = TimeStep(known.time)
        if keeper is not None:
            seen = CopiedTimes(planned.now_ms, tuple(planned.partitions), planned.at_end, copied, run.files)
            step = keeper.advance(known.time.without(planned.again), seen)
        schemas = schemas_between_runs.after(known.value_schemas, began.schemas_before, run.reports)
        is_backup = self._open(self.config).backups is not None
        coverage = known.coverage.after(run.reports, run.files) if is_backup else known.coverage
        return StateAfter(
            KeptState(step.progress, schemas, schema_ids_of(known.schema_ids, run.reports), coverage).to_json(),
            tuple(directory.to_json() for directory in step.complete),
            {"late": sum(one.times.late for one in copied if one.times)},
            step.notes,
        )

    def last_schemas(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str] | None:
        """Schemas of the last published files, for those of `partitions` that have one.

        Called for partitions whose schema no earlier run has kept.

        Returns:
            The schemas, as JsonConverter writes them; None if tasks start without any.

        Raises:
            ConnectError: the store refused, did not answer, or holds something that cannot be read.
        """
        return None

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Whether the local-time grid of `rotate.schedule.interval.ms` has a tick since the last run.

        Args:
            last_run_ms: when the last run was planned; 0 if there was none.
            now_ms: the run's frozen clock. Both are milliseconds since the epoch.
        """
        from airflow_connect.layout.rotation import next_schedule

        rotation = self._open(self.config).plan.layout.rotation
        interval = rotation.rotate_schedule_interval_ms
        return interval > 0 and last_run_ms > 0 and next_schedule(last_run_ms, interval, rotation.zone) <= now_ms

    def publisher(self) -> FilePublisher:
        """The store's publisher; no request yet."""
        opened = self._open(self.config)
        store, plan = opened.store, opened.plan
        return store.publisher(probe_prefix=plan.layout.names.prefix, overwrite=self.context.overwrite)

    def time_keeper(self, topics: Collection[str]) -> StorageTimeKeeper | None:
        """What determines which directories are complete; None if the configuration does not request it."""
        opened = self._open(self.config)
        config, plan, chain = opened.config, opened.plan, opened.chain
        layout = plan.layout
        if layout.late is None:
            return None
        from airflow_connect.connectors.files.shared.publishing.time_keeper import StorageTimeKeeper
        from airflow_connect.connectors.files.shared.publishing.topic_names import final_topics
        from airflow_connect.layout.partitioners import innermost
        from airflow_connect.layout.timestamp_extractors import WallclockTimestampExtractor

        partitioner = innermost(layout.partitioner)
        follows_clock = isinstance(getattr(partitioner, "extractor", None), WallclockTimestampExtractor)
        return StorageTimeKeeper(
            config,
            layout.late.grid,
            layout.names,
            follows_clock=follows_clock,
            final_topics={topic: final_topics(chain, topic) for topic in topics},
        )

    def published(self, run: PublishedRun, publisher: Publisher) -> Sequence[str]:
        """Each step that follows publishing, in order."""
        files = cast("FilePublisher", publisher)  # What `publisher` of a storage sink has returned.
        return [note for step in self._open(self.config).steps for note in step(run, files) or ()]
