"""The result of an alteration of offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_connect.api.json_document import JsonDocument

MOST_SHOWN = 100
"""Partitions of a source that a result shows; it may have very many."""


@dataclass(frozen=True, slots=True)
class AlteredOffsets(JsonDocument):
    """What an alteration did.

    Attributes:
        connector: its name.
        altered: number of partitions whose offset is another one now.
        before, after: committed offsets of the altered partitions. A sink: `{"topic-0": offset}`, with None for no
            offset. A source: `[{"partition": {...}, "offset": {...}}]` as in Kafka Connect's REST API, the first
            `MOST_SHOWN`.
    """

    connector: str
    altered: int
    before: Any
    after: Any
