"""The log of the model: which offsets hold a record, and which records cannot be converted."""

from __future__ import annotations

import base64
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.staging import StagedFile

Content = tuple[tuple[TopicPartition, int], ...]


def is_bad(offset: int) -> bool:
    """Whether the record at this offset cannot be converted and becomes a dead letter."""
    return offset % 7 == 3


def is_gap(offset: int) -> bool:
    """Whether this offset holds no record: a transaction marker, or compacted away."""
    return offset % 5 == 4


def content_of(file: StagedFile) -> Content:
    """Records that a staged file of this model holds."""
    tp = TopicPartition(file.topic, file.partition)
    return tuple((tp, o) for o in range(file.start, file.end) if not is_gap(o) and not is_bad(o))


def letter(planned: OffsetRange, offset: int) -> dict[str, Any]:
    """The dead letter of a record that cannot be converted."""
    value = base64.b64encode(f"{planned.partition}@{offset}".encode()).decode()
    origin = [planned.topic, planned.partition, offset]
    return {"topic": "dlq", "key": None, "value": value, "timestamp": None, "headers": [], "origin": origin}
