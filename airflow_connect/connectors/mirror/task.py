"""The task of the mirror source: ranges of partitions, as batches of columns, or of records where those are needed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE, KafkaRecord, SourceRecord
from airflow_connect.api.schema import OPTIONAL_BYTES
from airflow_connect.api.source import SourceColumns, SourceOffset, SourcePartition, SourceTask
from airflow_connect.connectors.mirror.config import MirrorConfig
from airflow_connect.connectors.mirror.headers import ensure_writable, header_of
from airflow_connect.connectors.mirror.offsets import Committed, offset_of, out_of_range_error, partition_of
from airflow_connect.connectors.mirror.refusals import OpenRecords
from airflow_connect.connectors.mirror.syncs.writer import OffsetSyncLog
from airflow_connect.connectors.mirror.work import MirroredRange, ranges_of
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin.topics import resolve_topics
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.reading.batch_reader import RangeReader

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.kafka.reading.column_batch import ColumnBatch

RECORDS_AT_ONCE = 2_000
"""How many records of a batch become objects at the same time."""
CHECK_TOPICS_S = 1.0
"""How often a task looks whether a topic was recreated, besides at its end."""
RECORDS_OF_COLUMNS = 100_000
"""How many stay in columns: more than the reader fetches at once."""
RECORDS_OF_BATCH, BYTES_OF_BATCH, SECONDS_OF_BATCH = 200_000, 32 << 20, 1.0
"""When a batch ends, which transaction.boundary=poll commits. A commit waits for the brokers for as long as 10,000
records take, and one fetch has a few thousand records, of several partitions."""

_ZERO_TIMESTAMP = (
    "Some records have the timestamp 0 (1 January 1970). Their copies have the time of the run, because Kafka's client"
    " cannot write this timestamp."
)


class _Place:
    """A partition that is being mirrored.

    Attributes:
        position: everything below it was returned.
        remote: the topic in the target cluster.
        source_partition: identifies its offset.
    """

    def __init__(self, planned: MirroredRange, position: int, remote: str, source_partition: SourcePartition) -> None:
        self.planned = planned
        self.position = position
        self.remote = remote
        self.source_partition = source_partition

    def offset_at(self, position: int) -> SourceOffset:
        """The offset to commit when everything below `position` is mirrored."""
        return offset_of(position, self.planned.topic_id, self.planned.copy_id)


class _Joined:
    """What the task has returned since the last commit."""

    def __init__(self) -> None:
        self._records = self._bytes = 0
        self._since = 0.0

    def add(self, batch: ColumnBatch) -> None:
        """Count what is returned next."""
        if not self._records:
            self._since = time.monotonic()
        self._records += len(batch)
        self._bytes += batch.size_bytes

    def is_small(self) -> bool:
        """Whether there is something, but not enough for a transaction."""
        is_recent = time.monotonic() - self._since < SECONDS_OF_BATCH
        return 0 < self._records < RECORDS_OF_BATCH and self._bytes < BYTES_OF_BATCH and is_recent


class MirrorSourceTask(SourceTask):
    """Mirrors ranges of partitions: each record keeps its partition, timestamp, key, value and headers."""

    _reader: RangeReader | None = None
    _syncs: OffsetSyncLog | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """See `SourceTask`. Offsets are read again: an earlier attempt of this task may have committed some."""
        self._open = OpenRecords({})  # `explained` is also called for an error of this method.
        typed = MirrorConfig.from_config(config)
        self._target_admin_settings = typed.target_admin()
        self._settings, self._admin_settings = typed.source_consumer().settings, typed.source_admin()
        self._next_check = time.monotonic() + CHECK_TOPICS_S
        ranges = ranges_of(config)
        partitions = [partition_of(typed.policy.source, one.topic_partition) for one in ranges]
        committed = self.context.offset_reader.offsets(partitions)
        self._places = {
            one.topic_partition: _Place(one, _resumed(one, offset), typed.policy.remote_topic(one.topic), partition)
            for one, partition, offset in zip(ranges, partitions, map(Committed.of, committed), strict=True)
        }
        self._syncs = OffsetSyncLog(typed, ranges, self.context)
        self._open = OpenRecords({tp: place.remote for tp, place in self._places.items()})
        self._unfinished = dict(self._places)
        self._batch: ColumnBatch | None = None
        self._batches = self._opened()
        self._joined = _Joined()

    def poll(self) -> Sequence[SourceRecord] | None:
        """The next records of one partition, as objects.

        Raises:
            ConnectError: the source cluster refused, or did not answer.
            DataError: a header cannot be written.
        """
        batch = self._take(RECORDS_AT_ONCE)
        if batch is None:
            return None
        headers = batch.headers()
        self._look_at(batch, headers)
        place = self._places[batch.topic_partition]
        # Not the headers of the records: their names are text, and bytes that are not UTF-8 are replaced.
        rows: list[Any] = [()] * len(batch) if headers is None else headers.to_pylist()
        return [_source_record(place, *pair) for pair in zip(batch.records(), rows, strict=True)]

    def poll_columns(self) -> SourceColumns | None:
        """The next records of one partition in columns; None if nothing is left.

        Raises:
            ConnectError: the source cluster refused, or did not answer.
            DataError: a header cannot be written.
        """
        import pyarrow as pa

        batch = self._take(RECORDS_OF_COLUMNS)
        if batch is None:
            return None
        place = self._places[batch.topic_partition]
        headers = batch.headers()
        self._look_at(batch, headers)
        has_times = batch.timestamp_type != TIMESTAMP_NOT_AVAILABLE
        return SourceColumns(
            topic=place.remote,
            source_partition=place.source_partition,
            source_offset=place.offset_at(int(batch.offsets[-1]) + 1),
            key_schema=OPTIONAL_BYTES,
            keys=batch.keys,
            value_schema=OPTIONAL_BYTES,
            values=batch.values,
            timestamps=pa.array(batch.timestamps, pa.int64()) if has_times else None,
            partition=batch.partition,
            headers=headers,
        )

    def has_ended(self) -> bool:
        """Whether every range was returned up to its planned end."""
        return not self._unfinished and self._batch is None

    def continues_batch(self) -> bool:
        """See `JoiningSourceTask`: what is fetched at once is joined with what comes after it."""
        return not self.has_ended() and self._joined.is_small()

    def commit(self) -> None:
        """What was returned so far is committed; at the end of the ranges, offset syncs tell where it is."""
        self._joined = _Joined()
        self._open.committed()
        if self._syncs is not None:
            self._syncs.committed()
            if self.has_ended():
                self._syncs.write()

    def explained(self, error: ConnectError) -> ConnectError:
        """See `ExplainingSourceTask`: which record the target cluster has refused."""
        return self._open.explained(error, admin_client(self._target_admin_settings))

    def stop(self) -> None:
        """See `SourceTask`. Limits of a run may have ended it before the end of the ranges."""
        if self._syncs is not None:
            self._syncs.write(only_exact=True)
        self._batch = None
        if self._reader is not None:
            self._reader.close()

    def _opened(self) -> Iterator[ColumnBatch]:
        """Begin to read what is left."""
        if self._reader is not None:
            self._reader.close()
        left = [
            OffsetRange(tp.topic, tp.partition, place.position, place.planned.end)
            for tp, place in self._unfinished.items()
        ]
        self._reader = RangeReader(self._settings, left)
        return self._reader.columns()

    def _current(self) -> ColumnBatch | None:
        """The batch whose records are returned now; None: there are no more."""
        if self._batch is None:
            try:
                self._batch = next(self._batches, None)
            except ConnectError:
                # An iterator that has failed looks as if it had ended.
                self._batches = self._opened()
                raise
            if self._batch is None:
                self._finish()
        return self._batch

    def _take(self, most: int) -> ColumnBatch | None:
        """The next records: at most `most`, and no more than the run may still copy."""
        batch = self._current()
        if batch is None:
            return None
        left = self.context.records_left
        count = min(len(batch), most if left is None else min(most, max(1, left)))
        taken = batch.slice(0, count)
        place = self._places[taken.topic_partition]
        position = int(taken.offsets[-1]) + 1
        is_last = position >= place.planned.end
        if (is_last and len(self._unfinished) == 1) or time.monotonic() >= self._next_check:
            # Before anything counts as returned: if the source cluster does not answer, the poll is repeated.
            self._check_topics()
        self._batch = batch.slice(count, len(batch)) if count < len(batch) else None
        self._joined.add(taken)
        if not taken.timestamps.all():
            self.context.note(_ZERO_TIMESTAMP)
        place.position = position
        if self._syncs is not None:
            self._syncs.returned(taken.topic_partition, taken.offsets)
        if is_last:
            self._unfinished.pop(taken.topic_partition, None)
            self._tell_how_it_was_read()
        return taken

    def _look_at(self, batch: ColumnBatch, headers: pa.ListArray[Any] | None) -> None:
        """Look at records before they are returned.

        Raises:
            DataError: a header cannot be written.
        """
        ensure_writable(batch, headers)
        self._open.returned(batch, headers)

    def _check_topics(self) -> None:
        """Look whether the topics are still those that were planned: a reader does not notice it.

        Raises:
            OffsetError: one was recreated; the records of the open transaction may be of either topic.
        """
        planned = {place.planned.topic: place.planned.topic_id for place in self._places.values()}
        found = resolve_topics(admin_client(self._admin_settings), list(planned), None)
        for topic, info in found.items():
            if info.topic_id != planned[topic]:
                raise out_of_range_error(
                    f"Topic {topic} of the source cluster was recreated while it was mirrored: its id is"
                    f" {info.topic_id}, and was {planned[topic]}"
                )
        self._next_check = time.monotonic() + CHECK_TOPICS_S

    def _finish(self) -> None:
        """Commit the ends of ranges whose last offsets hold no record: they are not looked at again."""
        if self._unfinished:
            self._check_topics()
        for place in self._unfinished.values():
            self.context.skip_to(place.source_partition, place.offset_at(place.planned.end))
        self._unfinished.clear()
        self._tell_how_it_was_read()

    def _tell_how_it_was_read(self) -> None:
        """Put notes of the reader, about its slow path, into the report of the run."""
        for sentence in self._reader.notes if self._reader is not None else ():
            self.context.note(sentence)


def _resumed(planned: MirroredRange, committed: Committed | None) -> int:
    """Where a task begins: the planned start, unless an earlier attempt has committed some of the range."""
    if committed is None or committed.topic_id not in ("", planned.topic_id):
        return planned.start
    is_inside = planned.start <= committed.position <= planned.end
    return committed.position if is_inside else planned.start


def _source_record(place: _Place, record: KafkaRecord, headers: Iterable[Mapping[str, Any]]) -> SourceRecord:
    return SourceRecord(
        topic=place.remote,
        partition=record.partition,
        key_schema=OPTIONAL_BYTES,
        key=record.key,
        value_schema=OPTIONAL_BYTES,
        value=record.value,
        timestamp=record.timestamp,
        headers=tuple(header_of(one) for one in headers),
        source_partition=place.source_partition,
        source_offset=place.offset_at(record.offset + 1),
    )
