"""Writes the offset syncs of a task when it ends.

The task does not ask Kafka where each record was written: that would cost more than copying it. The only writer of a
remote partition is the mirror, and it writes in order. So the place of every record follows from the end of the
partition's log before the first and after the last transaction, if the log grew by exactly what was copied, and if
nothing can have left a record out in between. Otherwise a sync tells only where the log ended before.

The driver writes such a sync before the tasks start, too (`write_begins`). If a task is killed before it writes others,
syncs of earlier runs would seem to tell where its copies are. After offsets were deleted or set back, they would send a
group past records that it has not read. It is the driver that writes them, because an attempt that was frozen could
read the end of the log when another attempt has copied already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.mirror import clients
from airflow_connect.connectors.mirror.protocol.records import OffsetSync
from airflow_connect.connectors.mirror.syncs.ledger import CopiedRange, PartitionLedger, syncs_of
from airflow_connect.connectors.mirror.syncs.store import RANGE_HEADER, TOPIC_IDS_HEADER
from airflow_connect.counting import agreeing, plural
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.admin.topics import resolve_topics
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.writing.produced import ProducedRecord
from airflow_connect.kafka.writing.task_producer import TaskProducer
from airflow_connect.retrying import Backoff, Retry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.source import SourceTaskContext
    from airflow_connect.connectors.mirror.config import MirrorConfig
    from airflow_connect.connectors.mirror.work import MirroredRange

SETTLED_WITHIN_S = 10.0
"""How long to wait until the broker has written the marker of the last transaction."""
_TIMEOUT_MS = 60_000


class OffsetSyncLog:
    """The offset syncs of one task; does nothing if `emit.offset-syncs.enabled` is false."""

    def __init__(self, config: MirrorConfig, planned: Iterable[MirroredRange], context: SourceTaskContext) -> None:
        """Look where the logs of the target end.

        Args:
            config: of the connector.
            planned: what the task will copy.
            context: of the task.

        Raises:
            ConnectError: the target cluster refused, or did not answer.
        """
        self._config = config
        self._context = context
        self._admin: Admin | None = None
        self._remote: dict[TopicPartition, TopicPartition] = {}
        self._starts: Mapping[TopicPartition, int] = {}
        self._topic_ids: Mapping[str, str] = {}
        if config.emits_syncs:
            name = config.policy.remote_topic
            # A range without offsets may be of a partition that neither cluster has any more.
            self._sources = {one.topic_partition: one.topic_id for one in planned if one.start < one.end}
            self._remote = {tp: TopicPartition(name(tp.topic), tp.partition) for tp in self._sources}
            self._admin = admin_client(config.target_admin())
            # As planned: the run says so if a topic was recreated between the plan and this task.
            found = _topic_ids(self._admin, self._remote.values())
            self._topic_ids = {**found, **{name(one.topic): one.copy_id for one in planned if one.copy_id}}
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
            only_exact: write nothing about a partition whose copies have no known place. After a failure that may be
                another attempt of this task, whose syncs are newer.

        Syncs only make checkpoints exact. If they cannot be written, the report says so, and the copy stays valid.
        """
        copied = {tp: ledger for tp, ledger in self._ledgers.items() if ledger.records}
        if self._admin is None or not copied:
            return
        try:
            ends = _settled_ends(self._admin, [self._remote[tp] for tp in copied])
            ids = _topic_ids(self._admin, [self._remote[tp] for tp in copied])
            known = [tp for tp in copied if self._is_same(self._remote[tp].topic, ids)]
            self._send([record for tp in known for record in self._records(tp, ends[self._remote[tp]], only_exact)])
        except ConnectError as error:
            self._context.note(not_written(error))
            return
        for tp in copied:
            self._ledgers[tp] = PartitionLedger()
        self._starts, self._topic_ids = {**self._starts, **ends}, {**self._topic_ids, **ids}

    def _is_same(self, remote: str, ids: Mapping[str, str]) -> bool:
        """Whether a topic of the target is still the one to which the task began to copy."""
        if ids[remote] == self._topic_ids[remote]:
            return True
        self._context.note(
            f"Topic {remote} of the target cluster was recreated while records were copied to it, so some of them may"
            " be missing there. No offset syncs were written for it: consumer groups are not translated there until the"
            " next run."
        )
        return False

    def _records(self, tp: TopicPartition, end: int, only_exact: bool) -> list[ProducedRecord]:
        ledger, start = self._ledgers[tp], self._starts[self._remote[tp]]
        copied = None
        if not self._config.may_drop(has_transactions=self._context.uses_transactions):
            copied = ledger.ranges(start, end, has_markers=self._context.uses_transactions)
        if copied is not None:
            return [self._record(tp, one) for one in syncs_of(copied, self._config.sync_distance)]
        if only_exact:
            return []
        self._context.note(self._why_unknown(tp, end - start))
        # Every copy is at or after `start`: a group there continues where the log ended before.
        return [self._record(tp, CopiedRange(ledger.first, start - 1, 0))]

    def _why_unknown(self, tp: TopicPartition, grown: int) -> str:
        ledger = self._ledgers[tp]
        if self._config.may_drop(has_transactions=self._context.uses_transactions):
            return (
                "Transformations, or errors.tolerance=all, may leave records out, so the places of their copies are"
                " not known. Consumer groups are translated to where this run began at most, and may read its records"
                " again."
            )
        return (
            f"{self._remote[tp]} grew by {plural(grown, 'offset')}, but {plural(ledger.records, 'record')} in"
            f" {plural(ledger.transactions, 'transaction')} {agreeing(ledger.records, 'were')} copied,"
            " so something else writes to it. Consumer groups are translated to where this"
            " run began at most, and may read its records again."
        )

    def _record(self, tp: TopicPartition, copied: CopiedRange) -> ProducedRecord:
        """A sync. Its offset of the target is that of a copy, or the last one before the run if `length` is 0."""
        ids = f"{self._sources[tp]},{self._topic_ids[self._remote[tp].topic]}"
        return _sync(self._config, tp, copied, ids)

    def _send(self, records: list[ProducedRecord]) -> None:
        _send(self._config, records)


