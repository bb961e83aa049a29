"""How a sink task reports a record that it cannot write, without failing the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord


class ErrantRecordReporter(Protocol):
    """Takes records that a sink task was given and cannot write.

    A reported record counts as dealt with: the task must not write it as well. Where Kafka Connect answers with a
    future, nothing has to be waited for here: dead letters are part of the commit of the run, so offsets never
    overtake them. Call it from the thread that calls the task.

    Source: KIP-610, org.apache.kafka.connect.sink.ErrantRecordReporter.
    """

    def report(self, record: SinkRecord, error: BaseException) -> None:
        """Apply `errors.*` to a record: dead letter queue, log, or only counted as left out.

        Args:
            record: as it was given to `put`, or a changed copy of it; its original coordinates and bytes are what the
                dead letter queue gets.
            error: why it cannot be written. A `ConnectError` keeps its sentence; others are told with their class.

        Raises:
            DataError: errors are not tolerated (`errors.tolerance=none`), or `errors.max.records` is exceeded. The
                task must let it pass: the run ends, and nothing of it becomes visible.
        """
