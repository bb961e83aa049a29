"""Counts the records of which a converter has left out fields, or changed values that do not fit, for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from airflow_connect.converters.unread import MORE_TEXT, MOST_LISTED, REPLACED, Changed, Unread, listed, schema_label

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.kafka.reading.column_batch import ColumnBatch
    from airflow_connect.runtime.executor.transforming import Stage
    from airflow_connect.runtime.reporting.notes import Notes


class _Group(NamedTuple):
    """Records that are counted together.

    Attributes:
        part: `keys`, `values`, `headers` or a transformation.
        is_changed: whether values were changed, not left out.
    """

    topic: str
    part: str
    schema: Schema | None
    is_changed: bool


class _Placed(Protocol):
    """A record with a topic; one of a sink has a partition and an offset, too."""

    @property
    def topic(self) -> str: ...


_STEP = "transformation "
Taken = Mapping[str, AbstractSet[str]]
"""Names of fields by part."""


@dataclass(slots=True)
class _Count:
    records: int = 0
    fields: dict[str, None] = field(default_factory=dict)
    has_more: bool = False
    first: str = ""


class UnreadCounts:
    """The counts of one task, by topic and schema. A record counts when it was read, whatever becomes of it later."""

    attribute = "unread"
    """Of a converter that may leave something out."""
    clause = "held fields that {} does not have"
    """What a note says, with the schema of the records."""

    def __init__(self, key: Any, value: Any, headers: Any = None, steps: Sequence[Stage] = ()) -> None:
        """The converters; one without the attribute leaves nothing out.

        Args:
            key, value, headers: converters.
            steps: transformations; those with an attribute `unread` may change numbers.
        """
        found = [getattr(one, self.attribute, None) for one in (key, value, headers)]
        self._key, self._value, self._headers = (one if isinstance(one, Unread) else None for one in found)
        of_steps = [(_STEP + step.alias, getattr(step.transformation, "unread", None)) for step in steps]
        self._steps = [(part, one) for part, one in of_steps if isinstance(one, Unread)]
        converters = (one for one in found if isinstance(one, Unread))
        self._watched: tuple[Unread, ...] = (*converters, *(one for _, one in self._steps))
        self.found: tuple[AbstractSet[str], ...] = tuple(one.found for one in self._watched)
        """What to look at after each message."""
        self._counts: dict[_Group, _Count] = {}

    def add(self, record: _Placed, key_schema: Schema | None, value_schema: Schema | None) -> None:
        """Count a record, and forget what was found in it."""
        self.add_taken(record, key_schema, value_schema, self.take())

    def take(self) -> Taken:
        """What was found since the last message, which is forgotten here."""
        parts = (("keys", self._key), ("values", self._value), ("headers", self._headers), *self._steps)
        taken = {part: frozenset(one.found) for part, one in parts if one is not None and one.found}
        self.clear()
        return taken

    def add_taken(self, record: _Placed, key_schema: Schema | None, value_schema: Schema | None, taken: Taken) -> None:
        """Count a record in which this was found."""
        schemas = {"keys": key_schema, "values": value_schema}
        for part, fields in taken.items():
            place = _place(getattr(record, "partition", None), getattr(record, "offset", None))
            self._add(record.topic, part, schemas.get(part), fields, place)

    def end_key(self, schema: Schema | None, row: int) -> None:
        """A key of a batch was read by itself; `row` is its place among the keys that are not null."""
        if self._key is not None:
            self._key.end_row(schema, row)

    def add_batch(self, batch: ColumnBatch) -> None:
        """Count the records of a batch that was written in columns."""
        for part, unread, messages in (("keys", self._key, batch.keys), ("values", self._value, batch.values)):
            if unread is None or not unread.rows:
                continue
            offsets = batch.offsets[messages.is_valid().to_numpy(zero_copy_only=False)]
            for schema, fields, row in unread.rows:
                self._add(batch.topic, part, schema, fields, _place(batch.partition, offsets[row]))
        self.clear()

    def clear(self) -> None:
        """Forget what was found in a record or batch that is not counted, or not yet."""
        for unread in self._watched:
            unread.clear()

    def forget_record(self) -> None:
        """Forget what was found in the last record, which is not counted; the rows of a batch are kept."""
        for unread in self._watched:
            unread.found.clear()

    def tell(self, notes: Notes) -> None:
        """Add a note for each topic and schema."""
        for group, count in self._counts.items():
            notes.count(self._sentence(group, count), count.records)

    def _sentence(self, group: _Group, count: _Count) -> str:
        what = f"Some {group.part} of the topic {group.topic}"
        if group.part.startswith(_STEP):
            what = f"Some records of the topic {group.topic}"
        if group.is_changed:
            limit = "64 bits" if group.schema is None else f"the types in {schema_label(group.schema)}"
            names = listed({name or "the whole value" for name in count.fields}, count.has_more)
            if group.part.startswith(_STEP):
                limit = f"the types that the {group.part} gives them"
            where = f" The first is {count.first}." if count.first else ""
            return (
                f"{what} have values that do not fit {limit}. They became others, as in Kafka Connect: {names}.{where}"
                " Records:"
            )
        if len(count.fields) == 1 and (found := next(iter(count.fields))) in REPLACED:
            where = f" The first is {count.first}." if count.first else ""
            return (
                f"{what} have {found}. They became {REPLACED[found]}, as in Kafka Connect, so different texts may be"
                f" equal.{where} Records:"
            )
        if group.schema is None and count.fields.keys() == {MORE_TEXT}:
            return f"{what} have {MORE_TEXT}, such as a second document. It was left out. Records:"
        clause = self.clause.format(schema_label(group.schema))
        return f"{what} {clause}. They were left out: {listed(count.fields, count.has_more)}. Records:"

    def _add(self, topic: str, part: str, schema: Schema | None, fields: AbstractSet[str], place: str) -> None:
        changed = {name for name in fields if type(name) is Changed}
        for found, is_changed in ((fields - changed, False), (changed, True)):
            if found:
                self._count(_Group(topic, part, schema, is_changed), found, place)

    def _count(self, group: _Group, fields: AbstractSet[str], place: str) -> None:
        count = self._counts.setdefault(group, _Count(first=place))
        count.records += 1
        for name in sorted(fields - count.fields.keys()):
            if len(count.fields) < MOST_LISTED:
                count.fields[name] = None
            else:
                count.has_more = True


def _place(partition: Any, offset: Any) -> str:
    return "" if offset is None else f"at offset {offset} of partition {partition}"


class UnwrittenCounts(UnreadCounts):
    """The same of a source's task, whose records are written with a schema that is not their own."""

    attribute = "unwritten"
    clause = (
        "held fields of {} that the schema with which they were written does not have (use.latest.version,"
        " use.schema.id)"
    )
