"""Kill rounds of Java connectors: their drivers, processes of tasks and JVMs are killed and frozen."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.spec import RunSpec
from tests.crash.java_run import PROCESS_GONE, TASKS
from tests.integration.connectors.mirror.conftest import records_of
from tests.support.copies.java_plugin import JavaConnector
from tests.support.kafka_data import produce, produce_transaction
from tests.support.processes.forking import ForkedProcess
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

MODULE = "tests.crash.java_run"
RUN_S = 150.0
"""A run that takes longer has hung."""
MOMENT_S = 1.5
FREEZE_S = 2.5
LARGE_EVERY = 4
FILES = 5
TOPICS = 2
PARTITIONS = 3
KEYS = 60
JVM_ENDS_WITHIN_S = 15.0
"""Two seconds on an idle machine."""
ALL, PYTHON, DRIVER, TASK = "everything", "Python", "driver", "task"
CONNECTOR_JVM, TASK_JVM = "connector's JVM", "task's JVM"
CODES = {
    ALL: (),
    PYTHON: (),
    DRIVER: (),
    TASK: (PROCESS_GONE,),
    CONNECTOR_JVM: ("java.jvm_gone",),
    TASK_JVM: ("java.jvm_gone",),
}
"""What else than a finished run may come of killing it."""
JVMS = (CONNECTOR_JVM, TASK_JVM)
BLOCKED = "java.blocked"
BLOCKED_MS = 2000
"""How long a JVM may be silent in a run whose JVM stays frozen."""


class _Process(NamedTuple):
    pid: int
    name: str
    parent: int
    session: int


def _processes() -> list[_Process]:
    """All that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        name, _, rest = text.partition("(")[2].rpartition(") ")
        state, parent, _, session = rest.split()[:4]
        if state not in "ZX":
            found.append(_Process(int(path.parent.name), name, int(parent), int(session)))
    return found


