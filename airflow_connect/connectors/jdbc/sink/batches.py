"""Rows that wait to be written, in the order of the log, and how records become rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.jdbc.sink.columns.chunk import RowsNeededError
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.columns.binding import BindColumn
    from airflow_connect.connectors.jdbc.sink.columns.chunk import ColumnChunk
    from airflow_connect.connectors.jdbc.sink.fields import SinkField
    from airflow_connect.connectors.jdbc.sink.values import Bind, Binding
    from airflow_connect.databases.identifiers import TableId

Row = tuple[Any, ...]
_NOT_OF_ITS_TYPE = (TypeError, AttributeError, ValueError, ArithmeticError)
"""What Python raises for a value that does not have the type of its schema."""


class RowPlan:
    """How records with the same table and the same schemas become rows.

    Attributes:
        table: where they go.
        fields: their columns, those of the primary key first.
        key_count: how many of them are in the primary key.
        hidden: those of them that hide a field of the value; see `hidden_fields.py`.
    """

    def __init__(
        self, table: TableId, fields: tuple[SinkField, ...], binding: Binding, hidden: tuple[SinkField, ...] = ()
    ) -> None:
        """Raises SchemaError if there is no column type for a field."""
        self.table = table
        self.fields = fields
        self.hidden = hidden
        self.key_count = sum(f.is_key for f in fields)
        self._binding = binding
        self._take: list[tuple[Callable[[SinkRecord], Any], Bind | None]] = [(f.get, binding.of(f)) for f in fields]

    @cached_property
    def is_plain(self) -> bool:
        """Whether no value must be converted."""
        return all(bind is None for _, bind in self._take)

    @cached_property
    def column_bindings(self) -> list[BindColumn] | None:
        """How the column of each field is bound; None if one of them cannot be."""
        from airflow_connect.connectors.jdbc.sink.columns.binding import column_binding

        found = [column_binding(self._binding, field) for field in self.fields]
        bindings = [bind for bind in found if bind is not None]
        return bindings if len(bindings) == len(found) else None

    @property
    def binding(self) -> Binding:
        """How values are bound."""
        return self._binding

    def row(self, record: SinkRecord, *, key_only: bool = False) -> Row:
        """The values of a record, in the order of `fields`.

        Raises:
            DataError: a value cannot be bound.
        """
        take = self._take[: self.key_count] if key_only else self._take
        try:
            if self.is_plain:
                return tuple([get(record) for get, _ in take])
            return tuple([get(record) if bind is None else bind(get(record)) for get, bind in take])
        except (DataError, *_NOT_OF_ITS_TYPE) as error:
            raise self._refused(record, take) or error from None

    def _refused(self, record: SinkRecord, take: Sequence[tuple[Callable[[SinkRecord], Any], Bind | None]]) -> Any:
        """The error for the first field whose value cannot be bound, with where the record is, but not its value."""
        for field_, (get, bind) in zip(self.fields, take, strict=False):
            try:
                value = get(record)
            except _NOT_OF_ITS_TYPE:
                return _wrong_value(record, field_, "is missing: the record is not a struct")
            try:
                if bind is not None:
                    bind(value)
            except DataError as error:
                return _wrong_value(record, field_, f"cannot be written: {error.message}", error)
            except _NOT_OF_ITS_TYPE:
                return _wrong_value(record, field_, f"has a value of the type {type(value).__name__}")
        return None


@dataclass(slots=True)
class Chunk:
    """Consecutive rows of one statement.

    Attributes:
        plan: of the records.
        deletes: whether rows are deleted; `rows` then hold keys only.
    """

    plan: RowPlan
    deletes: bool
    rows: list[Row] = field(default_factory=list)
    records: list[SinkRecord] = field(default_factory=list)

    def key(self, record: SinkRecord) -> tuple[object, ...]:
        """Which row of which table a record is about; one of its own, if rows have no keys."""
        row = self.rows[next(n for n, found in enumerate(self.records) if found is record)]
        return row_key(self.plan, row) if self.plan.key_count else (id(record),)

    def only(self, record: SinkRecord) -> Chunk:
        """A chunk with one of its records."""
        place = next(n for n, found in enumerate(self.records) if found is record)
        return replace(self, rows=[self.rows[place]], records=[record])

    def keep(self, wanted: Callable[[SinkRecord], bool]) -> None:
        """Drop the rows of other records."""
        chosen = [n for n, record in enumerate(self.records) if wanted(record)]
        if len(chosen) < len(self.records):
            self.rows = [self.rows[n] for n in chosen]
            self.records = [self.records[n] for n in chosen]


@dataclass(slots=True)
class Batch:
    """What one transaction writes.

    Attributes:
        ends: offset after the last record of each topic-partition, dropped and errant ones included.
        errant: offsets of records that were reported.
        count, size_bytes: of what waits.

    Rows are written table by table. But a deletion may delete rows of other tables (ON DELETE CASCADE), so where the
    records of a topic go to several tables, those before and after a deletion are apart.
    """

    ends: dict[TopicPartition, int] = field(default_factory=dict)
    errant: dict[TopicPartition, set[int]] = field(default_factory=dict)
    count: int = 0
    size_bytes: int = 0
    _parts: list[dict[TableId, list[Chunk]]] = field(default_factory=lambda: [{}])
    _routes: dict[str, set[TableId]] = field(default_factory=dict)
    _deleting: set[str] = field(default_factory=set)
    """In the last part: the tables of each topic, and the topics of deletions."""
    _last_plan: RowPlan | None = None
    _last_topic: str = ""
    """Of the last row that was no deletion: another one like it needs no look at the above."""
    _columns: list[ColumnChunk] = field(default_factory=list)

    def add(self, plan: RowPlan, row: Row, record: SinkRecord, *, deletes: bool) -> None:
        """Add a row after those of its table."""
        if deletes or plan is not self._last_plan or record.original_topic != self._last_topic:
            self._route(record.original_topic, plan.table, deletes=deletes)
            self._last_plan, self._last_topic = None if deletes else plan, record.original_topic
        chunks = self._parts[-1].setdefault(plan.table, [])
        if not chunks or chunks[-1].plan is not plan or chunks[-1].deletes is not deletes:
            chunks.append(Chunk(plan, deletes))
        chunks[-1].rows.append(row)
        chunks[-1].records.append(record)
        self.count += 1
        if record.consumed is not None:
            self.size_bytes += len(record.consumed.value or b"") + len(record.consumed.key or b"")

    def _route(self, topic: str, table: TableId, *, deletes: bool) -> None:
        """Begin a part if the records of a topic go to several tables, and there is a deletion on either side."""
        routes = self._routes.setdefault(topic, {table})
        if (deletes or topic in self._deleting) and (len(routes) > 1 or table not in routes):
            self._parts.append({})
            self._deleting.clear()
            self._routes = {topic: set()}
        self._routes[topic].add(table)
        if deletes:
            self._deleting.add(topic)

    @classmethod
    def of_columns(cls, partition: TopicPartition, chunks: Sequence[ColumnChunk]) -> Batch:
        """Records of a partition in columns, without any rows. At least one chunk, none of them empty."""
        return cls({partition: int(chunks[-1].offsets[-1]) + 1}, _columns=list(chunks))

    def column_chunks(self) -> list[ColumnChunk]:
        """The chunks of a batch in columns."""
        return [chunk for chunk in self._columns if len(chunk)]

    def passed(self, record: SinkRecord) -> None:
        """The record belongs to this transaction, whatever becomes of it."""
        self.ends[place_of(record)] = record.offset + 1

    def add_errant(self, record: SinkRecord) -> None:
        """The record was reported, and must not be written."""
        self.errant.setdefault(place_of(record), set()).add(record.offset)

    def chunks(self) -> Iterator[Chunk]:
        """All rows, part by part, and table by table in the order of their first records."""
        for part in self._parts:
            for chunks in part.values():
                yield from (chunk for chunk in chunks if chunk.rows)

    def without_errant(self) -> None:
        """Drop the rows of records that were reported."""
        if self.errant:
            for chunk in self.chunks():
                chunk.keep(lambda r: r.offset not in self.errant.get(place_of(r), ()))

    def without_written(self, partition: TopicPartition, before: int, errant: frozenset[int]) -> None:
        """Drop the rows of a partition that are in the database: those before an offset, except errant ones.

        Raises:
            RowsNeededError: there are errant ones in columns.
        """
        for chunk in self.chunks():
            chunk.keep(lambda r: place_of(r) != partition or r.offset >= before or r.offset in errant)
        for columns in self.column_chunks():
            if errant.intersection(columns.offsets.tolist()):
                raise RowsNeededError  # They are tried again, and reported.
            columns.keep_from(before)
        self.ends[partition] = max(self.ends[partition], before)

    def superseded(self, partition: TopicPartition, before: int, errant: frozenset[int]) -> list[SinkRecord]:
        """Errant records that must not be tried again: one that is written may have changed the same row after them.

        Args:
            partition, before, errant: as for `without_written`, which follows.
        """
        rows = [
            (row_key(chunk.plan, row), record)
            for chunk in self.chunks()
            if chunk.plan.key_count
            for row, record in zip(chunk.rows, chunk.records, strict=True)
            if place_of(record) == partition and record.offset < before
        ]
        last = {key: record.offset for key, record in rows if record.offset not in errant}
        has_all = self.ends[partition] >= before
        return [
            record
            for key, record in rows
            if record.offset in errant and (not has_all or last.get(key, -1) > record.offset)
        ]

    def last_of_keys(self) -> dict[tuple[object, ...], SinkRecord]:
        """The last record about each row; see `Chunk.key`."""
        return {
            row_key(chunk.plan, row): record
            for chunk in self.chunks()
            if chunk.plan.key_count
            for row, record in zip(chunk.rows, chunk.records, strict=True)
        }

    def offsets_of(self, partition: TopicPartition) -> set[int]:
        """Offsets of the rows of a partition."""
        return {r.offset for chunk in self.chunks() for r in chunk.records if place_of(r) == partition}


def row_key(plan: RowPlan, row: Row) -> tuple[object, ...]:
    """Which row of which table a row is about."""
    return (plan.table, *(repr(value) if isinstance(value, list) else value for value in row[: plan.key_count]))


def _wrong_value(record: SinkRecord, field_: SinkField, what: str, cause: DataError | None = None) -> DataError:
    expected = field_.schema.name or field_.schema.type.name
    return DataError(
        f"The field {field_.name} of {record.where}, which is {expected} by its schema, {what.removesuffix('.')}.",
        code=cause.code if cause else "database.value",
        suggestion=cause.suggestion if cause else "Correct the record, or the transformation that has changed it.",
    )


def place_of(record: SinkRecord) -> TopicPartition:
    """Where Kafka has the record."""
    return TopicPartition(record.original_topic, record.original_partition)
