"""Writes records of one topic-partition to files: which files are open, when they end, and which offsets are done."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.files.shared.publishing.state_document import details_of
from airflow_connect.connectors.files.shared.value_schemas import schema_text
from airflow_connect.connectors.files.shared.writing.dropped_counts import DroppedCounts
from airflow_connect.connectors.files.shared.writing.open_file import FileStream, StreamSettings
from airflow_connect.connectors.files.shared.writing.record_times import RecordTimes
from airflow_connect.connectors.files.shared.writing.task_plan import StorageTaskPlan
from airflow_connect.errors import DataError, LateRecordError
from airflow_connect.formats.format import check_value
from airflow_connect.formats.key_and_header_values import headers_schema_for, headers_value_for, wrap_key_for
from airflow_connect.layout.names.object_names import (
    NameSettings,
    ended_key,
    is_legal_topic,
    keys_extension,
    object_key,
    under_renamed_topic,
)
from airflow_connect.layout.rotation import Rotation
from airflow_connect.layout.schema_compatibility import StorageSchemaCompatibility
from airflow_connect.stores.store import FileIdentity, Stager, StagingFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.files.shared.writing.columns import Encoded, LaidOut

KEY, HEADERS, VALUE = "key", "headers", "value"


@dataclass(slots=True)
class OpenFile:
    """The open streams of one directory and schema. A tombstone file has no value stream.

    Attributes:
        directory: the partitioner's, or that of `under_renamed_topic` if the topic was changed.
        dropped: records whose fields are not all in the file; None: there are none.
        key_schema: of its first key, if keys are stored.
    """

    directory: str
    start: int
    value_schema: Schema | None
    streams: dict[str, FileStream] = field(default_factory=dict)
    end: int = 0
    records: int = 0
    dropped: DroppedCounts | None = None
    key_schema: Schema | None = None


class Entry(NamedTuple):
    """What a record adds to one of its files."""

    role: str
    settings: StreamSettings
    schema: Schema | None
    value: Any


class TopicPartitionWriter:
    """Writes the records of one planned range, in offset order, into staged files.

    All files of a topic-partition end together, as in Confluent's storage sinks, so `commit_offset` is a single
    number. The order of decisions for each record is reference rule 2.3 (layout/rotation.py). `CompactWriter` has
    separate files for each directory instead.
    """

    def __init__(self, planned: OffsetRange, plan: StorageTaskPlan, stager: Stager) -> None:
        """Opens nothing before the first record."""
        self._range = planned
        self._plan = plan
        self._stager = stager
        self._rotation = Rotation(plan.layout.rotation, plan.now_ms, plan.schemas_before.get(planned.topic_partition))
        self._last_file: OpenFile | None = None
        self._compatibility = plan.layout.rotation.schema_compatibility
        self._open: dict[tuple[str, Schema | None], OpenFile] = {}
        self._staged: list[Future[StagedFile]] = []
        self._closed: list[StagingFile] = []
        late = plan.layout.late
        self._times = None if late is None else RecordTimes(planned.topic, plan.now_ms, late)
        self._commit_offset = planned.start
        self._has_dropped = False
        self.dropped = DroppedCounts()
        """Records of ended files whose fields are not all in their files."""
        self.added_bytes = 0
        """Estimated bytes of values that were written since the owner of the memory budget set this to 0."""

    @property
    def planned(self) -> OffsetRange:
        """The range of this writer."""
        return self._range

    def streams(self) -> Iterator[FileStream]:
        """Every open stream, for the memory budget."""
        for file in self._open.values():
            yield from file.streams.values()

    def put(self, record: SinkRecord) -> None:
        """Write one record.

        Raises:
            FatalDataError: values collected earlier cannot be encoded.
            DataError: it has no valid directory, or cannot be written. Nothing of it was written.
        """
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

    def _put(self, directory: str, timestamp: int | None, record: SinkRecord) -> None:
        """Write a record with a known directory, and end files before or after it."""
        now_ms = self._plan.now_ms
        reason = self._rotation.before_write(directory, timestamp, record.value_schema, now_ms)
        if reason is not None or self._has_other_keys(directory, self._rotation.current_schema(directory), record):
            self.rotate()
            self._rotation.before_write(directory, timestamp, record.value_schema, now_ms)
        try:
            self._write(directory, self._rotation.current_schema(directory), record, timestamp)
        except DataError:
            self._rotation.refused()
            raise
        if self._rotation.written(directory) is not None:
            self.rotate()

    def _has_other_keys(self, directory: str, schema: Schema | None, record: SinkRecord) -> bool:
        """Whether the open file's keys have another schema: a file of keys has one, and would lose what it has not."""
        file = self._open.get((directory, schema))
        if file is None or self._plan.key is None or record.key is None:
            return False
        return file.key_schema != record.key_schema

    def put_columns(self, batch: LaidOut) -> None:
        """Write a batch; equivalent to `put` of each record.

        Raises:
            DataError: as `put`.
        """
        self._put_columns(batch if batch.topic == self._range.topic else batch.under_renamed_topic())

    def _put_columns(self, batch: LaidOut) -> None:
        from airflow_connect.layout.rotation_batches import next_cut

        start, count, now_ms = 0, len(batch.offsets), self._plan.now_ms
        while start < count:
            cut = next_cut(self._rotation, batch.placed, start, now_ms)
            stop = count if cut is None else cut.index
            if stop > start:
                self._write_columns(batch, start, stop)
            if cut is not None:
                self.rotate()
            start = stop

    def can_join(self, pieces: Sequence[RecordColumns]) -> bool:
        """Whether records may be written in columns: their topics are legal, and none needs another schema."""
        if not all(is_legal_topic(piece.topic) for piece in pieces) or self._mixes_schemaless(pieces):
            return False
        if self._plan.key is not None and not self._have_key_schema(pieces):
            return False
        if self._compatibility is StorageSchemaCompatibility.NONE:
            return True
        schemas = {piece.value.schema for piece in pieces}
        if len(schemas) > 1:  # One of them may have to be projected to another.
            return False
        schema = schemas.pop()
        return (schema is None or schema.version is not None) and self._needs_no_projection(schema)

    def _have_key_schema(self, pieces: Sequence[RecordColumns]) -> bool:
        """Whether all keys have one schema, and the open files as well: a file of keys has that of its first one."""
        schemas = {None if piece.key is None else piece.key.schema for piece in pieces}
        return len(schemas) == 1 and all(file.key_schema in schemas for file in self._open.values())

    def _mixes_schemaless(self, pieces: Sequence[RecordColumns]) -> bool:
        """Whether values with and without a schema would be mixed although one schema applies to all files."""
        if not self._rotation.settings.keeps_schema:
            return False
        schemas = [*self._rotation.schemas.values(), *(piece.value.schema for piece in pieces)]
        return len({schema is None for schema in schemas}) > 1

    def _needs_no_projection(self, schema: Schema | None) -> bool:
        return all(current == schema for current in self._rotation.schemas.values())

    def rotate(self) -> None:
        """End all open files of the partition, in the order in which they were opened."""
        for file in self._open.values():
            self._staged += self._close(file)
            self._commit_offset = max(self._commit_offset, file.end)
            if self._last_file is None or file.end > self._last_file.end:
                self._last_file = file
        self._open.clear()
        self._rotation.rotated()
        self._settle_times()

    def flush(self, *, must_flush: bool) -> None:
        """The range has been read: stage open files, or leave their records to the next run (`flush.on.end=false`)."""
        if must_flush:
            self.rotate()
        self._has_dropped = bool(self._open)
        if self._open:
            self.abort()
        else:
            self._settle_times()

    def pre_commit(self, given: int) -> int:
        """The offset up to which files that have ended contain all records, if all records before `given` were put."""
        return self._commit_offset if self._open or self._has_dropped else given

    def details(self) -> Mapping[str, Any]:
        """What the report says about the range."""
        times = None if self._times is None else self._times.report()
        return details_of(times, self._schema_of_last_file())

    def _schema_of_last_file(self) -> str:
        if not self._plan.remembers_schemas or self._last_file is None:
            return ""
        return schema_text(self._last_file.value_schema)

    @property
    def staged(self) -> Sequence[Future[StagedFile]]:
        """Every ended file, in the order of their ends; each is available when it is on the server."""
        return self._staged

    def abort(self) -> None:
        """Discard the open files."""
        for stream in self.streams():
            stream.abort()
        self._open.clear()

    def discard(self) -> None:
        """Discard every file, including staged ones."""
        self.abort()
        closed, self._closed = self._closed, []
        for file in closed:
            file.abort()

    def _close(self, file: OpenFile) -> list[Future[StagedFile]]:
        # Recorded first: if closing one of them fails, all of them can still be discarded.
        self._closed += [stream.staging for stream in file.streams.values()]
        if file.dropped is not None:
            self.dropped.add_all(file.dropped)
        return [stream.close(file.end, file.records) for stream in file.streams.values()]

    def _settle_times(self) -> None:
        if self._times is not None:
            self._times.settle()

    def _write(self, directory: str, schema: Schema | None, record: SinkRecord, timestamp: int | None) -> OpenFile:
        """Write a record to all of its files, or to none: everything that can fail comes before the first `append`.

        Args:
            directory: of the files.
            schema: of their values, to which the record's is projected.
            record: the record.
            timestamp: its time, if directories are based on time.
        """
        file = self._open.get((directory, schema))
        if file is None:
            file = OpenFile(directory, record.offset, schema, key_schema=record.key_schema)
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
        if not file.records:
            self._opening(record.offset)
            self._open[directory, schema] = file
        for stream, entry in zip(streams, entries, strict=True):
            self.added_bytes += stream.append(entry.value)
        file.end = record.offset + 1
        file.records += 1
        if record.value_schema is not schema and record.value is not None:
            self._count_dropped(file, record)
        if self._times is not None and record.value is not None:
            self._times.note(directory, timestamp)
        return file

    def _count_dropped(self, file: OpenFile, record: SinkRecord) -> None:
        """Count a record that was written if its projection to the schema of the file has dropped something."""
        fields = self._compatibility.find_dropped(record.value_schema, record.value, file.value_schema)
        if fields:
            file.dropped = file.dropped or DroppedCounts()
            file.dropped.add(record.original_topic, record.value_schema, file.value_schema, fields)

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
        if self._times is not None:
            self._times.note_columns(batch.placed, start, stop)
        from airflow_connect.layout.code_groups import group_by_code

        offsets = batch.offsets[start:stop]
        order, groups = group_by_code(batch.placed.codes[start:stop])
        rows, shift = (batch.encoded, start) if order is None else (batch.encoded.take(order + start), 0)
        for group in groups:
            directory = batch.placed.names[group.code]
            file = self._opened(batch, directory, self._rotation.current_schema(directory), int(offsets[group.first]))
            self._write_rows(file, batch, rows, shift + group.low, shift + group.high)
            file.end = int(offsets[group.last]) + 1
            file.records += group.high - group.low

    def _write_rows(self, file: OpenFile, batch: LaidOut, rows: Encoded, low: int, high: int) -> None:
        """Append records `[low, high)`, in their new order, to a file and to those beside it."""
        plan = self._plan
        rows.values.write(self._stream(file, VALUE, file.value_schema, plan.value), low, high)
        if rows.keys is not None and plan.key is not None:
            rows.keys.write(self._stream(file, KEY, batch.stored_key_schema, plan.key), low, high)
        if rows.headers is not None and plan.headers is not None:
            schema = headers_schema_for(plan.headers.format)
            rows.headers.write(self._stream(file, HEADERS, schema, plan.headers), low, high)

    def _opened(self, batch: LaidOut, directory: str, schema: Schema | None, offset: int) -> OpenFile:
        """The open file of a directory and schema; a new one begins at `offset`."""
        file = self._open.get((directory, schema))
        if file is None:
            self._opening(offset)
            file = self._open[directory, schema] = OpenFile(directory, offset, schema, key_schema=batch.key_schema)
        return file

    def _opening(self, offset: int) -> None:
        """The record at `offset` begins a file: what was left out since the last file ended may be committed too.

        So `pre_commit` never goes back, wherever the lists of records end that the task is given.
        """
        if not self._open:
            self._commit_offset = max(self._commit_offset, offset)

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
    """Directory of a record whose topic was changed; a writer may thus have files of several topics.

    Raises:
        DataError: the new name could lead out of `topics.dir`, and no sweep would recognise the file.
    """
    if not is_legal_topic(record.topic):
        raise DataError(
            f"The transformations gave the record at {record.where} the topic {record.topic!r}, which is not a"
            " legal topic name.",
            code="data.illegal_topic",
            suggestion="Configure RegexRouter and TimestampRouter for names of at most 249 letters, digits, dots,"
            " hyphens and underscores. Put folders above all topics into topics.dir.",
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
