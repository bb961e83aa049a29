"""The task for files of values: chains, one after the other, as columns, or as records where those are needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import xor
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import Header, SourceRecord
from airflow_connect.api.schema import STRING
from airflow_connect.api.source import SourceColumns
from airflow_connect.connectors.restore.keys import TIMESTAMP, TRANSFORMS
from airflow_connect.connectors.restore.options import SEPARATED
from airflow_connect.connectors.restore.passed import fingerprint, text_of
from airflow_connect.connectors.restore.read.opening import ARCHIVED, Store
from airflow_connect.connectors.restore.read.records import MISSING, TOLD_HOLE, damaged
from airflow_connect.connectors.restore.unwritable import (
    BAD_TIME,
    DELETED_SOON,
    NO_KEY,
    OTHER_TIMES,
    bad_time,
    no_key,
)
from airflow_connect.connectors.restore.value_keys import FAIL
from airflow_connect.connectors.restore.values.progress import FileProgress, RangeProgress, ValueProgress
from airflow_connect.connectors.restore.values.reading import WHOLE_RECORDS, Rows, ValueFileReader
from airflow_connect.connectors.restore.values.work import ValueChain, chains_of
from airflow_connect.counting import agreeing, plural
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceTaskContext
    from airflow_connect.connectors.restore.config import RestoreConfig
    from airflow_connect.connectors.restore.values.files import ValueFile

RECORDS_AT_ONCE = 2_000
NOT_DAMAGED = frozenset({"restore.changed_meanwhile", ARCHIVED, WHOLE_RECORDS, NO_KEY, BAD_TIME})
"""Errors that `behavior.on.error` is not about: the file is there, and can be read later or in another way."""
OF_WHOLE_FILE = frozenset({"restore.changed_meanwhile", ARCHIVED})
"""Errors that the other ranges of a divided file have, too."""
SECONDS_OF_BATCH, RECORDS_OF_BATCH = 1.0, 200_000
"""When a batch ends, which transaction.boundary=poll commits: a commit of each small file would cost more than it."""


class _Read(NamedTuple):
    """A file that was read.

    Attributes:
        name: below the root.
        start: offset of its first record.
        records: how many it has.
    """

    name: str
    start: int
    records: int


class _Place:
    """A chain that is being copied.

    Attributes:
        chain: as planned.
        progress: what is returned so far.
        number: of the file that is read, in the chain.
        rows: of that file that come next.
        compared: number of the last file that was compared with the one before it.
        last: by directory the file of a backup that was read last, and how many records it has.
    """

    def __init__(self, chain: ValueChain, offset: ValueProgress | FileProgress) -> None:
        self.chain, self.progress = chain, offset
        self.number, self.compared = 0, -1
        self.rows: Iterator[Rows] | None = None
        self.last: dict[str, _Read] = {}
        # Asked for with each record: looking at all files before it each time would take the square of their number.
        self._newest_ms = list(accumulate((one.modified_ms for one in chain.files), max, initial=chain.newest_ms))
        of_files = (fingerprint([one.first.name]) for one in chain.files)
        self._names = list(accumulate(of_files, xor, initial=chain.passed_names))
        if isinstance(offset, ValueProgress) and offset.file and offset.done:
            self.last[_directory(offset.file)] = _Read(offset.file, offset.start, offset.record)
        is_backup = isinstance(offset, ValueProgress)
        while is_backup and self.number < len(chain.files) and self._is_done(chain.files[self.number]):
            self.number += 1

    def _is_done(self, file: ValueFile) -> bool:
        progress = self.progress
        return isinstance(progress, ValueProgress) and (
            file.start < progress.start or (file.start == progress.start and bool(progress.done))
        )

    @property
    def file(self) -> ValueFile | None:
        """The file that is read; None: the chain is at its end."""
        return self.chain.files[self.number] if self.number < len(self.chain.files) else None

    def first(self) -> int:
        """The first record of the file that is not copied."""
        file, progress = self.file, self.progress
        if isinstance(progress, ValueProgress) and file is not None and file.start != progress.start:
            return 0
        return progress.record

    def after(self, version: str, record: int, *, done: bool) -> ValueProgress | FileProgress:
        """The progress when so many records of the file are copied."""
        file = self.file
        assert file is not None
        if isinstance(self.progress, FileProgress):
            return self.progress.after(version=version, record=record, done=int(done))
        return self.progress.after(
            start=file.start,
            file=file.first.name,
            version=version,
            record=record,
            done=int(done),
            passed=self.chain.passed + self.number + 1,
            newest_ms=self._newest_ms[self.number + 1],
            names=text_of(self._names[self.number + 1]),
        )


class ValueTask:
    """Copies files of values; used by the tasks of the restore sources."""

    def __init__(self, typed: RestoreConfig, store: Store, context: SourceTaskContext, config: Any) -> None:
        """Offsets are read again: an earlier attempt of this task may have committed some."""
        self._typed, self._store, self._context = typed, store, context
        self._reader = ValueFileReader(store, typed.file_format, typed.read_options, typed.unpacking)
        chains = chains_of(config)
        committed = context.offset_reader.offsets([chain.source for chain in chains])
        self._left = [
            _Place(chain, self._newer(self._planned(chain), offset))
            for chain, offset in zip(chains, committed, strict=True)
        ]
        self._left.reverse()
        self._piece: tuple[Rows, bool] | None = None
        self._next: Rows | None = None
        self._broken: DataError | None = None
        self._returned, self._since = 0, 0.0
        self._files_done = 0
        self._is_transformed = bool(typed.raw.get(TRANSFORMS, "").strip())

    def _planned(self, chain: ValueChain) -> ValueProgress | FileProgress:
        if not self._typed.is_import:
            return ValueProgress.of(chain.offset)
        return (FileProgress if chain.rows is None else RangeProgress).of(chain.offset)

    def _newer(self, planned: Any, offset: Any) -> ValueProgress | FileProgress:
        """What an earlier attempt of this run has committed, or else what was planned."""
        now = None if offset is None else type(planned).of(offset)
        if isinstance(now, ValueProgress) and now.topic_id == planned.topic_id:
            return now if (now.start, now.record) > (planned.start, planned.record) else planned
        if isinstance(now, FileProgress) and now.version == planned.version:
            return now
        result: ValueProgress | FileProgress = planned
        return result

    def poll(self) -> Sequence[SourceRecord] | None:
        """The next records, as objects.

        Raises:
            UnavailableError, AccessError: a file cannot be read.
        """
        taken = self._take(RECORDS_AT_ONCE)
        if taken is None:
            return None
        place, rows, end = taken
        chain, file = place.chain, place.file
        assert file is not None
        version, extra = self._reader.version(file), self._headers_of(file)
        tombstones: list[Any] = [None] * rows.size
        values = tombstones if rows.values is None else rows.values.values()
        schema = None if rows.values is None else rows.values.schema
        found = []
        for n, value in enumerate(values):
            key_schema, key = (None, None) if rows.keys is None else rows.keys[n]
            is_last = n + 1 == rows.size
            at = end if is_last else place.after(version, rows.first + n + 1, done=False)
            found.append(
                SourceRecord(
                    topic=chain.topic,
                    partition=chain.partition if chain.partition >= 0 else None,
                    key_schema=key_schema,
                    key=key,
                    value_schema=schema,
                    value=value,
                    timestamp=None if rows.timestamps is None else rows.timestamps[n],
                    headers=(*(() if rows.headers is None else rows.headers[n]), *extra),
                    source_partition=chain.source,
                    source_offset=at.to_offset(),
                )
            )
        self._passed(place, end)
        return found

    def poll_columns(self) -> SourceColumns | None:
        """The next records in columns; None: they are returned by `poll`.

        Raises:
            UnavailableError, AccessError: a file cannot be read.
        """
        rows = self._current()
        if rows is None or rows.column is None or (self._typed.is_import and self._typed.file_headers):
            return None
        taken = self._take(rows.size)
        assert taken is not None and taken[1].column is not None and taken[1].values is not None
        place, rows, end = taken
        chain = place.chain
        self._passed(place, end)
        return SourceColumns(
            topic=chain.topic,
            source_partition=chain.source,
            source_offset=end.to_offset(),
            key_schema=None,
            keys=None,
            value_schema=rows.values.schema if rows.values is not None else None,
            values=rows.column,  # type: ignore[arg-type]
            partition=chain.partition if chain.partition >= 0 else None,
        )

    def untouched(self) -> list[TopicPartition]:
        """Partitions that nothing was restored to before; none if the producer chooses them."""
        places = [one for one in self._left if isinstance(one.progress, ValueProgress) and not one.progress.passed]
        return [TopicPartition(one.chain.topic, one.chain.partition) for one in places]

    def has_ended(self) -> bool:
        """Whether every chain was returned to its planned end, or left out."""
        return not self._left and self._piece is None

    def continues_batch(self) -> bool:
        """Small files are joined."""
        is_recent = time.monotonic() - self._since < SECONDS_OF_BATCH
        return not self.has_ended() and 0 < self._returned < RECORDS_OF_BATCH and is_recent

    def commit(self) -> None:
        """What was returned so far is committed."""
        self._returned = 0

    def stop(self) -> None:
        """Nothing is read any more."""
        self._left, self._piece, self._next = [], None, None

    def _headers_of(self, file: ValueFile) -> tuple[Header, ...]:
        if not (self._typed.is_import and self._typed.file_headers):
            return ()
        one = file.first
        facts = {
            "file.name": one.name.rpartition("/")[2],
            "file.path": self._store.full_name(one),
            "file.last.modified": str(one.modified_ms),
            "file.size": str(one.size),
        }
        return tuple(Header(name, STRING, text) for name, text in facts.items())

    def _take(self, most: int) -> tuple[_Place, Rows, ValueProgress | FileProgress] | None:
        """The next records, at most `most`, and the progress after them."""
        rows = self._current()
        if rows is None or self._piece is None:
            return None
        is_last = self._piece[1]
        place = self._left[-1]
        left = self._context.records_left
        count = min(rows.size, most if left is None else min(most, max(1, left)))
        if count < rows.size:
            self._piece = (rows.slice(count, rows.size), is_last)
            rows, is_last = rows.slice(0, count), False
        else:
            self._piece = None
        if not self._returned:
            self._since = time.monotonic()
        self._returned += rows.size
        rows = self._timed(place.chain, rows)
        file = place.file
        assert file is not None
        return place, rows, place.after(self._reader.version(file), rows.first + rows.size, done=is_last)

    def _passed(self, place: _Place, progress: ValueProgress | FileProgress) -> None:
        place.progress = progress
        if progress.done:
            if isinstance(progress, ValueProgress):
                read = _Read(progress.file, progress.start, progress.record)
                place.last[_directory(progress.file)] = read
            self._begin_next_file(place)

    def _current(self) -> Rows | None:
        """The records that are returned now; None: there are no more."""
        while self._piece is None and self._left:
            place = self._left[-1]
            if place.file is None:
                self._left.pop()
                continue
            try:
                self._read(place)
            except DataError as error:
                self._fail(place, error)
            except BaseException:
                place.rows, self._next = None, None  # read again from the last record that was returned
                raise
        return None if self._piece is None else self._piece[0]

    def _read(self, place: _Place) -> None:
        """Read a piece, and one ahead: the offset of the last record of a file says that it was the last."""
        file = place.file
        assert file is not None
        if self._broken is not None:
            raise self._broken
        if place.rows is None:
            if place.compared < place.number:
                self._refuse_repeated(place, file)
                place.compared = place.number
            place.rows = self._reader.rows(file, place.first(), place.chain.partition, place.chain.end)
            self._next = next(place.rows, None)
        if self._next is None:
            # A file without records, or without others than those that are copied: nothing can carry its offset.
            self._count_empty(place, file)
            self._begin_next_file(place)
            return
        piece, self._next = self._next, None
        if (cut := self._first_unwritable(place, piece)) is not None:
            count, self._broken = cut
            if not count:
                raise self._broken
            self._piece = (piece.slice(0, count), False)
            return
        try:
            self._next = next(place.rows, None)
        except DataError as error:
            # What comes before the damaged part is good; the error is raised after it.
            self._broken = error
            self._piece = (piece, False)
            return
        self._piece = (piece, self._next is None)

    def _first_unwritable(self, place: _Place, rows: Rows) -> tuple[int, DataError] | None:
        """The first record that the topic does not take, and why; None: it takes all of them."""
        chain, file = place.chain, place.file
        assert file is not None
        found: dict[int, DataError] = {}

        def where(number: int) -> str:
            return f"Record {rows.first + number} of {self._store.full_name(file.first)}"

        if chain.needs_keys and not self._is_transformed:
            keys = rows.keys
            number = 0 if keys is None else next((n for n, (_, key) in enumerate(keys) if key is None), -1)
            if number >= 0:
                found[number] = no_key(where(number), chain.topic)
        if rows.timestamps is not None and TIMESTAMP not in self._typed.accepted:
            number = next((n for n, stamp in enumerate(rows.timestamps) if not _is_taken(chain, stamp)), -1)
            if number >= 0:
                found.setdefault(number, bad_time(where(number), rows.timestamps[number], chain.topic))
        return min(found.items(), default=None, key=lambda one: one[0])

    def _timed(self, chain: ValueChain, rows: Rows) -> Rows:
        """The records with timestamps that the topic takes; what it deletes soon is counted."""
        stamps = rows.timestamps
        if stamps is None:
            return rows
        taken = [stamp if _is_taken(chain, stamp) else None for stamp in stamps]
        if lost := taken.count(None) - stamps.count(None):
            self._context.count(OTHER_TIMES, lost)
        if older := sum(stamp is not None and stamp < chain.deletes_before_ms for stamp in taken):
            self._context.count(DELETED_SOON, older)
        return rows._replace(timestamps=taken)

    def _count_empty(self, place: _Place, file: ValueFile) -> None:
        """A sink writes no file without a record, other programs may.

        Raises:
            DataError: a file of a backup has none, so its records are lost.
        """
        if place.first():
            return
        if not self._typed.is_import:
            raise damaged(self._store.full_name(file.first), self._reader.version(file), "it holds no record")
        self._context.count("Files that hold no record:", 1)

    def _refuse_repeated(self, place: _Place, file: ValueFile) -> None:
        """Compare a file with the one before it: those of one directory hold other records each.

        Raises:
            DataError: the same records are in both.
        """
        before = None if self._typed.is_import else place.last.get(_directory(file.first.name))
        more = 0 if before is None else before.start + before.records - file.start
        if before is not None and more < 0 and place.chain.is_one_directory:
            self._count_missing(place, before.start + before.records, file.start)
        if before is None or more <= 0:
            return
        name, has = self._store.full_name(file.first), plural(before.records, "record")
        if self._typed.file_format in SEPARATED and len(list(file.parts)) == 1:
            self._context.note(
                f"{before.name} has {has}, more than there are offsets before {name}: values contain separators and"
                " were divided, or records are in both files."
            )
            return
        raise DataError(
            f"{name} begins with offset {file.start}, and {before.name} with offset {before.start} and has {has}, so"
            f" {plural(more, 'record')} {agreeing(more, 'are')} in both.",
            code="restore.overlap",
            suggestion="Keep one of them below topics.dir. The same record is not restored twice.",
        )

    def _count_missing(self, place: _Place, start: int, end: int) -> None:
        """Count offsets `[start, end)`: a file that was deleted leaves a hole like those of transactions."""
        self._context.count(MISSING, end - start)
        if end - start > TOLD_HOLE:
            self._context.note(f"No file holds the offsets [{start}, {end}) of {place.chain.label} of the backup.")

    def _begin_next_file(self, place: _Place) -> None:
        place.number += 1
        self._files_done += 1
        self._context.parts_done(self._files_done)
        place.rows, self._next, self._broken = None, None, None

    def _fail(self, place: _Place, error: DataError) -> None:
        file = place.file
        assert file is not None
        name, record = self._store.full_name(file.first), place.first()
        rows = place.chain.rows
        what = f"{name} from record {record} on"
        if rows is not None:
            what += f", to the end of the rows {rows}"
            if error.code in OF_WHOLE_FILE and (others := self._give_up(file)):
                what += f", and {plural(others, 'other range')} of it"
        if self._typed.on_error == FAIL or error.code in NOT_DAMAGED:
            label = what if self._typed.is_import else f"{place.chain.label} of the backup, {what}"
            self._context.leave_out(label, error)
            self._left.pop()
        else:
            where = "Files" if rows is None else "Ranges of divided files"
            self._context.count(f"{where} of which the rest was left out (behavior.on.error):", 1)
            self._context.note(f"Left out, by behavior.on.error={self._typed.on_error}: {what}. {error.message}")
            self._begin_next_file(place)
        place.rows, self._next, self._broken = None, None, None

    def _give_up(self, file: ValueFile) -> int:
        """Leave out the ranges of a file that come later, and return their number."""
        before = len(self._left)
        self._left = [one for one in self._left[:-1] if one.file != file] + self._left[-1:]
        return before - len(self._left)


def _is_taken(chain: ValueChain, stamp: int | None) -> bool:
    return stamp is None or chain.first_ms <= stamp <= chain.last_ms


def _directory(name: str) -> str:
    return name.rpartition("/")[0]
