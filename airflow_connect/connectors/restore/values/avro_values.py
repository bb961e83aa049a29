"""Avro files as Connect values, by the rules of AvroConverter."""

from __future__ import annotations

import io
from collections.abc import Iterator

import fastavro

from airflow_connect.connectors.restore.read.avro_blocks import AvroBlocks, field_names
from airflow_connect.connectors.restore.read.records import FIELDS
from airflow_connect.connectors.restore.values.batches import (
    Values,
    WholeRecordsError,
)
from airflow_connect.converters.avro.anything import read_anything
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.parsing import parsed_for_reading
from airflow_connect.converters.avro.reading import read_schema


class AvroReader:
    """Reads an Avro object container file, a block at a time."""

    def __init__(self, content: io.RawIOBase) -> None:
        """Read the header."""
        self._blocks = AvroBlocks(content)
        avro_type = self._blocks.schema
        if tuple(field_names(avro_type)) == FIELDS:
            raise WholeRecordsError
        self.schema, self._change = read_schema(avro_type, [], AvroSettings(enhanced_schema=True))
        self._parsed = None if self.schema is None else parsed_for_reading(avro_type)

    def __iter__(self) -> Iterator[Values]:
        """See `Reader`."""
        index = 0
        for count, data in self._blocks.packed():
            rows = self._rows(count, data)
            yield Values(index, self.schema, rows)
            index += count

    def _rows(self, count: int, data: bytes) -> list[object]:
        if self._parsed is None:
            rows, at = [], 0
            for _ in range(count):
                value, at = read_anything(data, at)
                rows.append(value)
            left = len(data) - at
        else:
            stream = io.BytesIO(data)
            rows = [
                fastavro.schemaless_reader(stream, self._parsed, None, return_record_name=False) for _ in range(count)
            ]
            left = len(data) - stream.tell()
        if left:
            raise ValueError("a block holds more than its records")
        return rows if self._change is None else [self._change(row) for row in rows]
