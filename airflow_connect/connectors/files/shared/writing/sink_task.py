"""The task of every storage sink: one writer per topic-partition under one memory budget. It cannot publish."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.columns import NullValues
from airflow_connect.api.sink import SinkTask
from airflow_connect.connectors.files.shared.publishing.state_document import SCHEMA_IDS
from airflow_connect.connectors.files.shared.schema_ids import SchemaIds
from airflow_connect.connectors.files.shared.value_schemas import gather_unique
from airflow_connect.connectors.files.shared.writing.compact_writer import CompactWriter
from airflow_connect.connectors.files.shared.writing.dropped_counts import DroppedCounts
from airflow_connect.connectors.files.shared.writing.opening import open_task_plan
from airflow_connect.connectors.files.shared.writing.task_plan import FAIL, IGNORE, WRITE
from airflow_connect.connectors.files.shared.writing.topic_partition_writer import TopicPartitionWriter
from airflow_connect.errors import DataError, FatalDataError
from airflow_connect.stores.staging import results

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.sink_roles import RoleContext
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.connectors.files.shared.settings.config import StorageConfig
    from airflow_connect.connectors.files.shared.writing.columns import ColumnLayout
    from airflow_connect.connectors.files.shared.writing.task_plan import StorageTaskPlan
    from airflow_connect.stores.store import Stager, Store

CHECK_MEMORY_EVERY = 2000
"""Records on the reference path between two checks of the memory budget: each adds up all open files."""


class StorageSinkTask(SinkTask):
    """Routes records to the writer of their topic-partition: Kafka's own, not a transformed one."""

    repeats_put = False  # Stagers have their own retries, and the first records of a list may be written already.

    def __init__(self) -> None:
        """Opens nothing."""
        self._plan: StorageTaskPlan | None = None
        self._stager: Stager | None = None
        self._writers: dict[TopicPartition, TopicPartitionWriter] = {}
        self._by_name: dict[tuple[str, int], TopicPartitionWriter] = {}
        self._since_check = 0
        self._added_bytes = 0
        """Bytes of columns since the last check. Adding up thousands of open files takes as long as writing a batch."""
        self._columns: ColumnLayout | None = None
        self._schema_ids: dict[tuple[str, int], SchemaIds] = {}

    @property
    def takes_whole_records(self) -> bool:  # type: ignore[override]
        """Whether the files are a backup: `store.kafka.records`."""
        return self._opened()[0].stores_records

    @abstractmethod
    def storage(self, run: RoleContext) -> tuple[StorageConfig, Store]:
        """What to write and where; sends no request.

        Raises:
            ConfigError: a key of the sink is wrong.
        """

    def start(self, config: Mapping[str, str]) -> None:
        """Read the configuration."""
        run = self.context.run
        storage, store = self.storage(run)
        self.begin(open_task_plan(storage, run), store.stager(run.run_id))

    def begin(self, plan: StorageTaskPlan, stager: Stager) -> None:
        """Use this plan and this stager."""
        self._plan, self._stager = plan, stager

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """One writer per planned range."""
        plan, stager = self._opened()
        writer = CompactWriter if plan.layout.rotation.is_compact else TopicPartitionWriter
        self._writers = {r.topic_partition: writer(r, plan, stager) for r in self.context.ranges}
        self._by_name = {(tp.topic, tp.partition): w for tp, w in self._writers.items()}
        self._schema_ids = {place: SchemaIds() for place in self._by_name} if plan.tells_schema_ids else {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write records; one that cannot be written is reported."""
        plan, _ = self._opened()
        keeps_nulls = plan.on_null_values == WRITE
        for record in records:
            self.writing = record
            writer = self._by_name[record.original_topic, record.original_partition]
            self._since_check += 1
            if self._since_check >= CHECK_MEMORY_EVERY or writer.added_bytes >= plan.memory_budget_bytes >> 4:
                self._keep_memory_bounded()
            if record.value is None and not keeps_nulls:
                self._null(record, plan)
                continue
            if self._schema_ids:
                self._schema_ids[record.original_topic, record.original_partition].add(record.value)
            try:
                writer.put(record)
            except FatalDataError:
                raise
            except DataError as error:
                self.context.errant_record_reporter.report(record, error)
        self.writing = None

    def _null(self, record: SinkRecord, plan: StorageTaskPlan) -> None:
        if plan.on_null_values == FAIL:
            raise FatalDataError(
                f"The record at {record.where} has a null value.",
                code="data.null_value",
                suggestion="Set behavior.on.null.values to ignore, or to write together with store.kafka.keys=true.",
                config_path="behavior.on.null.values",
            )
        reason = DataError(f"The record at {record.where} has a null value.", code="data.null_value")
        is_reported = plan.report_nulls and plan.on_null_values == IGNORE
        self.context.leave_out(record, reason if is_reported else None)

    @property
    def needs_keys(self) -> bool:  # type: ignore[override]
        """If they are stored."""
        return self._opened()[0].key is not None

    @property
    def needs_headers(self) -> bool:  # type: ignore[override]
        """If they are stored."""
        return self._opened()[0].headers is not None

    @property
    def null_values(self) -> NullValues:
        """By `behavior.on.null.values`; see `NullDroppingSinkTask`."""
        plan, _ = self._opened()
        if plan.on_null_values != IGNORE:
            return NullValues.NEEDED
        return NullValues.REPORTED if plan.report_nulls else NullValues.LEFT_OUT

    def count_null_values(self, count: int) -> None:
        """Nothing is kept of them."""

    def accepts_columns(self) -> bool:
        """Whether format and directories of this configuration have a columnar form."""
        from airflow_connect.connectors.files.shared.writing.columns import column_layout

        plan, _ = self._opened()
        self._columns = column_layout(plan)
        return self._columns is not None

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        """Write a batch; or return False, without writing, if its records must be written one by one.

        Raises:
            DataError: as `put`.
        """
        if self._columns is None:
            raise TypeError("This sink was not configured for the columnar path.")
        writer = self._by_name[batches[0].original_topic, batches[0].original_partition]
        if not writer.can_join(batches):
            return False
        laid_out = self._columns.lay_out(batches)
        if laid_out is None:
            return False
        for batch in laid_out:
            writer.put_columns(batch)
        if self._schema_ids:
            found = self._schema_ids[batches[0].original_topic, batches[0].original_partition]
            for piece in batches:
                found.add_columns(piece.value.values)
        self._added_bytes += sum(map(_size_of, batches))
        if self._added_bytes >= self._opened()[0].memory_budget_bytes >> 4:
            self._keep_memory_bounded()
        return True

    def flush(self) -> list[StagedFile]:
        """End every range, and wait until everything staged is on the server.

        Raises:
            ConnectError: the first upload that failed permanently, as soon as it fails.
        """
        for tp, writer in self._writers.items():
            writer.flush(must_flush=self.context.must_flush(tp))
        self._note_dropped()
        return gather_unique(results([future for writer in self._writers.values() for future in writer.staged]))

    def _note_dropped(self) -> None:
        dropped = DroppedCounts()
        for writer in self._writers.values():
            dropped.add_all(writer.dropped)
            writer.dropped = DroppedCounts()
        plan, _ = self._opened()
        for sentence in dropped.take_sentences(plan.layout.rotation.schema_compatibility.value):
            self.context.note(sentence)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets up to which all records are in files that have ended."""
        return {tp: self._writers[tp].pre_commit(given) for tp, given in offsets.items()}

    def details(self, partition: TopicPartition) -> Mapping[str, Any]:
        """Times and last schema of a range, and the ids of schemas in a backup."""
        details = self._writers[partition].details()
        found = self._schema_ids.get((partition.topic, partition.partition))
        return details if found is None else {**details, SCHEMA_IDS: found.to_json()}

    def abort(self) -> None:
        """Discard every file, including staged ones."""
        for writer in self._writers.values():
            writer.discard()

    def stop(self) -> None:
        """Release the stager; staged files stay."""
        if self._stager is not None:
            self._stager.close()

    def _opened(self) -> tuple[StorageTaskPlan, Stager]:
        if self._plan is None or self._stager is None:
            raise TypeError("The task was not started.")
        return self._plan, self._stager

    def _keep_memory_bounded(self) -> None:
        """Spill the largest files until half of the budget is free, so the task does not spill all the time."""
        self._since_check = self._added_bytes = 0
        for writer in self._writers.values():
            writer.added_bytes = 0
        budget = self._opened()[0].memory_budget_bytes
        streams = [(s.buffered_bytes, s) for w in self._writers.values() for s in w.streams()]
        held = sum(size for size, _ in streams)
        if held <= budget:
            return
        streams.sort(key=lambda pair: pair[0], reverse=True)
        for size, stream in streams:
            if held <= budget // 2:
                break
            stream.spill()
            held -= size


def _size_of(batch: RecordColumns) -> int:
    """Bytes of the values, keys and headers."""
    keys = 0 if batch.key is None else batch.key.values.nbytes
    return batch.value.values.nbytes + keys + (0 if batch.headers is None else batch.headers.nbytes)
