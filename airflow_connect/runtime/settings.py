"""What the driver hands to every task of a run: plain data that travels with the Spark job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.sink_roles import RoleContext

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.sink_roles import ErrorHandling


@dataclass(frozen=True, slots=True)
class KnownState:
    """What the driver has read of topics of state, so that tasks read only what came later.

    Attributes:
        claim_from: offset of the connector's partition of the runs topic; the run's claim is not before it.
        offsets: `OffsetsView.packed`; b"": tasks read all of the offsets topics.
    """

    claim_from: int = 0
    offsets: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class SourceTaskSettings:
    """What tasks of a source get beside the configuration.

    Attributes:
        delivery_guarantee: what the run promises, decided by the driver.
        max_records, max_bytes: the share of one task; 0: no limit.
        max_seconds: 0: no limit.
        known: what need not be read again.
    """

    delivery_guarantee: str
    max_records: int = 0
    max_bytes: int = 0
    max_seconds: float = 0.0
    known: KnownState = field(default_factory=KnownState)


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Configuration of all tasks of one run. Holds secrets: it is never logged or written anywhere.

    Attributes:
        connector: the connector's configuration, resolved.
        worker: the worker's configuration.
        aws: credentials of an Airflow connection, or {}.
        run_id: identity of the run.
        now_ms: the run's frozen clock.
        schedule_expired: see `RoleContext`.
        late_before, schemas_before: see `RoleContext`; frozen by the run's plan, and kept in its manifest.
        columnar: whether the columnar path may be used.
        task_configs: configuration of each task, from the connector; () where all tasks use the connector's own.
        progress: `host`, `port` and `token` of the driver's progress listener, or {}.
        source: what only tasks of a source get; None for sinks.
    """

    connector: Mapping[str, str] = field(repr=False)
    worker: Mapping[str, Any] = field(repr=False)
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_id: str = ""
    now_ms: int = 0
    flush_on_end: bool = True
    schedule_expired: bool = False
    late_before: Mapping[str, int] = field(default_factory=dict)
    schemas_before: Mapping[TopicPartition, str] = field(default_factory=dict)
    columnar: bool = True
    task_configs: Sequence[Mapping[str, str]] = field(default=(), repr=False)
    progress: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: SourceTaskSettings | None = None

    def task_context(self, task: int, errors: ErrorHandling) -> RoleContext:
        """What the executor role of the sink is opened with, for one task."""
        own = self.task_configs[task % len(self.task_configs)] if self.task_configs else self.connector
        return replace(self.sink_context(), task_config=own, errors=errors)

    def sink_context(self) -> RoleContext:
        """What the driver role of the sink is opened with."""
        return RoleContext(
            config=self.connector,
            aws=self.aws,
            run_id=self.run_id,
            now_ms=self.now_ms,
            flush_on_end=self.flush_on_end,
            schedule_expired=self.schedule_expired,
            late_before=self.late_before,
            schemas_before=self.schemas_before,
        )
