"""Which tables a run reads first, so that a limit (`run.max.*`) does not end each run before the same ones.

A task reads its tables one after the other. If those in front always have as many new rows as a limit allows, a run in
a fixed order never reaches the others. So a limited run keeps, for each table with new rows, a hash of its offset (of
those of its ranges) in the order in which it reads them: `{"turns": [[table, hash], ...]}`. The next run begins with
those whose offsets are still the same. Mode bulk has no offsets to go on from; see `unfinished.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.offsets.positions import PROTOCOL, TABLE
from airflow_connect.connectors.jdbc.source.offsets.ranges import AFTER, BY
from airflow_connect.counting import agreeing, names

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceOffset, SourcePartition
    from airflow_connect.connectors.jdbc.source.work import Item

TURNS = "turns"
_LIMITS = ("run.max.records", "run.max.bytes", "run.max.seconds")
_MOST_KEPT = 3_000
"""Tables; with their names, that is far below the 1 MB of a record."""


class Turns:
    """The order of the tables of a run."""

    def __init__(
        self,
        config: Mapping[str, str],
        kept: Mapping[str, Any],
        committed: Iterable[tuple[SourcePartition, SourceOffset]],
    ) -> None:
        """Read what the last run has left.

        Args:
            config: of the connector.
            kept: the document of the last run.
            committed: every offset of the connector.
        """
        self._is_limited = any(config.get(key, "").strip() for key in _LIMITS)
        self._waited = {name: (place, own) for place, (name, own) in enumerate(kept.get(TURNS, ()))}
        self._now = _hashes(committed)

    def rank(self, item: Item) -> int:
        """A number by which the items of a task are sorted: first the tables that the last run did not reach."""
        place, own = self._waited.get(_name(item), (0, None))
        was_left = self._is_limited and own == self._now.get(_name(item), "")
        return place - _MOST_KEPT if was_left else 0

    def document(self, waiting: Iterable[Item]) -> dict[str, Any]:
        """The member of the document for the next run; {} without a limit. `waiting`: tables with new rows."""
        tables = [item for item in waiting if item.table is not None] if self._is_limited else []
        if len(tables) < 2:
            return {}
        ordered = sorted(tables, key=self.rank)[:_MOST_KEPT]
        return {TURNS: [[_name(item), self._now.get(_name(item), "")] for item in ordered]}


def note_left(
    kept: Mapping[str, Any], committed: Iterable[tuple[SourcePartition, SourceOffset]], reached: Collection[str]
) -> Sequence[str]:
    """A sentence about the tables that a limit has ended the run before; [] if there are none.

    Args:
        kept: the document of the run.
        committed: every offset of the connector, after the tasks.
        reached: keys of the limits that have ended tasks.
    """
    now = _hashes(committed)
    left = [name for name, own in kept.get(TURNS, ()) if own == now.get(name, "")]
    if not reached or not left:
        return ()
    tables = f"the {'table' if len(left) == 1 else 'tables'} {names(left)}"
    note = (
        f"{' and '.join(sorted(reached))} ended the run before it had read anything of {tables}, which"
        f" {agreeing(len(left), 'have')} new rows. The next run begins with {'it' if len(left) == 1 else 'them'}."
    )
    return (note,)


def _name(item: Item) -> str:
    return "" if item.table is None else str(item.partition[TABLE])


def _hashes(committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> dict[str, str]:
    """A hash of the offsets of each table, of those of its ranges while they are loaded."""
    found: dict[str, list[str]] = {}
    for partition, offset in committed:
        if TABLE in partition and set(partition) <= {PROTOCOL, TABLE, BY, AFTER}:
            own = repr((sorted(partition.items()), sorted(offset.items())))
            found.setdefault(str(partition[TABLE]), []).append(own)
    return {name: hashlib.sha256("\n".join(sorted(own)).encode()).hexdigest()[:16] for name, own in found.items()}
