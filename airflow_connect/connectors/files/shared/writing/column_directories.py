"""Directories and timestamps of many records at once: the columnar form of partitioners and timestamp extractors.

The result is None if there is no columnar form, or if the reference path refuses a record. The batch is then processed
record by record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE
from airflow_connect.api.schema import TIMESTAMP, Type
from airflow_connect.errors import DataError
from airflow_connect.layout.dense_codes import dense_codes
from airflow_connect.layout.late_records import LatePartitioner
from airflow_connect.layout.partitioners import (
    DefaultPartitioner,
    FieldPartitioner,
    TimeBasedPartitioner,
    innermost,
)
from airflow_connect.layout.rotation_batches import PlacedColumns
from airflow_connect.layout.timestamp_extractors import (
    RecordFieldTimestampExtractor,
    RecordTimestampExtractor,
    WallclockTimestampExtractor,
    text_ms,
)

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns, ValueColumns
    from airflow_connect.api.schema import Schema

_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_EXTRACTORS = (WallclockTimestampExtractor, RecordTimestampExtractor, RecordFieldTimestampExtractor)


def has_columnar_directories(partitioner: Any) -> bool:
    """Whether `ColumnDirectories` supports the partitioner; it does not support third-party ones."""
    if type(partitioner) is LatePartitioner:
        return has_columnar_directories(partitioner.inner)
    if type(partitioner) is TimeBasedPartitioner:
        return type(partitioner.extractor) in _EXTRACTORS
    return type(partitioner) in (DefaultPartitioner, FieldPartitioner)


class ColumnDirectories:
    """Determines the directories of records."""

    def __init__(self, partitioner: Any, now_ms: int) -> None:
        """`partitioner`: one that `has_columnar_directories`; `now_ms`: the run's clock."""
        self._partitioner: Any = innermost(partitioner)
        self._late = partitioner if isinstance(partitioner, LatePartitioner) else None
        self._now_ms = now_ms

    def place(self, piece: RecordColumns) -> PlacedColumns | None:
        """Directory, timestamp and schema of each record."""
        partitioner, schema = self._partitioner, piece.value.schema
        try:
            if isinstance(partitioner, TimeBasedPartitioner):
                timestamps = self._timestamps(piece, partitioner.extractor)
                if timestamps is None:
                    return None
                codes, names = partitioner.directories_of_timestamps(timestamps)
                placed = PlacedColumns(codes, names, timestamps, schema)
                return placed if self._late is None else _with_late(self._late, piece.original_topic, placed)
            if isinstance(partitioner, FieldPartitioner):
                by_fields = _directories_of_fields(partitioner, piece.value)
                return None if by_fields is None else PlacedColumns(*by_fields, None, schema)
        except (DataError, ValueError, OverflowError):
            return None
        name = partitioner.directory_of_partition(piece.original_partition)
        return PlacedColumns(np.zeros(len(piece), dtype=np.int32), [name], None, schema)

    def _timestamps(self, piece: RecordColumns, extractor: Any) -> NDArray[np.int64] | None:
        if isinstance(extractor, WallclockTimestampExtractor):
            return np.full(len(piece), self._now_ms, dtype=np.int64)
        if isinstance(extractor, RecordFieldTimestampExtractor):
            return _timestamps_of_field(extractor, piece.value)
        return None if piece.timestamp_type == TIMESTAMP_NOT_AVAILABLE else piece.timestamps


def _with_late(partitioner: LatePartitioner, topic: str, placed: PlacedColumns) -> PlacedColumns | None:
    """The same with late records in separate directories; None if they must be refused one by one."""
    times = placed.timestamps_ms
    late = None if times is None else partitioner.late.are_late(topic, times)
    if late is None:
        return placed
    if not partitioner.late_directory:
        return None
    names, count = placed.names, len(placed.names)
    codes, used = dense_codes(placed.codes.astype(np.int64) + late * np.int64(count))
    every = [*names, *map(partitioner.directory_of_late, names)]
    return replace(placed, codes=codes.astype(np.int32), names=[every[number] for number in used.tolist()])


def _timestamps_of_field(extractor: RecordFieldTimestampExtractor, value: ValueColumns) -> NDArray[np.int64] | None:
    """Timestamps from the values, int64[n].

    Raises:
        DataError: a value does not have one.
    """
    if value.schema is None:
        lines: list[Any] = value.values.to_pylist()
        documents = [orjson.loads(line) for line in lines]
        found = [extractor.of_map(document) for document in documents if isinstance(document, dict)]
        return np.array(found, dtype=np.int64) if len(found) == len(documents) else None
    field = _field(value, extractor.path)
    if field is None or field[0].null_count:
        return None
    column, schema = field
    if schema.name == TIMESTAMP or schema.type in (Type.INT32, Type.INT64):
        numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64)
        return numbers
    if schema.type is not Type.STRING:
        return None
    texts = column.dictionary_encode()
    known = np.array([text_ms(text) for text in texts.dictionary.to_pylist()], dtype=np.int64)
    each: NDArray[np.int64] = known[texts.indices.to_numpy()]
    return each


def _directories_of_fields(
    partitioner: FieldPartitioner, value: ValueColumns
) -> tuple[NDArray[np.int32], list[str]] | None:
    """Codes int32[n] and distinct names; None if a field is missing or cannot name a directory.

    Raises:
        DataError: a value cannot be part of a directory name.
    """
    codes: NDArray[np.intp] = np.zeros(len(value), dtype=np.intp)
    choices: list[tuple[Any, ...]] = [()]
    for path in partitioner.paths:
        field = _field(value, path)
        if field is None or not _can_name(field[1]):
            return None
        encoded = field[0].dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.to_pylist()
        # Only existing combinations get a number, so numbers stay small, however many fields there are.
        codes, found = dense_codes(codes.astype(np.int64) * len(texts) + encoded.indices.to_numpy())
        choices = [(*choices[number // len(texts)], texts[number % len(texts)]) for number in found.tolist()]
    numbers: dict[str, int] = {}
    names = [partitioner.directory_of_values(choice) for choice in choices]
    lookup = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int32)
    return lookup[codes], list(numbers)


def _can_name(schema: Schema) -> bool:
    """Whether directories can be named after the field, by the rules of `FieldPartitioner`."""
    is_logical = schema.name is not None and schema.name.startswith("org.apache.kafka.connect.data.")
    return schema.type in (Type.STRING, Type.BOOLEAN) or (schema.type in _INTEGERS and not is_logical)


def _field(value: ValueColumns, path: Sequence[str]) -> tuple[Any, Schema] | None:
    """Column and schema of a field; None if there is no such field, or if a null on its path has a default."""
    column: Any = value.values
    schema = value.schema
    for name in path:
        field = schema.field(name) if schema is not None and schema.type is Type.STRUCT else None
        if field is None:
            # As `struct_field`: a field of the struct itself may have this name with its dots.
            return _field(value, [".".join(path)]) if len(path) > 1 else None
        column, schema = column.flatten()[field.index], field.schema
        if schema.default is not None and column.null_count:
            return None
    return None if schema is None else (column, schema)
