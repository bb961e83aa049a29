"""One kill round of a mirror: its runs are killed, frozen and doubled, and the copy equals the original at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.runtime.crash_points import SKIP, SOURCE_DRIVER_POINTS, SOURCE_TASK_POINTS, VARIABLE
from airflow_connect.runtime.spec import RunSpec
from tests.crash.rounds import Crashes, Victim
from tests.integration.connectors.mirror.conftest import Mirror

PARTITIONS = 3
MOST_RECORDS = 300
MOST_BATCHES = 6
"""Skipped arrivals at a point are drawn below this number."""


@dataclass
class RoundMirror(Mirror):
    """A mirror whose state has topics of its own: what a frozen run leaves open holds back nobody else."""

    state: str = ""

    def spec(self, **overrides: str) -> RunSpec:
        """As `Mirror.spec`."""
        spec = super().spec(**overrides)
        own = {f"{kind}.storage.topic": f"{self.state}-{kind}" for kind in ("runs", "offset", "config")}
        return replace(spec, worker={**spec.worker, **own})


@dataclass
class MirrorRound(Crashes):
    """A round of a mirror."""

    mirror: RoundMirror

    def play(self) -> None:
        """Crash some runs, then run until nothing is left, then compare."""
        try:
            for _ in range(self.chance.randint(1, 3)):
                self._produce()
                self.chance.choice([self._kill_at_a_point, self._kill_at_a_moment, self._freeze, self._double])()
            self._produce()
            self._run_until_empty()
        finally:
            for victim in self.victims:
                victim.end()
        self._check()

    def _produce(self) -> None:
        rows = [self._row() for _ in range(self.chance.randint(1, MOST_RECORDS))]
        write, topic = self.mirror.write, self.mirror.topic
        if self.chance.random() < 0.3:
            write.transaction(topic, [(0, None, "aborted", 1)], "abort")
            write.transaction(topic, rows)
        else:
            write(topic, rows)

    def _row(self) -> tuple[Any, ...]:
        """A record with everything that a mirror keeps, and a number of its own as its timestamp."""
        self.written += 1
        key, value = (self.chance.choice([None, b"", self.chance.randbytes(20)]) for _ in range(2))
        headers = [("a", self.chance.choice([None, b"", b"1"])) for _ in range(self.chance.choice([0, 0, 2]))]
        return self.chance.randrange(PARTITIONS), key, value, 1_600_000_000_000 + self.written, headers

    def _start(self, environment: dict[str, str] | None = None) -> Victim:
        victim = Victim(
            self.mirror,  # type: ignore[arg-type]
            environment,
            tasks_max=str(self.chance.randint(1, PARTITIONS)),
            transaction_boundary=self.chance.choice(["poll", "interval"]),
            transaction_boundary_interval_ms=str(self.chance.choice([0, 5, 10_000])),
        )
        self.victims.append(victim)
        return victim

    def _kill_at_a_point(self) -> None:
        point = self.chance.choice([*SOURCE_DRIVER_POINTS, *SOURCE_TASK_POINTS])
        skip = self.chance.randrange(MOST_BATCHES) if point in SOURCE_TASK_POINTS else 0
        self.events.append(f"kill at {point}+{skip}")
        self._accept(self._start({VARIABLE: point, SKIP: str(skip)}).wait())

    def _double(self) -> None:
        self.events.append("two runs at once")
        for victim in [self._start(), self._start()]:
            self._accept(victim.wait(), "run.fenced")

    def _run_until_empty(self) -> None:
        for _ in range(5):
            report = self._start().wait()
            self._accept(report)
            if report is not None and report.status == "empty":
                return
        raise AssertionError(f"{self.story}: the runs find more and more")

    def _check(self) -> None:
        copies = self.mirror.copies()
        assert copies == self.mirror.originals(), self.story
        assert sum(map(len, copies.values())) == self.written, self.story
        assert all(victim.is_gone for victim in self.victims), self.story
