"""Value schemas between runs: the schema of the last file of each topic-partition, for sinks that continue with it.

They are text here, as JsonConverter writes schemas. `null` means that no schema is known, and that none has to be
searched for. Documents hold each text once, because many partitions of a topic have the same schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.documents.run import PartitionReport

NOTHING = "null"


def to_json(name: str, schemas: Mapping[TopicPartition, str]) -> dict[str, Any]:
    """The entry `name` of a document: `[[schema, [[topic, partition], ...]], ...]`; no entry for no schemas."""
    places: dict[str, list[list[Any]]] = {}
    for tp, text in sorted(schemas.items()):
        places.setdefault(text, []).append([tp.topic, tp.partition])
    return {name: [[text, where] for text, where in places.items()]} if places else {}


def from_json(name: str, data: Mapping[str, Any]) -> dict[TopicPartition, str]:
    """Inverse of `to_json`. Documents of earlier releases have no such entry."""
    return {TopicPartition(*place): text for text, places in data.get(name, ()) for place in places}


def after(
    known: Mapping[TopicPartition, str], before: Mapping[TopicPartition, str], reports: Iterable[PartitionReport]
) -> dict[TopicPartition, str]:
    """What is known when a run is committed.

    Args:
        known: what was known before the run.
        before: what the run began with.
        reports: its results. The schema of a partition that was written without reporting one becomes unknown.
    """
    found = {**known, **before}
    for report in sorted(reports, key=lambda report: report.range.end):
        if report.value_schema:
            found[report.range.topic_partition] = report.value_schema
        elif report.written:
            found.pop(report.range.topic_partition, None)
    return found
