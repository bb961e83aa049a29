"""The task of the Iceberg sink: records to rows, rows to data files. It cannot commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from airflow_connect.api.columns import NullValues
from airflow_connect.api.sink import SinkTask
from airflow_connect.connectors.iceberg.catalogs import open_catalog
from airflow_connect.connectors.iceberg.data_files import COPY, VALUE, Place
from airflow_connect.connectors.iceberg.inferred import inferred_schema
from airflow_connect.connectors.iceberg.open_tables import OpenTable, OpenTables, delete_quietly
from airflow_connect.connectors.iceberg.routes import route_of, routes_of_column
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.connectors.iceberg.types import ValueMapping
from airflow_connect.counting import plural
from airflow_connect.errors import DataError
from airflow_connect.formats.columnar.arrow_columns import file_columns
from airflow_connect.formats.parquet import ValueColumns

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.schema import Schema
    from airflow_connect.api.staging import StagedFile

MEMORY_BYTES = 128 * 1024 * 1024
"""Of all files that are being written, before the largest are moved to the executor's disk."""
_FORMAT = "An Iceberg table"
_NULL_VALUE = "a null value, which an append cannot show"
_SCHEMAS_KEPT = 1000
_NAMES_TOLD = 20


class IcebergSinkTask(SinkTask):
    """Stages data files. Kafka's own partition of a record, not a transformed one, is what its file counts for."""

    needs_keys = False
    repeats_put = False  # The first records of a list may be in files already.
    columns_need_schemas = True

    def __init__(self) -> None:
        """Opens nothing."""
        self._config: IcebergConfig | None = None
        self._tables: OpenTables | None = None
        self._mapping = ValueMapping(format_name=_FORMAT)
        self._values: dict[Schema, ValueColumns] = {}
        self._staged: list[StagedFile] = []
        self._dropped: Counter[tuple[str, str]] = Counter()
        self._left_out: Counter[str] = Counter()
        self._evolved: Counter[str] = Counter()
        self._told: list[StagedFile] = []

    def start(self, config: Mapping[str, str]) -> None:
        """Read the configuration, and open the catalog.

        Raises:
            ConnectError: a key is wrong, or the catalog does not answer.
        """
        run = self.context.run
        self._config = IcebergConfig.from_config(run.config)
        self._tables = OpenTables(open_catalog(self._config, run.aws), self._config, run.run_id)

    # --- record by record -----------------------------------------------------------------------------------------

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write records; one that cannot be written is reported."""
        group: list[SinkRecord] = []
        for record in records:
            if record.value is None:
                self._leave_out(record, _NULL_VALUE)
                continue
            if group and not _belong_together(group[0], record):
                self._put_group(group)
                group = []
            group.append(record)
        if group:
            self._put_group(group)
        self._keep_memory_bounded()

    def _put_group(self, records: list[SinkRecord]) -> None:
        """Records of one partition and one schema: together if they fit, otherwise in halves, down to the bad ones."""
        try:
            without_table = self._write_records(records)
        except DataError as error:
            if len(records) == 1:
                self.context.errant_record_reporter.report(records[0], error)
                return
            middle = len(records) // 2
            self._put_group(records[:middle])
            self._put_group(records[middle:])
            return
        for record in without_table:
            self._leave_out(record, f"no table for their field {self._opened[0].route_field}")

    def _write_records(self, records: list[SinkRecord]) -> list[SinkRecord]:
        """Write records, all or none; returns those that go to no table.

        Raises:
            DataError: one of them cannot be written.
        """
        config, _ = self._opened
        field, first = config.route_field, records[0]
        values = [record.value for record in records]
        routes = [route_of(value, field) for value in values] if field else [None]
        destinations = [tuple(config.destinations(route)) for route in routes]
        is_inferred = first.value_schema is None
        schema = first.value_schema or inferred_schema(values)
        batch = self._values_of(schema).batch(values)
        offsets = np.array([record.offset for record in records], dtype=np.int64)
        given = Given(
            schema, batch, offsets, destinations, (first.original_topic, first.original_partition), is_inferred
        )
        self._write([given])
        return [record for record, names in zip(records, destinations, strict=False) if not names]

    def _leave_out(self, record: SinkRecord, why: str) -> None:
        self._left_out[why] += 1
        self.context.leave_out(record)

    @property
    def null_values(self) -> NullValues:
        """An append cannot show them; see `NullDroppingSinkTask`."""
        return NullValues.LEFT_OUT

    def count_null_values(self, count: int) -> None:
        """They are told in the report."""
        self._left_out[_NULL_VALUE] += count

    # --- in columns -----------------------------------------------------------------------------------------------

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        """Write converted records in columns; see `ColumnarSinkTask`."""
        try:
            given = [self._given(columns) for columns in batches]
            if any(one is None for one in given):
                return False
            self._write([one for one in given if one is not None])
        except DataError:
            return False
        self._keep_memory_bounded()
        return True

    def _given(self, columns: RecordColumns) -> Given | None:
        """A batch in columns; None: it must be written record by record.

        Raises:
            DataError: a record names a table that is not allowed, or the table format has no such type.
        """
        config, _ = self._opened
        schema = columns.value.schema
        if schema is None or columns.value.values.null_count:
            return None
        batch = file_columns(columns.value.values, schema, self._mapping.arrow_schema(schema))
        if batch is None:
            return None
        routes = routes_of_column(batch, config.route_field) if config.route_field else [None]
        if routes is None:
            return None
        destinations = [tuple(config.destinations(route)) for route in routes]
        if not all(destinations):
            return None  # Records without a table are counted one by one.
        where = (columns.original_topic, columns.original_partition)
        return Given(schema, batch, columns.offsets, destinations, where)

    # --- both -----------------------------------------------------------------------------------------------------

    def _values_of(self, schema: Schema) -> ValueColumns:
        found = self._values.get(schema)
        if found is None:
            if len(self._values) >= _SCHEMAS_KEPT:
                self._values.clear()
            columns = self._mapping.arrow_schema(schema)
            found = ValueColumns(schema, columns, self._mapping.transform(schema), _FORMAT)
            self._values[schema] = found
        return found

    def _write(self, given: Sequence[Given]) -> None:
        """Write batches, all or none.

        Raises:
            DataError: a value fits no column; nothing was written.
        """
        parts = [(one, part) for one in given for part in one.parts()]
        # First every change of a table: it ends the files, and rows are made for the columns that it has then.
        for one, part in parts:
            self._fit(part.table, one)
        rows: list[tuple[OpenTable, Part, pa.RecordBatch, Given, Sequence[str]]] = []
        for one, part in parts:
            table = self._opened[1].of(part.table, one.schema, is_inferred=one.is_inferred)
            chosen = one.batch if part.rows is None else one.batch.take(part.rows)
            try:
                made, dropped = table.projected(chosen, is_inferred=one.is_inferred)
            except pa.ArrowInvalid as error:
                raise DataError(
                    f"A value does not fit table {table.name}: {error}.",
                    code="iceberg.value",
                    suggestion="Only exact conversions are made. Correct the value, or give the column another type.",
                ) from error
            rows.append((table, part, made, one, dropped))
        for table, part, made, one, dropped in rows:
            offsets = one.offsets if part.rows is None else one.offsets[part.rows]
            role, (topic, partition) = part.role, one.where
            self._staged += table.write(made, offsets, lambda values: Place(topic, partition, values, role))  # noqa: B023 (used up before the next turn)
            for path in dropped:
                self._dropped[table.name, path] += made.num_rows

    def _fit(self, name: str, given: Given) -> None:
        table = self._opened[1].of(name, given.schema, is_inferred=given.is_inferred)
        if table.fits(given.schema):
            return
        self._staged += table.finish()
        table.evolve(given.schema)
        self._evolved[name] += 1

    @property
    def _opened(self) -> tuple[IcebergConfig, OpenTables]:
        if self._config is None or self._tables is None:
            raise TypeError("The task was not started.")
        return self._config, self._tables

    def _keep_memory_bounded(self) -> None:
        """Spill the largest files until half of the budget is free."""
        files = [file for table in self._opened[1] for file in table.files.values()]
        held = sum(file.buffered_bytes for file in files)
        if held <= MEMORY_BYTES:
            return
        for file in sorted(files, key=lambda one: one.buffered_bytes, reverse=True):
            if held <= MEMORY_BYTES // 2:
                break
            held -= file.buffered_bytes
            file.spill()

    # --- end ------------------------------------------------------------------------------------------------------

    def flush(self) -> Sequence[StagedFile]:
        """Finish every file.

        Raises:
            ConnectError: the file system refuses, or does not answer.
        """
        for table in self._opened[1]:
            self._staged += table.finish()
        self._note()
        staged, self._staged = self._staged, []
        self._told += staged
        return staged

    def _note(self) -> None:
        for why, count in sorted(self._left_out.items()):
            self.context.note(f"{plural(count, 'record')} left out: {why}.")
        advice = "iceberg.tables.evolve-schema-enabled=true adds columns for them."
        if self._opened[0].evolves:
            advice = "They were empty: a column is added for the first value that has a type."
        for name in sorted({table for table, _ in self._dropped}):
            fields = {path: count for (table, path), count in self._dropped.items() if table == name}
            shown = ", ".join(f"{path} ({count} times)" for path, count in sorted(fields.items())[:_NAMES_TOLD])
            more = f" and {len(fields) - _NAMES_TOLD} more" if len(fields) > _NAMES_TOLD else ""
            self.context.note(
                f"Table {name} does not have these fields of the records, so they were dropped: {shown}{more}. {advice}"
            )
        for name in sorted(self._opened[1].created):
            self.context.note(f"Table {name} was missing and was created.")
        for name in sorted(self._evolved):
            self.context.note(f"The schema of table {name} was changed, so that the records fit.")
        self._left_out.clear()
        self._dropped.clear()
        self._evolved.clear()
        self._opened[1].created.clear()

    def abort(self) -> None:
        """Delete every file."""
        if self._tables is None:
            return
        for table in self._tables:
            for file in table.files.values():
                file.discard()
            table.files.clear()
        for staged in (*self._told, *self._staged):
            delete_quietly(self._tables, staged)

    def stop(self) -> None:
        """Release the catalog's connections."""
        if self._tables is not None:
            self._tables.close()


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a batch that go to one table; `rows`: int64 positions, None for all."""

    table: str
    role: str
    rows: Any


@dataclass(frozen=True, slots=True)
class Given:
    """A batch of one schema.

    Attributes:
        schema, batch: of the values.
        offsets: int64[n].
        destinations: the tables of each record, or of all if there is only one entry.
        where: original topic and partition.
        is_inferred: whether the schema was made from the values.
    """

    schema: Schema
    batch: pa.RecordBatch
    offsets: Any
    destinations: list[tuple[str, ...]]
    where: tuple[str, int]
    is_inferred: bool = False

    def parts(self) -> list[Part]:
        """The rows of each table. The first table of a record counts it for the audit."""
        if len(set(self.destinations)) == 1:
            return [Part(name, COPY if place else VALUE, None) for place, name in enumerate(self.destinations[0])]
        rows: dict[tuple[str, str], list[int]] = {}
        for row, names in enumerate(self.destinations):
            for place, name in enumerate(names):
                rows.setdefault((name, COPY if place else VALUE), []).append(row)
        return [Part(name, role, np.array(own, dtype=np.int64)) for (name, role), own in rows.items()]


def _belong_together(first: SinkRecord, other: SinkRecord) -> bool:
    return (first.value_schema is other.value_schema or first.value_schema == other.value_schema) and (
        first.original_topic,
        first.original_partition,
    ) == (other.original_topic, other.original_partition)
