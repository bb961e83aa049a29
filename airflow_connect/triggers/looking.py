"""Looks at a target at intervals, for a trigger: in threads with a bound, so that nothing blocks the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airflow_connect.errors import ConnectError
from airflow_connect.observe.watches.conditions import SourceChanges

if TYPE_CHECKING:
    from airflow_connect.observe.watches.observation import Observation
    from airflow_connect.triggers.request import PeekRequest

AT_ONCE = 4
"""Triggers of one process that read their connections, or list the files of a source, at the same time."""
_Look = Callable[[float], Awaitable["Observation"]]
_Result = TypeVar("_Result")


async def looks(request: PeekRequest, every_s: float) -> AsyncIterator[Observation | ConnectError]:
    """What a look has found, at once and then every `every_s` seconds; a failure is an answer, too.

    Connections are read again after an error that waiting does not repair.
    """
    look: _Look | None = None
    wait_s = 0.0
    while True:
        try:
            if look is None:
                await asyncio.sleep(wait_s)
                look, wait_s = await _in(_threads("settings"), lambda: _look_of(request)), 0.0
            found: Observation | ConnectError = await look(wait_s)
        except ConnectError as error:
            look = look if error.retriable else None
            found = error
        yield found
        wait_s = every_s


def _look_of(request: PeekRequest) -> _Look:
    """How to look: reads connections, and loads what is heavy."""
    if isinstance(request.condition, SourceChanges):
        from airflow_connect.observe.watches.sources import observe_source

        spec = request.spec()

        async def look_at_source(wait_s: float) -> Observation:
            await asyncio.sleep(wait_s)
            return await _in(_threads("source"), lambda: observe_source(spec))

        return look_at_source

    from airflow_connect.observe.watches.poller import shared_poller

    watch = request.watch()
    poller = shared_poller(watch.target.cluster)

    async def look_at_cluster(wait_s: float) -> Observation:
        return await asyncio.wrap_future(poller.ask(watch, wait_s))

    return look_at_cluster


async def _in(threads: ThreadPoolExecutor, work: Callable[[], _Result]) -> _Result:
    return await asyncio.get_running_loop().run_in_executor(threads, work)


@lru_cache(maxsize=2)
def _threads(purpose: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"airflow-connect-{purpose}")


class Log(Protocol):
    """The log of a task or a trigger."""

    def warning(self, event: str, *args: Any) -> Any:
        """Write a line."""

    def info(self, event: str, *args: Any) -> Any:
        """Write a line."""


class Outage:
    """Logs that looking fails, and that it works again: once per change, not once per look."""

    def __init__(self, log: Log) -> None:
        """`log`: of the task or trigger."""
        self._log = log
        self._told = ""

    def begin(self, error: ConnectError) -> None:
        """A look has failed."""
        if self._told != error.code:
            self._log.warning("%s: %s Waiting goes on.", error.code, error)
            self._told = error.code

    def end(self) -> None:
        """A look has worked."""
        if self._told:
            self._log.info("Looking works again.")
            self._told = ""
