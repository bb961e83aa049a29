"""How long each test takes by itself, and which ones take more than they may.

A test's own time is that of its set-up, call and teardown, without fixtures that others use as well. The times are
written to `.cache/test-durations.json`, where `tests.support.session.scheduling` finds them: the longest tests start
first. A test that needs more than BUDGET_S says so with `@pytest.mark.budget(seconds)`.

On a busy machine the time by the clock says little, so it is only told. The CPU time that a test takes in pytest's own
process says more: a session with a test that is far over its budget in CPU time fails.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.session.searching import EXAMPLES, SOAK

PROJECT = Path(__file__).parents[3]
KEPT = PROJECT / ".cache" / "test-durations.json"
BUDGET_S = 10.0
"""What a test may take unless a marker says otherwise."""
TOLERANCE = 4.0
"""So many times its budget fails the session; less is only told."""
CPU_TOLERANCE = 4.0
"""So many times its budget, in CPU time of pytest's process, fails every session."""
STRICT = "AIRFLOW_CONNECT_BUDGETS"
"""With the value `strict`, tests far over their budget fail the session. `make test` does not set it."""
SLOWNESS = "AIRFLOW_CONNECT_SLOWNESS"
"""How many times slower than a common machine this one is."""
_SHOWN = 25
# Under a load of so many processes a core a test takes so many times as long.
_CORES = os.cpu_count() or 1


class SharedTime:
    """A plugin: time that fixtures of more than one test take, in the phase of the test that waits for them.

    It also measures the CPU time of a phase without theirs.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._seconds = 0.0
        self._shared_cpu_s = 0.0
        self._cpu_since = time.process_time()

    def pytest_runtest_logstart(self) -> None:
        """A test begins: what this process did before, such as collecting, is not its own."""
        self.take_cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """The time of this set-up counts, and later that of the teardown, unless the fixture is a test's own."""
        if fixturedef.scope == "function":
            return (yield)
        # Finalizers run in reverse: what is added first comes after the fixture's own, what is added last before them.
        fixturedef.addfinalizer(self._end)
        self._start()
        try:
            return (yield)
        finally:
            self._end()
            fixturedef.addfinalizer(self._start)

    def take(self) -> float:
        """Seconds since this was last asked."""
        found, self._seconds = self._seconds, 0.0
        return found

    def take_cpu(self) -> float:
        """Seconds of CPU time of this process since this was last asked, without those of such fixtures."""
        now = time.process_time()
        own_s = now - self._cpu_since - self._shared_cpu_s
        self._cpu_since, self._shared_cpu_s = now, 0.0
        return max(0.0, own_s)

    def _start(self) -> None:
        if not self._inside:
            self._since, self._inside_since = time.perf_counter(), time.process_time()
        self._inside += 1

    def _end(self) -> None:
        self._inside -= 1
        if not self._inside:
            self._seconds += time.perf_counter() - self._since
            self._shared_cpu_s += time.process_time() - self._inside_since


def budget_of(item: pytest.Item) -> float:
    """Seconds that a test may take."""
    marker = item.get_closest_marker("budget")
    return float(marker.args[0]) if marker else BUDGET_S


@dataclass(eq=False)  # pytest keeps plugins in sets
class Durations:
    """A plugin of the process where the reports of all processes arrive.

    Attributes:
        is_strict: whether a test far over its budget fails the session.
        kept: file that the times are written to.
    """

    is_strict: bool = False
    kept: Path | None = None
    own_s: dict[str, float] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)
    budgets: dict[str, float] = field(default_factory=dict)
    slowness: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, config: pytest.Config) -> Durations:
        """What a session with these settings keeps. Longer searches and soaks say nothing of `make test`."""
        if any(os.environ.get(name) for name in (EXAMPLES, SOAK)) or config.rootpath != PROJECT:
            return cls()
        return cls(os.environ.get(STRICT) == "strict", KEPT)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test has ended."""
        own_s = max(0.0, report.duration - float(getattr(report, "shared_s", 0.0)))
        self.own_s[report.nodeid] = self.own_s.get(report.nodeid, 0.0) + own_s
        self.cpu_s[report.nodeid] = self.cpu_s.get(report.nodeid, 0.0) + float(getattr(report, "cpu_s", 0.0))
        self.budgets[report.nodeid] = float(getattr(report, "budget_s", BUDGET_S))
        self.slowness[report.nodeid] = max(self.slowness.get(report.nodeid, 1.0), slowness())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the times, beside those of tests that did not run this time."""
        if self.kept is None or not self.own_s:
            return
        merged = {**load(self.kept), **{nodeid: round(seconds, 3) for nodeid, seconds in self.own_s.items()}}
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        draft = self.kept.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(dict(sorted(merged.items(), key=lambda pair: -pair[1])), indent=0))
        draft.replace(self.kept)
        is_over = self.over_cpu_budget() or (self.is_strict and self.over_budget(TOLERANCE))
        if is_over and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell which tests took too long."""
        if not self.kept:
            return
        if failing := self.over_cpu_budget():
            terminalreporter.section(f"tests that fail the session: more than {CPU_TOLERANCE:.0f} times their budget")
            for line in failing:
                terminalreporter.line(line)
        over = self.over_budget()
        if not over:
            return
        terminalreporter.section("tests over their budget")
        for line in over[:_SHOWN]:
            terminalreporter.line(line)
        if len(over) > _SHOWN:
            terminalreporter.line(f"... and {len(over) - _SHOWN} more")
        terminalreporter.line(
            "Make them cheaper, or say with @pytest.mark.budget(seconds) what they need; "
            f"With {STRICT}=strict the session fails above {TOLERANCE:.0f} times a budget."
        )

    def over_budget(self, factor: float = 1.0) -> list[str]:
        """Tests that took more than `factor` times what they may on a machine as busy as this one, the worst first."""
        found = [
            (took_s / budget_s, f"{took_s:.1f} s of {budget_s:.0f} s: {nodeid}")
            for nodeid, took_s in self.own_s.items()
            if took_s > factor * (budget_s := self.budgets[nodeid]) * self.slowness[nodeid]
        ]
        return [line for _, line in sorted(found, reverse=True)]

    def over_cpu_budget(self) -> list[str]:
        """Tests that took more than `CPU_TOLERANCE` times their budget in CPU time of pytest's process."""
        found = [
            (cpu_s / budget_s, f"{cpu_s:.1f} s of CPU time, the budget is {budget_s:.0f} s: {nodeid}")
            for nodeid, cpu_s in self.cpu_s.items()
            if cpu_s > CPU_TOLERANCE * (budget_s := self.budgets[nodeid]) * float(os.environ.get(SLOWNESS) or "1")
        ]
        return [line for _, line in sorted(found, reverse=True)]


def load(path: Path = KEPT) -> dict[str, float]:
    """Seconds by test, of earlier sessions."""
    try:
        return {str(nodeid): float(seconds) for nodeid, seconds in json.loads(path.read_text()).items()}
    except (FileNotFoundError, ValueError):
        return {}


def slowness() -> float:
    """How much longer a test takes now than on a common machine that does nothing else."""
    return max(1.0, os.getloadavg()[0] / _CORES) * float(os.environ.get(SLOWNESS) or "1")
