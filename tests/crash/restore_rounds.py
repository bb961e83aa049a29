"""One kill round of a restore: its runs are killed, frozen and doubled, and the topic equals the backup at the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from airflow_connect.runtime.spec import RunSpec
from tests.crash.rounds import SourceRound, Victim
from tests.support.copies.backups import TIME_MS, record, write_file
from tests.support.copies.restore import Restore, Stored, stored

PARTITIONS = 3
MOST_RECORDS = 300
DIRECTORIES = ("hour=01", "hour=02", "hour=03")


@dataclass
class RoundRestore(Restore):
    """A restore whose state has topics of its own: what a frozen run leaves open holds back no other test."""

    state: str = ""
    folder: Path = Path()

    def spec(self, **overrides: str) -> RunSpec:
        """As `Restore.spec`."""
        spec = super().spec(**overrides)
        if "mode" in self.config:  # topics are chosen by an expression
            connector = {key: value for key, value in spec.connector.items() if key not in ("topics", "topic.rename")}
            spec = replace(spec, connector=connector)
        own = {f"{kind}.storage.topic": f"{self.state}-{kind}" for kind in ("runs", "offset", "config")}
        return replace(spec, worker={**spec.worker, **own})


@dataclass
class RestoreRound(SourceRound):
    """A round of a restore."""

    # Its offsets are older than what its successor has restored: the topic is not empty. It writes nothing.
    _found_by_zombies: ClassVar[tuple[str, ...]] = ("restore.target",)

    restore: RoundRestore
    expected: list[Stored] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)

    def _produce(self) -> None:
        """Add files to the backup: those of several directories interleave, as an hourly sink writes them."""
        for partition in range(PARTITIONS):
            offset = self.ends.get(partition, 0)
            files: dict[str, list[dict[str, Any]]] = {}
            for _ in range(self.chance.randint(1, MOST_RECORDS // PARTITIONS)):
                one = self._record(partition, offset)
                files.setdefault(self.chance.choice(DIRECTORIES), []).append(one)
                headers = tuple((header["key"], header["value"]) for header in one["headers"])
                self.expected.append(Stored(partition, one["key"], one["value"], one["timestamp"], headers))
                offset += self.chance.choice([1, 1, 3])
            self.ends[partition] = offset
            for directory, records in files.items():
                write_file(self.restore.folder / "topics", records, directory)

    def _record(self, partition: int, offset: int) -> dict[str, Any]:
        self.written += 1
        key, value = (self.chance.choice([None, b"", self.chance.randbytes(20)]) for _ in range(2))
        headers = [
            {"key": b"a\xff", "value": self.chance.choice([None, b"", b"1"])}
            for _ in range(self.chance.choice([0, 0, 2]))
        ]
        stamp = TIME_MS + self.written
        return record(offset, value, "t", partition, key=key, headers=headers, timestamp=stamp)

    def _start(self, environment: dict[str, str] | None = None) -> Victim:
        victim = Victim(
            self.restore,  # type: ignore[arg-type]
            environment,
            **{
                "tasks.max": str(self.chance.randint(1, PARTITIONS)),
                "transaction.boundary": self.chance.choice(["poll", "interval"]),
                "transaction.boundary.interval.ms": str(self.chance.choice([0, 5, 10_000])),
            },
        )
        self.victims.append(victim)
        return victim

    def _check(self) -> None:
        found = stored(self.restore.bootstrap, self.restore.target)
        assert found == sorted(self.expected, key=lambda one: one.partition), self.story
        assert len(found) == self.written, self.story
