"""What a run in mode bulk has not copied because a limit has ended it: the next run does not continue there.

Tables and ranges have no position in mode bulk. One that is not complete is read from its beginning by the next run,
which comes no further with the same limit: its last rows, and the tables after it, would never be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import BULK_DONE, BULK_RUN, PROTOCOL, QUERY, TABLE
from airflow_connect.connectors.jdbc.source.offsets.ranges import AFTER, BY, UNTIL
from airflow_connect.counting import names

_TABLE, _RANGE = {PROTOCOL, TABLE}, {PROTOCOL, TABLE, BY, AFTER}


def note_unfinished(
    reached: Collection[str],
    committed: Iterable[tuple[SourcePartition, SourceOffset]],
    loading: Collection[str],
    run_id: str,
    note: Callable[[str], None],
) -> None:
    """Name what the tasks of a limited run in mode bulk have begun and not completed, unless the next run continues.

    Args:
        reached: keys of the limits that have ended tasks.
        committed: every offset of the connector, after the tasks.
        loading: names of tables that are read in ranges, of which some are left.
        run_id: of the run.
        note: adds a sentence to the report.
    """
    if not reached:
        return
    limits = " and ".join(sorted(reached))
    of_run = [(partition, offset) for partition, offset in committed if offset.get(BULK_RUN) == run_id]
    whole = [p for p, offset in of_run if (set(p) == _TABLE or QUERY in p) and not offset.get(BULK_DONE)]
    tables = {str(p[TABLE]) for p in whole if TABLE in p}
    if whole:
        note(
            f"{limits} ended the copy of {_listed(tables)} before its end. In mode bulk, the next run"
            " does not continue there: it begins again with the first row of the first table. With the same limit, it"
            " copies the same rows again, and the rows after them, and tables that come after these, are NEVER copied."
            " Remove the limit, or use another mode."
        )
    complete = {str(p[TABLE]) for p, offset in of_run if set(p) == _RANGE and UNTIL in offset}
    begun = {str(p[TABLE]) for p, _ in of_run if set(p) == _RANGE}.intersection(loading)
    if begun - complete:
        note(
            f"{limits} ended the run before any range of {_listed(begun - complete)} was complete. In mode"
            " bulk, the next run begins such a range again: with the same limit, it copies the same rows again, and the"
            " rows after them are NEVER copied. Raise the limit, or remove it."
        )
    if begun & complete:
        note(
            f"{limits} ended the run before all ranges of {_listed(begun & complete)} were complete. In"
            " mode bulk, the next run continues with the others only if it begins within a day after the first one."
        )


def _listed(found: Collection[str]) -> str:
    tables = sorted(found)
    if not tables:
        return "the query"
    return f"the {'table' if len(tables) == 1 else 'tables'} {names(tables)}"
