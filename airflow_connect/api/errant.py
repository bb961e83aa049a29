"""How a sink task reports a record that it cannot write, without failing the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord


class ForeignException(NamedTuple):
    """An exception that is not Python's.

    Attributes:
        name: of its class.
        message: of it; "" if it has none.
        stacktrace: of it and of its causes.
    """

    name: str
    message: str
    stacktrace: str


class RecordFailedError(DataError):
    """A record failed in a stage that the connector's plugin runs itself (`Connector.runs_chain`).

    Attributes:
        stage, stage_class: Connect's name of the stage, and the class that failed.
        exception: what it has thrown, for the headers of a dead letter.
    """

    def __init__(self, message: str, code: str, stage: str, stage_class: str, exception: ForeignException) -> None:
        """`message`: a complete sentence, without the place of the record."""
        super().__init__(message, code=code)
        self.stage, self.stage_class, self.exception = stage, stage_class, exception

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from all parts."""
        return type(self), (self.message, self.code, self.stage, self.stage_class, self.exception)


class ErrantRecordReporter(Protocol):
    """Accepts records that a sink task received and cannot write.

    A reported record counts as handled: the task must not write it as well. Kafka Connect returns a future; here there
    is nothing to wait for, because dead letters are part of the run's commit, so offsets never overtake them. Call it
    from the thread that calls the task.

    Source: KIP-610, org.apache.kafka.connect.sink.ErrantRecordReporter.
    """

    def report(self, record: SinkRecord, error: BaseException) -> None:
        """Apply `errors.*` to a record: send it to the dead letter queue, log it, or only count it as skipped.

        Args:
            record: as passed to `put`, or a changed copy of it; the dead letter queue gets its original coordinates and
                bytes.
            error: why it cannot be written. The message of a `ConnectError` is used as it is; for others the class is
                added.

        Raises:
            DataError: errors are not tolerated (`errors.tolerance=none`), or `errors.max.records` is exceeded. The task
                must not catch it: the run ends, and nothing becomes visible.
        """
