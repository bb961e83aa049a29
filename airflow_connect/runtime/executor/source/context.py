"""The context of a source task, with its control of transactions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from airflow_connect.runtime.left_out import LeftOut
from airflow_connect.runtime.reporting.notes import Notes

if TYPE_CHECKING:
    from airflow_connect.api.own_chain import RecordFailedError
    from airflow_connect.api.record import SourceRecord
    from airflow_connect.api.source import SourceOffset, SourcePartition
    from airflow_connect.errors import ConnectError
    from airflow_connect.runtime.executor.source.offsets import TaskOffsets


class TransactionMarks:
    """`api.source.TransactionContext`: requests of the task that the loop has not carried out yet.

    Source: org.apache.kafka.connect.runtime.WorkerTransactionContext.
    """

    def __init__(self) -> None:
        """Starts without requests."""
        self._commit_on: dict[int, SourceRecord] = {}
        self._abort_on: dict[int, SourceRecord] = {}
        self._commit_batch = False
        self._abort_batch = False

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """End the transaction after the batch that `poll` returns next, or after `record` of it."""
        if record is None:
            self._commit_batch = True
        else:
            self._commit_on[id(record)] = record

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Discard the transaction's records, including those of the next batch, or those up to `record` of it."""
        if record is None:
            self._abort_batch = True
        else:
            self._abort_on[id(record)] = record

    def aborts_on(self, record: SourceRecord) -> bool:
        """Whether the transaction is discarded with this record; clears the request."""
        return self._abort_on.pop(id(record), None) is not None

    def commits_on(self, record: SourceRecord) -> bool:
        """Whether the transaction ends with this record; clears the request."""
        return self._commit_on.pop(id(record), None) is not None

    def aborts_batch(self) -> bool:
        """Whether the transaction is discarded at the end of a batch; clears the request."""
        asked, self._abort_batch = self._abort_batch, False
        return asked

    def commits_batch(self) -> bool:
        """Whether the transaction ends at the end of a batch; clears the request."""
        asked, self._commit_batch = self._commit_batch, False
        return asked


class SourceContext:
    """`api.source.SourceTaskContext` of one task."""

    def __init__(
        self,
        config: Mapping[str, str],
        run_id: str,
        clock_ms: int,
        offsets: TaskOffsets,
        transaction: TransactionMarks | None,
        aws: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`transaction`: None unless `transaction.boundary=connector`; `aws`: of an Airflow connection."""
        self.config = config
        self.run_id = run_id
        self.clock_ms = clock_ms
        self.offset_reader = offsets
        self.transaction = transaction
        self.aws = aws
        self.records_left: int | None = None
        self.uses_transactions = False
        self.reader_settings: Mapping[str, Any] = {}
        self.worker_converters: Mapping[str, str] = {}
        self.done_parts = 0
        self.error: Exception | None = None
        self.notes = Notes()
        self.left_out = LeftOut()
        self._skipped: list[tuple[SourcePartition, SourceOffset]] = []
        self._dropped = 0
        self._failed: list[tuple[SourceRecord, RecordFailedError]] = []

    def note(self, sentence: str) -> None:
        """Add a sentence to the report of the run."""
        self.notes.add(sentence)

    def parts_done(self, number: int) -> None:
        """Tell pages how many parts are copied."""
        self.done_parts = number

    def count(self, sentence: str, number: int) -> None:
        """Add to the number of a note."""
        self.notes.count(sentence, number)

    def leave_out(self, part: str, error: ConnectError) -> None:
        """Fail the run because of a part of the source, when the others are committed."""
        self.left_out.add(part, error)

    def skip_to(self, partition: SourcePartition, offset: SourceOffset) -> None:
        """Reading resumes at `offset` after the current batch."""
        self._skipped.append((partition, offset))

    def take_skipped(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """The notes of the task since the last call."""
        taken, self._skipped = self._skipped, []
        return taken

    def count_dropped(self, number: int) -> None:
        """Count records that transformations of the task itself have dropped."""
        self._dropped += number

    def take_dropped(self) -> int:
        """How many since the last call."""
        taken, self._dropped = self._dropped, 0
        return taken

    def report_failed(self, record: SourceRecord, error: RecordFailedError) -> None:
        """Apply `errors.*` to a record that failed in the task."""
        self._failed.append((record, error))

    def take_failed(self) -> list[tuple[SourceRecord, RecordFailedError]]:
        """The failed records since the last call."""
        taken, self._failed = self._failed, []
        return taken

    def raise_error(self, error: Exception) -> None:
        """Fail the task with `error`, as soon as its method has returned; the first error counts."""
        self.error = self.error or error
