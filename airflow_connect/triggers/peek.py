"""`PeekTrigger`: the trigger behind every sensor of this package."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_connect.errors import ConnectError
from airflow_connect.triggers.looking import Outage, looks
from airflow_connect.triggers.request import PeekRequest

MAYBE_AWAY = "airflow.connection_missing"
"""Airflow says so, too, when its API server does not answer a triggerer. A connection that is really missing has failed
the sensor before it was deferred."""


class PeekTrigger(BaseTrigger):
    """Fires when a condition holds, or when looking fails in a way that waiting does not repair.

    A broker that does not answer is waited for; the log says so once. All triggers of a process share the requests to
    a cluster, see `airflow_connect.observe.watches.poller`. Connections are read where the trigger runs.

    Args:
        arguments, condition: `PeekRequest.to_json`; without secrets.
        poll_interval: seconds between two looks.
    """

    def __init__(self, arguments: Mapping[str, Any], condition: Mapping[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.arguments = dict(arguments)
        self.condition = dict(condition)
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments."""
        given = {"arguments": self.arguments, "condition": self.condition, "poll_interval": self.poll_interval}
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: `{"found": facts}`, or `{"error": ConnectError.to_json()}`."""
        outage = Outage(self.log)
        async for seen in looks(PeekRequest.from_json(self.arguments, self.condition), self.poll_interval):
            if isinstance(seen, ConnectError):
                if not seen.retriable and seen.code != MAYBE_AWAY:
                    yield TriggerEvent({"error": seen.to_json()})  # type: ignore[no-untyped-call]
                    return
                outage.begin(seen)
                continue
            outage.end()
            if seen.is_reached:
                yield TriggerEvent({"found": dict(seen.facts)})  # type: ignore[no-untyped-call]
                return
