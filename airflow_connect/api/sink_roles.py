"""What a run passes to the tasks of a sink; Java's clients on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord


class ErrorHandling(Protocol):
    """What `errors.*` means for records that a sink cannot write."""

    def report_errant(self, record: SinkRecord, error: BaseException) -> bool:
        """Record that the sink cannot write a record; True: the dead letter queue gets it, False: it is dropped.

        Raises:
            ConnectError: the task must end; see `api.errant`.
        """

    def leave_out(self, record: SinkRecord, reason: Exception) -> bool:
        """Send a record that the sink drops on purpose to the dead letter queue; False if there is none."""

    def raise_pending_error(self) -> None:
        """Raise again what `report_errant` raised, for a sink that swallowed it."""

    def repeat_put(self, put: Callable[[], None]) -> None:
        """Call `put`, and repeat it with pauses while it raises a temporary error.

        Raises:
            Exception: the last temporary error, or the first permanent one.
        """


class Jvm(Protocol):
    """A JVM next to the driver that Python talks to through py4j."""

    gateway: Any
    """py4j's `JavaGateway`."""

    @property
    def is_running(self) -> bool:
        """Whether it answers calls."""

    def stop(self) -> None:
        """End it; idempotent."""


@dataclass(frozen=True, slots=True)
class SinkGroup:
    """The consumer group that holds the offsets of a sink, for connectors that commit them themselves.

    Attributes:
        name: `connect-<name>`, unless the configuration has another one.
        client: librdkafka settings of a consumer; may hold secrets.
        java: properties of a consumer in Java; may hold secrets.
    """

    name: str
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    java: Mapping[str, str] = field(default_factory=dict, repr=False)


StartJvm = Callable[[Sequence[str], Sequence[str]], Jvm]
"""Starts a JVM with Hadoop's client on its class path: folders before the jars, more options -> the JVM.

Raises AccessError if Java, py4j or Hadoop is missing, UnavailableError if the JVM does not start.
"""


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What a run passes to a task of a sink.

    Attributes:
        config: the connector's configuration, resolved; may hold secrets.
        aws: credentials of an Airflow connection, or {}.
        run_id: identifier of the run; stored in the metadata of objects.
        now_ms: the run's frozen clock.
        flush_on_end: whether the run leaves no record to the next one (`flush.on.end`, `PlannedState.leaves_nothing`).
        state: the document that the connector's `plan_state` returned for tasks; {} if none.
        topic_ids: Kafka's id of each topic of the run, if the brokers have ids. A topic that is deleted and created
            again gets another one, and its offsets begin at 0.
        task_config: what the connector's `task_configs` returned for this task.
        errors: applies `errors.*`; None if no record is written.
        check_each: whether `put` must check for each single record that it can be encoded. Tasks start without it,
            because an encoder is far faster with many records at once. If the encoder raises UnencodableError, the
            task starts over with `check_each`, so that only the bad record is dropped.
    """

    config: Mapping[str, str] = field(repr=False)
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    run_id: str = ""
    now_ms: int = 0
    flush_on_end: bool = True
    state: Mapping[str, Any] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    task_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    errors: ErrorHandling | None = None
    check_each: bool = False
