"""Data files: Parquet with the ids of fields, and the statistics that a manifest holds of it."""

from __future__ import annotations

import base64
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.iceberg.catalogs import translated
from airflow_connect.connectors.iceberg.sort_order import SortedWriter, Sorter, sorter_of
from airflow_connect.errors import ConfigError
from airflow_connect.formats.parquet import CODECS, ROW_GROUP_BYTES, Codec, ParquetEncoder, RowGroupWriter, ValueColumns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

log = logging.getLogger(__name__)

VALUE, COPY = "value", "copy"
"""Roles of staged files: the first table of a record counts it, further ones do not."""
TARGET_BYTES = 512 * 1024 * 1024
_COLUMNS_WITH_STATISTICS = 100
"""As Java's `write.metadata.metrics.max-inferred-column-defaults`."""
_RUN_MARK = "ac-"


def run_folder(run_id: str) -> str:
    """The folder below a table's data location that the files of a run are in."""
    return f"{_RUN_MARK}{run_id}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows go.

    Attributes:
        topic, partition: the original partition of their records.
        values: the partition of the table, as `Partitioner.divide` gives it.
        role: `VALUE`, or `COPY` for records that another table counts.
    """

    topic: str
    partition: int
    values: tuple[str | None, ...]
    role: str


@dataclass(slots=True)
class FileOptions:
    """How files of a table are written.

    Attributes:
        codec: of the Parquet pages.
        row_group_bytes: Arrow bytes of a row group.
        target_bytes: size at which a file ends.
        properties: of the table, with those of the configuration.
        sorter: sorts the rows of a row group, if the table has an order.
    """

    codec: Codec
    row_group_bytes: int
    target_bytes: int
    properties: dict[str, str] = field(default_factory=dict)
    sorter: Sorter | None = None

    @classmethod
    def of(cls, table: Table, own: Mapping[str, str]) -> FileOptions:
        """Read the properties; `own`: of the configuration, which are stronger.

        Raises:
            ConfigError: the file format or the codec cannot be written, or a number is none.
        """
        properties = {**table.properties, **own}
        if (kind := properties.get("write.format.default", "parquet").lower()) != "parquet":
            raise _refused("write.format.default", kind, "Only Parquet is written.")
        name = properties.get("write.parquet.compression-codec", "zstd").lower()
        if name not in CODECS:
            raise _refused("write.parquet.compression-codec", name, f"Use one of {', '.join(CODECS)}.")
        codec = CODECS[name]
        if codec.level is not None and (level := _number(properties, "write.parquet.compression-level", 0)):
            codec = replace(codec, level=level)
        target_bytes = _number(properties, "write.target-file-size-bytes", TARGET_BYTES)
        row_group_bytes = _number(properties, "write.parquet.row-group-size-bytes", ROW_GROUP_BYTES)
        return cls(
            codec=codec,
            # A file ends with a row group.
            row_group_bytes=min(row_group_bytes, target_bytes),
            target_bytes=target_bytes,
            properties=properties,
            sorter=sorter_of(table),
        )


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise _refused(name, text, "It must be a whole number.") from None


def _refused(name: str, value: str, suggestion: str) -> ConfigError:
    return ConfigError(
        f"The table property {name} is {value!r}, which this sink cannot do.",
        code="iceberg.property",
        suggestion=f"{suggestion} iceberg.tables.write-props.{name} takes precedence over the table's property.",
        config_path=f"iceberg.tables.write-props.{name}",
    )


class _LazyFile:
    """A file that is created by its first byte: most wait in memory until they end."""

    def __init__(self, table: Table, path: str) -> None:
        self._table, self.path = table, path
        self._stream: Any = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._stream is None:
            self._stream = self._table.io.new_output(self.path).create(overwrite=False)
        self._stream.write(data)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def discard(self) -> None:
        """Delete what was written; what cannot be deleted is found by a sweep."""
        if self._stream is None:
            return
        try:
            self._stream.close()
            self._table.io.delete(self.path)
        except Exception as error:  # noqa: BLE001 (the task has already failed for another reason)
            log.warning("%s was not deleted; the next run deletes it: %s", self.path, error)


class DataFile:
    """One file that is being written: rows of one partition of a table from one topic-partition."""

    def __init__(self, table: Table, columns: pa.Schema, options: FileOptions, place: Place, run_id: str) -> None:
        """Creates no file yet; `columns`: of the table, with the ids of fields."""
        self._table, self._options, self.place = table, options, place
        name = f"{run_folder(run_id)}/{place.topic}-{place.partition}-{uuid.uuid4()}.parquet"
        self._file = _LazyFile(table, table.location_provider().new_data_location(name))
        self._writer = RowGroupWriter(self._file, columns, options.codec, store_decimal_as_integer=True)
        self._sorting = SortedWriter(self._writer, options.sorter)
        self._encoder = ParquetEncoder(
            self._sorting, ValueColumns(_NO_SCHEMA, columns, None, "IcebergSink"), options.row_group_bytes
        )
        self._first = self._last = -1
        self._rows = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes in memory."""
        return self._encoder.buffered_bytes

    @property
    def is_full(self) -> bool:
        """Whether the file has the target size."""
        return self._writer.size_bytes >= self._options.target_bytes

    def append(self, batch: pa.RecordBatch, first: int, last: int) -> None:
        """Add rows of records from offset `first` to `last`.

        Raises:
            ConnectError: the file system refuses, or does not answer.
        """
        with translated(f"writing {self._file.path}"):
            self._encoder.append_arrow(batch)
        self._first = first if self._first < 0 else min(first, self._first)
        self._last = max(last, self._last)
        self._rows += batch.num_rows

    def spill(self) -> None:
        """Move rows from memory to the executor's disk."""
        self._encoder.spill()

    def finish(self) -> StagedFile:
        """Write the rest, and the footer.

        Raises:
            ConnectError: the file system refuses, or does not answer.
        """
        with translated(f"writing {self._file.path}"):
            self._encoder.finish()
            self._file.close()
        schema, spec = self._table.schema(), self._table.spec()
        return StagedFile(
            key=self._file.path,
            topic=self.place.topic,
            partition=self.place.partition,
            start=self._first,
            end=self._last + 1,
            records=self._rows,
            size_bytes=self._writer.size_bytes,
            token={
                "path": self._file.path,
                "table": ".".join(self._table.name()),
                "uuid": str(self._table.metadata.table_uuid),
                "schema": schema.schema_id,
                "spec": spec.spec_id,
                "partition": list(self.place.values),
                "sort_order": self._sorting.order_of_file,
                "statistics": statistics(self._writer.metadata, schema, self._options.properties),
            },
            role=self.place.role,
        )

    def discard(self) -> None:
        """Delete it."""
        self._file.discard()


