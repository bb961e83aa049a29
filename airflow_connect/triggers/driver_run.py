"""`DriverRunTrigger`: follows a run at a driver service while its task waits without a worker slot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.hooks.connect_driver import ConnectDriverHook
from airflow_connect.runtime.driver_service.contract import RunNews, RunState, RunView
from airflow_connect.runtime.reporting.presentation import EventLines
from airflow_connect.triggers.looking import Outage
from airflow_connect.triggers.peek import MAYBE_AWAY

AT_ONCE = 8
"""Requests to driver services that a triggerer has at the same time, in threads."""
END_WITHIN_S = 20.0
"""For how long a request to end a run is repeated. Airflow gives `on_kill` 30 seconds; the lease does the rest."""
AFTER_LEASE_S = 30.0
"""How long a service that does not answer is waited for after the lease: the run is then surely over."""
_Result = TypeVar("_Result")


class DriverRunTrigger(BaseTrigger):
    """Fires when a run at a driver service has ended.

    All triggers of a process that follow runs of one service share its requests. A triggerer that ends does not end
    the run: another one follows it with the same arguments. A user who marks or clears the task does.

    Args:
        driver_conn_id: connection of the service. It is read here, and the token is no argument.
        run_id: the run.
        connector: its configuration, without secrets, for the task that resumes.
        lease_s: what the service said: seconds after which it ends a run that nobody asks after.
        poll_interval: seconds between two looks.
        deadline: when the run is ended, in seconds since the epoch; None: never.
        attempt: the run id that the attempt of the task has asked with. It ends no run that a later attempt has taken
            over. "": a task that an older release has deferred; the state of the task decides alone.
    """

    def __init__(  # noqa: PLR0913 (what a triggerer stores of it are keywords)
        self,
        driver_conn_id: str,
        run_id: str,
        connector: Mapping[str, Any],
        lease_s: float,
        poll_interval: float = 5.0,
        deadline: float | None = None,
        attempt: str = "",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.driver_conn_id = driver_conn_id
        self.run_id = run_id
        self.connector = dict(connector)
        self.lease_s = lease_s
        self.poll_interval = poll_interval
        self.deadline = deadline
        self.attempt = attempt

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; they hold no secret."""
        names = ("driver_conn_id", "run_id", "connector", "lease_s", "poll_interval", "deadline", "attempt")
        given = {name: getattr(self, name) for name in names}
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event with `run_id`, `connector`, and `state` (`ended`, `lost`, `timed_out`) or `error`."""
        # All of it, because `dag.test` drops what a task keeps in the arguments of its deferral.
        seen = {"run_id": self.run_id, "connector": self.connector, **await self._end_of_run()}
        yield TriggerEvent(seen)  # type: ignore[no-untyped-call]

    async def _end_of_run(self) -> dict[str, Any]:
        outage, answered_at = Outage(self.log), time.monotonic()
        lines = EventLines(lambda line: self.log.info("%s", line))
        with _poller(self.driver_conn_id).following(self.run_id, self.poll_interval) as answers:
            while True:
                try:
                    found = await asyncio.wait_for(answers.get(), self._left_s())
                except TimeoutError:
                    return await self._time_out()
                if isinstance(found, ConnectError):
                    if not found.retriable and found.code != MAYBE_AWAY:
                        return {"error": found.to_json()}
                    if time.monotonic() - answered_at > self.lease_s + AFTER_LEASE_S:
                        return {"state": "lost", "why": str(found)}
                    outage.begin(found)
                    continue
                outage.end()
                answered_at = time.monotonic()
                self._tell(found, lines)
                if found.state is RunState.ENDED:
                    return {"state": "ended"}
                if found.state is RunState.UNKNOWN:
                    return {"state": "lost", "why": "The driver service does not know the run any more."}

    def _left_s(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.time())

    async def _time_out(self) -> dict[str, Any]:
        """End the run, whose time is over. If the service cannot be asked, the lease ends it."""
        self.log.warning("The time of the task is over; the run is ended.")
        try:
            await self._end()
        except ConnectError as error:
            self.log.warning("%s: %s The service ends the run when its lease is over.", error.code, error)
        return {"state": "timed_out"}

    def _tell(self, news: RunNews, lines: EventLines) -> None:
        if news.skipped:
            self.log.info("%d events and lines of the driver's log were dropped.", news.skipped)
        for entry in news.entries:
            if entry["event"] == "log":
                self.log.info("driver | %s", entry["line"])
            else:
                lines(entry)

    async def on_kill(self) -> None:
        """End the run: a user has marked or cleared the task.

        Airflow does not call this when a triggerer ends, but it does for one that is so late with its heartbeats
        that another one has taken its triggers over. The task is still deferred then, and the run goes on.
        """
        if await _in_thread(self._is_deferred):
            self.log.info("Run %s goes on: its task is deferred, and another triggerer follows it.", self.run_id)
            return
        left = await self._end()
        if left is not None and left.state is not RunState.ENDED:
            self.log.info("Run %s goes on: a later attempt of the task has taken it over.", self.run_id)
            return
        self.log.info("Run %s was ended with its task. What it had not committed is left to the next run.", self.run_id)

    def _is_deferred(self) -> bool:
        """Whether the task waits for the run. If it was cleared and waits again, its new attempt has found this run."""
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        task = self.task_instance
        if task is None:
            return False
        try:
            found = RuntimeTaskInstance.get_task_states(
                dag_id=task.dag_id, task_ids=[task.task_id], run_ids=[task.run_id], map_index=task.map_index
            )
        except Exception as error:  # noqa: BLE001 (what Airflow raises here is not documented; the usual reason counts)
            self.log.warning("The state of the task cannot be read: %s: %s", type(error).__name__, error)
            return False
        return "deferred" in [str(state) for states in found.values() for state in states.values()]

    async def _end(self) -> RunView | None:
        def end() -> RunView | None:
            return ConnectDriverHook(self.driver_conn_id, retry_s=END_WITHIN_S).end(self.run_id, self.attempt)

        return await _in_thread(end)


class _Followers:
    """What the triggers of one event loop ask one service: one request at a time for all of them."""

    def __init__(self, driver_conn_id: str) -> None:
        self._conn_id = driver_conn_id
        self._hook: ConnectDriverHook | None = None
        self._waiting: list[tuple[str, float, asyncio.Queue[RunNews | ConnectError]]] = []
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def following(self, run_id: str, every_s: float) -> _Following:
        """Answers about a run, the first at once, in a context manager."""
        return _Following(self, run_id, every_s)

    def add(self, entry: tuple[str, float, asyncio.Queue[RunNews | ConnectError]]) -> None:
        """Ask for one more; begin if nobody asked before."""
        self._waiting.append(entry)
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look_again_and_again())

    def remove(self, entry: tuple[str, float, asyncio.Queue[RunNews | ConnectError]]) -> None:
        """Ask for one less."""
        self._waiting.remove(entry)
        self._changed.set()

    async def _look_again_and_again(self) -> None:
        while self._waiting:
            self._changed.clear()
            asked = list(self._waiting)
            answers = await self._look([run_id for run_id, _, _ in asked])
            for run_id, _, queue in asked:
                queue.put_nowait(answers if isinstance(answers, ConnectError) else answers[run_id])
            await self._pause(min(every_s for _, every_s, _ in asked))

    async def _pause(self, seconds: float) -> None:
        """Wait for the interval; shorter if somebody comes, which is answered at once."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    async def _look(self, run_ids: list[str]) -> dict[str, RunNews] | ConnectError:
        try:
            if self._hook is None:
                self._hook = ConnectDriverHook(self._conn_id, retry_s=0)
            return await _in_thread(partial(self._hook.news, run_ids))
        except ConnectError as error:
            self._hook = None  # The connection is read again: it may have been corrected.
            return error
        except Exception as error:  # noqa: BLE001 (every trigger that waits here would wait forever)
            self._hook = None
            return UnavailableError(f"The driver service could not be asked: {type(error).__name__}: {error}.")


class _Following:
    """One trigger's place among the followers."""

    def __init__(self, followers: _Followers, run_id: str, every_s: float) -> None:
        self._followers = followers
        self._entry: tuple[str, float, asyncio.Queue[RunNews | ConnectError]] = (run_id, every_s, asyncio.Queue())

    def __enter__(self) -> asyncio.Queue[RunNews | ConnectError]:
        self._followers.add(self._entry)
        return self._entry[2]

    def __exit__(self, *_: object) -> None:
        self._followers.remove(self._entry)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Followers]] = WeakKeyDictionary()


def _poller(driver_conn_id: str) -> _Followers:
    found = _by_loop.setdefault(asyncio.get_running_loop(), {})
    return found.setdefault(driver_conn_id, _Followers(driver_conn_id))


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="driver-service")
