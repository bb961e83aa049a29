"""Tasks of Java sink connectors."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink import SinkTask
from airflow_connect.connectors.java.failures import failure_of
from airflow_connect.connectors.java.group import (
    GROUP,
    JOIN_TIMEOUT_S,
    PARTITIONS,
    WRITTEN_BEFORE,
    CommittedOffsets,
    Membership,
    Written,
)
from airflow_connect.connectors.java.hosts import (
    TASK,
    TASK_CLASS,
    TASK_ID,
    close_host,
    java_config,
    start_host,
)
from airflow_connect.connectors.java.iceberg_names import CONTROL, control_topic, interval_s, timeout_s
from airflow_connect.connectors.java.kept import KeptColumns, KeptRecords, frame_of_columns, frame_of_records
from airflow_connect.connectors.java.keys import PLUGIN, JavaSinkKeys
from airflow_connect.connectors.java.mixed import python_classes
from airflow_connect.errors import FatalDataError, OffsetError, TaskFailedError, UnavailableError
from airflow_connect.jvm.data.records import pack_first, pack_record, sink_frame
from airflow_connect.jvm.data.tables import DataWriter
from airflow_connect.retrying import Backoff, Retry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.own_chain import RecordFailedError
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.connectors.java.kept import Kept
    from airflow_connect.jvm.discovery.java_plugin import JavaPlugin
    from airflow_connect.jvm.frames import EncodedFrame
    from airflow_connect.jvm.host import PluginHost
    from airflow_connect.jvm.wire import Reply

KEPT_RECORDS = 200_000
"""How many records a plugin may have when it reports one of them as errant."""
PUT_RETRY_S = 60.0
"""Least time for which a `put` that asks to be repeated is repeated. Kafka Connect repeats it forever."""
_ENDLESS = "-1"
_FLUSH_PAUSE_S = 0.25


class JavaSinkTask(SinkTask):
    """One Java task, in a host of its own.

    It gets whole messages, and its host converts them. If Python runs the chain, it gets records as any sink does.
    """

    plugin: ClassVar[JavaPlugin]
    needs_keys = False
    takes_whole_records = True
    repeats_put = False

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the configuration; `open` starts the host."""
        self._host: PluginHost | None = None
        self._member: Membership | None = None
        self._written: Written | None = None
        self._known: dict[TopicPartition, int] = {}
        """What was written before this task: up to this offset, the host passes nothing to the plugin."""
        self._typed = JavaSinkKeys.from_config(config)
        self._config = config
        self._read: dict[TopicPartition, int] = {}
        """Offset of the last record that the host has got."""
        self._last: dict[TopicPartition, int] = {}
        """Offset of the last record that the plugin has got: its chain has neither dropped it, nor failed at it."""
        self._confirmed: dict[TopicPartition, int] | None = None
        self._failed: list[tuple[TopicPartition, int, RecordFailedError]] = []
        self._dropped: list[NDArray[np.int64]] = []
        self._kept: deque[Kept] = deque()
        self._paused: set[TopicPartition] = set()
        self.takes_whole_records = not python_classes(config)
        self._writer = DataWriter()

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Start the host and the Java task."""
        config = self._config
        if GROUP in config and not partitions:
            return  # A member without partitions would only make the others wait.
        self._member = self._membership() if GROUP in config else None
        self._host = start_host(self.plugin, config)
        joining = {} if self._member is None else {"group": self._member.request()}
        found = self._call(
            "sink",
            longer_s=0.0 if self._member is None else JOIN_TIMEOUT_S,
            **joining,
            config=java_config(config, self.plugin.class_name),
            task=json.loads(config[TASK]),
            task_class=config[TASK_CLASS],
            task_id=int(config[TASK_ID]),
            assignment=[[tp.topic, tp.partition] for tp in partitions],
            stop_on_error=not self._tolerates,
            data=not self.takes_whole_records,
        )
        if self._member is not None:
            self._skip_written(found.result["committed"])

    def _membership(self) -> Membership:
        config, ranges = self._config, self.context.ranges
        everyone = [TopicPartition(topic, number) for topic, number in self.context.run.state[PARTITIONS]]
        longest_s = self._typed.flush_timeout_ms / 1000
        if CONTROL in self.context.run.state:
            longest_s += 2 * (interval_s(config) + timeout_s(config))
        return Membership(
            json.loads(config[GROUP]),
            everyone,
            {r.topic_partition: r.start for r in ranges},
            self.context.run_id,
            self.plugin.class_name,
            longest_s,
        )

    def _skip_written(self, committed: Sequence[Sequence[Any]]) -> None:
        """Skip what another attempt of this task, or a run that has failed, has written and committed.

        If errors are tolerated, it is converted again, to find the records that failed; the plugin does not get it.
        """
        starts = {r.topic_partition: r.start for r in self.context.ranges}
        for topic, number, offset in committed:
            tp = TopicPartition(topic, number)
            if offset <= starts.get(tp, offset):
                continue
            self._known[tp] = offset
            if not self._tolerates:
                self.context.offset(tp, offset)
            self.context.note(f"{tp} was written up to the offset {offset} before, and was not written again.")

    @property
    def _tolerates(self) -> bool:
        return self._config.get("errors.tolerance", "none") == "all"

    def _finish(self) -> None:
        """Wait until the plugin has committed what it has got."""
        assert self._member is not None
        if self._written is None:
            state = self.context.run.state
            if CONTROL in state:
                from airflow_connect.connectors.java.iceberg import ControlTopic, TaskOfControlTopic

                facts = json.loads(self._config[GROUP])
                control = ControlTopic(facts["client"], control_topic(self._config), facts["id"])
                self._written = TaskOfControlTopic(control, state[CONTROL])
            else:
                self._written = CommittedOffsets(self._call)

        def put() -> None:
            self._put(rows=0)
            self.report_failed()

        last = {tp: offset for tp, offset in self._last.items() if offset >= self._known.get(tp, 0)}
        self._member.finish(self._call, put, last, self._written)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """See `SinkTask`; with `takes_whole_records`, the value of each record is the whole message."""
        from airflow_connect.jvm.frames import encode

        if not records:
            self._put(rows=0)
        for _kind, group in groupby(records, key=lambda record: record.timestamp_type):
            run = list(group)
            if self.takes_whole_records:
                dropped = self._deliver(encode(frame_of_records(run)), KeptRecords(run))
                for row in dropped:
                    self.context.leave_out(run[int(row)])
            else:
                self._put_data(run)
        self.report_failed()

    def _put_data(self, records: Sequence[SinkRecord]) -> None:
        """Pass records as Connect's data, in frames of limited size; those that have no form in Java are reported."""
        rest = records
        while rest:
            packed, error = pack_first(rest, len(rest), lambda record: pack_record(record, self._writer))
            fitting, rest = rest[: len(packed)], rest[len(packed) :]
            if fitting:
                self._deliver(sink_frame(fitting, packed, self._writer), KeptRecords(fitting))
            if error is not None:
                self.report_failed()
                self.context.errant_record_reporter.report(rest[0], error)
                rest = rest[1:]

    def accepts_columns(self) -> bool:
        """See `ColumnarSinkTask`."""
        return self.takes_whole_records

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        """See `ColumnarSinkTask`."""
        from airflow_connect.jvm.frames import encode

        self._dropped.clear()
        for batch in batches:
            rows = self._deliver(encode(frame_of_columns(batch)), KeptColumns(batch))
            if len(rows):
                self._dropped.append(batch.offsets[rows])
        return True

    def take_dropped(self) -> NDArray[np.int64]:
        """See `ChainSinkTask`."""
        import numpy as np

        taken, self._dropped = self._dropped, []
        return np.sort(np.concatenate(taken)) if taken else np.empty(0, np.int64)

    def report_failed(self) -> None:
        """See `ChainSinkTask`.

        Raises:
            DataError: `errors.*` does not tolerate them, or a record is not known any more.
        """
        failed, self._failed = self._failed, []
        for tp, offset, failure in failed:
            self.context.errant_record_reporter.report(self._record_at(tp, offset, failure), failure)

    def flush(self) -> Sequence[StagedFile]:
        """Let the plugin write what it has; it confirms that in `pre_commit`."""
        if self._host is None:
            return ()
        self._put(rows=0)
        self.report_failed()
        return ()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """See `SinkTask`.

        The plugin only knows records: the offset after the last one that it got stands for the end of what was planned,
        behind which there may be markers of transactions.

        Raises:
            TaskFailedError: the plugin has not confirmed everything in time, or confirms nothing at all.
        """
        if self._member is not None:
            self._finish()
            return offsets
        if self._typed.offsets == PLUGIN:
            self._confirm(offsets)
            return offsets
        deadline = time.monotonic() + self._typed.flush_timeout_ms / 1000
        while True:
            confirmed = self._confirm(offsets)
            safe = {tp: self._safe(tp, offsets[tp], confirmed) for tp in offsets}
            waiting = [tp for tp in offsets if safe[tp] < offsets[tp] and self.context.must_flush(tp)]
            if not waiting:
                return safe
            if time.monotonic() >= deadline:
                raise self._not_confirmed(waiting[0], confirmed)
            time.sleep(_FLUSH_PAUSE_S)
            self._put(rows=0)

    def details(self, partition: TopicPartition) -> Mapping[str, Any]:
        """See `SinkTask`: up to where the partition was written before this task, if it was."""
        return {WRITTEN_BEFORE: self._known[partition]} if partition in self._known else {}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Stop the Java task and end its host.

        Raises:
            FatalDataError: it has reported a record only now, after it had confirmed all of them.
        """
        host, self._host = self._host, None
        self._close_written()
        for topic, partition, offset, error in close_host(host):
            raise self._too_late(TopicPartition(topic, partition), offset, failure_of(error))

    def stop(self) -> None:
        """End the host, if `close` was not called."""
        host, self._host = getattr(self, "_host", None), None
        if host is not None:
            self._close_written()
        close_host(host)

    def _close_written(self) -> None:
        if self._written is not None:
            self._written.close()

    # --- the host -------------------------------------------------------------------------------------------------

    def _call(self, op: str, body: Any = None, longer_s: float = 0.0, **members: Any) -> Reply:
        """Call the host, follow what the plugin has asked of its context, and keep the records that it reports."""
        assert self._host is not None
        reply = self._host.call(op, body, timeout_s=self._typed.call_timeout_s + longer_s, **members)
        found = reply.result
        for topic, partition, offset in found.get("rewind") or ():
            self._move(TopicPartition(topic, partition), offset)
        if "paused" in found:
            paused = {TopicPartition(topic, partition) for topic, partition in found["paused"]}
            self.context.pause(*(paused - self._paused))
            self.context.resume(*(self._paused - paused))
            self._paused = paused
        if found.get("commit_requested"):
            self.context.request_commit()
        for topic, partition, offset, error in found.get("errant") or ():
            self._failed.append((TopicPartition(topic, partition), offset, failure_of(error)))
        return reply

    def _deliver(self, encoded: EncodedFrame, kept: Kept) -> NDArray[np.int32]:
        """Pass records to the plugin; returns the numbers of those that its transformations have dropped."""
        import numpy as np

        self._keep(kept)
        self._confirmed = None
        for tp, last in kept.ends(()):
            self._read[tp] = max(last, self._read.get(tp, -1))
        dropped, failed = self._put(encoded.body, **encoded.members)
        for row, error in failed:
            self._failed.append((*kept.place(row), failure_of(error)))
        for tp, last in kept.ends((*dropped.tolist(), *(row for row, _ in failed))):
            self._last[tp] = max(last, self._last.get(tp, -1))
        return np.asarray(dropped, np.int32)

    def _put(self, body: Any = None, **members: Any) -> tuple[NDArray[np.int32], list[Any]]:
        """Call `put`, again as often as the plugin asks for it; returns rows that were dropped, and that have failed.

        Raises:
            UnavailableError: the plugin asks for too long.
        """
        import numpy as np

        reply = self._call("put", body, **members)
        retry = Retry(Backoff(0.3, longest_s=10.0), within_s=self._retry_s)
        dropped, failed = [_dropped_rows(reply)], list(reply.result["failed"])
        while reply.result.get("retry"):
            asked = reply.result["retry"]
            if not retry.pause():
                raise UnavailableError(
                    f"{self.plugin.class_name} could not write for {self._retry_s:.0f} s: {asked['message']}.",
                    code="java.unavailable",
                    suggestion="Nothing was committed: the next run writes these records again. Check the target.",
                )
            time.sleep(max(0, asked.get("after_ms") or 0) / 1000)
            reply = self._call("put", again=True)
            dropped.append(_dropped_rows(reply))
            failed += reply.result["failed"]
        return np.concatenate(dropped), failed

    def _move(self, tp: TopicPartition, offset: int) -> None:
        """Follow a plugin that has set the offset of a partition.

        Raises:
            OffsetError: it wants records again that it has got, or older ones.
        """
        last = self._read.get(tp)
        if last is not None and offset <= last:
            raise OffsetError(
                f"{self.plugin.class_name} requested {tp.topic}-{tp.partition}@{offset}, but it has got the records up"
                f" to {last}, and a run cannot go back.",
                suggestion="Nothing was committed: the next run passes all of them to it again.",
            )
        start = next((r.start for r in self.context.ranges if r.topic_partition == tp), offset)
        first = start if last is None else last + 1
        self.context.offset(tp, offset)
        if offset > first:
            self.context.note(
                f"{self.plugin.class_name} has skipped {tp.topic}-{tp.partition} from the offset {first} to {offset}:"
                " it has set its own offset."
            )

    @property
    def _retry_s(self) -> float:
        given = self._config.get("errors.retry.timeout", "0").strip()
        return math.inf if given == _ENDLESS else max(PUT_RETRY_S, int(given) / 1000)

    # --- what was written -----------------------------------------------------------------------------------------

    def _confirm(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Offsets that the plugin confirms; asked again only after new records."""
        if self._confirmed is not None and all(self._is_confirmed(tp) for tp in offsets):
            return self._confirmed
        given = [[tp.topic, tp.partition, last + 1] for tp, last in self._read.items()]
        answer = self._call("pre_commit", offsets=given).result
        self.report_failed()
        self._confirmed = {TopicPartition(topic, part): offset for topic, part, offset in answer["offsets"] or ()}
        return self._confirmed

    def _is_confirmed(self, tp: TopicPartition) -> bool:
        assert self._confirmed is not None
        return tp not in self._last or self._confirmed.get(tp, -1) > self._last[tp]

    def _safe(self, tp: TopicPartition, given: int, confirmed: Mapping[TopicPartition, int]) -> int:
        """What may be committed of a partition of which the task has got everything before `given`."""
        start = next(r.start for r in self.context.ranges if r.topic_partition == tp)
        if tp not in self._last or confirmed.get(tp, -1) > self._last[tp]:
            return given
        return max(start, confirmed.get(tp, start))

    def _not_confirmed(self, tp: TopicPartition, confirmed: Mapping[TopicPartition, int]) -> TaskFailedError:
        where, last, found = f"{tp.topic}-{tp.partition}", self._last[tp], confirmed.get(tp)
        if found is None:
            return TaskFailedError(
                f"{self.plugin.class_name}.preCommit returned no offset for {where}: it keeps offsets of its own, or"
                f" has written nothing of it. The run has passed records up to {where}@{last} to it.",
                code="java.own_offsets",
                suggestion="Nothing was committed. If the plugin keeps its own offsets and resumes at them, set"
                f" {JavaSinkKeys.offsets}={PLUGIN}.",
            )
        return TaskFailedError(
            f"{self.plugin.class_name} has confirmed {where} up to the offset {found}, although it has got the record"
            f" at {last}, within {self._typed.flush_timeout_ms / 1000:g} s.",
            code="java.not_flushed",
            suggestion="Nothing was committed: the next run writes these records again. Raise"
            f" {JavaSinkKeys.flush_timeout_ms}, or set flush.on.end=false if the plugin keeps records until it has"
            " enough of them.",
        )

    # --- records that it may report -------------------------------------------------------------------------------

    def _keep(self, kept: Kept) -> None:
        self._kept.append(kept)
        while sum(map(len, self._kept)) > KEPT_RECORDS and len(self._kept) > 1:
            self._kept.popleft()

    def _record_at(self, tp: TopicPartition, offset: int, failure: RecordFailedError) -> SinkRecord:
        for kept in reversed(self._kept):
            record = kept.find(tp, offset)
            if record is not None:
                return record
        raise self._too_late(tp, offset, failure)

    def _too_late(self, tp: TopicPartition, offset: int, failure: RecordFailedError) -> FatalDataError:
        return FatalDataError(
            f"{self.plugin.class_name} has reported the record at {tp.topic}-{tp.partition}@{offset} too late, or it"
            f" is not one that this task has passed to it: {failure.message}",
            code="java.late_report",
            suggestion="Nothing was committed. A plugin must report a record before it confirms it, and before it has"
            f" got {KEPT_RECORDS:,} more.",
        )


def _dropped_rows(reply: Reply) -> NDArray[np.int32]:
    """The body of the answer, which is filled up to a multiple of eight bytes."""
    import numpy as np

    return np.frombuffer(reply.body or b"", np.int32)[: reply.result["dropped"]]
