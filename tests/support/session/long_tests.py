"""The longest tests, which `make test` leaves to `make soak`: tests/long_tests.txt lists them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.session.searching import IS_SOAK

LIST = Path(__file__).parents[2] / "long_tests.txt"


class LongTest(NamedTuple):
    """A line of the list: how the ids of tests begin, and which test or file stands for them."""

    prefix: str
    instead: str


def long_tests() -> list[LongTest]:
    """The list.

    Raises:
        ValueError: a line does not have two parts.
    """
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return [LongTest(*map(str.strip, line.split(";", 1))) for line in lines]


def runs_all(config: pytest.Config) -> bool:
    """Whether long tests run: in a soak, and if the command line names single tests or chooses by marks."""
    return IS_SOAK or bool(config.option.markexpr) or any("::" in arg for arg in config.args)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the long tests among `items`, and remove them unless they run."""
    prefixes = tuple(one.prefix for one in long_tests())
    found = [item for item in items if item.nodeid.startswith(prefixes)]
    for item in found:
        item.add_marker("long")
    if found and not runs_all(config):
        left = set(found)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=found)
