"""The executors' reader: half-open offset ranges, in order per partition, with bounded memory, and always finite.

How it ends: a range is done when its position reaches `end`. The position moves with each record, and jumps when
librdkafka reports the end of the partition, which is the only sign of offsets that are never delivered (transaction
markers, aborted records, records removed by compaction at the tail). A record at or after `end` proves that nothing is
left before it, so a producer that keeps writing does not extend a range. A finished partition is unassigned
immediately.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.counting import names
from airflow_connect.errors import AccessError, ConfigError, ConnectError, DataError, OffsetError, UnavailableError
from airflow_connect.kafka.clients.short_lived import (
    QuickConsumer,
    ensure_reachable,
    state_consumer,
    state_consumer_settings,
    translate,
)
from airflow_connect.kafka.reading.messages import UnreadableHeadersError, ensure_readable, record_of
from airflow_connect.kafka.reading.unreadable_topics import ReadWatch
from airflow_connect.retrying import Backoff, Retry

if TYPE_CHECKING:
    from airflow_connect.kafka.reading.batch_fetch import BatchFetch
    from airflow_connect.kafka.reading.column_batch import ColumnBatch

MAX_RECORDS = 2_000
"""Messages requested in one call. With 2 M records of 200 bytes: 1.9 M/s with 2,000, 1.5 M/s with 10,000,
because the objects of a small batch stay in the processor's cache."""
_WAIT_S = 0.05
HAND_OVER_S = 3.0
"""After this time without progress, the Python client takes over: it can report what is wrong."""
TAKE_BACK_S = 10.0
"""A Python client that has taken over hands back after reading for this long; the time doubles each time."""
LONGEST_TAKE_BACK_S = 600.0
THROUGHPUT: Mapping[str, Any] = {
    # With sparse connections the first one often waits for a timer of a second: measured in 5 of 8 readers.
    "enable.sparse.connections": False,
    "queued.max.messages.kbytes": 32 * 1024,
    "queued.min.messages": 50_000,
    # librdkafka's 1,000 ms leave a fast reader without data whenever the queue was full for a moment.
    "fetch.queue.backoff.ms": 5,
    # A broker's CPU time is that of its answers: 0.06 s per million records of 200 bytes, 0.13 s with a quarter of
    # these sizes. Not larger: what compressed data unpacks to is not counted by any limit. With zstd at a ratio of 40
    # and 200 partitions a reader takes 220 MB, as with a quarter.
    "fetch.max.bytes": 4 * 1024 * 1024,
    "max.partition.fetch.bytes": 1024 * 1024,
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
    "socket.receive.buffer.bytes": 1024 * 1024,
}


def read_ahead_settings(partition_records: int, fetched_bytes: int) -> dict[str, Any]:
    """Settings for `RangeReader`: how much may wait in the consumer.

    Args:
        partition_records: of each partition.
        fetched_bytes: of all partitions, without what librdkafka adds to each message, which is 400 bytes.
    """
    return {"queued.min.messages": partition_records, "queued.max.messages.kbytes": max(1, fetched_bytes >> 10)}


_Run: TypeAlias = "list[Message[Any, Any]]"


