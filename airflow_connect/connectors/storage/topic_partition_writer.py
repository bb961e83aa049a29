"""Records of one topic-partition to files: which files are open, when they end, and what has been accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.errors import DataError, FatalDataError, LateRecordError
from airflow_connect.api.run import STOPPED_BY_DEAD_LETTERS, PartitionReport, StagedFile
from airflow_connect.connectors.storage.open_file import FileStream, StreamSettings
from airflow_connect.connectors.storage.record_times import RecordTimes
from airflow_connect.connectors.storage.task_plan import FAIL, IGNORE, StorageTaskPlan
from airflow_connect.connectors.storage.value_schemas import schema_text
from airflow_connect.formats.format import check_value
from airflow_connect.formats.key_and_header_values import headers_value_for, wrap_key_for
from airflow_connect.layout.object_names import (
    NameSettings,
    ended_key,
    is_legal_topic,
    keys_extension,
    object_key,
    under_renamed_topic,
)
from airflow_connect.layout.rotation import Reason, Rotation
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility
from airflow_connect.stores.store import FileIdentity, Stager, StagingFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.storage.columns import LaidOut

KEY, HEADERS, VALUE = "key", "headers", "value"


@dataclass(slots=True)
class OpenFile:
    """The open streams of one directory and schema. A tombstone file has no value stream.

    Attributes:
        directory: the partitioner's, `under_renamed_topic` where the topic was changed.
    """

    directory: str
    start: int
    value_schema: Schema | None
    streams: dict[str, FileStream] = field(default_factory=dict)
    end: int = 0
    records: int = 0


class Entry(NamedTuple):
    """What a record adds to one of its files."""

    role: str
    settings: StreamSettings
    schema: Schema | None
    value: Any


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
    single number. The order of decisions for each record is reference rule 2.3 (layout/rotation.py). Where
    each directory has files of its own instead, see `CompactWriter`.
    """

    def __init__(self, planned: OffsetRange, plan: StorageTaskPlan, stager: Stager) -> None:
        """Nothing is opened until the first record comes."""
        self._range = planned
        self._plan = plan
        self._stager = stager
        self._rotation = Rotation(plan.layout.rotation, plan.now_ms, plan.schemas_before.get(planned.topic_partition))
        self._last_file: OpenFile | None = None
        self._compatibility = plan.layout.rotation.schema_compatibility
        self._open: dict[tuple[str, Schema | None], OpenFile] = {}
        self._staged: list[Future[StagedFile]] = []
        self._closed: list[StagingFile] = []
        self._settled = Counts()
        self._pending = Counts()
        late = plan.layout.late
        self._times = None if late is None else RecordTimes(planned.topic, plan.now_ms, late)
        self._commit_offset = planned.start
        self.added_bytes = 0
        """About how many bytes of values were written since whoever looks after memory set this to 0."""

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
            FatalDataError: it is a null value under `behavior.on.null.values=fail`, or values gathered before cannot
                be encoded.
            DataError: it cannot be laid out or written. Nothing of it was, and nothing is counted.
        """
        if record.value is None and self._plan.on_null_values != "write":
            self._pending.read += 1
            return self._null(record)
        layout, now_ms = self._plan.layout, self._plan.now_ms
        timestamp = layout.partitioner.timestamp_ms(record, now_ms) if layout.rotation.is_time_based else None
        try:
            directory = layout.partitioner.directory(record, now_ms)
        except LateRecordError:
            if self._times is not None:
                self._times.refused()
            raise
        if record.topic != self._range.topic:
            directory = _renamed(record, directory)
        self._put(directory, timestamp, record)
        return True

    def _put(self, directory: str, timestamp: int | None, record: SinkRecord) -> None:
        """Write a record that has a place, and end files before or behind it."""
        now_ms = self._plan.now_ms
        if self._rotation.before_write(directory, timestamp, record.value_schema, now_ms) is not None:
            self.rotate()
            # Skipped records and dead letters since the last written one are settled too.
            self._commit_offset = record.offset
            self._rotation.before_write(directory, timestamp, record.value_schema, now_ms)
        try:
            self._write(directory, self._rotation.current_schema(directory), record, timestamp)
        except DataError:
            self._rotation.refused()
            raise
        # Only now: a record that ends files belongs to those that it opens, and one that fails is counted elsewhere.
        self._pending.read += 1
        if self._rotation.written(directory) is not None:
            self.rotate()

    def put_columns(self, batch: LaidOut, skipped: int = 0) -> None:
        """Write a batch; equal to `put` of each record, and `skip` of those that were dropped between them.

        Args:
            batch: the records.
            skipped: how many of `batch.dropped` are counted already.

        Raises:
            DataError: as `put`.
        """
        self._put_columns(batch if batch.topic == self._range.topic else batch.under_renamed_topic(), skipped)

    def _put_columns(self, batch: LaidOut, skipped: int) -> None:
        from airflow_connect.layout.rotation_batches import next_cut

        start, count, now_ms = 0, len(batch.offsets), self._plan.now_ms
        while start < count:
            cut = next_cut(self._rotation, batch.placed, start, now_ms)
            stop = count if cut is None else cut.index
            if stop > start:
                self._write_columns(batch, start, stop)
            # What was dropped right before a record that ends files was dropped before they end.
            last = stop - 1 if cut is None or cut.reason is Reason.SIZE else stop
            self.skip(int(batch.dropped[last]) - skipped)
            skipped = int(batch.dropped[last])
            if cut is not None:
                self.rotate()
                if cut.reason is not Reason.SIZE:
                    self._commit_offset = int(batch.offsets[stop])
            start = stop

    def can_join(self, pieces: Sequence[RecordColumns]) -> bool:
        """Whether records may be written in columns: their topics are legal, and they need no other schema's form."""
        if not all(is_legal_topic(piece.topic) for piece in pieces) or self._mixes_schemaless(pieces):
            return False
        if self._compatibility is StorageSchemaCompatibility.NONE:
            return True
        schemas = {piece.value.schema for piece in pieces}
        if len(schemas) > 1:  # One of them may need the form of another.
            return False
        schema = schemas.pop()
        return (schema is None or schema.version is not None) and self._needs_no_projection(schema)

    def _mixes_schemaless(self, pieces: Sequence[RecordColumns]) -> bool:
        """Whether values with and without schema would follow one another where one schema counts for all files."""
        if not self._rotation.settings.keeps_schema:
            return False
        schemas = [*self._rotation.schemas.values(), *(piece.value.schema for piece in pieces)]
        return len({schema is None for schema in schemas}) > 1

    def _needs_no_projection(self, schema: Schema | None) -> bool:
        return all(current == schema for current in self._rotation.schemas.values())

    def skip(self, count: int = 1) -> None:
        """Account for records that are dropped on purpose."""
        self._pending.read += count
        self._pending.filtered += count

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
            self._staged += self._close(file)
            self._commit_offset = max(self._commit_offset, file.end)
            if self._last_file is None or file.end > self._last_file.end:
                self._last_file = file
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
        # Otherwise a run that reaches its limit of dead letters before any file is full would never make progress.
        is_stuck = reason == STOPPED_BY_DEAD_LETTERS and self._commit_offset == self._range.start
        if self._plan.flush_on_end or self._plan.schedule_expired or is_stuck:
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
            times=None if self._times is None else self._times.report(),
            value_schema=self._schema_of_last_file(),
        )

    def _schema_of_last_file(self) -> str:
        if not self._plan.remembers_schemas or self._last_file is None:
            return ""
        return schema_text(self._last_file.value_schema)

    @property
    def staged(self) -> Sequence[Future[StagedFile]]:
        """Every ended file, in the order in which they ended; each is there once it is on the server."""
        return self._staged

    def abort(self) -> None:
        """Discard the open files."""
        for stream in self.streams():
            stream.abort()
        self._open.clear()

    def discard(self) -> None:
        """Discard every file, also those that were staged."""
        self.abort()
        closed, self._closed = self._closed, []
        for file in closed:
            file.abort()

    def _close(self, file: OpenFile) -> list[Future[StagedFile]]:
        # Noted first: where closing one of them fails, all of them can still be discarded.
        self._closed += [stream.staging for stream in file.streams.values()]
        return [stream.close(file.end, file.records) for stream in file.streams.values()]

    def _settle(self) -> None:
        if self._times is not None:
            self._times.settle()
        self._settled.add(self._pending)
        self._pending = Counts()

    def _null(self, record: SinkRecord) -> bool:
        if self._plan.on_null_values == FAIL:
            raise FatalDataError(
                f"The record at {record.where} has a null value.",
                code="data.null_value",
                suggestion="Set behavior.on.null.values to ignore, or to write together with store.kafka.keys=true.",
                config_path="behavior.on.null.values",
            )
        self._pending.filtered += 1
        return not (self._plan.report_nulls and self._plan.on_null_values == IGNORE)

    def _write(self, directory: str, schema: Schema | None, record: SinkRecord, timestamp: int | None) -> OpenFile:
        """Write a record to all of its files, or to none: whatever can refuse it comes before the first `append`.

        Args:
            directory: where the files are.
            schema: of their values, to which the record's is projected.
            record: the record.
            timestamp: its time, where directories follow time.
        """
        file = self._open.get((directory, schema)) or OpenFile(directory, record.offset, schema)
        entries = self._entries(file, record)
        if self._plan.check_each:
            for entry in entries:
                check_value(entry.settings.format, entry.schema, entry.value)
        try:
            streams = [self._stream(file, entry.role, entry.schema, entry.settings) for entry in entries]
        except DataError:
            if not file.records:
                for stream in file.streams.values():
                    stream.abort()
            raise
        self._open[directory, schema] = file
        for stream, entry in zip(streams, entries, strict=True):
            self.added_bytes += stream.append(entry.value)
        file.end = record.offset + 1
        file.records += 1
        self._pending.written += 1
        if self._times is not None and record.value is not None:
            self._times.note(directory, timestamp)
        return file

    def _entries(self, file: OpenFile, record: SinkRecord) -> list[Entry]:
        plan = self._plan
        entries = []
        if record.value is not None:
            value = self._compatibility.project(record.value_schema, record.value, file.value_schema)
            entries.append(Entry(VALUE, plan.value, file.value_schema, value))
        if plan.key is not None:
            entries.append(Entry(KEY, plan.key, *_key_of(record, plan.key)))
        if plan.headers is not None:
            entries.append(Entry(HEADERS, plan.headers, *_headers_of(record, plan.headers)))
        return entries

    def _write_columns(self, batch: LaidOut, start: int, stop: int) -> None:
        """Write the records `[start, stop)`, directory by directory, in the order in which directories appear."""
        self._pending.read += stop - start
        self._pending.written += stop - start
        if self._times is not None:
            self._times.note_columns(batch.placed, start, stop)
        from airflow_connect.layout.code_groups import group_by_code

        offsets = batch.offsets[start:stop]
        order, groups = group_by_code(batch.placed.codes[start:stop])
        rows, shift = (batch.rows, start) if order is None else (batch.rows.take(order + start), 0)
        for group in groups:
            directory = batch.placed.names[group.code]
            file = self._opened(directory, self._rotation.current_schema(directory), int(offsets[group.first]))
            stream = self._stream(file, VALUE, file.value_schema, self._plan.value)
            rows.write(stream, shift + group.low, shift + group.high)
            file.end = int(offsets[group.last]) + 1
            file.records += group.high - group.low

    def _opened(self, directory: str, schema: Schema | None, offset: int) -> OpenFile:
        """The open file of a directory and schema; a new one begins at `offset`."""
        file = self._open.get((directory, schema))
        if file is None:
            file = self._open[directory, schema] = OpenFile(directory, offset, schema)
        return file

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
        topic, partition, names = self._range.topic, self._range.partition, self._plan.layout.names
        key = object_key(file.directory, topic, partition, file.start, extension, names)
        key_at = partial(_ended, key, extension, names) if names.hold_end else None
        return FileIdentity(key, topic, partition, file.start, role=role, root=names.prefix_of(topic), key_at=key_at)


