"""Counts the records of which a converter has left out fields that a schema does not have, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.converters.unread import MORE_TEXT, MOST_LISTED, Unread, listed, schema_label

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.runtime.reporting.notes import Notes


class _Group(NamedTuple):
    """Records that are counted together. `part`: `keys`, `values` or `headers`."""

    topic: str
    part: str
    schema: Schema | None


Taken = Mapping[str, AbstractSet[str]]
"""Names of fields by part."""


@dataclass(slots=True)
class _Count:
    records: int = 0
    fields: dict[str, None] = field(default_factory=dict)
    has_more: bool = False


class UnreadCounts:
    """The counts of one task, by topic and schema. A record counts when it was read, whatever becomes of it later."""

    attribute = "unread"
    """Of a converter that may leave something out."""
    clause = "held fields that {} does not have"
    """What a note says, with the schema of the records."""

    def __init__(self, key: Any, value: Any, headers: Any = None) -> None:
        """The converters; one without the attribute leaves nothing out."""
        found = [getattr(one, self.attribute, None) for one in (key, value, headers)]
        self._key, self._value, self._headers = (one if isinstance(one, Unread) else None for one in found)
        self._watched: tuple[Unread, ...] = tuple(one for one in found if isinstance(one, Unread))
        self.found: tuple[AbstractSet[str], ...] = tuple(one.found for one in self._watched)
        """What to look at after each message."""
        self._counts: dict[_Group, _Count] = {}

    def add(self, topic: str, key_schema: Schema | None, value_schema: Schema | None) -> None:
        """Count a record, and forget what was found in it."""
        self.add_taken(topic, key_schema, value_schema, self.take())

    def take(self) -> Taken:
        """What was found since the last message, which is forgotten here."""
        parts = (("keys", self._key), ("values", self._value), ("headers", self._headers))
        taken = {part: frozenset(one.found) for part, one in parts if one is not None and one.found}
        self.clear()
        return taken

    def add_taken(self, topic: str, key_schema: Schema | None, value_schema: Schema | None, taken: Taken) -> None:
        """Count a record in which this was found."""
        schemas = {"keys": key_schema, "values": value_schema}
        for part, fields in taken.items():
            self._add(_Group(topic, part, schemas.get(part)), fields)

    def end_key(self, schema: Schema | None) -> None:
        """A key of a batch was read by itself."""
        if self._key is not None:
            self._key.end_row(schema)

    def add_batch(self, topic: str) -> None:
        """Count the records of a batch that was written in columns."""
        for part, unread in (("keys", self._key), ("values", self._value)):
            for schema, fields in unread.rows if unread is not None else ():
                self._add(_Group(topic, part, schema), fields)
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
        if group.schema is None and count.fields.keys() == {MORE_TEXT}:
            return f"{what} have {MORE_TEXT}, such as a second document. It was left out. Records:"
        clause = self.clause.format(schema_label(group.schema))
        return f"{what} {clause}. They were left out: {listed(count.fields, count.has_more)}. Records:"

    def _add(self, group: _Group, fields: AbstractSet[str]) -> None:
        count = self._counts.setdefault(group, _Count())
        count.records += 1
        for name in sorted(fields - count.fields.keys()):
            if len(count.fields) < MOST_LISTED:
                count.fields[name] = None
            else:
                count.has_more = True


class UnwrittenCounts(UnreadCounts):
    """The same of a source's task, whose records are written with a schema that is not their own."""

    attribute = "unwritten"
    clause = (
        "held fields of {} that the schema with which they were written does not have (use.latest.version,"
        " use.schema.id)"
    )
