"""What is wrong with connectors, and in which order a person has to look at it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_connect.ui.overview.model import Connector, Overview, Position, Run, State
from airflow_connect.ui.overview.problems import Trouble, problems_of
from airflow_connect.ui.overview.retention import Deadline

HOUR = 3_600_000
NOW = 1_000_000 * HOUR
WEEK = 7 * 24 * HOUR


def connector(name: str, state: State = State.CURRENT, **more: object) -> Connector:
    return Connector(name, "sink", {}, state, **more)  # type: ignore[arg-type]


def found(*connectors: Connector, deadlines: Mapping[str, Deadline] | None = None) -> list[tuple[str, list[Trouble]]]:
    overview = Overview(NOW, {c.name: c for c in connectors})
    return [(p.connector.name, list(p.troubles)) for p in problems_of(overview, deadlines or {}, NOW)]


def test_the_worst_comes_first_and_what_is_well_is_left_out() -> None:
    lost = connector("d", positions=(Position("t", 0, 5, 20, 20, 30), Position("t", 1, None, 20, 20, 30)))
    dead = connector("a", runs=(Run("r2", "empty", 5, 6), Run("r1", "done", 1, 2, records=1, dead_lettered=2)))
    every = (
        dead,
        connector("b", State.LATE),
        connector("c"),
        lost,
        connector("e", State.FAILED, problem="Why."),
        connector("f", problem="The entry of run r cannot be read."),
        connector("g", State.PAUSED),
    )
    assert found(*every) == [
        ("e", [Trouble.FAILED]),
        ("d", [Trouble.LOST]),
        ("b", [Trouble.LATE]),
        ("f", [Trouble.UNREADABLE]),
        ("a", [Trouble.DEAD_LETTERS]),
    ]
    (problem,) = problems_of(Overview(NOW, {"d": lost}), {}, NOW)
    assert problem.lost == 15


@pytest.mark.parametrize(
    ("left", "retention", "urgency"),
    [
        (-HOUR, WEEK, "bad"),
        (23 * HOUR, WEEK, "bad"),
        (25 * HOUR, WEEK, "warn"),
        (42 * HOUR, WEEK, "quiet"),
        (25 * HOUR, 26 * HOUR, "quiet"),
    ],
)
def test_a_loss_is_a_problem_when_it_is_near(left: int, retention: int, urgency: str) -> None:
    deadline = Deadline("t", "a", "t-0", NOW + left, retention)
    assert deadline.urgency(NOW) == urgency
    wanted = [] if urgency == "quiet" else [("a", [Trouble.LOSING])]
    assert found(connector("a"), connector("b"), deadlines={"t": deadline}) == wanted


def test_one_connector_with_several_troubles_is_one_problem() -> None:
    near, far = Deadline("t", "a", "t-0", NOW + HOUR, WEEK), Deadline("u", "a", "u-0", NOW + WEEK, WEEK)
    failed = connector("a", State.FAILED, problem="Why.", runs=(Run("r", "done", 1, 2, dead_lettered=3),))
    assert found(failed, deadlines={"u": far, "t": near}) == [
        ("a", [Trouble.FAILED, Trouble.LOSING, Trouble.DEAD_LETTERS])
    ]
    (problem,) = problems_of(Overview(NOW, {"a": failed}), {"u": far, "t": near}, NOW)
    assert (problem.deadlines, problem.letters.last) == ((near, far), 3)


@pytest.mark.parametrize(
    ("dead", "trouble"),
    [
        ((0, 5, 5, 5), None),
        ((4,), Trouble.DEAD_LETTERS),
        ((4, 0, 9), Trouble.DEAD_LETTERS),
        ((4, 4), Trouble.DEAD_LETTERS),
        ((3, 4, 0, 1), Trouble.DEAD_LETTERS),
        ((5, 4), Trouble.GROWING),
        ((1, 4, 2), Trouble.GROWING),
    ],
)
def test_dead_letters_that_become_more_are_told_from_a_single_event(
    dead: tuple[int, ...], trouble: Trouble | None
) -> None:
    """`dead`: dead letters of the runs that have read records, the newest first; others are between them."""
    runs: list[Run] = []
    for number, count in enumerate(dead):
        at = 1000 - 10 * number
        runs += [Run(f"r{at}", "done", at, at + 1, records=1, dead_lettered=count), Run(f"e{at}", "empty", at - 5, at)]
    assert found(connector("a", runs=tuple(runs))) == ([("a", [trouble])] if trouble else [])
