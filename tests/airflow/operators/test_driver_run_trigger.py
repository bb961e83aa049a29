"""`DriverRunTrigger` in an event loop, with a real service whose runs are scripted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow._shared.module_loading import import_string

from airflow_connect.errors import UnavailableError
from airflow_connect.hooks.connect_driver import ConnectDriverHook
from airflow_connect.runtime.driver_service.contract import RunNews, RunState
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.triggers.driver_run import DriverRunTrigger
from tests.airflow.conftest import Hanging
from tests.support.processes.drivers import is_alive
from tests.support.servers.driver_service import DriverServiceProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("driver_connection")

PATIENCE_S = 60.0
CHILDREN_OF_HANG = 4
SHOWN = {"name": "meetups"}


def start(**connector: Any) -> str:
    spec = RunSpec({"name": "meetups", **connector}, {"bootstrap.servers": "broker:9092"})
    return ConnectDriverHook("our_driver").start(spec).run_id


def trigger(run_id: str, **given: Any) -> DriverRunTrigger:
    """As a triggerer makes it, from what the database stores."""
    arguments = {"run_id": run_id, "connector": SHOWN, "lease_s": 60.0, "poll_interval": 0.05, **given}
    path, stored = DriverRunTrigger("our_driver", **arguments).serialize()
    made: DriverRunTrigger = import_string(path)(**json.loads(json.dumps(stored)))
    return made


async def event_of(followed: DriverRunTrigger) -> dict[str, Any]:
    found = await asyncio.wait_for(anext(followed.run()), PATIENCE_S)
    return dict(found.payload)


def state_of(run_id: str) -> str:
    view = ConnectDriverHook("our_driver").view(run_id)
    return "unknown" if view is None else view.state.value


def wait_for_children(pids: Callable[[], list[int]]) -> None:
    wait_until(lambda: len(pids()) == CHILDREN_OF_HANG, "the driver and its children to run", PATIENCE_S)


def test_end_of_a_run_is_one_event_that_says_which_run() -> None:
    run_id = start(fake="copy")
    assert asyncio.run(event_of(trigger(run_id))) == {"run_id": run_id, "connector": SHOWN, "state": "ended"}


def test_trigger_that_is_replaced_follows_the_same_run(tmp_path: Path) -> None:
    release = tmp_path / "release"
    run_id = start(fake="held", release=str(release))

    async def lose_the_first_one() -> dict[str, Any]:
        first = asyncio.ensure_future(event_of(trigger(run_id)))
        done, _ = await asyncio.wait([first], timeout=0.5)
        assert not done
        first.cancel()  # as a triggerer that ends does it, without a message
        await asyncio.wait([first])
        assert await asyncio.to_thread(state_of, run_id) == "running"
        second = asyncio.ensure_future(event_of(trigger(run_id)))
        release.touch()
        return await second

    assert asyncio.run(lose_the_first_one())["state"] == "ended"
    assert state_of(run_id) == "ended"


def test_user_who_acts_on_the_task_ends_the_run(hanging: Hanging, tmp_path: Path) -> None:
    config, pids = hanging
    run_id = start(**config)
    wait_for_children(pids)
    asyncio.run(trigger(run_id).on_kill())
    assert [pid for pid in pids() if is_alive(pid)] == []
    assert state_of(run_id) == "unknown"
    assert not (tmp_path / "committed").exists()


def test_triggerer_whose_triggers_were_taken_over_leaves_the_run_alone(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow calls `on_kill` there, too."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    config, pids = hanging
    run_id = start(**config)
    wait_for_children(pids)
    states: dict[str, Any] = {"run": {"copy": "deferred"}}
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", lambda **_: states)
    late = trigger(run_id)
    late._task_instance = SimpleNamespace(dag_id="d", run_id="run", task_id="copy", map_index=-1)
    asyncio.run(late.on_kill())
    assert state_of(run_id) == "running"
    states["run"]["copy"] = "failed"
    asyncio.run(late.on_kill())
    assert state_of(run_id) == "unknown"
    assert [pid for pid in pids() if is_alive(pid)] == []


def test_run_that_a_later_attempt_has_taken_over_goes_on(hanging: Hanging) -> None:
    """A cleared task may have started again, and not be deferred yet, when the trigger of its old attempt is told."""
    config, pids = hanging
    origin = {"dag_id": "d", "dag_run_id": "run", "task_id": "copy"}

    def attempt() -> tuple[str, str]:
        spec = RunSpec({"name": "meetups", **config}, {"bootstrap.servers": "broker:9092"}, origin=origin)
        return ConnectDriverHook("our_driver").start(spec).run_id, spec.run_id

    run_id, first = attempt()
    wait_for_children(pids)
    found, second = attempt()
    assert (found, first) == (run_id, run_id)
    asyncio.run(trigger(run_id, attempt=first).on_kill())
    assert state_of(run_id) == "running"
    asyncio.run(trigger(run_id, attempt=second).on_kill())
    assert state_of(run_id) == "unknown"
    assert [pid for pid in pids() if is_alive(pid)] == []


def test_deadline_ends_the_run(hanging: Hanging, tmp_path: Path) -> None:
    config, pids = hanging
    run_id = start(**config)
    wait_for_children(pids)
    assert asyncio.run(event_of(trigger(run_id, deadline=time.time() + 0.5)))["state"] == "timed_out"
    assert [pid for pid in pids() if is_alive(pid)] == []
    assert not (tmp_path / "committed").exists()


def test_run_that_the_service_does_not_know_is_lost() -> None:
    found = asyncio.run(event_of(trigger("20261121T031947-223244")))
    assert (found["state"], found["why"]) == ("lost", "The driver service does not know the run any more.")


def test_wrong_token_is_an_error_that_is_not_retried(
    driver_service: DriverServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps(driver_service.connection("not-the-token-it-has")))
    error = asyncio.run(event_of(trigger("r")))["error"]
    assert (error["code"], error["retriable"]) == ("driver_service.token", False)


def test_service_that_is_away_longer_than_the_lease_has_lost_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = {"conn_type": "connect_driver", "host": "127.0.0.1", "port": 1}
    monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps(nowhere))
    monkeypatch.setattr("airflow_connect.triggers.driver_run.AFTER_LEASE_S", 0.2)
    found = asyncio.run(event_of(trigger("r", lease_s=0.2)))
    assert found["state"] == "lost"
    assert "does not answer" in found["why"]


def test_service_that_comes_back_in_time_is_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([UnavailableError("It is away."), UnavailableError("It is away."), ValueError("a defect"), None])

    def news(hook: ConnectDriverHook, run_ids: Iterable[str]) -> dict[str, RunNews]:
        failure = next(answers)
        if failure is not None:
            raise failure
        return dict.fromkeys(run_ids, RunNews(RunState.ENDED))

    monkeypatch.setattr(ConnectDriverHook, "news", news)
    assert asyncio.run(event_of(trigger("r")))["state"] == "ended"
    assert next(answers, "all were used") == "all were used"


def test_a_thousand_triggers_share_the_requests_to_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def news(hook: ConnectDriverHook, run_ids: Iterable[str]) -> dict[str, RunNews]:
        wanted = list(run_ids)
        asked.append(len(wanted))
        # All of them end at the fifth look that has all of them.
        state = RunState.ENDED if asked.count(1000) == 5 else RunState.RUNNING
        return dict.fromkeys(wanted, RunNews(state))

    monkeypatch.setattr(ConnectDriverHook, "news", news)

    async def follow_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*(event_of(trigger(f"run-{number}")) for number in range(1000)))

    found = asyncio.run(follow_all())
    assert {event["state"] for event in found} == {"ended"}
    assert len(asked) <= 10
