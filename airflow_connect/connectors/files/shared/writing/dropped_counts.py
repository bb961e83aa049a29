"""Counts the records that were written without some of their fields, because of `schema.compatibility`."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from airflow_connect.api.schema import Schema
from airflow_connect.converters.unread import listed, schema_label
from airflow_connect.counting import format_count


class _Pair(NamedTuple):
    topic: str
    record_schema: Schema | None
    file_schema: Schema | None


@dataclass(slots=True)
class _Count:
    records: int = 0
    fields: set[str] = field(default_factory=set)


class DroppedCounts:
    """The counts of a file, or of all files of a task that were staged."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._counts: dict[_Pair, _Count] = {}

    def add(
        self, topic: str, record_schema: Schema | None, file_schema: Schema | None, fields: AbstractSet[str]
    ) -> None:
        """Count a record that lacks `fields` in its file."""
        count = self._counts.setdefault(_Pair(topic, record_schema, file_schema), _Count())
        count.records += 1
        count.fields |= fields

    def add_all(self, other: DroppedCounts) -> None:
        """Count the records of a file that is staged."""
        for pair, one in other._counts.items():
            count = self._counts.setdefault(pair, _Count())
            count.records += one.records
            count.fields |= one.fields

    def take_sentences(self, mode: str) -> Iterator[str]:
        """A sentence for each topic and pair of schemas since the last call. `mode`: `schema.compatibility`."""
        counts, self._counts = self._counts, {}
        for (topic, source, target), count in counts.items():
            yield (
                f"Records of the topic {topic} with {schema_label(source)} were written with {schema_label(target)},"
                f" that of their file (schema.compatibility={mode}). Fields that it does not have were left out:"
                f" {listed(count.fields)}. Records: {format_count(count.records)}."
            )
