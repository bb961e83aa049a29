"""What is wrong in an installation: pure functions of what was read of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from airflow_connect.ui.overview.model import Connector, Overview, Run, State
from airflow_connect.ui.overview.retention import Deadline

GROWING_RUNS = 3
"""A queue into which so many runs in a row have written grows."""


class Trouble(StrEnum):
    """What can be wrong with a connector, the worst first: pages sort by this order."""

    FAILED = "Failed"
    LOST = "Has lost records"
    LOSING = "Loses records soon"
    LATE = "Late"
    UNREADABLE = "History cannot be read"
    GROWING = "More dead letters"
    DEAD_LETTERS = "Dead letters"


@dataclass(frozen=True, slots=True)
class Letters:
    """The last runs of a connector that have read records, as far as each of them has written dead letters.

    Attributes:
        runs: the newest first, without a gap; () if the last one has written none.
    """

    runs: tuple[Run, ...] = ()

    @property
    def last(self) -> int:
        """Of the last run that has read records."""
        return self.runs[0].dead_lettered if self.runs else 0

    @property
    def total(self) -> int:
        """Of all of them."""
        return sum(run.dead_lettered for run in self.runs)

    @property
    def are_growing(self) -> bool:
        """Whether the last run wrote more than the one before, or several in a row have written some."""
        return len(self.runs) >= GROWING_RUNS or (len(self.runs) > 1 and self.last > self.runs[1].dead_lettered)


@dataclass(frozen=True, slots=True)
class Problem:
    """A connector that needs somebody.

    Attributes:
        troubles: the worst first.
        lost: offsets that Kafka deleted before they were copied.
        deadlines: of topics of which this connector is the slowest reader, the first one first; also those far away.
        letters: runs with dead letters.
    """

    connector: Connector
    troubles: tuple[Trouble, ...]
    lost: int = 0
    deadlines: tuple[Deadline, ...] = ()
    letters: Letters = Letters()


def problems_of(overview: Overview, deadlines: Mapping[str, Deadline], now_ms: int) -> list[Problem]:
    """Connectors that have failed, are late, lose records or had dead letters; the worst first."""
    by_connector: dict[str, list[Deadline]] = {}
    for deadline in sorted(deadlines.values(), key=lambda d: d.at_ms):
        by_connector.setdefault(deadline.connector, []).append(deadline)
    every = (_problem(c, tuple(by_connector.get(c.name, ())), now_ms) for c in overview.connectors.values())
    found = [problem for problem in every if problem.troubles]
    order = list(Trouble)
    return sorted(found, key=lambda p: (order.index(p.troubles[0]), p.connector.name))


def _problem(connector: Connector, deadlines: tuple[Deadline, ...], now_ms: int) -> Problem:
    lost = sum(
        p.beginning - p.committed for p in connector.positions if p.committed is not None and p.committed < p.beginning
    )
    letters = _letters_of(connector)
    is_there = {
        Trouble.FAILED: connector.state is State.FAILED,
        Trouble.LOST: lost > 0,
        Trouble.LOSING: any(deadline.urgency(now_ms) != "quiet" for deadline in deadlines),
        Trouble.LATE: connector.state is State.LATE,
        Trouble.UNREADABLE: bool(connector.problem) and connector.state is not State.FAILED,
        Trouble.GROWING: letters.are_growing,
        Trouble.DEAD_LETTERS: letters.last > 0 and not letters.are_growing,
    }
    return Problem(connector, tuple(t for t in Trouble if is_there[t]), lost, deadlines, letters)


def _letters_of(connector: Connector) -> Letters:
    """The runs in a row, up to the last one, that have written dead letters."""
    copied = (run for run in connector.runs if run.read)
    return Letters(tuple(takewhile(lambda run: run.dead_lettered, copied)))
