"""Whether a restore is the first to write to a partition: two that begin at the same moment find the same empty topic.

The driver's check comes before the first record, so it cannot see a restore that begins meanwhile. The task looks once
more in its first transaction for a partition, when Kafka has its records and before they are visible: nothing that is
committed, or may still be, may lie before its first record. Records have one order, so of two restores the one whose
first record comes later finds the other's, whether its transaction has ended or not. What was aborted does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.keys import ANY, RestoreKeys
from airflow_connect.errors import ConnectError, OffsetError, UnavailableError
from airflow_connect.kafka.reading.first_timestamps import BEGINNING, FirstRecord, first_records

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceTaskContext
    from airflow_connect.connectors.restore.config import RestoreConfig

FETCH_BYTES, READ_S = 1 << 20, 30.0
"""Of a partition at a time, and of all: earlier attempts may have left aborted transactions. The open one of this task
may be so old before Kafka ends it (60 s)."""


class Alone:
    """Partitions of topics in which no record of this connector is visible yet."""

    def __init__(self, partitions: Iterable[TopicPartition], reader_settings: Mapping[str, Any]) -> None:
        """`reader_settings`: librdkafka settings of a consumer."""
        self._left = set(partitions)
        self._sent: set[TopicPartition] = set()
        # A follower may know less than its leader.
        self._settings = {name: value for name, value in reader_settings.items() if name != "client.rack"}

    @classmethod
    def of(cls, typed: RestoreConfig, context: SourceTaskContext, untouched: Iterable[TopicPartition]) -> Alone:
        """For a task; `untouched`: partitions that nothing was restored to before."""
        return cls(() if typed.must_be == ANY else untouched, context.reader_settings)

    def sent(self, tp: TopicPartition) -> None:
        """Records of the open transaction go to a partition, so `check` has to learn where they are."""
        self._sent.add(tp)

    def check(self, first: Mapping[TopicPartition, int]) -> None:
        """Look at what lies before the first record of a transaction in each partition.

        Raises:
            OffsetError: there is something that this connector has not restored.
            UnavailableError: it cannot be read.
        """
        written = {tp: offset for tp, offset in first.items() if tp in self._left}
        if unknown := sorted(self._sent & self._left - written.keys()):
            raise _unknown(unknown[0])
        self._sent.clear()
        before = {tp: offset for tp, offset in written.items() if offset != 0}
        found = first_visible(self._settings, before) if before else {}
        for tp, offset in sorted(before.items()):
            one = found.get(tp)
            if isinstance(one, ConnectError):
                raise one
            if one is None or offset < 0:
                raise _unknown(tp)
            if one.offset < offset:
                raise _not_alone(tp, offset, one.offset, is_open=one.timestamp_ms is None)
        self._left -= written.keys()


def first_visible(
    settings: Mapping[str, Any], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, FirstRecord | ConnectError]:
    """The first committed record of each partition, or where an open transaction begins; see `first_records`."""
    beginning = dict.fromkeys(partitions, BEGINNING)
    return first_records(settings, beginning, "read_committed", fetch_bytes=FETCH_BYTES, within_s=READ_S)


def _unknown(tp: TopicPartition) -> UnavailableError:
    return UnavailableError(
        f"It is unknown whether {tp} has records before those that were restored. None was committed.",
        suggestion="Another attempt looks again.",
    )


def _not_alone(tp: TopicPartition, first: int, other: int, *, is_open: bool) -> OffsetError:
    what = f"a transaction that has begun at offset {other} and not ended" if is_open else f"a record at offset {other}"
    return OffsetError(
        f"{tp} was empty when this run began, or held nothing that was committed, and has {what} now, before the first"
        f" record of this run at offset {first}: another restore, or another program, writes to the topic. The records"
        " of this run in that transaction were aborted.",
        code="restore.not_alone",
        suggestion="Let one connector restore to the topic. For another copy, delete the offsets of this connector, and"
        f" restore to another topic with {RestoreKeys.rename}; {RestoreKeys.must_be}=any appends to what is there.",
    )