class JavaVictim:
    """One run, with a folder for what its JVMs keep on the disk.

    Attributes:
        lost_jvms: JVMs were killed together with whoever started them, so their folders stay.
    """

    lost_jvms = False

    def __init__(self, spec: RunSpec) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="run-", dir="/tmp"))
        self.mark = f"-Dmark={self.folder.name}"
        spec.connector["airflow.java.options"] = self.mark
        self._process = ForkedProcess(MODULE, env={**os.environ, "TMPDIR": str(self.folder)})
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")
        self._process.stdin.flush()

    def end_within(self, seconds: float) -> bool:
        """Whether the driver ended by itself."""
        try:
            self._process.wait(max(seconds, 0.001))
        except subprocess.TimeoutExpired:
            return False
        return True

    def pids(self, what: str) -> list[int]:
        """The processes that are a part of this run now."""
        driver, running = self._process.pid, _processes()
        tasks = [each.pid for each in running if each.parent == driver and each.session == driver]
        jvms = [each for each in running if each.name == "java"]
        match what:
            case "Python":
                return [driver, *tasks]
            case "driver":
                return [driver]
            case "task":
                at_work = {each.parent for each in jvms}
                return [task for task in tasks if task in at_work]
            case "connector's JVM":
                return [each.pid for each in jvms if each.parent == driver]
            case "task's JVM":
                return [each.pid for each in jvms if each.parent in tasks]
        return [driver, *tasks, *(each.pid for each in jvms if each.parent in (driver, *tasks))]

    def outcome(self, killed: bool, story: str) -> RunReport | None:
        """The report, or None if the driver was killed. Anything else fails the round, with all that it printed."""
        try:
            self._process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            stacks = self._stacks()
            raise AssertionError(f"{story}: the run has hung.\n{stacks}") from None
        out, log = self._process.communicate(timeout=RUN_S)
        code, text = self._process.returncode, log.decode(errors="replace")
        if code == -signal.SIGKILL and killed:
            return None
        assert code == 0, f"{story}: ended with {code}, and without a report.\n{text}"
        assert out.strip(), f"{story}: ended without a report.\n{text}"
        return RunReport.from_json(json.loads(out.splitlines()[-1]))

    def check_nothing_is_left(self, story: str) -> None:
        """No JVM, no process, no folder of a JVM."""
        wait_until(lambda: not self._left(), f"{story}: the end of its processes", JVM_ENDS_WITHIN_S)
        if not self.lost_jvms:
            # A JVM that has just been forked may make its folder after Python was killed, and removes it by itself.
            wait_until(lambda: not self._files(), f"{story}: no temporary files", JVM_ENDS_WITHIN_S)
            assert not self._left(), f"{story}: a process has begun late"
        shutil.rmtree(self.folder)

    def _files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def _left(self) -> list[int]:
        return [each.pid for each in _processes() if each.session == self._process.pid or self._is_marked(each.pid)]

    def _is_marked(self, pid: int) -> bool:
        try:
            return self.mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return False

    def _stacks(self) -> str:
        """Where the threads of a run are that does not end; it is ended."""
        ours = self._left()
        for pid in ours:
            _send([pid], signal.SIGUSR1 if not self._is_marked(pid) else signal.SIGQUIT)
        self.end_within(1.0)
        _send(ours, signal.SIGKILL)
        return self._process.communicate(timeout=RUN_S)[1].decode(errors="replace")

    def end(self) -> None:
        """Kill what is left."""
        left = self._left()
        _send(left, signal.SIGKILL)
        self._process.communicate(timeout=RUN_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def _send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


@dataclass
class JavaRound:
    """A round of a connector: runs that are struck, then runs until there is nothing left, then a comparison.

    Attributes:
        seed: decides everything.
    """

    seed: int
    connector: JavaConnector
    chance: random.Random = field(init=False)
    events: list[str] = field(init=False, default_factory=list)
    victims: list[JavaVictim] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    @property
    def story(self) -> str:
        """For the message of a failure."""
        return f"seed {self.seed}: " + ", ".join(self.events)

    def play(self) -> None:
        """All of it."""
        try:
            for _ in range(self.chance.randint(1, 2)):
                self._produce()
                self._strike()
            self._produce()
            self._run_until_empty()
            self._check()
            log.info("%s", self.story)
        finally:
            for victim in self.victims:
                victim.end()

    def _produce(self) -> None:
        raise NotImplementedError

    def _overrides(self) -> dict[str, str]:
        raise NotImplementedError

    def _check(self) -> None:
        raise NotImplementedError

    def _start(self, more: Mapping[str, str] | None = None) -> JavaVictim:
        victim = JavaVictim(self.connector.spec(**self._overrides(), **(more or {})))
        self.victims.append(victim)
        return victim

    def _strike(self) -> None:
        what = self.chance.choice([*CODES])
        kills = self.chance.random() < 0.7
        stays = not kills and what in JVMS and self.chance.random() < 0.5
        moment, frozen_s = self.chance.uniform(0, MOMENT_S), self.chance.uniform(0.1, FREEZE_S)
        how = "kill" if kills else "freeze for good" if stays else f"freeze for {frozen_s:.3f} s"
        self.events.append(f"{how}: {what} after {moment:.3f} s")
        victim = self._start({"airflow_java_block_timeout_ms": str(BLOCKED_MS)} if stays else {})
        pids: list[int] = []
        wait_until(lambda: bool(victim.pids(what)) or victim.end_within(0), what, RUN_S)
        if not victim.end_within(moment):
            pids = victim.pids(what)
            pids = pids if what in (ALL, PYTHON) else pids[-1:]
            victim.lost_jvms = kills and what == ALL
            _send(pids, signal.SIGKILL if kills else signal.SIGSTOP)
            if not kills and not stays:
                victim.end_within(frozen_s)
                _send(pids, signal.SIGCONT)
        self.events[-1] += f" ({len(pids)})"
        codes = (BLOCKED,) if stays else CODES[what] if kills else ()
        self._accept(victim, killed=kills and what in (ALL, PYTHON, DRIVER), codes=codes)

    def _accept(self, victim: JavaVictim, killed: bool = False, codes: Sequence[str] = ()) -> RunReport | None:
        """What may come of a run, and nothing may be left of it."""
        started = time.monotonic()
        report = victim.outcome(killed, self.story)
        outcome = "killed" if report is None else report.error["code"] if report.error else report.status
        self.events.append(outcome)
        allowed = ("killed", "done", "empty", *codes)
        assert outcome in allowed, f"{self.story}: {report and report.error}"
        victim.check_nothing_is_left(f"{self.story} after {time.monotonic() - started:.1f} s")
        return report

    def _run_until_empty(self) -> None:
        for _ in range(4):
            report = self._accept(self._start())
            if report is not None and report.status == "empty":
                return
        raise AssertionError(f"{self.story}: the runs find more and more")


@dataclass
class JavaSourceRound(JavaRound):
    """Files with numbered records, which one or two tasks copy to several topics."""

    rows: int = 0

    @property
    def prefix(self) -> str:
        """Of the topics."""
        return f"{self.connector.name}-"

    def _produce(self) -> None:
        self.rows += self.chance.randint(1, 8_000 if self.seed % LARGE_EVERY == 0 else 400)

    def _overrides(self) -> dict[str, str]:
        large = self.seed % LARGE_EVERY == 0
        return {
            "files": str(FILES),
            "rows": str(self.rows),
            "count": str(TOPICS),
            "prefix": self.prefix,
            # The largest polls are more than a frame.
            "batch": str(self.chance.choice([500, 30_000] if large else [7, 100])),
            "pause": str(self.chance.choice([0, 5, 50])),
            "tasks_max": str(self.chance.randint(1, TASKS)),
            "transaction_boundary": self.chance.choice(["poll", "interval", "connector"]),
            "transaction_boundary_interval_ms": str(self.chance.choice([5, 10_000])),
        }

    def _strike(self) -> None:
        if self.chance.random() < 0.15:
            self._double()
        else:
            super()._strike()

    def _double(self) -> None:
        """A driver is frozen while the next run takes its place."""
        moment = self.chance.uniform(0.2, 2 * MOMENT_S)
        self.events.append(f"freeze driver after {moment:.3f} s, thaw after the next run")
        zombie = self._start()
        if not zombie.end_within(moment):
            frozen = zombie.pids(DRIVER)
            _send(frozen, signal.SIGSTOP)
            self._accept(self._start())
            _send(frozen, signal.SIGCONT)
        self._accept(zombie, codes=("run.fenced",))

    def _check(self) -> None:
        found: dict[str, list[int]] = {str(number): [] for number in range(FILES)}
        for number in range(TOPICS):
            for records in records_of(self.connector.bootstrap, f"{self.prefix}{number}").values():
                for record in records:
                    name, _, row = (record.value or b"").decode().partition(":")
                    found[name].append(int(row))
        for name, copied in found.items():
            assert copied == list(range(self.rows)), f"{self.story}: file {name}: {_difference(copied, self.rows)}"


def _difference(copied: Sequence[int], rows: int) -> str:
    missing = sorted(set(range(rows)) - set(copied))
    doubled = len(copied) - len(set(copied))
    return f"{len(copied)} of {rows} records, missing {missing[:10]}, {doubled} doubled, or in another order"


@dataclass
class JavaSinkRound(JavaRound):
    """A topic whose records are upserted into files named after their keys."""

    folder: Path
    topic: str
    wanted: dict[str, str] = field(default_factory=dict)
    written: int = 0

    def _produce(self) -> None:
        rows: list[tuple[int, str, str | None]] = []
        for _ in range(self.chance.randint(1, 3_000)):
            key, self.written = self.chance.randrange(KEYS), self.written + 1
            value = None if self.chance.random() < 0.05 else str(self.written)
            rows.append((key % PARTITIONS, str(key), value))
        for _, name, value in rows:
            if value is None:
                self.wanted.pop(name, None)
            else:
                self.wanted[name] = value
        bootstrap = self.connector.bootstrap
        if self.chance.random() < 0.3:
            produce_transaction(bootstrap, self.topic, [(0, "0", "aborted")], "abort")
            produce_transaction(bootstrap, self.topic, rows, "commit")
        else:
            produce(bootstrap, self.topic, rows)

    def _overrides(self) -> dict[str, str]:
        return {
            "topics": self.topic,
            "folder": str(self.folder),
            "buffer": str(self.chance.choice([0, 250, 100_000])),
            "pause": str(self.chance.choice([0, 10, 50])),
            "tasks_max": str(self.chance.randint(1, TASKS)),
            "airflow_java_delivery": "idempotent",
        }

    def _check(self) -> None:
        found = {path.name: path.read_text() for path in self.folder.iterdir()}
        wrong = {key for key in {*found, *self.wanted} if found.get(key) != self.wanted.get(key)}
        assert not wrong, f"{self.story}: {[(key, found.get(key), self.wanted.get(key)) for key in sorted(wrong)[:5]]}"
