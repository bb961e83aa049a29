"""Three workers that are killed, ended, frozen and started at random: no record is lost, doubled or stuck.

20 rounds, 200 with AIRFLOW_CONNECT_SOAK=1. The seed changes every day of the soak; AIRFLOW_CONNECT_SEED repeats a
failure.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.conftest import MakeTopic, TopicProducer
from tests.support.processes.forked_worker import ForkedWorker, free_port
from tests.support.servers.rest import STRINGS, worker_of
from tests.support.session.searching import IS_SOAK, seed_day
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.integration, pytest.mark.budget(40)]

ROUNDS = 200 if IS_SOAK else 20
SEED = int(os.environ.get("AIRFLOW_CONNECT_SEED") or seed_day().toordinal())
CONNECTORS = 5
WORKERS = 3
LONGEST_ROUND_S = 0.4
STUCK_S = 60.0
QUICK = {"session.timeout.ms": "1000", "heartbeat.interval.ms": "200", "run.interval.seconds": "1"}


class Fleet:
    """Workers at three addresses, of which at least one lives after each round."""

    def __init__(self, worker: dict[str, str], chance: random.Random) -> None:
        self._worker, self._chance = worker, chance
        self._workers: list[ForkedWorker | None] = [None] * WORKERS
        self._ports = [free_port() for _ in range(WORKERS)]
        self._frozen: dict[int, ForkedWorker] = {}
        self.ended: list[ForkedWorker] = []
        self.kills = self.freezes = 0

    @property
    def living(self) -> list[ForkedWorker]:
        """Workers that work: neither told to end nor frozen."""
        return [w for slot, w in enumerate(self._workers) if w is not None and slot not in self._frozen]

    def change(self) -> None:
        """Kill, end, freeze, let go on or start one."""
        slot = self._chance.randrange(WORKERS)
        worker = self._workers[slot]
        if slot in self._frozen:
            self._frozen.pop(slot).signal(signal.SIGCONT)
        elif worker is None:
            if (
                self._chance.random() < 0.3
            ):  # Others come back with the address of a worker that may still count as alive.
                self._ports[slot] = free_port()
            self._workers[slot] = ForkedWorker(self._worker, self._ports[slot])
        elif len(self.living) > 1 and self._chance.random() < 0.3:
            worker.signal(signal.SIGSTOP)
            self._frozen[slot] = worker
            self.freezes += 1
        elif len(self.living) > 1:
            self._workers[slot] = None
            self.ended.append(worker)
            self.kills += 1
            if self._chance.random() < 0.2:
                worker.signal(signal.SIGTERM)
                worker.printed()
            else:
                worker.kill()

    def thaw(self) -> None:
        """Let all frozen ones go on."""
        for worker in self._frozen.values():
            worker.signal(signal.SIGCONT)
        self._frozen.clear()

    def end(self) -> None:
        """End all."""
        self.thaw()
        for worker in self.living:
            with worker:
                pass
            self.ended.append(worker)


def test_workers_that_are_killed_at_random_copy_every_record_once(
    kafka, unique_name, make_topic: MakeTopic, produce: TopicProducer, tmp_path: Path
):
    chance = random.Random(SEED)
    strings = {"key.converter": STRINGS, "value.converter": STRINGS}
    worker = {**worker_of(kafka.bootstrap, unique_name), **strings, **QUICK, "runs.storage.replication.factor": "1"}
    topics = {f"{unique_name}-{number}": make_topic(partitions=1) for number in range(CONNECTORS)}
    wanted: dict[str, list[str]] = {name: [] for name in topics}
    fleet = Fleet(worker, chance)
    try:
        while not fleet.living:
            fleet.change()
        with_api = fleet.living[0]
        wait_until(with_api.answers, "the first worker to answer", STUCK_S)
        for name, topic in topics.items():
            config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(tmp_path / name)}
            assert with_api.send("PUT", f"/connectors/{name}/config", config).status == 201
        for _ in range(ROUNDS):
            for name in chance.sample(sorted(topics), 2):
                new = [f"{name}-{len(wanted[name]) + n}" for n in range(chance.randint(1, 5))]
                produce(topics[name], [(0, None, line.encode(), 0, []) for line in new])
                wanted[name].extend(new)
            fleet.change()
            one = chance.choice(fleet.living)
            assert not one.ends_within(chance.uniform(0, LONGEST_ROUND_S)), one.printed()
        if chance.random() < 0.5:  # Else the others do the work of those that are frozen.
            fleet.thaw()
        for name, lines in wanted.items():
            wait_until(lambda name=name: len(written(tmp_path / name)) >= len(wanted[name]), f"{name} copied", STUCK_S)  # type: ignore[misc]
            assert written(tmp_path / name) == lines
        fleet.thaw()
        check_owners(fleet, topics)
    finally:
        fleet.end()
    assert {name: written(tmp_path / name) for name in wanted} == wanted  # Those that were frozen have added nothing.
    assert fleet.freezes + fleet.kills >= ROUNDS // 4
    assert {worker.exit_code for worker in fleet.ended} <= {0, -signal.SIGKILL}


def check_owners(fleet: Fleet, topics: dict[str, str]) -> None:
    """Every connector is running at a worker that lives, whichever worker is asked."""
    living = {worker.worker_id for worker in fleet.living}
    for worker in fleet.living:
        wait_until(worker.answers, "the worker to answer", STUCK_S)
        wait_until(lambda worker=worker: set(worker.owners().values()) <= living, "owners that live", STUCK_S)  # type: ignore[misc]
        for name in topics:
            status = worker.send("GET", f"/connectors/{name}/status").body
            assert {status["connector"]["state"], *(task["state"] for task in status["tasks"])} == {"RUNNING"}, status


def written(file: Path) -> list[str]:
    """Lines of a file."""
    return file.read_text().splitlines() if file.exists() else []
