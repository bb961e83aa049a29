"""Reads the files that hold the same records side by side: values, and keys and headers if they were kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.record import Header
from airflow_connect.api.schema import OPTIONAL_STRING, Schema
from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.options import (
    AVRO,
    BYTES,
    CSV,
    JSON,
    ORC,
    PARQUET,
    ReadOptions,
)
from airflow_connect.connectors.restore.read.opening import FileContent, Store
from airflow_connect.connectors.restore.read.records import damaged
from airflow_connect.connectors.restore.values.batches import (
    Values,
    WholeRecordsError,
)
from airflow_connect.connectors.restore.values.files import ValueFile, format_of_part
from airflow_connect.errors import AccessError, ConnectError, DataError, UnavailableError

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.connectors.restore.values.envelopes import Envelope, Unpacked

WHOLE_RECORDS = "restore.whole_records"
DIVIDED = (PARQUET,)
"""Formats that can be read from any record on."""
MOST_RANGES = 1_000
"""Of a file: each has an offset, which the driver reads at the start of a run."""


class Rows(NamedTuple):
    """Consecutive records of a file.

    Attributes:
        values: of the records; None: they are tombstones.
        size: how many.
        first: number of the first one in the file, from 0.
        keys: by record: schema and key; None: there are no keys.
        headers: by record; None: there are none.
        timestamps: by record, milliseconds since the epoch; None: they were not kept.
    """

    values: Values | None
    size: int
    first: int
    keys: list[tuple[Schema | None, Any]] | None = None
    headers: list[tuple[Header, ...]] | None = None
    timestamps: list[int | None] | None = None

    @property
    def column(self) -> pa.Array[Any] | None:
        """The values as an Arrow array, if nothing else belongs to the records."""
        has_more = any(part is not None for part in (self.keys, self.headers, self.timestamps))
        return None if self.values is None or has_more else self.values.column

    def slice(self, start: int, end: int) -> Rows:
        """Records `[start, end)` of these."""
        values = None if self.values is None else self.values.slice(start, end)
        parts: Any = (None if part is None else part[start:end] for part in (self.keys, self.headers, self.timestamps))
        return Rows(values, min(end, self.size) - start, self.first + start, *parts)


@dataclass(frozen=True, slots=True)
class ValueFileReader:
    """Opens files of one configuration.

    Attributes:
        store: where they are.
        file_format: of values.
        options: how they are read.
        envelope: what takes records out of values; None: values are what they are.
    """

    store: Store
    file_format: str
    options: ReadOptions
    envelope: Envelope | None = None

    def version(self, file: ValueFile) -> str:
        """What differs if the content of a file does."""
        return file.version(is_content=self.store.files.identity_is_content)

    def rows(self, file: ValueFile, first: int, partition: int = -1, end: int | None = None) -> Iterator[Rows]:
        """The records of a file from the `first`-th on.

        Args:
            file: to be read.
            first: number of a record, from 0.
            partition: of all records; -1: any.
            end: number of the first record that is not wanted, for formats that can be divided; None: all are.

        Raises:
            DataError: a file is damaged or was changed, or files that belong together have not as many records.
            UnavailableError, AccessError: a file cannot be read.
        """
        if len(list(file.parts)) > 1:
            self._ensure_equal_counts(file)
        # What is read beside other files must be read from its beginning.
        wanted = (first, end) if len(list(file.parts)) == 1 else (0, None)
        with ExitStack() as opened:
            sources = [
                None if part is None else _Source(self._values(part, self._format(part, file), opened, wanted))
                for part in (file.values, file.keys, file.headers)
            ]
            values, keys, headers = sources
            leading = values or keys
            assert leading is not None
            at = 0 if self._format(file.first, file) not in DIVIDED else wanted[0]
            while batch := leading.next():
                count, at = len(batch), batch.first
                rows = Rows(
                    batch if leading is values else None,
                    count,
                    at,
                    None if keys is None else _keys([batch] if leading is keys else keys.take(count), file),
                    None if headers is None else _headers(headers.take(count)),
                )
                at += count
                if at > first:
                    left = rows.slice(max(0, first - rows.first), count)
                    yield from [left] if self.envelope is None else self._unpacked(left, file, partition)
            if at < first:
                raise self._broken(file.first, f"it has {at} records, and {first} were copied before")
            for part in file.parts:
                self.store.ensure_unchanged(part)

    def cuts(self, file: ValueFile, split_bytes: int) -> list[int]:
        """The rows at which a file is divided, with 0 and its size; []: it is not divided.

        An error in the file belongs to the task that reads it as a whole then.

        Args:
            file: to be divided.
            split_bytes: of a range, at least, if row groups are of the same size; 0: no file is divided.

        Raises:
            UnavailableError, AccessError: the file cannot be read.
        """
        most = min(MOST_RANGES, file.size // split_bytes) if split_bytes else 0
        if most < 2 or self.file_format not in DIVIDED:
            return []
        from airflow_connect.connectors.restore.values.arrow_values import ParquetReader

        try:
            with self.store.open(file.first) as content, self._named(content, file.first):
                reader = ParquetReader(content, self.options.timestamps)
                cuts = reader.cuts(most)
                return [0, *cuts, reader.size] if cuts else []
        except DataError:
            return []

    def _unpacked(self, rows: Rows, file: ValueFile, partition: int) -> Iterator[Rows]:
        """Records of envelopes; values of one schema at a time. Those before a damaged one come first."""
        assert self.envelope is not None and rows.values is not None
        found: list[Unpacked] = []
        try:
            for record in self.envelope.unpacked(rows.values):
                if record.place not in (None, partition) and partition >= 0:
                    raise DataError(
                        f"An envelope says that its record is of partition {record.place}, and the name of the file"
                        f" says {partition}.",
                        code="restore.envelope",
                        suggestion="Move the file away, or change file.pattern so that it finds the true partition.",
                    )
                found.append(record)
        except DataError as error:
            yield from _rows_of(found, rows.first)
            number = rows.first + len(found)
            raise self._broken(file.first, f"record {number}: {error.message}", error) from error
        yield from _rows_of(found, rows.first)

    def first_timestamp(self, file: ValueFile) -> int | None:
        """The timestamp of the first record, milliseconds since the epoch; None: it has none, or is broken.

        A broken record belongs to the task that reads the file.

        Raises:
            UnavailableError, AccessError: from the store: without the timestamp, the topic might delete the record.
        """
        if self.envelope is None:
            return None
        try:
            rows = next(self.rows(file, 0), None)
        except DataError:
            return None
        return None if rows is None or not rows.timestamps else rows.timestamps[0]

    def refuse_whole_records(self, file: ValueFile) -> None:
        """Look into a file before the run begins: a wrong configuration shall not write to any topic.

        Raises:
            DataError: it holds whole records.
        """
        if file.values is None:
            return
        with ExitStack() as opened:
            try:
                next(self._values(file.values, self.file_format, opened), None)
            except DataError as error:
                if error.code == WHOLE_RECORDS:
                    raise  # any other error belongs to the task that reads the file

    def ensure_readable(self, file: ValueFile) -> None:
        """Read a byte before the run begins, and topics are created.

        Raises:
            UnavailableError, AccessError: the file cannot be read.
        """
        try:
            with self.store.open(file.first) as content:
                content.read(1)
        except DataError:
            return  # it belongs to the task that reads the file

    def _format(self, part: BackupFile, file: ValueFile) -> str:
        return self.file_format if part is file.values else format_of_part(part.name)

    def _values(
        self, part: BackupFile, kind: str, opened: ExitStack, wanted: tuple[int, int | None] = (0, None)
    ) -> Iterator[Values]:
        """The values of one file; errors of its format name it."""
        content = opened.enter_context(self.store.open(part))
        with self._named(content, part):
            yield from _reader(kind, content, part.name, self.options, wanted)

    @contextmanager
    def _named(self, content: FileContent, part: BackupFile) -> Iterator[None]:
        """Give errors of a format the name of the file."""
        try:
            yield
        except WholeRecordsError as error:
            raise DataError(
                f"{self.store.full_name(part)} holds whole records, which a sink of this package has written with"
                " store.kafka.records=true, and this configuration reads values.",
                code="restore.whole_records",
                suggestion="Set store.kafka.records=true here, too, and remove transformations and converters.",
            ) from error
        except (UnavailableError, AccessError, MemoryError):
            raise
        except Exception as error:
            if content.error is not None:
                raise content.error from error
            if isinstance(error, ConnectError) and error.code == "restore.changed_meanwhile":
                raise
            self.store.ensure_unchanged(part)
            raise self._broken(part, error.message if isinstance(error, ConnectError) else error) from error

    def _broken(self, part: BackupFile, reason: object, error: DataError | None = None) -> DataError:
        version = part.version(identity_is_content=self.store.files.identity_is_content)
        found = damaged(self.store.full_name(part), version, reason)
        if error is None:
            return found
        return DataError(found.message, code=error.code, suggestion=error.suggestion)

    def _ensure_equal_counts(self, file: ValueFile) -> None:
        """Count the records of files that belong together, before the first one is copied."""
        with ExitStack() as opened:
            counts = {
                part.name: sum(len(batch) for batch in self._values(part, self._format(part, file), opened))
                for part in file.parts
            }
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise DataError(
                f"Files of the same records have different numbers of them: {shown}.",
                code="restore.parts",
                suggestion="Put back the files that one flush of the sink has written together.",
            )


def _reader(
    kind: str, content: FileContent, name: str, options: ReadOptions, wanted: tuple[int, int | None]
) -> Iterator[Values]:
    """The values of a file; only formats of `DIVIDED` leave out what is not wanted."""
    if kind in (PARQUET, ORC):
        from airflow_connect.connectors.restore.values.arrow_values import OrcReader, ParquetReader

        yield from ParquetReader(content, options.timestamps, wanted) if kind == PARQUET else OrcReader(content)
        return
    if kind == AVRO:
        from airflow_connect.connectors.restore.values.avro_values import AvroReader

        yield from AvroReader(content)
        return
    from airflow_connect.connectors.restore.values import texts

    stream = texts.decompressed(content, name)
    if kind == JSON:
        yield from texts.json_values(stream, has_schemas=options.json_schemas)
    elif kind == BYTES:
        yield from texts.bytes_values(stream, options.separator)
    elif kind == CSV:
        yield from texts.csv_values(stream, options.csv)
    else:
        yield from texts.text_values(stream)


def _rows_of(records: list[Unpacked], first: int) -> Iterator[Rows]:
    """Consecutive records, divided where the schema of values changes."""
    for schema, same in groupby(records, key=lambda record: record.value[0]):
        some = list(same)
        yield Rows(
            Values(first, schema, [record.value[1] for record in some]),
            len(some),
            first,
            [record.key for record in some],
            [record.headers for record in some],
            [record.timestamp for record in some],
        )
        first += len(some)


class _Source:
    """The values of a file, as many at a time as are asked for."""

    def __init__(self, batches: Iterator[Values]) -> None:
        self._batches = batches
        self._rest: Values | None = None

    def next(self) -> Values | None:
        """The next batch, as it comes; None: there is none."""
        return next((batch for batch in self._batches if len(batch)), None)

    def take(self, count: int) -> list[Values]:
        """Exactly `count` values: they were counted before."""
        found = []
        while count:
            batch = self._rest or self.next()
            assert batch is not None
            part, left = batch.slice(0, count), len(batch) - count
            self._rest = batch.slice(count, len(batch)) if left > 0 else None
            found.append(part)
            count -= len(part)
        return found


def _keys(batches: list[Values], file: ValueFile) -> list[tuple[Schema | None, Any]]:
    """Keys; those of Parquet are in a struct `RecordKey`."""
    is_wrapped = file.keys is not None and format_of_part(file.keys.name) == PARQUET
    found: list[tuple[Schema | None, Any]] = []
    for batch in batches:
        schema = batch.schema
        if is_wrapped and schema is not None:
            found += [(schema.fields[0].schema, value["key"]) for value in batch.values()]
        else:
            found += [(schema, value) for value in batch.values()]
    return found


def _headers(batches: list[Values]) -> list[tuple[Header, ...]]:
    """Headers; those of Parquet, and of Confluent's JSON, are in a struct `RecordHeaders`."""
    found = []
    for batch in batches:
        for value in batch.values():
            pairs = value["headers"] if isinstance(value, dict) else value
            found.append(tuple(Header(str(one["key"]), OPTIONAL_STRING, one["value"]) for one in pairs or ()))
    return found
