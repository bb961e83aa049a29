"""The loop of a worker when its state topics cannot be read or written for a moment."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_connect.control.state import records
from airflow_connect.control.state.config_fold import ConfigState, Registered
from airflow_connect.control.worker.due import Due, Ended, Schedule
from airflow_connect.control.worker.rounds import Rounds
from airflow_connect.control.worker.slots import Outcome, Running, Slots
from airflow_connect.errors import FencedError, UnavailableError
from airflow_connect.runtime.driver.stopping import RunTimeoutError

OUTAGE = UnavailableError("Kafka does not answer.")


class Unreachable:
    """The herder while Kafka does not answer."""

    def spec_of(self, config: Any) -> Any:
        raise OUTAGE

    def run_ended(self, *_: Any, **__: Any) -> None:
        raise OUTAGE


class Begun:
    """Some connectors whose runs have begun, and a schedule that knows them."""

    def __init__(self, *names: str) -> None:
        self.runs = [Running(Due(name, {}, 0), f"run-of-{name}") for name in names]
        config = SimpleNamespace(next_offset=1)
        self.schedule = Schedule(60.0, 0)
        for run in self.runs:
            self.schedule.begin(config, run.due)  # type: ignore[arg-type]

    def rest(self) -> set[str]:
        """Those that have not ended for the schedule: they would never run again."""
        return set(self.schedule._began)


def rounds_of(told: list[str]) -> Rounds:
    return Rounds(None, Unreachable(), None, told.append)  # type: ignore[arg-type]


def test_a_run_that_is_fenced_says_why():
    told: list[str] = []
    state = SimpleNamespace(config=ConfigState(connectors={"a": Registered({}, 0)}, next_offset=1))
    topics = SimpleNamespace(look=lambda read: read(state))
    rounds = Rounds(topics, Unreachable(), None, told.append, sharing=SimpleNamespace())  # type: ignore[arg-type]
    running = Running(Due("a", {}, 0), "run-of-a", seen=1)
    error = FencedError("A newer run of the same connector has taken over, or its offsets were changed.").to_json()

    assert rounds._failed(running, error, str) == Ended()  # type: ignore[arg-type]
    state.config.take(*records.target_state("a", records.STOPPED), 1)
    state.config.take(*records.target_state("a", records.STARTED), 2)
    rounds._failed(running, error, str)  # type: ignore[arg-type]
    assert told == [f"a: {error['message']}", "Connector a was stopped during a run, which has ended."]


def test_every_run_that_ends_during_an_outage_may_run_again():
    begun, told = Begun("a", "b", "c"), []
    slots = SimpleNamespace(ended=lambda wait_s: [Outcome(run, Ended(), OUTAGE) for run in begun.runs], running=[])

    with pytest.raises(UnavailableError):
        rounds_of(told)._take_ended(begun.schedule, slots)  # type: ignore[arg-type]

    assert begun.rest() == set()


def test_a_run_that_hangs_during_an_outage_is_left_alone_and_may_run_again(monkeypatch):
    monkeypatch.setattr("airflow_connect.control.worker.slots.ABANDONED_AFTER_S", 0.0)
    begun, told, released = Begun("a"), [], threading.Event()
    (run,) = begun.runs

    def work(_: Running) -> Ended:
        released.wait()
        return Ended()

    slots = Slots(1, work)
    slots.start(run)
    run.ask(RunTimeoutError("It takes too long."))
    assert run.asked_s is not None and run.asked_s <= time.monotonic()

    try:
        with pytest.raises(UnavailableError):
            rounds_of(told)._take_ended(begun.schedule, slots)
    finally:
        released.set()
        slots.close()

    assert (begun.rest(), slots.running, slots.has_free) == (set(), [], True)
    assert "is left alone" in told[0]
