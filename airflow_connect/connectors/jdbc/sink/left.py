"""What runs have left in the offsets table: the next one notices that the database was set back since.

The offset in the table may be less than the one in Kafka without any loss: it does not move past records that a
transformation drops, nor past the markers of transactions. So runs keep what the table itself had at their end, in the
document that a sink keeps from run to run (api/sink_state.py): `{"v": 1, "left": {topic: {partition: offset}}}`.

With `auto.evolve`, the document has the columns of each table, too: `"columns": {table: [name, ...]}`. A run that dies
or fails after it has added a column can report nothing, and the next one finds the column there. With `auto.create` it
has the run, `"run": run_id`: what it had to say about tables that it has created was said (`OffsetsTable.untold`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun

NEXT_OFFSET = "next_offset"
"""Member of what a task returns for a partition: the offset that it has left in the table."""
COLUMNS = "columns"
"""Member of what a task returns for its first partition: the columns of the tables that it has written."""
_VERSION, _LEFT, _RUN = 1, "left", "run"


def left_by_runs(kept: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The offsets that runs have left in the table; {} for the document of another class."""
    if kept.get("v") != _VERSION or not isinstance(kept.get(_LEFT), Mapping):
        return {}
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, offsets in kept[_LEFT].items()
        for number, offset in offsets.items()
    }


def columns_of_tables(kept: Mapping[str, Any]) -> dict[str, list[str]]:
    """The columns of each table when a run committed last; {}: unknown."""
    found = kept.get(COLUMNS)
    return dict(found) if kept.get("v") == _VERSION and isinstance(found, Mapping) else {}


def last_run(kept: Mapping[str, Any]) -> str:
    """The last run that has committed and may have created tables; "": unknown."""
    return str(kept.get(_RUN, "")) if kept.get("v") == _VERSION else ""


def at_plan(run: PlannedRun) -> dict[str, Any]:
    """The document without topics that are gone."""
    gone = run.gone | run.forgotten
    left = {tp: offset for tp, offset in left_by_runs(run.kept).items() if tp.topic not in gone}
    return _document(left, columns_of_tables(run.kept), last_run(run.kept))


def after(run: CopiedRun, run_id: str) -> dict[str, Any]:
    """The document with what the tasks of a run have left; `run_id`: of a run that may have created tables, or ""."""
    columns = columns_of_tables(run.planned.kept)
    for report in run.reports:
        for table, found in report.details.get(COLUMNS, {}).items():
            columns[table] = sorted({*columns.get(table, ()), *found})
    return _document({**left_by_runs(run.planned.kept), **dict(_of_tasks(run))}, columns, run_id)


def _of_tasks(run: CopiedRun) -> Iterator[tuple[TopicPartition, int]]:
    for report in run.reports:
        if NEXT_OFFSET in report.details:
            yield report.range.topic_partition, int(report.details[NEXT_OFFSET])


def _document(left: Mapping[TopicPartition, int], columns: Mapping[str, list[str]], run_id: str) -> dict[str, Any]:
    offsets: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(left.items()):
        offsets.setdefault(partition.topic, {})[str(partition.partition)] = offset
    more = {**({COLUMNS: dict(columns)} if columns else {}), **({_RUN: run_id} if run_id else {})}
    return {"v": _VERSION, _LEFT: offsets, **more} if offsets or more else {}
