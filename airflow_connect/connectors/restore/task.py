"""The task of a restore source: chains, one after the other, as columns, or as records where those are needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import Header, SourceRecord
from airflow_connect.api.schema import BYTES, OPTIONAL_BYTES
from airflow_connect.api.source import SourceColumns, SourceTask
from airflow_connect.connectors.restore.alone import Alone
from airflow_connect.connectors.restore.config import RestoreConfig
from airflow_connect.connectors.restore.keys import TIMESTAMP, RestoreKeys
from airflow_connect.connectors.restore.passed import fingerprint
from airflow_connect.connectors.restore.progress import Progress, partition_of
from airflow_connect.connectors.restore.read.chain import ChainReader, FileReader, Piece
from airflow_connect.connectors.restore.read.opening import Store
from airflow_connect.connectors.restore.read.records import MISSING, TOLD_HOLE, Records, holes
from airflow_connect.connectors.restore.unwritable import DELETED_SOON, OTHER_TIMES, bad_name, bad_time, no_key
from airflow_connect.connectors.restore.values.task import ValueTask
from airflow_connect.connectors.restore.values.work import VALUE_CHAINS
from airflow_connect.connectors.restore.work import Chain, chains_of
from airflow_connect.counting import agreeing, plural
from airflow_connect.errors import DataError
from airflow_connect.kafka.writing.header_names import first_unwritable
from airflow_connect.kafka.writing.produced import name_of

if TYPE_CHECKING:
    from airflow_connect.stores.file_systems import FileSystems

RECORDS_AT_ONCE = 2_000
"""How many records of a batch become objects at the same time."""
RECORDS_OF_COLUMNS = 100_000
RECORDS_OF_BATCH, BYTES_OF_BATCH, SECONDS_OF_BATCH = 200_000, 32 << 20, 1.0
"""When a batch ends, which transaction.boundary=poll commits: a commit of each small file would cost more than it."""


class _Joined:
    """What the task has returned since the last commit."""

    def __init__(self) -> None:
        self._records = self._bytes = 0
        self._since = 0.0

    def add(self, records: Records) -> None:
        """Count what is returned next."""
        if not self._records:
            self._since = time.monotonic()
        self._records += len(records)
        self._bytes += sum(records.columns[name].nbytes for name in ("key", "value"))

    def is_small(self) -> bool:
        """Whether there is something, but not enough for a transaction."""
        is_recent = time.monotonic() - self._since < SECONDS_OF_BATCH
        return 0 < self._records < RECORDS_OF_BATCH and self._bytes < BYTES_OF_BATCH and is_recent


class _Place:
    """A chain that is being restored.

    Attributes:
        chain: with the progress that is returned so far.
        reader: of its files.
        pieces: that come next.
        largest_hole: offsets `[start, end)` that no file holds.
        is_at_end: whether the point is reached up to which it is restored.
        is_before_start: whether the point in time is still to come from which on it is restored.
        passed_over: records before that point.
        begin: offset from which on the chain is restored.
    """

    def __init__(self, chain: Chain, reader: FileReader) -> None:
        self.chain = chain
        self.files = reader
        self.reader = ChainReader(chain, reader)
        self.pieces = self.reader.pieces()
        self.largest_hole = (0, 0)
        self.is_at_end = self.is_before_start = False
        self.passed_over = 0
        self.begin = chain.progress.begin if chain.progress.passed else chain.progress.position
        self._before, self._planned = chain.before, len(chain.files)

    @property
    def files_done(self) -> int:
        """Files of the plan of which everything is returned."""
        at = self.chain.progress
        return min(self._planned, max(0, at.passed - at.open - self._before))

    def within(self, piece: Piece, position: int) -> Progress:
        """The progress when only a part of a piece is restored, up to `position`."""
        known = self.chain.progress.after(file=piece.progress.file, version=piece.progress.version)
        return self.reader.progress_at(known, position, min(piece.first_open, position))

    def begin_again(self, progress: Progress) -> None:
        """Read on after an error: an iterator that has failed looks as if it had ended."""
        first, chain = progress.first_open, self.chain
        done = [file for file in chain.files if file.start < first]
        self.chain = chain._replace(
            progress=progress,
            files=[file for file in chain.files if file.start >= first],
            before=chain.before + len(done),
            before_ms=max([chain.before_ms, *(file.modified_ms for file in done)]),
            before_names=fingerprint((file.name for file in done), chain.before_names),
        )
        self.reader = ChainReader(self.chain, self.files)
        self.pieces = self.reader.pieces()


class RestoreTask(SourceTask):
    """Restores chains: each record keeps its partition, timestamp, key, value and headers."""

    config_class: ClassVar[type[RestoreConfig]]
    _file_systems: FileSystems | None = None
    _values: ValueTask | None = None
    """Does the work if the files hold values."""

    def start(self, config: Mapping[str, str]) -> None:
        """See `SourceTask`. Offsets are read again: an earlier attempt of this task may have committed some."""
        typed = self.config_class.from_config(config)
        self._typed = typed
        self._file_systems = typed.file_systems(self.context.aws)
        store = Store(self._file_systems.of(typed.root), typed.root)
        if VALUE_CHAINS in config:
            self._values = ValueTask(typed, store, self.context, config)
            self._alone = Alone.of(typed, self.context, self._values.untouched())
            return
        chains = chains_of(config)
        self._partitions = {one.topic_partition: partition_of(typed.root, one.topic_partition) for one in chains}
        committed = self.context.offset_reader.offsets(self._partitions.values())
        self._left: list[_Place] = []
        for chain, offset in zip(chains, committed, strict=True):
            place = _Place(chain, FileReader(store, typed.file_format, chain.topic_partition))
            now = None if offset is None else Progress.of(offset)
            if now is not None and now.topic_id == chain.progress.topic_id and now.position > chain.progress.position:
                place.begin_again(now)
                place.begin = now.begin
            place.is_before_start = typed.from_ms is not None and not place.chain.progress.passed
            self._left.append(place)
        self._left.reverse()
        untouched = [place.chain.topic_partition for place in self._left if not place.chain.progress.passed]
        targets = [TopicPartition(typed.target_of(tp.topic), tp.partition) for tp in untouched]
        self._alone = Alone.of(typed, self.context, targets)
        self._piece: Piece | None = None
        self._files_done = 0
        self._joined = _Joined()

    def poll(self) -> Sequence[SourceRecord] | None:
        """The next records of one partition, as objects.

        Raises:
            UnavailableError, AccessError: a file cannot be read.
        """
        if self._values is not None:
            return self._values.poll()
        taken = self._take(RECORDS_AT_ONCE)
        if taken is None:
            return None
        place, records, first_open, progress = taken
        tp = place.chain.topic_partition
        before = place.chain.progress
        rows = zip(*(part.to_pylist() for part in _in_order(records)), records.offsets.tolist(), strict=True)
        found = []
        for stamp, key, value, headers, offset in rows:
            at = place.reader.progress_at(before, offset + 1, min(first_open, offset + 1))
            found.append(
                SourceRecord(
                    topic=self._typed.target_of(tp.topic),
                    partition=tp.partition,
                    key_schema=OPTIONAL_BYTES,
                    key=key,
                    value_schema=OPTIONAL_BYTES,
                    value=value,
                    timestamp=stamp,
                    headers=tuple(_header(one) for one in headers),
                    source_partition=self._partitions[tp],
                    source_offset=(progress if offset + 1 == progress.position else at).to_offset(),
                )
            )
        return found

    def poll_columns(self) -> SourceColumns | None:
        """The next records of one partition in columns; None if nothing is left.

        Raises:
            UnavailableError, AccessError: a file cannot be read.
        """
        if self._values is not None:
            return self._values.poll_columns()
        taken = self._take(RECORDS_OF_COLUMNS)
        if taken is None:
            return None
        place, records, _, progress = taken
        tp = place.chain.topic_partition
        headers = records.columns["headers"]
        return SourceColumns(
            topic=self._typed.target_of(tp.topic),
            source_partition=self._partitions[tp],
            source_offset=progress.to_offset(),
            key_schema=OPTIONAL_BYTES,
            keys=records.columns["key"],
            value_schema=OPTIONAL_BYTES,
            values=records.columns["value"],
            timestamps=records.columns["timestamp"],
            partition=tp.partition,
            headers=headers if _has_any(headers) else None,  # type: ignore[arg-type]
        )

    def has_ended(self) -> bool:
        """Whether every chain was returned to its planned end, or left out: seen by the poll after the last record."""
        return self._values.has_ended() if self._values is not None else not self._left and self._piece is None

    def continues_batch(self) -> bool:
        """See `JoiningSourceTask`: small files are joined."""
        if self._values is not None:
            return self._values.continues_batch()
        return not self.has_ended() and self._joined.is_small()

    def before_commit(self, first: Mapping[TopicPartition, int]) -> None:
        """See `CheckingSourceTask`: of two restores to the same empty topic, one fails.

        Raises:
            OffsetError: another program has written to a partition first.
            UnavailableError: the partition cannot be read.
        """
        self._alone.check(first)

    def commit(self) -> None:
        """What was returned so far is committed."""
        if self._values is not None:
            self._values.commit()
        self._joined = _Joined()

    def stop(self) -> None:
        """See `SourceTask`."""
        if self._values is not None:
            self._values.stop()
        self._piece = None
        self._left = []
        if self._file_systems is not None:
            self._file_systems.close()

    def _take(self, most: int) -> tuple[_Place, Records, int, Progress] | None:
        """The next records, at most `most`; with the first open file before them, and the progress after them."""
        piece = self._current()
        if piece is None:
            return None
        place = self._left[-1]
        left = self.context.records_left
        count = min(len(piece.records), most if left is None else min(most, max(1, left)))
        records, progress = piece.records, piece.progress
        if count < len(records):
            records, rest = records.slice(0, count), records.slice(count, len(records))
            position = int(records.offsets[-1]) + 1
            progress = place.within(piece, position)
            self._piece = piece._replace(records=rest)
        else:
            self._piece = None
        progress = progress.after(begin=place.begin)
        tp = place.chain.topic_partition
        self._alone.sent(TopicPartition(self._typed.target_of(tp.topic), tp.partition))
        self._joined.add(records)
        self._count(place, records)
        place.chain = place.chain._replace(progress=progress)
        self.context.parts_done(self._files_done + place.files_done)
        return place, records, piece.first_open, progress

    def _count(self, place: _Place, records: Records) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        missing, largest = holes(place.chain.progress.position, records.offsets)
        place.largest_hole = max(place.largest_hole, largest, key=lambda hole: hole[1] - hole[0])
        if missing:
            self.context.count(MISSING, missing)
        stamps = records.columns["timestamp"]
        if stamps.null_count:
            self.context.count(OTHER_TIMES, stamps.null_count)
        if place.chain.deletes_before_ms:
            is_older: Any = pc.less(stamps, pa.scalar(place.chain.deletes_before_ms, pa.int64()))
            if older := is_older.true_count:
                self.context.count(DELETED_SOON, older)

    def _current(self) -> Piece | None:
        """The piece whose records are returned now; None: there are no more."""
        if self._piece is None:
            self._look_ahead()
        return self._piece

    def _look_ahead(self) -> None:
        """Read the next piece. A chain that cannot be restored further is left out, and the others go on."""
        while self._piece is None and self._left:
            place = self._left[-1]
            tp = place.chain.topic_partition
            try:
                self._piece = self._next_piece(place)
            except DataError as error:
                self.context.leave_out(f"{tp} of the backup from offset {place.chain.progress.position} on", error)
                self._left.pop()
                continue
            except BaseException:
                place.begin_again(place.chain.progress)
                raise
            if self._piece is None:
                self._end_chain()

    def _next_piece(self, place: _Place) -> Piece | None:
        """The next records of a chain that are restored; None: there are no more."""
        while not place.is_at_end and (piece := next(place.pieces, None)) is not None:
            begun = self._from_time(place, piece)
            if begun is not None:
                ended = self._until_offset(place, begun)
                ended = None if ended is None else self._until_time(place, ended)
                return None if ended is None else self._writable(place, ended)
        return None

    def _end_chain(self) -> None:
        place = self._left.pop()
        self._files_done += place.files_done
        tp, (start, end) = place.chain.topic_partition, place.largest_hole
        if place.is_before_start:
            self.context.note(
                f"{tp} of the backup has no record at {RestoreKeys.from_ms} or later:"
                f" {plural(place.passed_over, 'record')} {agreeing(place.passed_over, 'are')} not restored."
            )
        for sentence in self._short_of(place):
            self.context.note(sentence)
        if end - start > TOLD_HOLE:
            self.context.note(f"The largest hole in the offsets of {tp} of the backup is [{start}, {end}).")

    def _short_of(self, place: _Place) -> Iterator[str]:
        """Sentences about a range that the backup does not have as a whole."""
        tp, progress, end = place.chain.topic_partition, place.chain.progress, place.chain.end
        begin = self._typed.from_offsets.get(tp)
        if place.is_at_end:
            return
        if begin is not None and not progress.passed:
            yield f"{tp} of the backup has no record at {RestoreKeys.from_offsets} or later, so none is restored."
        elif end - progress.position > TOLD_HOLE:
            begin = progress.position
            yield f"{tp} of the backup has no record in [{begin}, {end}), up to {RestoreKeys.until_offsets}."
        elif self._typed.until_ms is not None:
            yield (
                f"{tp} of the backup has no record at {RestoreKeys.until_ms} or later, and was restored to its end at"
                f" offset {progress.position}."
            )

    def _from_time(self, place: _Place, piece: Piece) -> Piece | None:
        """The records of a piece from the first one of `restore.from.timestamp` or later on; None: there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not place.is_before_start:
            return piece
        records, tp = piece.records, place.chain.topic_partition
        is_late: Any = pc.greater_equal(records.columns["timestamp"], pa.scalar(self._typed.from_ms, pa.int64()))
        count = _first_true(is_late) if is_late.true_count else len(records)
        if count:
            place.passed_over += count
            position = int(records.offsets[count - 1]) + 1
            place.chain = place.chain._replace(progress=place.within(piece, position))
        if count == len(records):
            return None
        place.is_before_start, place.begin = False, int(records.offsets[count])
        self.context.note(
            f"{tp} of the backup was restored from offset {records.offsets[count]} on, whose record is the first one at"
            f" {RestoreKeys.from_ms} or later. Not restored: {plural(place.passed_over, 'record')} before it."
        )
        return piece._replace(records=records.slice(count, len(records)))

    def _until_offset(self, place: _Place, piece: Piece) -> Piece | None:
        """The records of a piece before the end of the chain; None: there is none."""
        import numpy as np

        end, records = place.chain.end, piece.records
        if end < 0 or records.offsets[-1] < end:
            return piece
        return self._cut(place, piece, int(np.searchsorted(records.offsets, end)))

    def _until_time(self, place: _Place, piece: Piece) -> Piece | None:
        """The records of a piece before the first one of `restore.until.timestamp` or later; None: there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        until, records = self._typed.until_ms, piece.records
        if until is None:
            return piece
        is_later: Any = pc.greater_equal(records.columns["timestamp"], pa.scalar(until, pa.int64()))
        if not is_later.true_count:
            return piece
        count = _first_true(is_later)
        tp = place.chain.topic_partition
        self.context.note(
            f"{tp} of the backup was restored up to offset {records.offsets[count]}, whose record is the first one at"
            f" {RestoreKeys.until_ms} or later."
        )
        return self._cut(place, piece, count)

    def _cut(self, place: _Place, piece: Piece, count: int) -> Piece | None:
        """The first records of a piece, after which the chain ends; None: there is none."""
        place.is_at_end = True
        if not count:
            return None
        kept = piece.records.slice(0, count)
        position = int(kept.offsets[-1]) + 1
        return piece._replace(records=kept, progress=place.within(piece, position))

    def _writable(self, place: _Place, piece: Piece) -> Piece | None:
        """The records that the client can write as they are, or as `accept.loss` allows; None: there is none.

        The chain is left out from the first one on that it cannot write.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        tp, stamps = place.chain.topic_partition, piece.records.columns["timestamp"]
        first_ms, last_ms = (pa.scalar(at, pa.int64()) for at in (place.chain.first_ms, place.chain.last_ms))
        is_taken: Any = pc.and_(pc.greater_equal(stamps, first_ms), pc.less_equal(stamps, last_ms))
        is_good: Any = pc.fill_null(is_taken, pa.scalar(value=False))
        has_losses = is_good.false_count > 0
        wrong: dict[int, DataError] = {}
        name = first_unwritable(piece.records.columns["headers"])  # type: ignore[arg-type]
        if name is not None:
            wrong[name[0]] = bad_name(f"{tp}@{piece.records.offsets[name[0]]}", name[1])
        if has_losses and TIMESTAMP not in self._typed.accepted:
            first = int(is_good.to_numpy(zero_copy_only=False).argmin())
            where, target = f"{tp}@{piece.records.offsets[first]}", self._typed.target_of(tp.topic)
            wrong.setdefault(first, bad_time(where, stamps[first].as_py(), target))
        keys = piece.records.columns["key"]
        if place.chain.needs_keys and keys.null_count:
            first = int(keys.is_null().to_numpy(zero_copy_only=False).argmax())
            where, target = f"{tp}@{piece.records.offsets[first]}", self._typed.target_of(tp.topic)
            wrong.setdefault(first, no_key(where, target))
        if wrong:
            first = min(wrong)
            self.context.leave_out(f"{tp} of the backup from offset {piece.records.offsets[first]} on", wrong[first])
            return self._cut(place, piece, first)
        if not has_losses:
            return piece
        columns = {**piece.records.columns, "timestamp": pc.if_else(is_good, stamps, pa.scalar(None, pa.int64()))}
        return piece._replace(records=Records(piece.records.offsets, columns))


def _first_true(flags: Any) -> int:
    """Index of the first true value, of which there is one; nulls are false."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return int(pc.fill_null(flags, pa.scalar(value=False)).to_numpy(zero_copy_only=False).argmax())


def _in_order(records: Records) -> Iterator[Any]:
    return (records.columns[name] for name in ("timestamp", "key", "value", "headers"))


def _has_any(headers: Any) -> bool:
    import pyarrow.compute as pc

    return bool(pc.sum(pc.list_value_length(headers)).as_py())


def _header(one: Mapping[str, Any]) -> Header:
    value = one["value"]
    return Header(name_of(one["key"]), OPTIONAL_BYTES if value is None else BYTES, value)
