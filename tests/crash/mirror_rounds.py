"""One kill round of a mirror: its runs are killed, frozen and doubled, and the copy equals the original at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.runtime.spec import RunSpec
from tests.crash.rounds import SourceRound, Victim
from tests.integration.connectors.mirror.conftest import Mirror

PARTITIONS = 3
MOST_RECORDS = 300


@dataclass
class RoundMirror(Mirror):
    """A mirror whose state has topics of its own: what a frozen run leaves open holds back no other test."""

    state: str = ""

    def spec(self, **overrides: str) -> RunSpec:
        """As `Mirror.spec`."""
        spec = super().spec(**overrides)
        own = {f"{kind}.storage.topic": f"{self.state}-{kind}" for kind in ("runs", "offset", "config")}
        return replace(spec, worker={**spec.worker, **own})


@dataclass
class MirrorRound(SourceRound):
    """A round of a mirror."""

    mirror: RoundMirror

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

    def _check(self) -> None:
        copies = self.mirror.copies()
        assert copies == self.mirror.originals(), self.story
        assert sum(map(len, copies.values())) == self.written, self.story
