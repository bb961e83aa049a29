"""The task of FileStreamSink: stages one segment of lines per topic-partition. It has no way to publish one.

Source of the line: org.apache.kafka.connect.file.FileStreamSinkTask prints `record.value()`, Java's text of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_connect.api.schema import Type
from airflow_connect.api.sink import SinkTask
from airflow_connect.connectors.file_stream.sink.config import NO_TEXT, PREFIX, ROOT, FileSinkConfig
from airflow_connect.converters.java_text import java_string
from airflow_connect.stores.local.staging import LocalStager, LocalStagingFile
from airflow_connect.stores.staging import results
from airflow_connect.stores.store import FileIdentity

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.staging import StagedFile

MEMORY_BYTES = 64 << 20
"""Bytes of lines that a task holds in memory, over all partitions, before it appends them to segments."""


@dataclass(slots=True)
class _Segment:
    """The lines of one planned range."""

    file: LocalStagingFile
    end: int = 0
    lines: int = 0


class FileStreamSinkTask(SinkTask):
    """Values to lines."""

    repeats_put = False  # The first lines of a list may already be written.
    needs_keys = False
    refused_columns = ""
    """Why the last batch was not written in columns, for reports."""

    def __init__(self) -> None:
        """Opens nothing."""
        self._stager: LocalStager | None = None
        self._prefix = ""
        self._segments: dict[tuple[str, int], _Segment] = {}
        self._closed: list[LocalStagingFile] = []
        self._held_bytes = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Read the configuration; nothing is written yet.

        Raises:
            ConfigError: a key of the sink is wrong.
        """
        run = self.context.run
        config_of_file = FileSinkConfig.from_config(run.config)
        own = run.task_config
        self._prefix = own.get(PREFIX, config_of_file.prefix)
        self._stager = LocalStager(own.get(ROOT, config_of_file.root), run.run_id)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write one line each."""
        for record in records:
            self.writing = record
            line = f"{java_string(record.value_schema, record.value)}\n".encode("utf-8", "replace")
            self._append(record.original_topic, record.original_partition, line, (record.offset, record.offset), 1)
        self.writing = None

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        """Write the lines of text and null values; see `ColumnarSinkTask`."""
        from airflow_connect.connectors.file_stream.sink.column_lines import column_lines

        made = [column_lines(batch.value) for batch in batches]
        if None in made:
            has_other = any(
                batch.value.schema is None or batch.value.schema.type is not Type.STRING for batch in batches
            )
            self.refused_columns = NO_TEXT if has_other else ""
            return False
        for batch, lines in zip(batches, made, strict=True):
            assert lines is not None
            offsets = int(batch.offsets[0]), int(batch.offsets[-1])
            self._append(batch.original_topic, batch.original_partition, lines, offsets, len(batch))
        return True

    def flush(self) -> list[StagedFile]:
        """End every segment, and wait until it is on the disk.

        Raises:
            UnavailableError, AccessError: the file system refused.
        """
        segments, self._segments = self._segments, {}
        self._closed += [segment.file for segment in segments.values()]
        return results([segment.file.close(segment.end, segment.lines) for segment in segments.values()])

    def abort(self) -> None:
        """Discard every segment, including staged ones."""
        for file in (*self._closed, *(segment.file for segment in self._segments.values())):
            file.abort()

    def stop(self) -> None:
        """Release the stager; staged segments stay."""
        if self._stager is not None:
            self._stager.close()

    def _append(
        self, topic: str, partition: int, data: bytes | memoryview, offsets: tuple[int, int], lines: int
    ) -> None:
        """Append lines to the segment of a partition; `offsets` are those of the first and the last record."""
        segment = self._segments.get((topic, partition))
        if segment is None:
            segment = self._segments[topic, partition] = _Segment(self._open(topic, partition, offsets[0]))
        segment.file.write(data)
        segment.end = offsets[1] + 1
        segment.lines += lines
        self._held_bytes += len(data)
        if self._held_bytes >= MEMORY_BYTES:
            self._spill()

    def _open(self, topic: str, partition: int, start: int) -> LocalStagingFile:
        if self._stager is None:
            raise TypeError("The task was not started.")
        return self._stager.open(FileIdentity(f"{self._prefix}{topic}/{partition}+{start}", topic, partition, start))

    def _spill(self) -> None:
        self._held_bytes = 0
        for segment in self._segments.values():
            segment.file.spill()
