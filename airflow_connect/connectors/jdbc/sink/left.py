"""What runs have left in the offsets table: the next one notices that the database was set back since.

The offset in the table may be less than the one in Kafka without any loss: it does not move past records that a
transformation drops, nor past the markers of transactions. So runs keep what the table itself had at their end, in the
document that a sink keeps from run to run (api/sink_state.py): `{"v": 1, "left": {topic: {partition: offset}}}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun

NEXT_OFFSET = "next_offset"
"""Member of what a task returns for a partition: the offset that it has left in the table."""
_VERSION, _LEFT = 1, "left"


def left_by_runs(kept: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The offsets that runs have left in the table; {} for the document of another class."""
    if kept.get("v") != _VERSION or not isinstance(kept.get(_LEFT), Mapping):
        return {}
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, offsets in kept[_LEFT].items()
        for number, offset in offsets.items()
    }


def at_plan(run: PlannedRun) -> dict[str, Any]:
    """The document without topics that are gone."""
    gone = run.gone | run.forgotten
    return _document({tp: offset for tp, offset in left_by_runs(run.kept).items() if tp.topic not in gone})


def after(run: CopiedRun) -> dict[str, Any]:
    """The document with what the tasks of a run have left."""
    return _document({**left_by_runs(run.planned.kept), **dict(_of_tasks(run))})


def _of_tasks(run: CopiedRun) -> Iterator[tuple[TopicPartition, int]]:
    for report in run.reports:
        if NEXT_OFFSET in report.details:
            yield report.range.topic_partition, int(report.details[NEXT_OFFSET])


def _document(left: Mapping[TopicPartition, int]) -> dict[str, Any]:
    offsets: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(left.items()):
        offsets.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return {"v": _VERSION, _LEFT: offsets} if offsets else {}