class RangeReader:
    """Reads ranges of records; iterate over `records()` or `columns()` once.

    Args:
        settings: librdkafka settings; its `isolation.level` decides about transactions (default
        read_committed).
        ranges: at most one per topic-partition; empty ones are done at once.
        on_stall_s: give up after this long without any progress; the time that the caller takes does not
        count.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        ranges: Sequence[OffsetRange],
        on_stall_s: float = 120.0,
    ) -> None:
        self._ends = {r.topic_partition: r.end for r in ranges if not r.is_empty}
        self._positions = {r.topic_partition: r.start for r in ranges}
        if len(self._positions) != len(ranges):
            raise ValueError("a topic-partition has more than one range")
        self._settings = {**THROUGHPUT, **settings}
        self._on_stall_s = on_stall_s
        self._consumer: QuickConsumer | None = None
        self._fetch: BatchFetch | None = None
        self._problem = ""
        self._reasons: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the run's report: why columns were read on the slow path."""
        if not self._reasons:
            return ()
        return (f"Kafka was read for a while by the slower Python client: {names(self._reasons)}.",)

    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of each range: everything below has been yielded or does not exist for this reader."""
        return dict(self._positions)

    def records(self) -> Iterator[tuple[TopicPartition, list[KafkaRecord]]]:
        """Batches as objects: the reference form."""
        for tp, run in self._runs():
            try:
                records = [record_of(tp, message) for message in run]
            except UnreadableHeadersError as error:
                for batch in self._read_directly(tp, run, error):
                    yield tp, batch.records()
            else:
                yield tp, records

    def columns(self) -> Iterator[ColumnBatch]:
        """Batches as columns: the same records for a fifth of the time.

        Where librdkafka can be called directly, no message becomes a Python object. When that meets an error, or
        nothing comes for a while, the Python client takes over: it knows what is wrong. Once it has read for a while
        without trouble, it hands back.
        """
        from airflow_connect.kafka.clients.librdkafka import NotDirectError
        from airflow_connect.kafka.reading.message_columns import columns_of

        take_back_s = TAKE_BACK_S
        while self._ends:
            try:
                yield from self._fetched()
            except NotDirectError as error:
                self._reasons[str(error)] = None
                take_back_s = float("inf")
            for tp, run in self._runs(take_back_s):
                try:
                    ensure_readable(run)
                except UnreadableHeadersError as error:
                    yield from self._read_directly(tp, run, error)
                else:
                    yield from columns_of(tp, run)
            take_back_s = min(2 * take_back_s, LONGEST_TAKE_BACK_S)

    def stop(self, tp: TopicPartition) -> None:
        """Stop reading a partition; messages already fetched are not yielded. Idempotent."""
        if tp in self._ends:
            self._finish(tp, self._positions[tp])

    def close(self) -> None:
        """Release the connections; also called when an iterator ends, fails or is closed."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()
        fetch, self._fetch = self._fetch, None
        if fetch is not None:
            fetch.close()

    def _fetched(self) -> Iterator[ColumnBatch]:
        """Batches that are fetched below Python, until a range needs the Python client or none is left.

        Raises:
            NotDirectError: nothing can be fetched that way.
        """
        from airflow_connect.kafka.reading.batch_fetch import open_fetch
        from airflow_connect.kafka.reading.message_memory import Event

        positions = {tp: self._positions[tp] for tp in self._ends}
        fetch = self._fetch = open_fetch(state_consumer_settings(**self._consumer_settings()), positions)
        try:
            last_progress = time.monotonic()
            while self._ends:
                before = sum(self._positions.values())
                for part in fetch.fetch(self._left(), _WAIT_S):
                    if not isinstance(part, Event):
                        yield from self._cut_columns(part)
                    elif part.code != KafkaError._PARTITION_EOF:
                        self._reasons[KafkaError(part.code).str()] = None
                        return
                    else:
                        self._at_end_of_partition(part.topic_partition, part.offset)
                if sum(self._positions.values()) != before:
                    last_progress = time.monotonic()
                elif time.monotonic() - last_progress > min(HAND_OVER_S, self._on_stall_s):
                    self._reasons[f"nothing came for {HAND_OVER_S:.0f} s"] = None
                    return
        finally:
            self.close()

    def _read_directly(
        self, tp: TopicPartition, run: _Run, unreadable: UnreadableHeadersError
    ) -> Iterator[ColumnBatch]:
        """The records of `run` again, below Python.

        Raises:
            DataError: that is not possible.
        """
        from airflow_connect.kafka.clients.librdkafka import NotDirectError

        first, last = (int(run[n].offset() or 0) for n in (0, -1))
        again = RangeReader(self._settings, [OffsetRange(*tp, first, last + 1)], self._on_stall_s)
        tries = Retry(Backoff(0), within_s=self._on_stall_s)
        try:
            while again._ends:
                yield from again._fetched()
                if again._ends and not tries.pause():
                    raise self._stalled()
        except NotDirectError as reason:
            raise DataError(
                f"{tp}@{unreadable.offset} has a header whose name is not UTF-8 ({unreadable.name!r}). Kafka's Python"
                f" client cannot read it, and librdkafka cannot be called directly here: {reason}.",
                code="data.unreadable_header",
                suggestion=f"Run on 64-bit Linux with CPython, or set the offset of this partition to"
                f" {unreadable.offset + 1} to go on without the record.",
            ) from unreadable

    def _cut_columns(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        """As `_cut`."""
        tp = batch.topic_partition
        end = self._ends.get(tp)
        if end is None:
            return
        after = int(batch.offsets[-1]) + 1
        if after < end:
            self._positions[tp] = after
            yield batch
            return
        self._finish(tp, end)
        kept = len(batch) if after == end else int(batch.offsets.searchsorted(end))
        if kept:
            yield batch.slice(0, kept)

    def _runs(self, at_most_s: float = float("inf")) -> Iterator[tuple[TopicPartition, _Run]]:
        """Messages of one partition at a time, cut at the range ends; positions move before a yield.

        Args:
            at_most_s: stop after so much time, when something has been read and nothing is wrong.
        """
        if not self._ends:
            return
        consumer = self._open()
        try:
            last_progress = opened = time.monotonic()
            watch = ReadWatch(consumer)
            while self._ends:
                before = sum(self._positions.values())
                messages = consumer.consume(self._batch_limit(), _WAIT_S)
                if messages:
                    yield from self._split(messages)
                if sum(self._positions.values()) != before:
                    last_progress = time.monotonic()
                    watch.progressed()
                    if last_progress - opened >= at_most_s:
                        return
                    continue
                self._check_topics(consumer)
                watch.refuse_unreadable({tp: self._positions[tp] for tp in self._ends})
                if time.monotonic() - last_progress > self._on_stall_s:
                    raise self._stalled()
        except KafkaException as error:
            raise translate(error, f"reading {names(self._ends)}") from error
        finally:
            self.close()

    def _batch_limit(self) -> int:
        # `consume` waits for the requested number, so never request more than can be left.
        return min(MAX_RECORDS, self._left())

    def _left(self) -> int:
        return sum(end - self._positions[tp] for tp, end in self._ends.items())

    def _consumer_settings(self) -> dict[str, Any]:
        return {
            "settings": self._settings,
            "enable_partition_eof": True,
            "isolation_level": self._settings.get("isolation.level", "read_committed"),
            "fetch_wait_max_ms": self._settings["fetch.wait.max.ms"],
        }

    def _open(self) -> QuickConsumer:
        self._consumer = consumer = state_consumer(**self._consumer_settings())
        ensure_reachable(consumer)
        consumer.assign([_Partition(tp.topic, tp.partition, self._positions[tp]) for tp in self._ends])
        return consumer

    def _split(self, messages: _Run) -> Iterator[tuple[TopicPartition, _Run]]:
        for partition, group in groupby(messages, key=Message.partition):
            for topic, same in groupby(group, key=Message.topic):
                run = list(same)
                tp = TopicPartition(str(topic), int(partition or 0))
                # Events (end of partition, errors) come as messages between the records.
                if not any(map(Message.error, run)):
                    yield from self._cut(tp, run)
                    continue
                for is_event, part in groupby(run, key=lambda m: m.error() is not None):
                    if not is_event:
                        yield from self._cut(tp, list(part))
                        continue
                    for event in part:
                        self._on_event(tp, event)

    def _cut(self, tp: TopicPartition, run: _Run) -> Iterator[tuple[TopicPartition, _Run]]:
        """Yield what lies inside the range, and finish the partition when its end is reached."""
        end = self._ends.get(tp)
        if end is None:  # still in the local queue when the partition was finished
            return
        after = int(run[-1].offset() or 0) + 1
        if after < end:
            self._positions[tp] = after
            yield tp, run
            return
        if after > end:
            run = run[: bisect_left(run, end, key=lambda message: int(message.offset() or 0))]
        self._finish(tp, end)
        if run:
            yield tp, run

    def _finish(self, tp: TopicPartition, position: int) -> None:
        self._positions[tp] = position
        del self._ends[tp]
        if self._consumer is not None:
            self._consumer.incremental_unassign([_Partition(tp.topic, tp.partition)])
        if self._fetch is not None:
            self._fetch.unassign(tp)

    def _on_event(self, tp: TopicPartition, event: Message[Any, Any]) -> None:
        error = event.error()
        if error is None or tp not in self._ends:
            return
        if error.code() == KafkaError._PARTITION_EOF:
            self._at_end_of_partition(tp, int(event.offset() or 0))
            return
        problem = self._fatal(tp, error)
        if problem is not None:
            raise problem
        self._problem = f"{error.str()} ({error.name()})"

    def _at_end_of_partition(self, tp: TopicPartition, reached: int) -> None:
        if tp not in self._ends:
            return
        if reached >= self._ends[tp]:
            # Markers and aborted records at the tail: the log was read up to here, though no record says so.
            self._finish(tp, self._ends[tp])
        else:
            self._positions[tp] = max(self._positions[tp], reached)

    def _fatal(self, tp: TopicPartition, error: KafkaError) -> ConnectError | None:
        """Our error if waiting cannot help, otherwise None: leaders move, brokers restart."""
        at = f"{tp}@{self._positions[tp]}"
        ours = translate(error, f"reading {at}")
        if isinstance(ours, OffsetError):
            return OffsetError(
                f"Kafka no longer holds {at} (planned up to {self._ends[tp]}): {error.str()}.",
                suggestion="Retention or delete-records removed it, or the topic was recreated meanwhile. Run"
                " again: the new plan reports what is missing (offsets.out.of.range).",
            )
        return ours if isinstance(ours, AccessError | ConfigError) or error.fatal() else None

    def _check_topics(self, consumer: QuickConsumer) -> None:
        """A topic that is gone or forbidden concerns the whole client: librdkafka tells its error callback."""
        error = consumer.diary.last_error
        if error is None:
            return
        ours = translate(error, f"reading {names(sorted(self._ends))}")
        if isinstance(ours, AccessError):
            raise ours

    def _stalled(self) -> UnavailableError:
        where = [f"{tp}@{self._positions[tp]} of {end}" for tp, end in sorted(self._ends.items())]
        reason = self._problem or (self._consumer.diary.reason if self._consumer else "")
        return UnavailableError(
            f"Kafka delivered nothing for {self._on_stall_s:.0f} s; still to read: {names(where)}."
            + (f" Last problem: {reason}." if reason else ""),
            suggestion="Check that the leaders of these partitions are up; under read_committed also whether "
            "a transaction hangs there.",
        )
