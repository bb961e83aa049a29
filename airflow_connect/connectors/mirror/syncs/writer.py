"""Writes the offset syncs of a task when it ends.

The task does not ask Kafka where each record was written: that would cost more than copying it. The only writer of a
remote partition is the mirror, and it writes in order. So the place of every record follows from the end of the
partition's log before the first and after the last transaction, if the log grew by exactly what was copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.protocol.records import OffsetSync
from airflow_connect.connectors.mirror.syncs.ledger import CopiedRange, PartitionLedger, syncs_of
from airflow_connect.connectors.mirror.syncs.store import RANGE_HEADER
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.writing.produced import ProducedRecord
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.retrying import Backoff, Retry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.connectors.mirror.config import MirrorConfig

SETTLED_WITHIN_S = 10.0
"""How long to wait until the broker has written the marker of the last transaction."""
_TIMEOUT_MS = 60_000


class OffsetSyncLog:
    """The offset syncs of one task; does nothing if `emit.offset-syncs.enabled` is false."""

    def __init__(self, config: MirrorConfig, planned: Iterable[TopicPartition], note: Callable[[str], None]) -> None:
        """Look where the logs of the target end.

        Args:
            config: of the connector.
            planned: the partitions that the task will copy.
            note: takes a sentence for the report of the run.

        Raises:
            ConnectError: the target cluster refused, or did not answer.
        """
        self._config = config
        self._note = note
        self._admin: Admin | None = None
        self._remote: dict[TopicPartition, TopicPartition] = {}
        self._starts: Mapping[TopicPartition, int] = {}
        if config.emits_syncs:
            name = config.policy.remote_topic
            self._remote = {tp: TopicPartition(name(tp.topic), tp.partition) for tp in planned}
            self._admin = admin_client(config.target_admin())
            self._starts = _settled_ends(self._admin, self._remote.values())
        self._ledgers = {tp: PartitionLedger() for tp in self._remote}

    def returned(self, tp: TopicPartition, offsets: NDArray[np.int64]) -> None:
        """The task has returned these records of a partition of the source cluster."""
        if self._admin is not None:
            self._ledgers[tp].returned(offsets)

    def committed(self) -> None:
        """Everything returned so far was committed."""
        for ledger in self._ledgers.values():
            ledger.committed()

    def write(self, *, only_exact: bool = False) -> None:
        """Write the syncs of what was committed since the last call.

        Args:
            only_exact: write nothing about a partition that grew by something else, too. After a failure that may be
                another attempt of this task, whose syncs are newer.

        Syncs only make checkpoints exact. If they cannot be written, the report says so, and the copy stays valid.
        """
        copied = {tp: ledger for tp, ledger in self._ledgers.items() if ledger.records}
        if self._admin is None or not copied:
            return
        try:
            ends = _settled_ends(self._admin, [self._remote[tp] for tp in copied])
            self._send([record for tp in copied for record in self._records(tp, ends[self._remote[tp]], only_exact)])
        except ConnectError as error:
            self._note(f"Offset syncs were not written, so checkpoints stay where they are: {error.message}")
            return
        for tp in copied:
            self._ledgers[tp] = PartitionLedger()
        self._starts = {**self._starts, **ends}

    def _records(self, tp: TopicPartition, end: int, only_exact: bool) -> list[ProducedRecord]:
        ledger, start, remote = self._ledgers[tp], self._starts[self._remote[tp]], self._remote[tp]
        copied = ledger.ranges(start, end)
        if copied is None and only_exact:
            return []
        if copied is None:
            if not self._config.raw.get("transforms"):
                self._note(
                    f"{remote} grew by {end - start} offsets, but {ledger.records} records in {ledger.transactions}"
                    " transactions were copied, so something else writes to it. Checkpoints stay at the beginning of"
                    " this run."
                )
            # A group at or after the first record that was read continues where the log ended before.
            copied = [CopiedRange(ledger.first, start - 1, 1)] if start else []
        return [self._record(tp, one) for one in syncs_of(copied, self._config.sync_distance)]

    def _record(self, tp: TopicPartition, copied: CopiedRange) -> ProducedRecord:
        sync = OffsetSync(tp, copied.upstream, copied.downstream)
        headers = [(RANGE_HEADER, str(copied.length).encode())] if copied.length > 1 else []
        topic = self._config.policy.offset_syncs_topic(self._config.syncs_location)
        return ProducedRecord(topic, 0, sync.key(), sync.value(), headers)

    def _send(self, records: list[ProducedRecord]) -> None:
        settings = clients.producer_of(self._config.raw, self._config.syncs_location)
        producer = TaskProducer(settings, "", _TIMEOUT_MS)
        try:
            producer.fence()
            for record in records:
                producer.send(record)
            producer.flush()
        finally:
            producer.close()


def _settled_ends(admin: Admin, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Ends of logs, when the markers of all transactions are written and replicated.

    `commit_transaction` returns before the broker has written them. If a transaction stays open, the ends are those of
    now: then the log does not grow as expected.
    """
    wanted = list(tps)
    tries = Retry(Backoff(0.02, longest_s=0.1), within_s=SETTLED_WITHIN_S)
    while True:
        stable = watermarks.latest_offsets(admin, wanted, watermarks.READ_COMMITTED)
        ends = watermarks.latest_offsets(admin, wanted, watermarks.READ_UNCOMMITTED)
        if stable == ends or not tries.pause():
            return ends