def _ended(key: str, extension: str, names: NameSettings, end: int) -> str:
    return ended_key(key, end, extension, names)


def _renamed(record: SinkRecord, directory: str) -> str:
    """Place of a record whose topic was changed; one writer may so have files below several topics.

    Raises:
        DataError: the new name could walk out of `topics.dir`, and no sweep would know the file.
    """
    if not is_legal_topic(record.topic):
        raise DataError(
            f"The transformations gave the record at {record.where} the topic {record.topic!r}, which is no legal name"
            " of a topic.",
            code="data.illegal_topic",
            suggestion="Let RegexRouter and TimestampRouter make names of at most 249 letters, digits, dots, hyphens"
            " and underscores; folders above all topics go into topics.dir.",
            config_path="transforms",
        )
    return under_renamed_topic(record.topic, directory)


def _key_of(record: SinkRecord, settings: StreamSettings) -> tuple[Schema | None, Any]:
    if record.key is None:
        raise DataError(
            f"The record at {record.where} has a null key, and store.kafka.keys is true.",
            code="data.null_key",
            suggestion="Set store.kafka.keys=false or give every record a key.",
            config_path="store.kafka.keys",
        )
    return wrap_key_for(settings.format, record.key_schema, record.key)


def _headers_of(record: SinkRecord, settings: StreamSettings) -> tuple[Schema, Any]:
    if not record.headers:
        raise DataError(
            f"The record at {record.where} has no headers, and store.kafka.headers is true.",
            code="data.no_headers",
            suggestion="Set store.kafka.headers=false or give every record a header.",
            config_path="store.kafka.headers",
        )
    return headers_value_for(settings.format, record.headers)
