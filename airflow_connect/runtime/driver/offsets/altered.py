"""The result of an alteration of offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST_SHOWN = 100
"""Partitions of a source that a result shows; it may have very many."""


@dataclass(frozen=True, slots=True)
class AlteredOffsets:
    """What an alteration did.

    Attributes:
        connector: its name.
        before, after: committed offsets of the altered partitions. A sink: `{"topic-0": offset}`, with None for no
            offset. A source: `[{"partition": {...}, "offset": {...}}]` as in Kafka Connect's REST API, the first
            `MOST_SHOWN`.
        altered: number of partitions whose offset is another one now.
    """

    connector: str
    before: Any
    after: Any
    altered: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "connector": self.connector,
            "altered": self.altered,
            "before": self.before,
            "after": self.after,
        }
