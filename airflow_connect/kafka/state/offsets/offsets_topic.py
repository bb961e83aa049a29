"""Source offsets in Kafka Connect's offsets topic, byte for byte: `["<connector>",{partition}]` -> `{offset}`.

Keys and values are what JsonConverter writes without schemas; a null value deletes. A key is on the partition that
Java's murmur2 chooses for its bytes, so compaction and readers on both sides agree. Source partitions are compared by
their content, not by their bytes, because Java writes the members in the order of its hash map. An offset is
overwritten under the exact bytes of the existing key, so there is never a second one.

Source: OffsetStorageWriter, OffsetStorageReaderImpl, KafkaOffsetBackingStore of Kafka Connect; recordings in
tests/data/connect_topics.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.schema import MAX_SCHEMA_DEPTH
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json.text import is_deeper
from airflow_connect.errors import DataError, TaskFailedError

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceOffset, SourcePartition

_LOG = logging.getLogger(__name__)
_PLAIN = str | int | float | bool | None


class OffsetRecord(NamedTuple):
    """A record of the offsets topic; `value` None is a tombstone."""

    key: bytes
    value: bytes | None


class StoredOffset(NamedTuple):
    """The record of a source partition in the topic."""

    key: bytes
    partition: SourcePartition
    offset: SourceOffset


def identity(partition: SourcePartition) -> str:
    """The same text for equal source partitions, whatever the order of their members."""
    return json.dumps(partition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class SourceOffsets:
    """The offsets of one connector: those that were read, and the records to write."""

    def __init__(self, connector: str) -> None:
        """Starts without offsets."""
        self._connector = connector
        self._converter = JsonConverter()
        self._converter.configure({"schemas.enable": "false"}, True)
        self._stored: dict[str, StoredOffset] = {}
        # Writers escape differently: Jackson writes characters beyond the first plane as two escapes.
        jackson = self._encoded([connector])[2:-2]
        self._needles = tuple({jackson, json.dumps(connector, ensure_ascii=False)[1:-1].encode()})

    def __len__(self) -> int:
        """Number of source partitions with an offset."""
        return len(self._stored)

    def get(self, partition: SourcePartition) -> SourceOffset | None:
        """The offset of a source partition."""
        found = self._stored.get(identity(partition))
        return None if found is None else found.offset

    def items(self) -> Iterator[tuple[SourcePartition, SourceOffset]]:
        """Every source partition with its offset."""
        return ((stored.partition, stored.offset) for stored in list(self._stored.values()))

    def stored(self, which: Iterable[str] | None = None) -> list[StoredOffset]:
        """Offsets with the keys under which they are stored; `which`: identities, None: all."""
        if which is None:
            return list(self._stored.values())
        return [self._stored[who] for who in which if who in self._stored]

    def identities(self) -> Iterable[str]:
        """The identity of every source partition with an offset."""
        return self._stored.keys()

    def holds(self, who: str) -> bool:
        """Whether there is an offset of the source partition with this identity."""
        return who in self._stored

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Apply one record of the topic; returns whether it belongs to the connector. Other records are ignored."""
        if key is None or not any(needle in key for needle in self._needles):
            return False
        try:
            name, partition = json.loads(key)
            offset = None if value is None else json.loads(value)
            if is_deeper([partition, offset], MAX_SCHEMA_DEPTH):
                raise ValueError("nested too deeply")
            who = identity(partition)
        except (ValueError, TypeError, RecursionError):
            _LOG.warning(
                "An offsets topic contains a record that was not written by Kafka Connect; its key: %r", key[:200]
            )
            return False
        if name != self._connector or not isinstance(partition, dict):
            return False
        if isinstance(offset, dict):
            self._stored[who] = StoredOffset(key, partition, offset)
        else:
            self._stored.pop(who, None)
        return True

    def is_own(self, key: bytes) -> bool:
        """Whether a key belongs to this connector."""
        probe = SourceOffsets(self._connector)
        probe.take(key, b"{}")
        return bool(probe._stored)

    def take_missing(self, other: SourceOffsets) -> int:
        """Add offsets of `other` for source partitions without an offset here; returns how many."""
        missing = {who: stored for who, stored in other._stored.items() if who not in self._stored}
        self._stored.update(missing)
        return len(missing)

    def record(self, partition: SourcePartition, offset: SourceOffset | None) -> OffsetRecord:
        """The record that sets (None: deletes) an offset; the change is applied here too.

        Raises:
            TaskFailedError: the partition or the offset is not a flat map of plain values.
        """
        _check_plain(partition, "partition")
        who = identity(partition)
        stored = self._stored.get(who)
        key = stored.key if stored else self._encoded([self._connector, dict(partition)])
        if offset is None:
            self._stored.pop(who, None)
            return OffsetRecord(key, None)
        _check_plain(offset, "offset")
        self._stored[who] = StoredOffset(key, partition, offset)
        return OffsetRecord(key, self._encoded(dict(offset)))

    def records(self) -> list[OffsetRecord]:
        """A record for each offset."""
        return [OffsetRecord(s.key, self._encoded(dict(s.offset))) for s in self._stored.values()]

    def record_of(self, key: bytes) -> OffsetRecord | None:
        """The record of the offset with this key; None: there is none."""
        found = self._stored.get(identity(json.loads(key)[1]))
        return None if found is None else OffsetRecord(key, self._encoded(dict(found.offset)))

    def _encoded(self, value: Any) -> bytes:
        try:
            encoded = self._converter.from_connect("", None, value)
        except DataError as error:
            raise TaskFailedError(
                f"A source offset of connector {self._connector} cannot be written as JSON: {error.message}",
                code="source.offset",
                suggestion="Source partitions and offsets may contain only text, numbers, booleans and null.",
            ) from error
        if encoded is None:
            raise TypeError("JSON of a list or a map is never null")
        return encoded


def _check_plain(values: Mapping[str, Any], what: str) -> None:
    """Source: org.apache.kafka.connect.storage.OffsetUtils.validateFormat."""
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, _PLAIN):
            raise TaskFailedError(
                f"The source {what} {_shown(values)} is not a flat map of text, numbers, booleans and null: "
                f"its member {name!r} is a {type(value).__name__}.",
                code="source.offset",
                suggestion="Correct the connector: write such a value as text.",
            )


def _shown(values: Mapping[str, Any]) -> str:
    text = str(dict(values))
    return text if len(text) <= 200 else f"{text[:200]}..."


def offset_changes(
    offsets: SourceOffsets, changes: Iterable[tuple[SourcePartition, SourceOffset | None]]
) -> list[OffsetRecord]:
    """Records of `changes`, except those that change nothing. 1, 1.0 and true are three values, as in JSON."""
    return [
        offsets.record(partition, offset)
        for partition, offset in changes
        if _plain_text(offsets.get(partition)) != _plain_text(offset)
    ]


def _plain_text(offset: SourceOffset | None) -> str:
    # A value of another type differs from everything stored, and is refused when its record is created.
    return json.dumps(None if offset is None else dict(offset), sort_keys=True, default=repr)
