"""A stager in memory, and a sink loop over given records: both paths can be run and compared."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from airflow_connect.api.columns import RecordColumns
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.api.staging import StagedFile
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.connectors.files.shared.publishing.state_document import TaskState
from airflow_connect.connectors.files.shared.writing.opening import open_task_plan
from airflow_connect.documents.run import PartitionReport, TaskPlan
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.runtime.executor.converting import RecordConverter
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.progress import ProgressSender
from airflow_connect.runtime.executor.sink.loop import SinkLoop
from airflow_connect.runtime.executor.sink.put_errors import PutErrors
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from airflow_connect.runtime.executor.sink.whole_records import WholeRecordConverter
from airflow_connect.stores.store import FileIdentity
from tests.support.copies.sink_tasks import StagedInMemory

HDFS = "io.confluent.connect.hdfs.HdfsSinkConnector"
NOW_MS = 1_700_000_000_000


class MemoryFile:
    """A staged file that keeps its bytes."""

    def __init__(self, identity: FileIdentity) -> None:
        self.identity = identity
        self.data = bytearray()

    buffered_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    def spill(self) -> None:
        """It has no disk."""

    def close(self, end: int, records: int) -> Future[StagedFile]:
        about = self.identity
        done: Future[StagedFile] = Future()
        done.set_result(
            StagedFile(
                about.key, about.topic, about.partition, about.start, end, records, len(self.data), {"data": self.data}
            )
        )
        return done

    def abort(self) -> None:
        self.data.clear()


class MemoryStager:
    """Makes `MemoryFile`s."""

    def open(self, identity: FileIdentity) -> MemoryFile:
        return MemoryFile(identity)

    def close(self) -> None:
        """Nothing is held."""


class GivenRecords:
    """A reader of records that are given batch by batch."""

    def __init__(self, batches: Sequence[list[KafkaRecord]], end: int) -> None:
        self._batches = batches
        self._end = end

    def records(self) -> Iterator[tuple[TopicPartition, list[KafkaRecord]]]:
        for batch in self._batches:
            yield TopicPartition(batch[0].topic, batch[0].partition), batch

    def columns(self) -> Iterator[ColumnBatch]:
        yield from map(columns_of, self._batches)

    def positions(self) -> dict[TopicPartition, int]:
        return {TopicPartition("t", 0): self._end}


def columns_of(records: list[KafkaRecord]) -> ColumnBatch:
    """Records of one timestamp type as a batch."""
    return ColumnBatch(
        records[0].topic,
        records[0].partition,
        records[0].timestamp_type,
        np.array([r.offset for r in records], dtype=np.int64),
        np.array([-1 if r.timestamp is None else r.timestamp for r in records], dtype=np.int64),
        pa.array([r.key for r in records], pa.binary()),
        pa.array([r.value for r in records], pa.binary()),
        lambda start, stop: records[start:stop],
    )


@dataclass
class Outcome:
    """What a loop did."""

    files: list[tuple[Any, ...]] = field(default_factory=list)
    reports: list[PartitionReport] = field(default_factory=list)
    dead_letters: list[Any] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    error: str = ""
    code: str = ""


class CountingRunner(SinkTaskRunner):
    """Counts the records that took the columnar path."""

    in_columns = 0

    def put_columns(self, batches: Sequence[RecordColumns], read: Any, nulls: Any = None) -> bool:
        written = super().put_columns(batches, read, nulls)
        self.in_columns += len(read) if written else 0
        return written


def copy(
    config: Mapping[str, str],
    batches: Sequence[list[KafkaRecord]],
    *,
    columnar: bool,
    flush_on_end: bool = True,
    late_before: Mapping[str, int] | None = None,
    schema_before: str = "null",
    check_each: bool = False,
) -> tuple[Outcome, int]:
    """Run the loop; returns what it did and how many records were written in columns."""
    connector = {
        "name": "c",
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "t",
        "s3.bucket.name": "bucket",
        "s3.region": "eu-west-1",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        **config,
    }
    worker = {"bootstrap.servers": "x:1", "key.converter": STRING, "value.converter": JSON}
    resolved = load_connector_config(connector, worker)
    end = batches[-1][-1].offset + 1 if batches else 0
    planned = OffsetRange("t", 0, 0, end)
    context = RoleContext(
        config=connector,
        now_ms=NOW_MS,
        flush_on_end=flush_on_end,
        state=TaskState(late_before or {}, {planned.topic_partition: schema_before}).to_json(),
        check_each=check_each,
    )
    sink = HdfsSinkConfig if connector["connector.class"] == HDFS else S3SinkConfig
    plan = open_task_plan(sink.from_config(context.config), context)
    policy = ErrorPolicy(resolved.connector.name, 0, resolved.connector.errors)
    errors = PutErrors(policy, resolved.connector.errors)
    task = CountingRunner(StagedInMemory(plan, MemoryStager()), replace(context, errors=errors), [planned])
    task.open()
    converter = WholeRecordConverter() if task.takes_whole_records else RecordConverter(resolved)
    loop = SinkLoop(task, converter, policy, ProgressSender({}, 0, 0))
    outcome = Outcome()
    try:
        reader: Any = GivenRecords(batches, end)
        loop.read(reader, TaskPlan(0, (planned,)), columnar=columnar)
        outcome.reports = loop.finish(reader, TaskPlan(0, (planned,)))
    except ConnectError as error:
        outcome.error, outcome.code = f"{type(error).__name__}: {error}", error.code
        return outcome, task.in_columns
    converter.unread.tell(task.notes)
    loop.slow_path.tell(task.notes)
    outcome.notes = task.notes.sentences
    outcome.files = [
        (f.key, f.start, f.end, f.records, content(f.key, bytes(f.token["data"]))) for f in task.staged_files()
    ]
    outcome.dead_letters = [
        {**letter, "headers": [h for h in letter["headers"] if "stacktrace" not in h[0]]}
        for letter in sorted(policy.dead_letters, key=lambda letter: letter["origin"])
    ]
    return outcome, task.in_columns


def content(key: str, data: bytes) -> Any:
    """Bytes after decompression, schema and rows of a Parquet or ORC file, schema and records of an Avro file."""
    if key.endswith(".avro"):
        blocks = fastavro.block_reader(io.BytesIO(data))
        return blocks.metadata["avro.schema"], b"".join(block.bytes_.getvalue() for block in blocks)
    if key.endswith(".orc"):
        file = orc.ORCFile(pa.BufferReader(data))
        try:
            table = file.read()
        except pa.ArrowInvalid:  # pyarrow's reader knows no instants after the year 2262.
            return repr(file.schema), file.nrows
    elif key.endswith(".parquet"):
        table = pq.read_table(io.BytesIO(data))
    if key.endswith((".orc", ".parquet")):
        columns = [column.cast(without_dates(column.type)) for column in table.columns]
        return repr(table.schema), repr([column.to_pylist() for column in columns])
    return gzip.decompress(data) if key.endswith(".gz") else data


def without_dates(type_: pa.DataType) -> pa.DataType:
    """The type with integers in the place of dates and times: Python's end at the year 9999, Parquet's do not."""
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(without_dates(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(without_dates(type_.value_type)))
    if pa.types.is_map(type_):
        key, item = (field.with_type(without_dates(field.type)) for field in (type_.key_field, type_.item_field))
        return pa.map_(key, item)
    if pa.types.is_temporal(type_):
        return pa.int64() if type_.bit_width == 64 else pa.int32()
    return type_


STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
