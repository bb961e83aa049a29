"""Sensors for connectors: how much there is to copy, whether a run has ended, whether a source has something new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from airflow_connect.airflow.connector_arguments import ConnectorArguments
from airflow_connect.errors import ConfigError
from airflow_connect.observe.watches.conditions import FAIL, LagReaches, RunEnds, SourceChanges
from airflow_connect.sensors.peeking import ConnectorSensor, milliseconds, milliseconds_of
from airflow_connect.triggers.request import PeekRequest


class ConnectorLagSensor(ConnectorSensor):
    """Waits until a sink connector has enough to copy. One of the bounds that are set is enough.

    XCom: `connector`, `records`, `bytes`, `offsets` ({"topic-partition": [committed, end]}, the 100 partitions with the
    largest lag) and, with `min_age`, `age_s`.

    Args:
        min_records: offsets from the committed ones to the ends of the logs. Gaps count, so there may be fewer records.
        min_bytes: an estimate: those offsets times the bytes per record that the connector's last run measured for the
            topic, before the first run 200.
        min_age: of the oldest record that is not copied, by its timestamp; a timedelta, or seconds.
        kwargs: as for `ConnectorSensor`.

    Raises:
        ConfigError: no bound is set, or one is not positive.
    """

    def __init__(
        self,
        *,
        min_records: int | None = None,
        min_bytes: int | None = None,
        min_age: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.min_records = min_records
        self.min_bytes = min_bytes
        self.min_age = min_age
        self.arguments().check()
        self._condition()

    def request(self) -> PeekRequest:
        """See `PeekingSensor`."""
        return PeekRequest.of(self.arguments(), self._condition())

    def _condition(self) -> LagReaches:
        return LagReaches(self.min_records, self.min_bytes, milliseconds_of(self.min_age))


class ConnectorRunSensor(ConnectorSensor):
    """Waits until a run of a connector has ended: it has committed, or has found nothing to copy.

    If the run has failed for good, the sensor fails at once: another try would fail in the same way, or the Airflow
    task has none left. Failed tries that are followed by others are waited through. A run tells how it has ended
    through Kafka. One that was killed, or that failed because a server did not answer, cannot; that such a run with a
    given `run_id` has ended is known as soon as a later run begins to copy.

    XCom: `connector`, `run_id`, `status` ("done" or "empty"), `started_ms`, `ended_ms`, `records`; of a run that has
    committed also `files`, `size_bytes` and `recovered_run_id`.

    Args:
        connector: name of the connector, instead of `config` and `config_file`. Templated.
        since: only runs that began at this time or later; a datetime or its text. Templated; by default the time from
            which the sensor's own DAG run could start.
        run_id: this run instead, such as the `run_id` in the XCom of a `ConnectorOperator`. Templated.
        on_failure: `fail` or `wait`, if the run that is waited for is known to have failed. Without `run_id`, `wait`
            waits for the next run that does not fail.
        kwargs: as for `ConnectorSensor`.

    Raises:
        ConfigError: not exactly one of `connector`, `config` and `config_file` is given.
    """

    template_fields: Sequence[str] = (*ConnectorSensor.template_fields, "connector", "since", "run_id")

    def __init__(
        self,
        *,
        connector: str | None = None,
        since: datetime | str = "{{ dag_run.run_after }}",
        run_id: str = "",
        on_failure: str = FAIL,
        config: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(config=config, **kwargs)
        if connector is not None and (config is not None or self.config_file is not None):
            raise ConfigError(
                f"Task {self.task_id!r} has connector and also config or config_file.",
                config_path="connector",
                suggestion="Give the name of the connector, or its configuration.",
            )
        self.connector = connector
        self.since = since
        self.run_id = run_id
        self.on_failure = on_failure
        self.arguments().check()
        RunEnds(on_failure=on_failure)

    def arguments(self) -> ConnectorArguments:
        """What names the connector."""
        given = super().arguments()
        return given if self.connector is None else replace(given, config={"name": self.connector})

    def request(self) -> PeekRequest:
        """See `PeekingSensor`."""
        since_ms = None if self.run_id else milliseconds(self.since, "since")
        return PeekRequest.of(self.arguments(), RunEnds(since_ms or 0, self.run_id or "", self.on_failure))


class SourceChangedSensor(ConnectorSensor):
    """Waits until a source connector has something to read that it has not committed.

    The connector lists its source and compares that with the committed offsets, as in the plan of a run. It can only
    tell if its `task_configs` returns no task when there is nothing to read, as those of the file source and the JDBC
    source do. Other connectors always have a task: those with the default `task_configs` are refused; the metrics
    source, and the JDBC source in mode bulk, are always ready. In a triggerer, at most four sources are listed at the
    same time.

    XCom: `connector`, `tasks` (how many tasks have something to do) and `source_partitions` (with a committed offset).
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.arguments().check()

    def request(self) -> PeekRequest:
        """See `PeekingSensor`."""
        return PeekRequest.of(self.arguments(), SourceChanges())


__all__ = ["ConnectorLagSensor", "ConnectorRunSensor", "SourceChangedSensor"]
