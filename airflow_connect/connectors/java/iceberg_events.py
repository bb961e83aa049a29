"""Events that Apache's Iceberg sink writes to its control topic.

Source: org.apache.iceberg.connect.events and AvroEncoderUtil of iceberg-kafka-connect-events 1.11.0: two bytes that
mark the format, the writer's schema as a string of Java's `writeUTF`, and the record.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import StateError

DATA_WRITTEN, DATA_COMPLETE, COMMIT_TO_TABLE, COMMIT_COMPLETE = range(1, 5)
"""`PayloadType`, by its number; 0 is the beginning of a commit."""
_MAGIC = b"\xc2\x01"
_LENGTH_BYTES = 2


@dataclass(frozen=True, slots=True)
class Table:
    """A table as an event names it. A table that is created again has another `uuid`."""

    name: str
    uuid: str

    def __str__(self) -> str:
        """`db.orders (uuid ...)`."""
        return f"{self.name} (uuid {self.uuid})" if self.uuid else self.name


@dataclass(frozen=True, slots=True)
class ControlEvent:
    """What a run has to know of an event.

    Attributes:
        kind: one of the numbers above.
        group: the consumer group of the connector that has sent it.
        table: of files that were written, and of a commit to a table.
        files, records: how many of them the event names.
        ends: of `DATA_COMPLETE`: the offset that each partition of the task is complete up to; None: it got no record.
    """

    kind: int
    group: str
    table: Table | None = None
    files: int = 0
    records: int = 0
    ends: Mapping[TopicPartition, int | None] = field(default_factory=dict)


def control_event(value: bytes) -> ControlEvent:
    """The event in a record of a control topic.

    Raises:
        StateError: it is none.
    """
    import fastavro

    try:
        if value[: len(_MAGIC)] != _MAGIC:
            raise ValueError("it does not begin as an event does")
        start = len(_MAGIC) + _LENGTH_BYTES
        end = start + int.from_bytes(value[len(_MAGIC) : start], "big")
        found = fastavro.schemaless_reader(io.BytesIO(value[end:]), _schema(value[start:end]))
        return _event(found)
    except (ValueError, KeyError, TypeError, IndexError, EOFError) as error:
        raise StateError(
            f"A record of the control topic is no event of Iceberg's sink: {error!r}.",
            code="java.control_event",
            suggestion="Nothing but Iceberg's sinks may write to their control topic (iceberg.control.topic).",
        ) from error


def _event(found: Any) -> ControlEvent:
    payload, kind = found["payload"], int(found["type"])
    if kind == DATA_WRITTEN:
        files = [*(payload["data_files"] or ()), *(payload["delete_files"] or ())]
        records = sum(int(file["record_count"]) for file in payload["data_files"] or ())
        return ControlEvent(kind, found["group_id"], _table(payload), len(files), records)
    if kind == COMMIT_TO_TABLE:
        return ControlEvent(kind, found["group_id"], _table(payload))
    ends = {}
    if kind == DATA_COMPLETE:
        ends = {TopicPartition(one["topic"], one["partition"]): one["offset"] for one in payload["assignments"] or ()}
    return ControlEvent(kind, found["group_id"], ends=ends)


def _table(payload: Any) -> Table:
    reference = payload["table_reference"]
    name = ".".join([*reference["namespace"], reference["name"]])
    return Table(name, _uuid(reference.get("table_uuid")))


def _uuid(found: bytes | UUID | None) -> str:
    return "" if found is None else str(UUID(bytes=found) if isinstance(found, bytes) else found)


@lru_cache(maxsize=64)
def _schema(text: bytes) -> Any:
    """The writer's schema, with short names only: Java refers to a name without a namespace from within one."""
    import fastavro

    return fastavro.parse_schema(_with_short_names(json.loads(text)))


def _with_short_names(schema: Any) -> Any:
    if isinstance(schema, str):
        return _short(schema)
    if isinstance(schema, list):
        return [_with_short_names(one) for one in schema]
    changed = {key: value for key, value in schema.items() if key not in ("namespace", "default")}
    if ("name" in changed and "fields" in changed) or changed.get("type") == "fixed":
        changed["name"] = _short(changed["name"])
    for key in ("type", "items", "values"):
        if key in changed:
            changed[key] = _with_short_names(changed[key])
    if "fields" in changed:
        changed["fields"] = [_with_short_names(one) for one in changed["fields"]]
    return changed


def _short(name: str) -> str:
    return name.rpartition(".")[2]
