"""Which tests a process gets at once, and in what order: the longest first, so that all processes end together.

A unit of work is a test, or those tests that share a fixture which is dear to make twice: a file's, a folder's.
Whatever is short goes by file.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.support.session.durations import BUDGET_S, budget_of, load

ROOT = "tests"
ALONE_S = 1.0
"""A test that takes longer is a unit of its own, if it can be."""
KNOWN = 1
"""Tests that a process knows beside the one that it runs: one, so that a long test holds up one other at most."""
CHEAP = frozenset({"executors_find_the_tests", "recorded", "schema_registry"})
"""Fixtures of a folder's session that cost nothing to make again."""
_ROOTS = ("", ROOT)


def in_order(items: list[pytest.Item]) -> dict[str, str]:
    """Sort tests by the time of their unit of work, and return the unit of each."""
    known = load()
    seconds = {item.nodeid: _estimate(item, known) for item in items}
    units = {item.nodeid: _unit(item, seconds[item.nodeid]) for item in items}
    totals: dict[str, float] = defaultdict(float)
    for nodeid, unit in units.items():
        totals[unit] += seconds[nodeid]
    items.sort(key=lambda item: (-totals[units[item.nodeid]], units[item.nodeid]))  # stable within a unit
    return units


def _estimate(item: pytest.Item, known: dict[str, float]) -> float:
    if item.nodeid in known:
        return known[item.nodeid]
    if item.get_closest_marker("budget"):
        return budget_of(item) / 2
    return 0.03 if "tests/unit" in item.nodeid else BUDGET_S / 10


def _unit(item: pytest.Item, seconds: float) -> str:
    file = item.nodeid.partition("::")[0]
    shared = [file] if seconds < ALONE_S else []
    for definitions in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
        fixture = definitions[-1]
        if fixture.argname in CHEAP or fixture.scope == "function":
            continue
        if fixture.scope in ("module", "class") or fixture.baseid == file:
            shared.append(file)
        elif fixture.baseid not in _ROOTS:
            shared.append(fixture.baseid)
    # The shortest is the folder that holds the others.
    return min(shared, key=len, default=item.nodeid)


def write_units(folder: Path, units: dict[str, str]) -> None:
    """Tell the controller, which does not collect; every process tells it the same."""
    draft = folder / f"units-{os.getpid()}.json"
    draft.write_text(json.dumps(units))
    draft.replace(folder / "units.json")


class LongestFirst(LoadScopeScheduling):
    """Hands out units of work in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: object, folder: Path) -> None:
        """`folder`: where the processes write their units."""
        super().__init__(config, log)  # type: ignore[arg-type]
        config.option.loadscopereorder = False
        self._folder = folder
        self._units: dict[str, str] | None = None
        self._indexes: dict[str, int] = {}

    def _split_scope(self, nodeid: str) -> str:
        if self._units is None:
            self._units = json.loads((self._folder / "units.json").read_text())
        return self._units[nodeid]

    def remove_node(self, node: WorkerController) -> str | None:
        """A process has died, or is done: return the test that it died in. Others run the rest, but not that test."""
        workload = self.assigned_work.pop(node)
        left = [(unit, nodeid) for unit in workload.values() for nodeid, is_done in unit.items() if not is_done]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({scope: unit for scope, unit in workload.items() if not all(unit.values())})
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _reschedule(self, node: WorkerController) -> None:
        """Give a process so much that it goes on: it runs a test when it knows the next, or that there is none."""
        if node.shutting_down or node not in self.registered_collections:
            return
        while self.workqueue and self._pending_of(self.assigned_work[node]) <= KNOWN:
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        # The base class looks up each test in a list of ten thousand.
        if not self._indexes:
            self._indexes = {nodeid: index for index, nodeid in enumerate(self.collection or ())}
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][scope] = unit
        node.send_runtest_some([self._indexes[nodeid] for nodeid, is_done in unit.items() if not is_done])
