"""`ConnectorLagEventTrigger`: an asset watcher that starts a DAG when a connector has something to copy."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_connect.airflow.connections.official import DEFAULT_KAFKA_CONN_ID
from airflow_connect.airflow.connector_arguments import ConnectorArguments, as_path
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.observe.watches.conditions import LagReaches
from airflow_connect.observe.watches.observation import Observation
from airflow_connect.triggers.looking import Outage, looks
from airflow_connect.triggers.request import PeekRequest

STORED = "airflow_connect.last_lag_event"
"""Key in the state store of the watched asset."""


class ConnectorLagEventTrigger(BaseEventTrigger):
    """An asset event each time that the lag of a sink connector reaches a bound. For `AssetWatcher`.

    There is one event for each position of the connector: after an event there is none until the connector has
    committed something. If lag is at a bound then, or reaches one later, there is another event. If nothing is
    committed, because the DAG failed, is paused, or does not run this connector, the event is repeated after
    `repeat_after`. The last event is kept in the asset's state store, so that a restarted triggerer does not repeat it.

    The extra of the event has `from_trigger` and, under `payload`, the connector's name, `records`, `bytes`, `age_s`
    and `offsets`.

    Args:
        config: connector configuration as for Kafka Connect. Only its name, topics and client settings are kept.
        config_file: path of a file with it, read when the DAG file is parsed, and so not in object storage.
        worker: worker configuration, or the path of a file with it, for which the same holds.
        worker_conn_id: connection of type `connect_worker`.
        kafka_conn_id: connection with the brokers, read where the trigger runs.
        min_records, min_bytes: bounds of the lag.
        min_age: of the oldest record that is not copied; a timedelta, or seconds.
        poll_interval: seconds between two looks.
        repeat_after: a timedelta, or seconds; None: an event is never repeated.

    Raises:
        ConfigError: no bound is set, the configuration cannot be read, or it has a secret, which would be stored with
            the trigger.
    """

    def __init__(  # noqa: PLR0913 (the arguments are keywords, each with a default)
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | Path | None = None,
        worker: Mapping[str, Any] | str | Path | None = None,
        worker_conn_id: str | None = None,
        kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID,
        min_records: int | None = None,
        min_bytes: int | None = None,
        min_age: timedelta | float | None = None,
        poll_interval: float = 60.0,
        repeat_after: timedelta | float | None = 3600.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        age_s, self.repeat_after = _seconds(min_age), _seconds(repeat_after)
        self.poll_interval = poll_interval
        arguments = ConnectorArguments(
            "this asset watcher",
            config=config,
            config_file=_local("config_file", as_path(config_file)),
            worker=_local("worker", as_path(worker)),
            worker_conn_id=worker_conn_id,
            kafka_conn_id=kafka_conn_id,
        )
        self.min_age = age_s
        age_ms = None if age_s is None else round(age_s * 1000)
        self._condition = LagReaches(min_records, min_bytes, age_ms)
        self._request = PeekRequest.of(arguments, self._condition)
        self._request.ensure_no_secrets()
        self._last: dict[str, Any] = {}

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; equal ones share one trigger."""
        arguments = self._request.arguments
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "config": dict(arguments.config or {}),
            "worker": arguments.worker,
            "worker_conn_id": arguments.worker_conn_id,
            "kafka_conn_id": arguments.kafka_conn_id,
            "min_records": self._condition.min_records,
            "min_bytes": self._condition.min_bytes,
            "min_age": self.min_age,
            "poll_interval": self.poll_interval,
            "repeat_after": self.repeat_after,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Events without an end. Nobody restarts a watcher, so an error is logged and looking goes on."""
        outage = Outage(self.log)
        self._last = await self._stored()
        async for seen in looks(self._request, self.poll_interval):
            if isinstance(seen, ConnectError):
                outage.begin(seen)
                continue
            outage.end()
            if seen.is_reached and self._is_new(seen):
                yield TriggerEvent(dict(seen.facts))  # type: ignore[no-untyped-call]
                # After the event: a triggerer that dies in between repeats it. A run that finds nothing does no harm.
                await self._store({"position": seen.position, "at_s": time.time()})

    def _is_new(self, seen: Observation) -> bool:
        if self._last.get("position") != seen.position:
            return True
        return self.repeat_after is not None and time.time() - float(self._last["at_s"]) >= self.repeat_after

    async def _stored(self) -> dict[str, Any]:
        store = self.asset_state_store
        if store is None:
            return {}
        try:
            found = await store.aget(STORED)
        except ValueError:  # The trigger watches several assets: then only this process remembers.
            return {}
        return found if isinstance(found, dict) and {"position", "at_s"} <= found.keys() else {}

    async def _store(self, last: dict[str, Any]) -> None:
        self._last = last
        store = self.asset_state_store
        if store is not None:
            try:
                await store.aset(STORED, last)
            except ValueError:
                return  # as in `_stored`


def _local(name: str, given: Any) -> Any:
    """The argument, unless it is a URL: parsing a DAG file reads no connection and asks no server."""
    if isinstance(given, str) and "://" in given:
        raise ConfigError(
            f"The {name} of this asset watcher is {given}, but it is read when the DAG file is parsed.",
            config_path=name,
            suggestion="Give the path of a file beside the DAG file, or a dictionary.",
        )
    return given


def _seconds(given: timedelta | float | None) -> float | None:
    return given.total_seconds() if isinstance(given, timedelta) else given
