"""What is wrong in all installations, from what pages have read already: nobody waits for Kafka here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_connect.ui.overview.model import Overview
from airflow_connect.ui.overview.problems import Problem
from airflow_connect.ui.overview.retention import Deadline
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.asking import Console

MENU_FRESH_S = 60.0
"""The number in the menu is on every page: it asks other installations less often than the page of problems."""

_NONE: Mapping[str, Deadline] = {}


@dataclass(frozen=True, slots=True)
class Checked:
    """An installation, as far as it is known.

    Attributes:
        seen: the installation.
        deadlines: None: not asked, because the installation itself is not known yet.
        problems: of its connectors.
    """

    conn_id: str
    seen: Seen[Overview]
    deadlines: Seen[dict[str, Deadline]] | None
    problems: tuple[Problem, ...]

    @property
    def is_waiting(self) -> bool:
        """Whether a first answer is still to come."""
        if self.seen.value is None:
            return not self.seen.problem
        return self.deadlines is None or (self.deadlines.value is None and not self.deadlines.problem)

    @property
    def count(self) -> int:
        """Problems; an installation that does not answer is one."""
        return len(self.problems) + bool(self.seen.problem)


def checked(console: Console, *, fresh_s: float | None = None) -> list[Checked]:
    """Every installation. What is older than `fresh_s` is asked for in the background, and is here the next time."""
    return [_checked(console, conn_id, fresh_s) for conn_id in console.installations.names()]


def _checked(console: Console, conn_id: str, fresh_s: float | None) -> Checked:
    seen = console.known(conn_id, fresh_s)
    if seen.value is None:
        return Checked(conn_id, seen, None, ())
    deadlines = console.deadlines(conn_id, fresh_s=fresh_s, wait_s=0.0)
    known = _NONE if deadlines.value is None else deadlines.value
    return Checked(conn_id, seen, deadlines, console.problems(conn_id, seen.value, known))


def told_in_menu(console: Console) -> str:
    """The number of problems; `3+` if an installation has not been read yet; "" if nothing is known yet."""
    every = checked(console, fresh_s=MENU_FRESH_S)
    count, is_waiting = sum(found.count for found in every), any(found.is_waiting for found in every)
    return "" if is_waiting and not count else f"{count}+" if is_waiting else str(count)
