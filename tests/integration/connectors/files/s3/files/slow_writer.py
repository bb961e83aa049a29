"""A slow, literal simulation of Confluent's TopicPartitionWriter, written from its description and not from our code.

It keeps lists instead of counters, asks every question anew for every record, and knows nothing of runs: it is the
connector that lives for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One record as the simulation sees it.

    Attributes:
        offset: Kafka offset.
        timestamp: what the timestamp extractor finds.
        directory: what the partitioner finds.
        schema: any name of the value's schema, or None.
        version: version of that schema.
        fails: whether the partitioner finds no directory, because the record has no timestamp.
    """

    offset: int
    timestamp: int
    directory: str
    schema: str | None = None
    version: int | None = None
    fails: bool = False


@dataclass
class SlowWriter:
    """One topic-partition. `objects` maps (directory, start offset) to offsets, in the order of the commits."""

    flush_size: int
    rotate_interval_ms: int = -1
    time_based: bool = False
    change_rotates: bool = True
    max_open: int = -1
    compatibility: str = "NONE"
    tombstone: str | None = None
    objects: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base: int | None = None
        self.current_directory: str | None = None
        self.schemas: dict[str, Row] = {}
        self.open: dict[str, list[int]] = {}

    def copy(self, rows: Sequence[Row]) -> dict[tuple[str, int], list[int]]:
        """Every object that the connector has committed after it has seen `rows`."""
        for row in rows:
            if row.fails:
                continue
            while self.rotates_before(row):
                self.rotate()
            self.open.setdefault(row.directory, []).append(row.offset)
            self.current_directory = row.directory
            if self.count() >= max(1, self.flush_size):
                self.rotate()
        return self.objects

    def observe(self, row: Row) -> None:
        """The base timestamp is that of the first record since the last commit."""
        if self.time_based and self.base is None:
            self.base = row.timestamp

    def rotates_before(self, row: Row) -> bool:
        """Rules b to e, in their order."""
        self.observe(row)
        current = self.schemas.setdefault(row.directory, row)
        if (current.schema is None) != (row.schema is None):
            return True
        if self.count() > 0 and self.time_is_up(row):
            return True
        if self.count() > 0 and row.schema is not None and self.schema_differs(current, row):
            return True
        return self.max_open > 0 and row.directory not in self.open and len(self.open) == self.max_open

    def time_is_up(self, row: Row) -> bool:
        """Rule c without the wall clock."""
        if not self.time_based or self.rotate_interval_ms <= 0:
            return False
        assert self.base is not None
        if row.timestamp - self.base >= self.rotate_interval_ms:
            return True
        if not self.change_rotates or row.directory == self.current_directory:
            return False
        return self.tombstone is None or self.tombstone not in (row.directory, self.current_directory)

    def schema_differs(self, current: Row, row: Row) -> bool:
        """Rule d; versions are compared where the mode is one of compatibility."""
        if self.compatibility == "NONE":
            return (row.schema, row.version) != (current.schema, current.version)
        assert row.version is not None and current.version is not None
        if self.compatibility == "FORWARD":
            return row.version < current.version
        return row.version > current.version

    def count(self) -> int:
        """Records in all open files."""
        return sum(map(len, self.open.values()))

    def rotate(self) -> None:
        """Commit all open files in the order in which they were opened."""
        for directory, offsets in self.open.items():
            place = (directory, offsets[0])
            assert place not in self.objects, f"{place} committed twice"
            self.objects[place] = offsets
        self.open = {}
        self.schemas = {}
        self.base = None


def slow_compact_copy(rows: Sequence[Row], flush_size: int, mode: str) -> dict[tuple[str, int], list[int]]:
    """What `files.per.partition=compact` makes of `rows`, told afterwards: gather first, then cut.

    Every record goes to the pile of its directory and of one version; piles are cut into `flush_size` records each.
    """
    piles: dict[tuple[str, str | None, int | None], list[int]] = {}
    for row in (row for row in rows if not row.fails):
        others = [(schema, version) for place, schema, version in piles if place == row.directory and schema]
        home = (row.schema, row.version)
        if row.schema is not None and mode != "NONE":
            pick = min if mode == "FORWARD" else max
            home = pick([*others, home], key=lambda found: found[1] or 0)
        piles.setdefault((row.directory, *home), []).append(row.offset)
    return {
        (place, pile[start]): pile[start : start + flush_size]
        for (place, _, _), pile in piles.items()
        for start in range(0, len(pile), flush_size)
    }


def expected_keys(
    objects: Mapping[tuple[str, int], Sequence[int]], topic: str, partition: int, extension: str = ".json"
) -> dict[str, list[Any]]:
    """Object keys with the defaults of names, and their offsets."""
    return {
        f"topics/{topic}/{directory}/{topic}+{partition}+{start:010d}{extension}": list(offsets)
        for (directory, start), offsets in objects.items()
    }
