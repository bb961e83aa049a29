"""What runs have left in the offsets table: the next one notices that the database was set back since.

The offset in the table may be less than the one in Kafka without any loss: it does not move past records that a
transformation drops, nor past the markers of transactions. So runs keep what the table itself had at their end, in the
document that a sink keeps from run to run (api/sink_state.py): `{"v": 1, "left": {topic: {partition: offset}}}`.

With `auto.evolve`, the document has the columns of each table, too: `"columns": {table: [name, ...]}`. A run that dies
or fails after it has added a column can report nothing, and the next one finds the column there. With `auto.create` it
has the run, `"run": run_id`: what it had to say about tables that it has created was said (`OffsetsTable.untold`).

It has the identity of each table, `"identities": {table: id}` (`identity.py`): one that something else has dropped and
created again does not have the records of earlier runs.

`"set_back": {topic: {partition: [offset, start]}}` has the offsets of a database that was set back, and where the run
began, from its plan until a run commits: one that is killed in between has no report. Tasks get
`"seen": {topic: {partition: offset}}`, the offsets in the table at the plan: less than that, and the database has gone
back since. They also get `"earlier": {topic: {partition: start}}`: another client has set the group's offset back.

Where rows are found by keys, it has the topics of each table, `"filled": {table: [topic, ...]}`: records of two topics
with the same key change the same row, and no answer of a database tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink_state import PlannedState
from airflow_connect.connectors.jdbc.sink.identity import merged

if TYPE_CHECKING:
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun

NEXT_OFFSET = "next_offset"
"""Member of what a task returns for a partition: the offset that it has left in the table."""
COLUMNS = "columns"
"""Member of what a task returns for its first partition: the columns of the tables that it has written."""
IDENTITIES = "identities"
"""Member of the same: the identity of the tables that it has written."""
FILLED = "filled"
"""Member of what a task returns for a partition: the tables in which its records have changed rows by their keys."""
_VERSION, _LEFT, _RUN, _SET_BACK, _SEEN, _MISSING = 1, "left", "run", "set_back", "seen", "missing"
_EARLIER = "earlier"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class OffsetsAtPlan:
    """What the offsets table had when the run was planned.

    Attributes:
        set_back: offsets that are before those that runs have left.
        seen: these and all others.
        missing: partitions of which it had none, although runs have left one.
    """

    set_back: Mapping[TopicPartition, int] = field(default_factory=dict)
    seen: Mapping[TopicPartition, int] = field(default_factory=dict)
    missing: Collection[TopicPartition] = ()


def left_by_runs(kept: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The offsets that runs have left in the table; {} for the document of another class."""
    return _offsets_of(kept, _LEFT)


