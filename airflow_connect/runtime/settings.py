"""What the driver gives to every task of a run: plain data that is sent with the Spark job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.config.resolved.worker import without_keys_of_driver

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import ErrorHandling
    from airflow_connect.config.resolved.loading import ResolvedConfig
    from airflow_connect.config.resolved.source import ResolvedSourceConfig
    from airflow_connect.exactly_once.guarantee import Guarantee
    from airflow_connect.jvm.discovery.same_plugins import UsedPlugin


@dataclass(frozen=True, slots=True)
class KnownState:
    """What the driver has read from state topics, so tasks need to read only later records.

    Attributes:
        claim_from: offset of the connector's partition of the runs topic; the run's claim is not before it.
        offsets: `OffsetsView.packed` of all offsets; b"": a task has the offsets it needs in `own`, or must read them.
        own: the same of each task's own offsets; b"": it gets `offsets`.
    """

    claim_from: int = 0
    offsets: bytes = field(default=b"", repr=False)
    own: Sequence[bytes] = field(default=(), repr=False)

    def offsets_of(self, task: int) -> bytes:
        """What a task gets."""
        return (self.own[task] if task < len(self.own) else b"") or self.offsets


@dataclass(frozen=True, slots=True)
class SourceTaskSettings:
    """What tasks of a source get in addition to the configuration.

    Attributes:
        guarantee: the delivery guarantee of the run, determined by the driver.
        max_records, max_bytes: the share of one task; 0: no limit.
        max_seconds: 0: no limit.
        known: what need not be read again.
    """

    guarantee: Guarantee
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
        resolved: both of them, checked and typed by the driver; tasks do not parse them again.
        aws: credentials of an Airflow connection, or {}.
        run_id: identity of the run.
        now_ms: the run's frozen clock.
        flush_on_end, topic_ids: see `RoleContext`.
        state: see `RoleContext`; frozen by the run's plan, and kept in its manifest.
        columnar: whether the columnar path may be used.
        task_configs: configuration of each task, from the connector; () if all tasks use the connector's own.
        together: whether tasks wait for each other, so that all of them must run at the same time.
        progress: `host`, `port` and `token` of the driver's progress listener, or {}.
        source: additional settings for tasks of a source; None for sinks.
        java_plugins: those of the run, as the driver has them.
    """

    connector: Mapping[str, str] = field(repr=False)
    worker: Mapping[str, Any] = field(repr=False)
    resolved: ResolvedConfig | ResolvedSourceConfig | None = field(default=None, repr=False)
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_id: str = ""
    now_ms: int = 0
    flush_on_end: bool = True
    state: Mapping[str, Any] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    columnar: bool = True
    task_configs: Sequence[Mapping[str, str]] = field(default=(), repr=False)
    together: bool = False
    progress: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: SourceTaskSettings | None = None
    java_plugins: Sequence[UsedPlugin] = ()

    def task_context(self, task: int, errors: ErrorHandling) -> RoleContext:
        """The context of one task of a sink."""
        own = self.task_configs[task % len(self.task_configs)] if self.task_configs else self.connector
        return RoleContext(
            config=self.connector,
            aws=self.aws,
            run_id=self.run_id,
            now_ms=self.now_ms,
            flush_on_end=self.flush_on_end,
            state=self.state,
            topic_ids=self.topic_ids,
            task_config=own,
            errors=errors,
        )

    def for_tasks(self) -> TaskSettings:
        """Without what only the driver uses of the worker: see `without_keys_of_driver`."""
        resolved = self.resolved and replace(self.resolved, worker=self.resolved.worker.for_tasks())
        return replace(self, worker=without_keys_of_driver(self.worker), resolved=resolved)