def write_begins(config: MirrorConfig, target: Admin, planned: Iterable[MirroredRange]) -> None:
    """Write that the copies of what a run will read are at or after the present end of their log.

    Also at the end 0: syncs of MirrorMaker 2 tell no ids, so they may be about an earlier topic of this name.

    Args:
        config: of the connector; nothing is written if `emit.offset-syncs.enabled` is false.
        target: admin client of the target cluster.
        planned: no task may have begun with them.

    Raises:
        ConnectError: one of the clusters refused, or did not answer.
    """
    name = config.policy.remote_topic
    copies = {one: TopicPartition(name(one.topic), one.partition) for one in planned if one.start < one.end}
    if not config.emits_syncs or not copies:
        return
    ends = watermarks.latest_offsets(target, list(copies.values()), watermarks.READ_UNCOMMITTED)
    _send(
        config,
        [
            _sync(
                config, one.topic_partition, CopiedRange(one.start, ends[copy] - 1, 0), f"{one.topic_id},{one.copy_id}"
            )
            for one, copy in copies.items()
        ],
    )


def not_written(error: ConnectError) -> str:
    """The note about syncs that could not be written."""
    return f"Offset syncs were not written, so checkpoints stay where they are: {error.message}"


def _sync(config: MirrorConfig, tp: TopicPartition, copied: CopiedRange, ids: str) -> ProducedRecord:
    """A sync as a record; `ids` of the topic and its copy, as in `TOPIC_IDS_HEADER`."""
    sync = OffsetSync(tp, copied.upstream, copied.downstream)
    headers = [(TOPIC_IDS_HEADER, ids.encode())]
    if copied.length != 1:
        headers.append((RANGE_HEADER, str(copied.length).encode()))
    topic = config.policy.offset_syncs_topic(config.syncs_location)
    return ProducedRecord(topic, 0, sync.key(), sync.value(), headers)


def _send(config: MirrorConfig, records: list[ProducedRecord]) -> None:
    producer = TaskProducer(clients.producer_of(config.raw, config.syncs_location), "", _TIMEOUT_MS)
    try:
        producer.fence()
        for record in records:
            producer.send(record)
        producer.flush()
    finally:
        producer.close()


def _topic_ids(admin: Admin, tps: Iterable[TopicPartition]) -> dict[str, str]:
    """Kafka's ids of topics."""
    found = resolve_topics(admin, sorted({tp.topic for tp in tps}), None)
    return {topic: info.topic_id for topic, info in found.items()}


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