def seen_at_plan(state: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The offsets that the table had when the run was planned; {}: it is not known."""
    return _offsets_of(state, _SEEN)


def set_in_kafka(state: Mapping[str, Any]) -> Collection[TopicPartition]:
    """The partitions whose offset another client has set back in the group."""
    return _places_of(state, _EARLIER).keys()


def _offsets_of(document: Mapping[str, Any], member: str) -> dict[TopicPartition, int]:
    return {partition: int(offset) for partition, offset in _places_of(document, member).items()}


def _places_of(document: Mapping[str, Any], member: str) -> dict[TopicPartition, Any]:
    if document.get("v") != _VERSION or not isinstance(document.get(member), Mapping):
        return {}
    return {
        TopicPartition(topic, int(number)): place
        for topic, places in document[member].items()
        for number, place in places.items()
    }


def columns_of_tables(kept: Mapping[str, Any]) -> dict[str, list[str]]:
    """The columns of each table when a run committed last; {}: unknown."""
    found = kept.get(COLUMNS)
    return dict(found) if kept.get("v") == _VERSION and isinstance(found, Mapping) else {}


def identities_of_tables(kept: Mapping[str, Any]) -> dict[str, str]:
    """The identity of each table when a run committed last; {}: unknown."""
    found = kept.get(IDENTITIES)
    return dict(found) if kept.get("v") == _VERSION and isinstance(found, Mapping) else {}


def topics_of_tables(kept: Mapping[str, Any]) -> dict[str, list[str]]:
    """The topics whose records have changed rows of each table by their keys; {}: unknown."""
    found = kept.get(FILLED)
    return dict(found) if kept.get("v") == _VERSION and isinstance(found, Mapping) else {}


def notes_on_shared(run: CopiedRun, kept: Mapping[str, Any]) -> list[str]:
    """Name the tables of this run that several topics fill by keys; `kept`: the document after it."""
    now = {table for report in run.reports for table in report.details.get(FILLED, ())}
    return [
        f"{table} is filled from {len(topics)} topics ({', '.join(topics[:_SHOWN])}"
        f"{f' and {len(topics) - _SHOWN} more' if topics[_SHOWN:] else ''}), and its rows are found by the keys of"
        " records: if two topics have the same key, their records change and delete the same row, in no order. If keys"
        " can be the same, use a table for each topic, or add a column that tells topics apart to pk.fields."
        for table, topics in sorted(topics_of_tables(kept).items())
        if table in now and len(topics) > 1
    ]


def last_run(kept: Mapping[str, Any]) -> str:
    """The last run that has committed and may have created tables; "": unknown."""
    return str(kept.get(_RUN, "")) if kept.get("v") == _VERSION else ""


def state_at_plan(run: PlannedRun, table: OffsetsAtPlan) -> PlannedState:
    """What tasks and the next run are to know.

    Where the database was set back, the run commits its offsets to the group before it copies: a run that is killed
    may have written beyond the group's offset, and the next one has to give account of all of it.

    Args:
        run: that is planned.
        table: what it had.
    """
    known = at_plan(run)
    starts = {r.topic_partition: r.start for r in run.ranges}
    again = {tp: start for tp, start in starts.items() if tp in run.again and tp in table.set_back}
    by_client = {tp: start for tp, start in starts.items() if tp in run.again and tp not in table.set_back}
    found = {tp: [table.set_back[tp], start] for tp, start in again.items()}
    left = left_by_runs(known)
    missing = {tp: starts.get(tp, left[tp]) for tp in table.missing if tp in left and starts.get(tp, left[tp])}
    earlier = {tp: places for tp, places in _places_of(run.kept, _SET_BACK).items() if tp.topic not in run.gone}
    lacked = {tp: start for tp, start in _offsets_of(run.kept, _MISSING).items() if tp.topic not in run.gone}
    kept = {**known, **_member(_SET_BACK, earlier | found), **_member(_MISSING, lacked | missing)}
    notes = [_earlier_note(tp, *earlier[tp]) for tp in sorted(earlier.keys() - again.keys())]
    notes += [_lacked_note(tp, left[tp], lacked[tp]) for tp in sorted((lacked.keys() & left) - missing.keys())]
    notes += [_missing_note(tp, left[tp]) for tp in sorted(missing.keys() - starts.keys())]
    return PlannedState(
        for_tasks={"v": _VERSION, **known, **_member(_SEEN, table.seen), **_member(_EARLIER, by_client)},
        kept=None if kept == run.kept else kept,
        notes=notes,
        group_offsets=again,
    )


def _earlier_note(partition: TopicPartition, offset: int, start: int) -> str:
    left_out = (
        f"That run began at {start}, because of the group's offset or of offsets.out.of.range, so that the records in"
        f" [{offset}, {start}) are NOT written. If they are not in the database, set the offset of the connector to"
        f" {offset}."
    )
    again = "The records from there on are written again, as far as that run has not done so."
    return (
        f"A run that ended before its commit has found that the database had the records of {partition} up to {offset}"
        " only, and earlier runs had written more: it was set back, such as by a restored backup."
        f" {left_out if start > offset else again}"
    )


def _lacked_note(partition: TopicPartition, left: int, start: int) -> str:
    return (
        f"A run that ended before its commit has found no offset of {partition} in the offsets table, although earlier"
        f" runs had written its records up to {left}: the database is another one, or in an earlier state. That run"
        f" began at offset {start}. If the records before are not in the database, set the offsets of the connector"
        " back, to write them again."
    )


def _missing_note(partition: TopicPartition, left: int) -> str:
    return (
        f"The offsets table has no offset of {partition}, although earlier runs have written its records up to {left}:"
        " the database is another one, or in an earlier state. This run writes nothing of it. If the records are not in"
        " the database, set the offsets of the connector back, to write them again."
    )


def at_plan(run: PlannedRun) -> dict[str, Any]:
    """The document without topics that are gone."""
    gone = run.gone | run.forgotten
    left = {tp: offset for tp, offset in left_by_runs(run.kept).items() if tp.topic not in gone}
    filled = {table: [t for t in topics if t not in gone] for table, topics in topics_of_tables(run.kept).items()}
    tables: dict[str, dict[str, Any]] = {
        COLUMNS: columns_of_tables(run.kept),
        IDENTITIES: identities_of_tables(run.kept),
    }
    return _document(left, tables, last_run(run.kept), filled)


def after(run: CopiedRun, run_id: str) -> dict[str, Any]:
    """The document with what the tasks of a run have left; `run_id`: of a run that may have created tables, or ""."""
    columns = columns_of_tables(run.planned.kept)
    for report in run.reports:
        for table, found in report.details.get(COLUMNS, {}).items():
            columns[table] = sorted({*columns.get(table, ()), *found})
    now: dict[str, str] = {}
    for report in run.reports:
        for table, identity in report.details.get(IDENTITIES, {}).items():
            now[table] = merged(now.get(table, identity), identity)
    consumed = {partition.topic for partition in run.planned.partitions}
    filled = {table: consumed.intersection(found) for table, found in topics_of_tables(run.planned.kept).items()}
    for report in run.reports:
        for table in report.details.get(FILLED, ()):
            filled.setdefault(table, set()).add(report.range.topic)
    tables: dict[str, dict[str, Any]] = {COLUMNS: columns, IDENTITIES: identities_of_tables(run.planned.kept) | now}
    told = _offsets_of(run.planned.kept, _MISSING)  # The report says that the table has no offset of them.
    left = {tp: offset for tp, offset in left_by_runs(run.planned.kept).items() if tp not in told}
    return _document({**left, **dict(_of_tasks(run))}, tables, run_id, filled)


def _of_tasks(run: CopiedRun) -> Iterator[tuple[TopicPartition, int]]:
    for report in run.reports:
        if NEXT_OFFSET in report.details:
            yield report.range.topic_partition, int(report.details[NEXT_OFFSET])


def _document(
    left: Mapping[TopicPartition, int],
    tables: Mapping[str, Mapping[str, Any]],
    run_id: str,
    filled: Mapping[str, Collection[str]],
) -> dict[str, Any]:
    offsets = _member(_LEFT, left)
    topics = {table: sorted(found) for table, found in sorted(filled.items()) if found}
    members = {**tables, _RUN: run_id, FILLED: topics}
    more = {name: found for name, found in members.items() if found}
    return {"v": _VERSION, _LEFT: {}, **offsets, **more} if offsets or more else {}


def _member(name: str, found: Mapping[TopicPartition, Any]) -> dict[str, Any]:
    """What there is of partitions as a member of a document; {} if there is nothing."""
    offsets: dict[str, dict[str, Any]] = {}
    for partition, offset in sorted(found.items()):
        offsets.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return {name: offsets} if offsets else {}
