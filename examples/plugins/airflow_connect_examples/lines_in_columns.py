"""The same source in columns: a batch is one Arrow array, without an object for each record."""

from pathlib import Path

import pyarrow as pa

from airflow_connect.api import Schema, SchemaType, SourceColumns
from airflow_connect_examples.lines_source import LinesSourceConnector, LinesSourceTask


class LinesInColumnsTask(LinesSourceTask):
    def poll_columns(self) -> SourceColumns | None:
        lines = Path(self.file).read_text().splitlines()[self.done : min(self.done + 500, self.end)]
        if not lines:
            return None  # then poll is asked
        self.done += len(lines)
        return SourceColumns(
            topic=self.topic,
            source_partition={"file": self.file},
            source_offset={"lines": self.done},
            key_schema=None,
            keys=None,
            value_schema=Schema(SchemaType.STRING),
            values=pa.array(lines),
        )


class LinesInColumnsConnector(LinesSourceConnector):
    task_class = LinesInColumnsTask
