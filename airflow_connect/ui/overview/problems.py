"""What is wrong in an installation: pure functions of what was read of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from airflow_connect.ui.overview.model import Connector, Overview, State
from airflow_connect.ui.overview.retention import Deadline


class Trouble(StrEnum):
    """What can be wrong with a connector, the worst first: pages sort by this order."""

    FAILED = "Failed"
    LOST = "Has lost records"
    LOSING = "Loses records soon"
    LATE = "Late"
    UNREADABLE = "History cannot be read"
    DEAD_LETTERS = "Dead letters"


@dataclass(frozen=True, slots=True)
class Problem:
    """A connector that needs somebody.

    Attributes:
        troubles: the worst first.
        lost: offsets that Kafka deleted before they were copied.
        deadlines: of topics of which this connector is the slowest reader, the first one first; also those far away.
        dead_letters: of the last run that has read records.
    """

    connector: Connector
    troubles: tuple[Trouble, ...]
    lost: int = 0
    deadlines: tuple[Deadline, ...] = ()
    dead_letters: int = 0


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
    dead = connector.last_copy.dead_lettered if connector.last_copy else 0
    is_there = {
        Trouble.FAILED: connector.state is State.FAILED,
        Trouble.LOST: lost > 0,
        Trouble.LOSING: any(deadline.urgency(now_ms) != "quiet" for deadline in deadlines),
        Trouble.LATE: connector.state is State.LATE,
        Trouble.UNREADABLE: bool(connector.problem) and connector.state is not State.FAILED,
        Trouble.DEAD_LETTERS: dead > 0,
    }
    return Problem(connector, tuple(t for t in Trouble if is_there[t]), lost, deadlines, dead)
