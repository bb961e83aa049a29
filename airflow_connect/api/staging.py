"""Types for staged output, shared by stores, the runtime and connectors: results of publishing, and leftovers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from airflow_connect.api.json_document import JsonDocument


@dataclass(frozen=True, slots=True)
class StagedFile(JsonDocument):
    """A staged file, not visible yet.

    Attributes:
        key: final name inside the store (S3 key, path), without bucket.
        topic, partition: Kafka partition whose records it holds.
        start: offset of the first record inside.
        end: offset of the last record inside plus one.
        records: number of records inside.
        size_bytes: encoded size.
        token: what the store's publisher needs to publish or abort it; plain JSON, no secrets.
        role: `value`, `key` or `headers`.
        value_schema: if the sink's driver needs it, for the first file of a topic-partition with that schema: the
            schema of the values in JsonConverter's form (`null` for none); otherwise "".
    """

    LEFT_OUT = frozenset({"value_schema"})
    KNOWS_ALL = True

    key: str
    topic: str
    partition: int
    start: int
    end: int
    records: int
    size_bytes: int
    token: dict[str, Any] = field(default_factory=dict)
    role: str = "value"
    value_schema: str = ""


class Outcome(Enum):
    """The result of publishing a staged file."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already published"
    LOST = "lost"
    """The staged file is gone and the final one does not exist: it must be copied again."""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A staged, unpublished file found in the store, whoever staged it.

    Attributes:
        key: final name inside the store.
        token: equal to the token of the staged file, or a value that distinguishes it from others with the same key.
        started_ms: when it was started, milliseconds since the epoch; 0 if the store does not report it.
    """

    key: str
    token: Mapping[str, Any]
    started_ms: int = 0
