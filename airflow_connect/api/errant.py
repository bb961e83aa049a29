"""How a sink task reports a record that it cannot write, without failing the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord


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
