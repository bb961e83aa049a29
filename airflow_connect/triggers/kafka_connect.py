"""Triggers that wait for connectors of a Kafka Connect cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_connect.errors import ConnectError
from airflow_connect.hooks.connect_cluster_watch import Goal, Watch

AT_ONCE = 8
"""Triggers of one process that look at the same time: a cluster that does not answer holds a look for minutes."""


class KafkaConnectTrigger(BaseTrigger):
    """Waits until a connector has reached a state, or has copied what its topics held.

    Each look runs in a thread, because it asks the cluster and Kafka. A server that is away for longer than a look
    repeats its requests is an event with an error: the task then fails, and its retries begin to wait again.

    Args:
        goal: what is waited for, as JSON.
        poll_interval: seconds between two looks.
        result: what the action returned; it comes back with the event. Airflow could keep it with the task, but
            `dag.test` forgets that.
    """

    def __init__(self, goal: dict[str, Any], poll_interval: float, result: str = "") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.goal = goal
        self.poll_interval = poll_interval
        self.result = result

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; they hold no secret."""
        path = "airflow_connect.triggers.kafka_connect.KafkaConnectTrigger"
        return path, {"goal": self.goal, "poll_interval": self.poll_interval, "result": self.result}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: `{"seen": sentence, "result": result}`, or `{"error": ConnectError.to_json()}`."""
        watch, last = Watch(Goal.from_json(self.goal)), ""
        while True:
            try:
                is_reached, seen = await asyncio.get_running_loop().run_in_executor(_threads(), watch.look)
            except ConnectError as error:
                yield TriggerEvent({"error": error.to_json()})  # type: ignore[no-untyped-call]
                return
            if is_reached:
                yield TriggerEvent({"seen": seen, "result": self.result})  # type: ignore[no-untyped-call]
                return
            if seen != last:
                self.log.info("%s", seen)
                last = seen
            await asyncio.sleep(self.poll_interval)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="kafka-connect")
