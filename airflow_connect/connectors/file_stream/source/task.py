"""Reads the assigned files, one after the other, from the committed offset to the frozen end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from airflow_connect.api.record import SourceRecord
from airflow_connect.api.source import SourceColumns, SourceTask
from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.file_offsets import FileOffset
from airflow_connect.connectors.file_stream.source.open_item import OpenItem
from airflow_connect.connectors.file_stream.source.read.line_reader import Block, Change
from airflow_connect.connectors.file_stream.source.records import RecordMaker
from airflow_connect.connectors.file_stream.source.work import ASSIGNMENT, Item, assigned
from airflow_connect.errors import ConnectError, DataError
from airflow_connect.stores.file_system import GoneError
from airflow_connect.stores.file_systems import FileSystems


class _Cursor(NamedTuple):
    """A block of an item, and the index of its next line."""

    item: OpenItem
    block: Block
    at: int

    @property
    def left(self) -> int:
        return len(self.block.texts) - self.at


class FileStreamSourceTask(SourceTask):
    """`org.apache.kafka.connect.file.FileStreamSourceTask`, for one bounded run."""

    version = "1.0"

    def __init__(self) -> None:
        """Nothing is open before `start`."""
        self._file_systems: FileSystems | None = None
        self._item: OpenItem | None = None
        self._cursor: _Cursor | None = None
        self._waiting: deque[tuple[Item, FileOffset | None]] = deque()
        self._ended = False
        self._failure: ConnectError | None = None
        self._made: tuple[int, list[SourceRecord]] | None = None
        self._careful_until = 0

    def start(self, config: Mapping[str, str]) -> None:
        """See `SourceTask`. Offsets are read again: an earlier attempt of this task may have committed some."""
        self._config = FileSourceConfig.from_config(config)
        self._file_systems = self._config.file_systems(self.context.aws)
        self._maker = RecordMaker(self._config)
        items = assigned(config[ASSIGNMENT])
        # Committed offsets of standard input belong to another input.
        known: list[Any] = [None] * len(items)
        if not self._config.is_stdin:
            known = self.context.offset_reader.offsets([item.file_range.partition for item in items])
        offsets = [None if value is None else FileOffset.of(value) for value in known]
        # A bare number is from a worker; the connector has converted it, or the file is read from there.
        ours = [offset if isinstance(offset, FileOffset) else None for offset in offsets]
        self._waiting = deque(zip(items, ours, strict=True))
        self._ended = not items

    def poll(self) -> Sequence[SourceRecord] | None:
        """Up to `batch.size` lines of one file; skipped lines produce no record.

        Raises:
            DataError: a line cannot be read as configured, or a compressed file is truncated.
            UnavailableError, AccessError: a file cannot be read.
        """
        cursor = self._next_cursor()
        if cursor is None:
            return None
        if self._made is None:
            count = self._at_most(cursor.left, self._config.batch_size)
            records = self._maker.records(cursor.item, cursor.block, cursor.at, count, _now_ms())
        else:
            count, records = self._made
        if not records:
            # All lines are skipped: no record carries the offset after them.
            end = cursor.item.offset(cursor.block, cursor.at + count - 1)
            self.context.skip_to(cursor.item.item.file_range.partition, end)
        self._advance(count)
        return records or None

    def poll_columns(self) -> SourceColumns | None:
        """The next lines in columns, up to `column_lines`; None if one is not vectorizable, or nothing is left."""
        cursor = self._next_cursor()
        if cursor is None:
            return None
        maker, count = self._maker, self._column_count(cursor)
        columns = maker.columns(cursor.item, cursor.block, cursor.at, count, _now_ms())
        if columns is None and count > self._config.batch_size:
            # Only one of many lines may not be vectorizable: try smaller parts.
            self._careful_until = cursor.at + count
            count = self._column_count(cursor)
            columns = maker.columns(cursor.item, cursor.block, cursor.at, count, _now_ms())
        if columns is None:
            self._made = count, maker.records(cursor.item, cursor.block, cursor.at, count, _now_ms())
            if not self._made[1]:
                # All lines are skipped: columns without a value carry the offset after them.
                columns = maker.nothing(cursor.item, cursor.block, cursor.at + count - 1)
        if columns is not None:
            self._advance(count)
        return columns

    def has_ended(self) -> bool:
        """Whether every file has been read to its frozen end."""
        return self._ended

    def stop(self) -> None:
        """See `SourceTask`."""
        if self._item is not None:
            self._item.close()
            self._item = None
        if self._file_systems is not None:
            self._file_systems.close()

    def _column_count(self, cursor: _Cursor) -> int:
        if cursor.at < self._careful_until:
            return self._at_most(self._careful_until - cursor.at, self._config.batch_size)
        return self._at_most(cursor.left, self._config.column_lines)

    def _at_most(self, lines: int, batch: int) -> int:
        """Lines of a batch: no more than the run may still copy."""
        left = self.context.records_left
        return min(lines, batch) if left is None else min(lines, batch, max(1, left))

    def _advance(self, count: int) -> None:
        cursor, self._made = self._cursor, None
        if cursor is not None:
            self._count_changed(cursor, count)
            self._cursor = cursor._replace(at=cursor.at + count) if cursor.left > count else None
            if self._cursor is None:
                after = FileOffset.of(cursor.item.offset(cursor.block, cursor.at + count - 1))
                assert isinstance(after, FileOffset)
                self._waiting[0] = self._waiting[0][0], after
        if self._cursor is None:
            # Look ahead, so that the run knows that this was the end without another call. A failure there must not
            # lose the lines that are about to be returned.
            try:
                self._next_cursor()
            except ConnectError as error:
                self._failure = error
        left = self.context.records_left
        note = self._maker.skipped_note(is_end=self._ended or (left is not None and count >= left))
        if note:
            self.context.note(note)

    def _count_changed(self, cursor: _Cursor, count: int) -> None:
        """Count the records of the next lines whose text is not what the file holds."""
        changes = [change for index, change in cursor.block.changed.items() if 0 <= index - cursor.at < count]
        name, rules = cursor.item.item.file_range.name or "standard input", self._config.rules
        sentences = {
            Change.REPLACED: f"Records of {name} with bytes that are not valid {self._config.form.encoding}, replaced"
            " by U+FFFD (invalid.text=replace):",
            Change.CUT: f"Records of {name} that were cut after {rules.max_bytes} bytes of a line"
            " (line.too.long=truncate):",
        }
        for kind, sentence in sentences.items():
            if number := sum(1 for change in changes if change & kind):
                self.context.count(sentence, number)

    def _next_cursor(self) -> _Cursor | None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        while self._cursor is None and not self._ended:
            if self._item is None:
                self._open_next()
                continue
            block = self._read(self._item)
            if block is not None:
                self._cursor, self._careful_until = _Cursor(self._item, block, 0), 0
            else:
                self._item.close()
                self._item = None
                self._waiting.popleft()
        return self._cursor

    def _open_next(self) -> None:
        """Open the first item that waits. It waits until it is read to its end: opening may fail for a moment."""
        if not self._waiting:
            self._ended = True
            return
        item, offset = self._waiting[0]
        if self._file_systems is None:
            raise RuntimeError("The task was not started.")
        try:
            self._item = OpenItem.of(item, offset, self._config, self._file_systems)
            return
        except GoneError as error:
            self.context.note(f"A file of this run was skipped: {error}. It is left for the next run.")
        except DataError as error:
            self._leave_out(error)
        self._waiting.popleft()

    def _read(self, item: OpenItem) -> Block | None:
        try:
            return item.next_block()
        except GoneError as error:
            self.context.note(f"During reading, {error}. The rest is left for the next run.")
        except DataError as error:
            self._leave_out(error)
        except ConnectError as error:
            if not error.ends_task:
                # A reader that has failed may have lost a part of what it has read: begin after the last line.
                item.close()
                self._item = None
            raise
        return None

    def _leave_out(self, error: DataError) -> None:
        """Skip the rest of a truncated or damaged file, if errors are tolerated."""
        if error.code not in ("file.truncated", "file.damaged") or not self._config.tolerates_errors:
            raise error
        self.context.note(f"{error.message} The rest of the file is skipped.")


def _now_ms() -> int:
    return int(time.time() * 1000)
