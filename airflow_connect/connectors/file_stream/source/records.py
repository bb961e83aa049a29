"""Lines as records: one by one, or in columns if every line is vectorizable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import Header, SourceRecord
from airflow_connect.api.source import SourceColumns
from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.parse.pattern_source import DEAD_LETTER, FAIL, RAW
from airflow_connect.connectors.file_stream.source.read.line_reader import Block
from airflow_connect.counting import counted
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.connectors.file_stream.source.open_item import OpenItem

REASON, PLACE_FILE, PLACE_POSITION = "__connect.errors.exception.message", "file.name", "file.position"
"""Headers of dead letters: the first as Kafka Connect names it, then the file and the byte after the line."""


class RecordMaker:
    """Makes the records of a task."""

    def __init__(self, config: FileSourceConfig) -> None:
        """`config` defines topics, keys and fields."""
        self._config = config
        self._pattern = config.pattern
        self._schema = self._pattern.schema if self._pattern else schemas.STRING
        self._skipped, self._first_skipped, self._tells_first = 0, "", False

    def records(self, item: OpenItem, block: Block, start: int, count: int, now_ms: int) -> list[SourceRecord]:
        """Records of `count` lines of a block from index `start`; fewer if lines are skipped.

        The last record carries the offset after any skipped lines that follow it.

        Raises:
            DataError: a line does not match, and mismatches are errors.
        """
        texts: list[str] = block.texts.slice(start, count).to_pylist()  # type: ignore[assignment]
        found = []
        for index, text in enumerate(texts, start):
            record = self._record(item, block, index, text, now_ms)
            if record is not None:
                found.append(record)
        if found:
            found[-1].source_offset = item.offset(block, start + count - 1)
        return found

    def columns(self, item: OpenItem, block: Block, start: int, count: int, now_ms: int) -> SourceColumns | None:
        """The same records in columns, or None if a line is not vectorizable."""
        import pyarrow as pa

        if block.flagged and any(start <= index < start + count for index in block.flagged):
            return None
        values: Any = block.texts.slice(start, count)
        if self._pattern is not None:
            values = self._pattern.columns(values)
            if values is None:
                return None
        keys = None
        if self._config.key_is_file:
            keys = pa.repeat(pa.scalar(item.item.file_range.name or "", pa.string()), count)
        return SourceColumns(
            topic=self._config.topic,
            source_partition=item.item.file_range.partition,
            source_offset=item.offset(block, start + count - 1),
            key_schema=schemas.STRING if keys is not None else None,
            keys=keys,
            value_schema=self._schema,
            values=values,
            timestamps=pa.repeat(pa.scalar(now_ms, pa.int64()), count),
            timestamps_are_now=True,
        )

    def nothing(self, item: OpenItem, block: Block, last: int) -> SourceColumns:
        """No record, only the offset after line `last`."""
        import pyarrow as pa

        value_type: Any = pa.string()
        return SourceColumns(
            topic=self._config.topic,
            source_partition=item.item.file_range.partition,
            source_offset=item.offset(block, last),
            key_schema=None,
            keys=None,
            value_schema=schemas.STRING,
            values=pa.array([], value_type),
        )

    def skipped_note(self, *, is_end: bool) -> str:
        """A sentence about skipped lines, or "".

        The first one is told at once, because any batch may be the last; their number at the end.
        """
        if not self._skipped or (self._tells_first and not is_end):
            return ""
        self._tells_first = True
        one, many = "line that does not match the pattern was", "lines that do not match the pattern were"
        number = counted(self._skipped, one, many) if is_end else many.capitalize()
        return f"{number} skipped; the first one ends at {self._first_skipped}."

    def _record(self, item: OpenItem, block: Block, index: int, text: str, now_ms: int) -> SourceRecord | None:
        reason = block.flagged.get(index, "")
        if reason:
            return self._dead_letter(item, block, index, text, reason)
        value: Any = text
        if self._pattern is not None:
            try:
                value = self._pattern.value(text)
            except ValueError as error:
                mismatch = self._pattern.mismatch
                if mismatch == RAW:
                    value = self._pattern.raw(text)
                elif mismatch == DEAD_LETTER:
                    return self._dead_letter(item, block, index, text, f"The line does not match: {error}.")
                elif mismatch == FAIL:
                    raise self._does_not_match(item, block, index, error) from error
                else:
                    if not self._skipped:
                        self._first_skipped = f"byte {int(block.nexts[index])} of {_name(item)}"
                    self._skipped += 1
                    return None
        return self._made(item, block, index, value, now_ms)

    def _made(self, item: OpenItem, block: Block, index: int, value: Any, now_ms: int) -> SourceRecord:
        key = item.item.file_range.name if self._config.key_is_file else None
        return SourceRecord(
            topic=self._config.topic,
            key_schema=schemas.STRING if self._config.key_is_file else None,
            key=(key or "") if self._config.key_is_file else None,
            value_schema=self._schema,
            value=value,
            timestamp=now_ms,
            source_partition=item.item.file_range.partition,
            source_offset=item.offset(block, index),
        )

    def _dead_letter(self, item: OpenItem, block: Block, index: int, text: str, reason: str) -> SourceRecord:
        place = _name(item)
        return SourceRecord(
            topic=self._config.dead_letter_topic,
            value_schema=schemas.STRING,
            value=text,
            headers=(
                Header(REASON, schemas.STRING, reason),
                Header(PLACE_FILE, schemas.STRING, place),
                Header(PLACE_POSITION, schemas.STRING, str(int(block.nexts[index]))),
            ),
            source_partition=item.item.file_range.partition,
            source_offset=item.offset(block, index),
        )

    def _does_not_match(self, item: OpenItem, block: Block, index: int, error: ValueError) -> DataError:
        name, behind = item.item.file_range.name or "The standard input", int(block.nexts[index])
        return DataError(
            f"{name}: in the line that ends at byte {behind}, {error}.",
            code="file.mismatch",
            suggestion="Correct the pattern, or set pattern.mismatch to dead_letter, skip or raw.",
        )


def _name(item: OpenItem) -> str:
    return item.item.file_range.name or "standard input"
