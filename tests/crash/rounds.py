"""One kill round: a connector whose runs are killed, frozen and restarted, and what must hold all the time."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.crash_points import (
    DRIVER_POINTS,
    SKIP,
    SOURCE_DRIVER_POINTS,
    SOURCE_TASK_POINTS,
    TASK_POINTS,
    VARIABLE,
)
from tests.support.copies.s3 import Sink, numbered
from tests.support.kafka_data import delete_topic, produce, produce_transaction
from tests.support.processes.drivers import PROJECT
from tests.support.processes.forking import ForkedProcess

MODULE = "tests.crash.run_in_process"
PARTITIONS = 3
END_S = 90.0
LONGEST_RUN_S = 2.5
LARGE_EVERY = 5
"""Every so many rounds records are large, so that objects have several parts."""
LARGE_BYTES = 400_000
LARGE_FLUSH_SIZE = 15
PART_BYTES = 5 << 20
MANIFEST_FILES = 8
"""Skipped arrivals at a point are drawn below this number: a run stages and publishes about so many files."""
MOST_BATCHES = 6
"""The same for the points of a source's task."""


class Victim:
    """One run in a process group of its own."""

    def __init__(
        self, sink: Sink, environment: dict[str, str] | None = None, *, forked: bool = True, **overrides: Any
    ) -> None:
        merged = {**os.environ, **(environment or {})}
        self._process = ForkedProcess(MODULE, env=merged) if forked else _started_anew(merged)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(sink.spec(**overrides).to_json()).encode() + b"\n")
        self._process.stdin.flush()

    def wait(self) -> RunReport | None:
        """The report, or None if it was killed. Anything else fails the test."""
        out, log = self._process.communicate(timeout=END_S)
        if self._process.returncode == -signal.SIGKILL:
            return None
        assert self._process.returncode == 0, log.decode()[-3000:]
        return RunReport.from_json(json.loads(out.splitlines()[-1]))

    def end_within(self, seconds: float) -> bool:
        """Whether it ended by itself."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def send(self, number: signal.Signals) -> None:
        """Signal the whole group; it may have ended meanwhile."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            self._process.wait(END_S)  # It has ended; the news is on its way.

    def end(self) -> None:
        """Kill what is left of it and close its pipes, also if nobody has waited for it until its end."""
        self.send(signal.SIGKILL)
        self._process.communicate(timeout=END_S)

    @property
    def is_gone(self) -> bool:
        """Whether no process of its group is left."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return False


def _started_anew(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=PROJECT,
        env=environment,
        start_new_session=True,
    )


class Watcher:
    """Looks at the bucket all the time: a visible object never changes and never vanishes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._known: dict[str, tuple[str, str]] = {}
        self._stop = threading.Event()
        self.violations: list[str] = []
        self.looks = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look a last time and stop."""
        self._stop.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self._look()

    def _look(self) -> None:
        found = self._sink.identities()
        for key, identity in self._known.items():
            if found.get(key) != identity:
                self.violations.append(f"{key} was {identity} and is {found.get(key)}")
        self._known.update(found)
        self.looks += 1


@dataclass
class Crashes:
    """Ways to crash a run: what a seed decides, and what has happened so far.

    Attributes:
        seed: decides everything.
        written: records so far.
    """

    _found_by_zombies: ClassVar[tuple[str, ...]] = ()
    """Codes of errors that a run may meet before it finds that another one has taken its place."""

    seed: int
    chance: random.Random = field(init=False)
    written: int = field(init=False, default=0)
    events: list[str] = field(init=False, default_factory=list)
    victims: list[Victim] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    @property
    def story(self) -> str:
        """For the message of a failure."""
        return f"seed {self.seed}: " + ", ".join(self.events)

    def _start(self, environment: dict[str, str] | None = None) -> Victim:
        raise NotImplementedError

    def _kill_at_a_moment(self) -> None:
        moment = self.chance.uniform(0.2, LONGEST_RUN_S)
        self.events.append(f"kill after {moment:.3f} s")
        victim = self._start()
        if not victim.end_within(moment):
            victim.send(signal.SIGKILL)
        self._accept(victim.wait())

    def _freeze(self) -> None:
        moment = self.chance.uniform(0.2, LONGEST_RUN_S)
        self.events.append(f"freeze after {moment:.3f} s, thaw after the next run")
        zombie = self._start()
        if not zombie.end_within(moment):
            zombie.send(signal.SIGSTOP)
            self._accept(self._start().wait())
            zombie.send(signal.SIGCONT)
        # Whatever it meets first, even what its successor has swept away: it says that it was fenced.
        self._accept(zombie.wait(), "run.fenced", *self._found_by_zombies)

    def _accept(self, report: RunReport | None, *errors: str) -> None:
        """A run that was not killed must have done its work, or have been fenced."""
        outcome = "killed" if report is None else report.error["code"] if report.error else report.status
        self.events.append(outcome)
        assert outcome in ("killed", "done", "empty", *errors), f"{self.story}: {report and report.error}"


@dataclass
class Round(Crashes):
    """A round of a sink."""

    sink: Sink

    def play(self) -> None:
        """Crash some runs, then run until all is done, then check everything."""
        watcher = Watcher(self.sink)
        try:
            for _ in range(self.chance.randint(1, 3)):
                self._produce()
                self.chance.choice([self._kill_at_a_point, self._kill_at_a_moment, self._freeze])()
            self._produce()
            self._run_until_empty()
        finally:
            watcher.end()
            for victim in self.victims:
                victim.end()
        assert watcher.violations == [], f"{self.story}: {watcher.violations[:4]}"
        self._check()

    @property
    def is_large(self) -> bool:
        """Whether objects of this round have several parts."""
        return self.seed % LARGE_EVERY == 0

    def _produce(self) -> None:
        # Enough for a file of several parts in each partition.
        count = self.chance.randint(PARTITIONS * LARGE_FLUSH_SIZE if self.is_large else 5, 60)
        rows, _ = numbered(self.written, self.written + count, PARTITIONS)
        if self.is_large:
            rows = [(p, key, self._padded(value)) for p, key, value in rows]
        bootstrap, topic = self.sink.kafka.bootstrap, self.sink.topic
        if self.chance.random() < 0.3:
            produce_transaction(bootstrap, topic, [(0, None, '{"n": -1}')], "abort")
            produce_transaction(bootstrap, topic, rows, "commit")
        else:
            produce(bootstrap, topic, rows)
        self.written += count

    def _padded(self, value: str) -> str:
        """The same object with a member of random text: neither Kafka nor gzip makes it small."""
        return value[:-1] + f', "pad": "{self.chance.randbytes(LARGE_BYTES // 2).hex()}"' + "}"

    def _start(self, environment: dict[str, str] | None = None) -> Victim:
        size = self.chance.randint(LARGE_FLUSH_SIZE, 30) if self.is_large else self.chance.randint(2, 30)
        victim = Victim(self.sink, environment, flush_size=str(size), **self.sink.settings_for_pieces(PART_BYTES))
        self.victims.append(victim)
        return victim

    def _kill_at_a_point(self) -> None:
        point, skip = self.chance.choice([*DRIVER_POINTS, *TASK_POINTS]), 0
        if point in ("publishing", *TASK_POINTS):
            skip = self.chance.randrange(MANIFEST_FILES)
        self.events.append(f"kill at {point}+{skip}")
        self._accept(self._start({VARIABLE: point, SKIP: str(skip)}).wait())

    def _run_until_empty(self) -> None:
        for _ in range(5):
            report = self._start().wait()
            self._accept(report)
            if report is not None and report.status == "empty":
                break
        else:
            raise AssertionError(f"{self.story}: the runs find more and more")
        # One more: what a dead run staged late is swept by the second run after it.
        self._accept(self._start().wait())

    def _check(self) -> None:
        wanted = numbered(0, self.written)[1]
        found = sorted(value["n"] for value in self.sink.values())
        assert found == [value["n"] for value in wanted], self.story
        assert self.sink.uploads() == [], self.story
        assert self.sink.offsets() == log_ends(self.sink), self.story
        assert all(victim.is_gone for victim in self.victims), self.story
        if self.is_large:
            assert self.sink.most_pieces() > 1, self.story
            self._remove()

    def _remove(self) -> None:
        """A thousand rounds of this size would fill the disk."""
        self.sink.remove_all()
        delete_topic(self.sink.kafka.bootstrap, self.sink.topic)


@dataclass
class SourceRound(Crashes):
    """A round of a source."""

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
        assert all(victim.is_gone for victim in self.victims), self.story

    def _produce(self) -> None:
        raise NotImplementedError

    def _check(self) -> None:
        raise NotImplementedError

    def _kill_at_a_point(self) -> None:
        point = self.chance.choice([*SOURCE_DRIVER_POINTS, *SOURCE_TASK_POINTS])
        skip = self.chance.randrange(MOST_BATCHES) if point in SOURCE_TASK_POINTS else 0
        self.events.append(f"kill at {point}+{skip}")
        self._accept(self._start({VARIABLE: point, SKIP: str(skip)}).wait())

    def _double(self) -> None:
        self.events.append("two runs at once")
        for victim in [self._start(), self._start()]:
            self._accept(victim.wait(), "run.fenced", *self._found_by_zombies)

    def _is_last(self, report: RunReport) -> bool:
        return report.status == "empty"

    def _run_until_empty(self) -> None:
        for _ in range(5):
            report = self._start().wait()
            self._accept(report)
            if report is not None and self._is_last(report):
                return
        raise AssertionError(f"{self.story}: the runs find more and more")


def log_ends(sink: Sink) -> dict[int, int]:
    """High watermarks of the connector's topic."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": sink.kafka.bootstrap, "group.id": "watermarks"})
    try:
        return {
            p: consumer.get_watermark_offsets(TopicPartition(sink.topic, p), timeout=10)[1] for p in range(PARTITIONS)
        }
    finally:
        consumer.close()


MakeSink = Callable[..., Sink]
