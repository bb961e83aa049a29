"""The rules of the service's runs, with drivers that are scripted in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import pytest

from airflow_connect.documents.run import RunReport
from airflow_connect.errors import UnavailableError
from airflow_connect.runtime.driver_service.contract import EndedBy, RunState
from airflow_connect.runtime.driver_service.driven_run import MOST_ENTRIES
from airflow_connect.runtime.driver_service.runs import DriverRuns, Limits
from airflow_connect.runtime.spec import RunSpec
from tests.support.waiting import wait_until

ORIGIN = {"dag_id": "d", "dag_run_id": "r", "task_id": "t", "map_index": "-1", "try_number": "1"}
SECRET = "opensesame-1"


class ScriptedDriver:
    """Does what the test says; `kill` ends it as SIGKILL does."""

    def __init__(self, spec: RunSpec, on_log: Callable[[str], None]) -> None:
        self.spec, self.on_log = spec, on_log
        self.said: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self.outcome: RunReport | int = -9
        self.log_tail = ""
        self.kills = 0

    def say(self, **event: Any) -> None:
        self.said.put(event)

    def report(self, **fields: Any) -> None:
        self.outcome = RunReport(
            **{
                "connector": "c",
                "run_id": self.spec.run_id,
                "status": "done",
                "started_ms": 1,
                "ended_ms": 2,
                **fields,
            }
        )
        self.said.put(None)

    def events(self) -> Iterator[dict[str, Any]]:
        while (event := self.said.get()) is not None:
            yield event

    def wait(self) -> RunReport | int:
        return self.outcome

    def kill(self) -> None:
        self.kills += 1
        self.said.put(None)


class Service:
    """The runs under test, their drivers, the clock, and what was told."""

    def __init__(self, limits: Limits) -> None:
        self.now = 0.0
        self.drivers: dict[str, ScriptedDriver] = {}
        self.told: list[str] = []
        self.runs = DriverRuns(limits, self.told.append, start=self._start, clock=lambda: self.now)

    def _start(self, spec: RunSpec, on_log: Callable[[str], None]) -> ScriptedDriver:
        assert spec.run_id not in self.drivers
        driver = self.drivers[spec.run_id] = ScriptedDriver(spec, on_log)
        return driver

    def driver(self, run_id: str) -> ScriptedDriver:
        wait_until(lambda: run_id in self.drivers, f"the driver of {run_id} to start")
        return self.drivers[run_id]

    def wait_for(self, run_id: str, state: RunState) -> None:
        def is_there() -> bool:
            view = self.runs.view(run_id)
            return view is not None and view.state is state

        wait_until(is_there, f"run {run_id} to be {state}")


@pytest.fixture
def serve() -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def make(**limits: Any) -> Service:
        made.append(Service(Limits(**limits)))
        return made[-1]

    yield make
    for service in made:
        service.runs.close()


def spec(run_id: str = "run-1", **fields: Any) -> RunSpec:
    given = {"connector": {"name": "c"}, "worker": {"sasl.password": SECRET}, "origin": {**ORIGIN, "task_id": run_id}}
    return RunSpec(**{**given, "run_id": run_id, **fields})


def test_same_run_is_started_once_and_its_outcome_is_kept_until_it_is_taken(serve: Callable[..., Service]) -> None:
    service = serve()
    service.runs.start(spec())
    assert service.runs.start(spec()).run_id == "run-1"
    service.driver("run-1").report(records=7)
    service.wait_for("run-1", RunState.ENDED)
    assert service.runs.start(spec()).state is RunState.ENDED
    view = service.runs.end("run-1")
    assert view is not None and view.report is not None
    assert (view.report["records"], view.ended_by) == (7, EndedBy.ITSELF)
    assert service.runs.view("run-1") is None
    assert service.runs.end("run-1") is None


def test_next_attempt_of_a_task_finds_the_run_that_works(serve: Callable[..., Service]) -> None:
    service = serve()
    first = spec(origin=ORIGIN, references={"${vault:a:b}": "rotated-1"})
    service.runs.start(first)
    again = replace(first, run_id="run-2", origin={**ORIGIN, "try_number": "2"}, references={"${vault:a:b}": "other-2"})
    assert service.runs.start(again).run_id == "run-1"
    service.driver("run-1").report()
    service.wait_for("run-1", RunState.ENDED)
    assert service.runs.start(replace(again, run_id="run-3")).state is RunState.ENDED
    assert list(service.drivers) == ["run-1"]


def test_installations_whose_tasks_have_the_same_names_leave_each_other_alone(serve: Callable[..., Service]) -> None:
    """Test and production have the same DAG with the same schedule, and so runs and tasks of the same names."""
    service = serve()
    for run_id, broker in (("of-test", "test:9092"), ("of-production", "production:9092")):
        view = service.runs.start(spec(run_id, origin=ORIGIN, worker={"bootstrap.servers": broker}))
        assert view.run_id == run_id
    for run_id in ("of-test", "of-production"):
        service.driver(run_id).report()
        service.wait_for(run_id, RunState.ENDED)
        assert service.drivers[run_id].kills == 1, "only after its own end"


def test_attempt_that_another_one_has_followed_does_not_end_its_run(serve: Callable[..., Service]) -> None:
    """A task is cleared: its new attempt may have found the run before the old one is told to end it."""
    service = serve()
    first = spec(origin=ORIGIN)
    service.runs.start(first)
    service.driver("run-1")
    service.runs.start(replace(first, run_id="run-2", origin={**ORIGIN, "try_number": "2"}))
    left = service.runs.end("run-1", "run-1")
    assert left is not None
    assert (left.state, left.ended_by, service.drivers["run-1"].kills) == (RunState.RUNNING, EndedBy.ITSELF, 0)
    service.runs.start(first)  # A repeated request of the old attempt does not take the run back.
    assert service.runs.end("run-1", "run-1") == service.runs.view("run-1") == left
    ended = service.runs.end("run-1", "run-2")
    assert ended is not None
    assert (ended.state, ended.ended_by) == (RunState.ENDED, EndedBy.REQUEST)
    assert service.runs.view("run-1") is None


def test_next_attempt_starts_anew_after_a_failure(serve: Callable[..., Service]) -> None:
    service = serve()
    service.runs.start(spec("run-1", origin=ORIGIN))
    error = UnavailableError("It went wrong.").to_json()
    service.driver("run-1").report(status="failed", error=error)
    service.wait_for("run-1", RunState.ENDED)
    assert service.runs.start(spec("run-2", origin=ORIGIN)).run_id == "run-2"
    service.driver("run-2").kill()


def test_run_of_another_configuration_is_ended_before_the_new_one_starts(serve: Callable[..., Service]) -> None:
    service = serve()
    service.runs.start(spec("run-1", origin=ORIGIN))
    service.driver("run-1")
    changed = spec("run-2", origin=ORIGIN, connector={"name": "c", "run.max.records": 7})
    assert service.runs.start(changed).run_id == "run-2"
    assert service.drivers["run-1"].kills > 0
    assert service.runs.view("run-1") is None


@pytest.mark.parametrize("origin", [{}, {**ORIGIN, "task_id": "other"}, {**ORIGIN, "map_index": "3"}])
def test_runs_of_other_tasks_are_their_own(serve: Callable[..., Service], origin: dict[str, str]) -> None:
    service = serve()
    service.runs.start(spec("run-1", origin=ORIGIN if origin else {}))
    assert service.runs.start(spec("run-2", origin=origin)).run_id == "run-2"


def test_runs_wait_for_a_place_in_their_order(serve: Callable[..., Service]) -> None:
    service = serve(at_once=1, waiting=2)
    views = [service.runs.start(spec(f"run-{number}")) for number in (1, 2, 3)]
    assert [view.state for view in views[1:]] == [RunState.WAITING] * 2
    with pytest.raises(UnavailableError, match="2 runs waiting, which is its limit"):
        service.runs.start(spec("run-4"))
    assert service.runs.counts() == {"running": 1, "waiting": 2}
    service.driver("run-1").report()
    service.driver("run-2").report()
    service.driver("run-3")
    assert list(service.drivers) == ["run-1", "run-2", "run-3"]


def test_run_that_waits_can_be_ended_and_never_starts(serve: Callable[..., Service]) -> None:
    service = serve(at_once=1)
    service.runs.start(spec("run-1"))
    service.runs.start(spec("run-2"))
    service.driver("run-1")
    view = service.runs.end("run-2")
    assert view is not None and (view.state, view.ended_by, view.report) == (RunState.ENDED, EndedBy.REQUEST, None)
    service.runs.end("run-1")
    service.runs.start(spec("run-3"))
    service.driver("run-3")
    assert "run-2" not in service.drivers


def test_run_that_nobody_asks_after_is_ended_and_others_are_not(serve: Callable[..., Service]) -> None:
    service = serve(lease_s=300.0, at_once=1)
    for number in (1, 2, 3):
        service.runs.start(spec(f"run-{number}"))
    service.driver("run-1")
    service.now = 200.0
    assert set(service.runs.news(["run-3", "no-such-run"])) == {"run-3", "no-such-run"}
    service.now = 301.0
    service.runs.sweep()
    assert service.drivers["run-1"].kills > 0
    ended = [service.runs.view(f"run-{number}") for number in (1, 2)]
    assert [(view.state, view.ended_by) for view in ended if view] == [(RunState.ENDED, EndedBy.LEASE)] * 2
    service.driver("run-3")
    assert "Run run-1 is ended: nobody asked after it for 300 seconds." in service.told


def test_old_outcomes_are_dropped_and_so_are_too_many(serve: Callable[..., Service]) -> None:
    service = serve(kept=2, kept_s=100.0)
    for number in range(1, 5):
        service.now = float(number)
        service.runs.start(spec(f"run-{number}"))
        service.driver(f"run-{number}").report()
        service.wait_for(f"run-{number}", RunState.ENDED)
    service.runs.sweep()
    known = [
        run_id for run_id, news in service.runs.news(f"run-{n}" for n in range(1, 5)).items() if news.state != "unknown"
    ]
    assert known == ["run-3", "run-4"]
    service.now = 104.5
    service.runs.sweep()
    assert {news.state for news in service.runs.news(known).values()} == {RunState.UNKNOWN}


def test_news_come_once_in_order_and_the_end_after_all_of_them(serve: Callable[..., Service]) -> None:
    service = serve()
    service.runs.start(spec())
    driver = service.driver("run-1")
    wait_until(lambda: service.runs.news(["run-1"])["run-1"].state is RunState.RUNNING, "the run to work")
    for number in range(700):
        driver.say(event="warning", message=str(number))
    driver.report()
    service.wait_for("run-1", RunState.ENDED)
    looks = [service.runs.news(["run-1"])["run-1"] for _ in range(3)]
    assert [look.state for look in looks] == [RunState.RUNNING, RunState.ENDED, RunState.ENDED]
    assert [int(entry["message"]) for look in looks for entry in look.entries] == list(range(700))


def test_news_are_bounded_and_what_was_dropped_is_counted(serve: Callable[..., Service]) -> None:
    service = serve()
    service.runs.start(spec())
    driver = service.driver("run-1")
    for _ in range(MOST_ENTRIES + 30):
        driver.on_log("a line")
    assert service.runs.news(["run-1"])["run-1"].skipped == 30
    assert service.runs.news(["run-1"])["run-1"].skipped == 0


def test_no_secret_is_in_news_outcome_or_log(serve: Callable[..., Service]) -> None:
    service = serve()
    hidden = {"aws": {"secret_access_key": "wonder1and-key"}, "references": {"${vault:a:b}": "rabbit77hole"}}
    service.runs.start(spec(**hidden))
    driver = service.driver("run-1")
    text = f"{SECRET} wonder1and-key rabbit77hole"
    driver.say(event="warning", message=text, seen={"nested": [text]})
    driver.on_log(text)
    driver.log_tail = text
    driver.report(status="failed", error={**UnavailableError(text).to_json()}, notes=(text,))
    service.wait_for("run-1", RunState.ENDED)
    view = service.runs.view("run-1")
    assert view is not None
    said = json.dumps([service.runs.news(["run-1"])["run-1"].to_json(), view.to_json(), service.told])
    assert said.count("${vault:a:b}") == 6
    assert [secret for secret in text.split() if secret in said] == []


def test_driver_that_dies_leaves_exit_code_and_end_of_its_log(serve: Callable[..., Service]) -> None:
    service = serve()
    service.runs.start(spec())
    driver = service.driver("run-1")
    driver.outcome, driver.log_tail = 52, "OutOfMemoryError"
    driver.said.put(None)
    service.wait_for("run-1", RunState.ENDED)
    view = service.runs.view("run-1")
    assert view is not None and (view.exit_code, view.log_tail, view.report) == (52, "OutOfMemoryError", None)


@pytest.mark.parametrize(
    ("failure", "code"),
    [(OSError(12, "Cannot allocate memory"), "driver_service.start"), (ValueError("x"), "internal.error")],
)
def test_driver_that_cannot_be_started_ends_its_run_and_frees_the_place(failure: Exception, code: str) -> None:
    def start(*_: Any) -> ScriptedDriver:
        raise failure

    runs = DriverRuns(Limits(at_once=1), lambda _: None, start=start)
    for run_id in ("run-1", "run-2"):
        runs.start(spec(run_id))
        wait_until(lambda wanted=run_id: runs.view(wanted).state is RunState.ENDED, "the run to end")  # type: ignore[misc, union-attr]
        view = runs.view(run_id)
        assert view is not None and view.error is not None and view.error["code"] == code


def test_end_during_the_start_of_a_driver_kills_it(serve: Callable[..., Service]) -> None:
    service = serve()
    may_start, starting = threading.Event(), threading.Event()
    real_start = service._start

    def slow_start(given: RunSpec, on_log: Callable[[str], None]) -> ScriptedDriver:
        starting.set()
        assert may_start.wait(30)
        return real_start(given, on_log)

    runs = DriverRuns(Limits(), service.told.append, start=slow_start)
    runs.start(spec())
    assert starting.wait(30)
    ending = threading.Thread(target=runs.end, args=("run-1",))
    ending.start()
    wait_until(lambda: runs._runs["run-1"].is_ending, "the request to arrive")
    may_start.set()
    ending.join(30)
    assert not ending.is_alive()
    assert service.drivers["run-1"].kills > 0


def test_close_ends_all_and_starts_no_more(serve: Callable[..., Service]) -> None:
    service = serve(at_once=1)
    service.runs.start(spec("run-1"))
    service.runs.start(spec("run-2"))
    service.driver("run-1")
    service.runs.close()
    assert service.drivers["run-1"].kills > 0
    assert service.runs.counts()["waiting"] == 0
    with pytest.raises(UnavailableError, match="starts no more runs"):
        service.runs.start(spec("run-3"))
