"""The schema that each topic-partition of a run starts with, and the one that it ends with, as text of JsonConverter.

`null` means that no schema is known, and that none has to be searched for. The schema comes from what the last run
kept, or else from the last published file: of another connector, of an earlier release, or of a time without
`schema.compatibility`. Source: Confluent's HDFS sink (TopicPartitionWriter), which reads the last file at every start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import PlannedRun
    from airflow_connect.documents.run import PartitionReport

NOTHING = "null"
OF_LAST_FILE = "value_schema"
"""Member of a task's document about a range: the schema of its last file; absent if the next run does not need it."""


def to_json(name: str, schemas: Mapping[TopicPartition, str]) -> dict[str, Any]:
    """The member `name` of a document: `[[schema, [[topic, partition], ...]], ...]`; no member for no schemas.

    Documents hold each text once, because many partitions of a topic have the same schema.
    """
    places: dict[str, list[list[Any]]] = {}
    for tp, text in sorted(schemas.items()):
        places.setdefault(text, []).append([tp.topic, tp.partition])
    return {name: [[text, where] for text, where in places.items()]} if places else {}


def from_json(name: str, data: Mapping[str, Any]) -> dict[TopicPartition, str]:
    """Inverse of `to_json`."""
    return {TopicPartition(*place): text for text, places in data.get(name, ()) for place in places}


def before(
    known: Mapping[TopicPartition, str],
    run: PlannedRun,
    last_schemas: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, str] | None],
) -> dict[TopicPartition, str]:
    """The schema that each partition starts with; {} if the sink continues with none.

    Partitions that are read again, because offsets were set back or the topic was recreated, start without one.

    Args:
        known: what earlier runs have kept.
        run: what is going to be copied.
        last_schemas: finds the schemas of the last published files; None: tasks start without any.

    Raises:
        ConnectError: the store refused, or did not answer; or a file cannot be read.
    """
    wanted = list(dict.fromkeys(r.topic_partition for r in run.ranges))
    again = {tp for tp in wanted if tp in run.again or tp.topic in run.gone}
    found = last_schemas([tp for tp in wanted if tp not in known and tp not in again])
    if found is None:
        return {}
    every = {**found, **known, **dict.fromkeys(again, NOTHING)}
    return {tp: every.get(tp, NOTHING) for tp in wanted}


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
        text = report.details.get(OF_LAST_FILE, "")
        if text:
            found[report.range.topic_partition] = text
        elif report.written:
            found.pop(report.range.topic_partition, None)
    return found