_NO_SCHEMA: Any = None
"""Only columns are appended, so the encoder never looks at a schema of values."""


def statistics(footer: Any, schema: Schema, properties: Mapping[str, str]) -> dict[str, Any]:
    """What a manifest holds of a file, as JSON; bounds in base64."""
    from pyiceberg.io.pyarrow import (
        MetricModeTypes,
        MetricsMode,
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.types import DateType, TimestampType, TimestamptzType

    times = (DateType, TimestampType, TimestamptzType)
    plan = compute_statistics_plan(schema, dict(properties))
    if len(plan) > _COLUMNS_WITH_STATISTICS and "write.metadata.metrics.default" not in properties:
        none = MetricsMode(MetricModeTypes.NONE)
        for number, (field_id, one) in enumerate(plan.items()):
            if (
                number >= _COLUMNS_WITH_STATISTICS
                and f"write.metadata.metrics.column.{one.column_name}" not in properties
            ):
                plan[field_id] = replace(one, mode=none)
    paths = parquet_path_to_id_mapping(schema)
    try:
        found = data_file_statistics_from_parquet_metadata(footer, plan, paths)
    except (OverflowError, ValueError):
        # Python has no dates after the year 9999: the file gets no bounds of such columns.
        counts = MetricsMode(MetricModeTypes.COUNTS)
        for field_id, one in plan.items():
            if isinstance(one.iceberg_type, times) and one.mode.type != MetricModeTypes.NONE:
                plan[field_id] = replace(one, mode=counts)
        found = data_file_statistics_from_parquet_metadata(footer, plan, paths)
    plain: dict[str, Any] = found.to_serialized_dict()
    for name in ("lower_bounds", "upper_bounds"):
        plain[name] = {str(key): base64.b64encode(value).decode() for key, value in plain[name].items()}
    return {
        name: {str(key): inner for key, inner in value.items()} if isinstance(value, dict) else value
        for name, value in plain.items()
    }
