"""Records of one topic-partition to files: which files are open, when they end, and what has been accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_connect.api.errors import DataError
from airflow_connect.api.run import PartitionReport, StagedFile
from airflow_connect.connectors.storage.open_file import FileStream, StreamSettings
from airflow_connect.connectors.storage.task_plan import FAIL, IGNORE, StorageTaskPlan
from airflow_connect.formats.key_and_header_values import headers_value_for, wrap_key_for
from airflow_connect.layout.object_names import keys_extension, object_key
from airflow_connect.layout.rotation import Rotation
from airflow_connect.stores.store import FileIdentity, Stager

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.schema import Schema

KEY, HEADERS, VALUE = "key", "headers", "value"


@dataclass(slots=True)
class OpenFile:
    """The open streams of one directory. A tombstone file has no value stream."""

    directory: str
    start: int
    value_schema: Schema | None
    streams: dict[str, FileStream] = field(default_factory=dict)
    end: int = 0
    records: int = 0


@dataclass(slots=True)
class Counts:
    """What happened to records: first since the last rotation, then for good."""

    read: int = 0
    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0

    def add(self, other: Counts) -> None:
        """Sum up."""
        self.read += other.read
        self.written += other.written
        self.filtered += other.filtered
        self.dead_lettered += other.dead_lettered


class TopicPartitionWriter:
    """Writes the records of one planned range, in offset order, into staged files.

    All files of a topic-partition end together, as in Confluent's storage sinks: that is what makes `commit_offset` a
    single number. The order of decisions for each record is reference rule 2.3 (layout/rotation.py).
    """

    def __init__(self, planned: OffsetRange, plan: StorageTaskPlan, stager: Stager) -> None:
        """Nothing is opened until the first record comes."""
        self._range = planned
        self._plan = plan
        self._stager = stager
        self._rotation = Rotation(plan.layout.rotation, plan.now_ms)
        self._compatibility = plan.layout.rotation.schema_compatibility
        self._open: dict[str, OpenFile] = {}
        self._staged: list[Future[StagedFile]] = []
        self._settled = Counts()
        self._pending = Counts()
        self._commit_offset = planned.start

    @property
    def planned(self) -> OffsetRange:
        """The range this writer was made for."""
        return self._range

    def streams(self) -> Iterator[FileStream]:
        """Every open stream, for the memory budget."""
        for file in self._open.values():
            yield from file.streams.values()

    def put(self, record: SinkRecord) -> bool:
        """Write one record.

        Returns:
            False when the record is a null value that must be reported to the dead letter queue.

        Raises:
            DataError: it cannot be laid out or encoded, or is a null value under `behavior.on.null.values=fail`.
        """
        self._pending.read += 1
        if record.value is None and self._plan.on_null_values != "write":
            return self._null(record)
        layout, now_ms = self._plan.layout, self._plan.now_ms
        timestamp = layout.partitioner.timestamp_ms(record, now_ms) if layout.rotation.is_time_based else None
        directory = layout.partitioner.directory(record, now_ms)
        if self._rotation.before_write(directory, timestamp, record.value_schema, now_ms) is not None:
            self.rotate()
            # Skipped records and dead letters since the last written one are settled too.
            self._commit_offset = record.offset
            self._rotation.before_write(directory, timestamp, record.value_schema, now_ms)
        self._write(directory, record)
        if self._rotation.written(directory) is not None:
            self.rotate()
        return True

    def skip(self) -> None:
        """Account for a record that is dropped on purpose."""
        self._pending.read += 1
        self._pending.filtered += 1

    def dead_letter(self, *, already_read: bool = False) -> None:
        """Account for a record that goes to the dead letter queue instead of a file."""
        if already_read:
            self._pending.filtered -= 1
        else:
            self._pending.read += 1
        self._pending.dead_lettered += 1

    def rotate(self) -> None:
        """End all open files of the partition, in the order in which they were opened."""
        for file in self._open.values():
            for stream in file.streams.values():
                self._staged.append(stream.close(file.end, file.records))
            self._commit_offset = max(self._commit_offset, file.end)
        self._open.clear()
        self._rotation.rotated()
        self._settle()

    def finish(self, position: int, *, end: int | None = None, reason: str = "") -> PartitionReport:
        """End the range: stage what is open, or leave it for the next run (`flush.on.end=false`).

        Args:
            position: the consumer's position.
            end: where reading stopped when a limit cut the range short, else None.
            reason: the limit.
        """
        copied = self._range if end is None else replace(self._range, end=end)
        if self._plan.flush_on_end or self._plan.schedule_expired:
            self.rotate()
        left = 0
        if self._open:
            self.abort()
            left = self._pending.read
            self._pending = Counts()
        else:
            self._settle()
            self._commit_offset = copied.end
        done = self._settled
        return PartitionReport(
            range=copied,
            position=position,
            commit_offset=self._commit_offset,
            read=done.read + left,
            written=done.written,
            filtered=done.filtered,
            dead_lettered=done.dead_lettered,
            left=left,
            stopped_early=reason,
        )

    def staged_files(self) -> list[StagedFile]:
        """Wait until every ended file is on the server.

        Raises:
            UnavailableError, AccessError: an upload failed for good.
        """
        return [future.result() for future in self._staged]

    def abort(self) -> None:
        """Discard the open files."""
        for stream in self.streams():
            stream.abort()
        self._open.clear()

    def _settle(self) -> None:
        self._settled.add(self._pending)
        self._pending = Counts()

    def _null(self, record: SinkRecord) -> bool:
        if self._plan.on_null_values == FAIL:
            raise DataError(
                f"The record at {record.where} has a null value.",
                code="data.null_value",
                suggestion="Set behavior.on.null.values to ignore, or to write together with store.kafka.keys=true.",
                config_path="behavior.on.null.values",
            )
        self._pending.filtered += 1
        return not (self._plan.report_nulls and self._plan.on_null_values == IGNORE)

    def _write(self, directory: str, record: SinkRecord) -> None:
        file = self._open.get(directory)
        if file is None:
            file = self._open[directory] = OpenFile(directory, record.offset, self._rotation.current_schema(directory))
        if record.value is not None:
            value = self._compatibility.project(record.value_schema, record.value, file.value_schema)
            self._stream(file, VALUE, file.value_schema, self._plan.value).append(value)
        self._write_key(file, record)
        self._write_headers(file, record)
        file.end = record.offset + 1
        file.records += 1
        self._pending.written += 1

    def _write_key(self, file: OpenFile, record: SinkRecord) -> None:
        settings = self._plan.key
        if settings is None:
            return
        if record.key is None:
            raise DataError(
                f"The record at {record.where} has a null key, and store.kafka.keys is true.",
                code="data.null_key",
                suggestion="Set store.kafka.keys=false or give every record a key.",
                config_path="store.kafka.keys",
            )
        schema, value = wrap_key_for(settings.format, record.key_schema, record.key)
        self._stream(file, KEY, schema, settings).append(value)

    def _write_headers(self, file: OpenFile, record: SinkRecord) -> None:
        settings = self._plan.headers
        if settings is None:
            return
        if not record.headers:
            raise DataError(
                f"The record at {record.where} has no headers, and store.kafka.headers is true.",
                code="data.no_headers",
                suggestion="Set store.kafka.headers=false or give every record a header.",
                config_path="store.kafka.headers",
            )
        schema, value = headers_value_for(settings.format, record.headers)
        self._stream(file, HEADERS, schema, settings).append(value)

    def _stream(self, file: OpenFile, role: str, schema: Schema | None, settings: StreamSettings) -> FileStream:
        stream = file.streams.get(role)
        if stream is None:
            stream = FileStream(self._stager, settings, self._identity(file, role, settings), schema)
            file.streams[role] = stream
        return stream

    def _identity(self, file: OpenFile, role: str, settings: StreamSettings) -> FileIdentity:
        extension = settings.format.extension
        if role != VALUE:
            extension = keys_extension(extension, ".keys" if role == KEY else ".headers")
        topic, partition = self._range.topic, self._range.partition
        key = object_key(file.directory, topic, partition, file.start, extension, self._plan.layout.names)
        return FileIdentity(key, topic, partition, file.start, role=role)
