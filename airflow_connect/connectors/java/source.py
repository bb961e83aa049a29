"""Java source connectors and their tasks."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from airflow_connect.api.record import Header, SourceRecord
from airflow_connect.api.schema import BYTES, OPTIONAL_BYTES
from airflow_connect.api.source import (
    NO_OFFSET,
    ExactlyOnceSupport,
    SourceColumns,
    SourceConnector,
    SourceOffset,
    SourcePartition,
    SourceTask,
)
from airflow_connect.config.keys.source import SourceKeys
from airflow_connect.connectors.java.connector import JavaConnector
from airflow_connect.connectors.java.ending import EndRule
from airflow_connect.connectors.java.failures import failure_of, not_held
from airflow_connect.connectors.java.hosts import (
    TASK,
    TASK_CLASS,
    TASK_ID,
    close_host,
    java_config,
    offsets_json,
    start_host,
)
from airflow_connect.connectors.java.keys import JavaSourceKeys
from airflow_connect.connectors.java.mixed import python_classes
from airflow_connect.connectors.java.server_log import ServerLog
from airflow_connect.errors import DataError, TaskFailedError
from airflow_connect.jvm.data.records import contents
from airflow_connect.jvm.data.tables import DataReader

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.jvm.discovery.java_plugin import JavaPlugin
    from airflow_connect.jvm.frames import Frame
    from airflow_connect.jvm.host import PluginHost

FRAME_ROWS, FRAME_BYTES = 20_000, 8 << 20
LEAST_ROWS = 500
"""Frames with fewer records would make a large poll slow."""
_WAIT_MS = 500
"""How long the host waits for records before it tells the state of the plugin."""
_SUPPORTED = ExactlyOnceSupport.SUPPORTED.name


class JavaSourceConnector(JavaConnector, SourceConnector):
    """The base of generated source connectors."""

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """What the Java connector returns, in configurations that a task here understands."""
        committed = offsets_json(self.context.offset_reader.committed())
        given = JavaSourceKeys.from_config(self.config).start_grace_ms
        late_ms = EndRule.grace_of(given, has_offsets=bool(committed))
        tasks = self.planned(max_tasks, committed, late_ms=late_ms)
        self._note_on(tasks, late_ms)
        return tasks

    def _note_on(self, tasks: Sequence[Mapping[str, str]], late_ms: int) -> None:
        """What is unusual about the tasks."""
        name = self.plugin.class_name
        if not tasks:
            self.context.note(f"{name} has no task, also not after {late_ms / 1000:g} s: it has found nothing to read.")
        alike = max(Counter(config[TASK] for config in tasks).values(), default=0)
        if alike > 1:
            self.context.note(
                f"{name} returned {alike} tasks with the same configuration: each of them may read all of the input."
                " Set tasks.max=1 unless the plugin divides its input among such tasks."
            )

    def other_tasks_requested(self) -> None:
        """Say it in the report: what the new tasks would read, this run has not read."""
        super().other_tasks_requested()
        self.context.note(
            f"{self.plugin.class_name} requested other tasks while those of this run were running: it may have found"
            " more to read. The next run asks for its tasks again."
        )

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """What the Java connector answers; see `SourceConnector`."""
        answer = self._support(config)["exactly_once"]
        return None if answer is None else ExactlyOnceSupport[answer]

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        """What the Java connector answers; see `SourceConnector`."""
        return bool(self._support(config)["boundaries"] == _SUPPORTED)

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Ask the Java connector; see `SourceConnector`."""
        pairs = [[dict(partition), None if offset is None else dict(offset)] for partition, offset in offsets.items()]
        return bool(self._asked(config, "alter", offsets=pairs)["value"])

    def _support(self, config: Mapping[str, str]) -> Mapping[str, Any]:
        """Both answers. The object is not started, as in Kafka Connect."""
        return self._asked(config, "support")


class _Part(NamedTuple):
    """Records of a frame that go to one partition of a topic, or are of one topic whose partition is open."""

    topic: str
    partition: int | None
    rows: Any
    """int64 numbers of its rows; None: all."""


@dataclass(slots=True, kw_only=True)
class _PlacedRecord(SourceRecord):
    """A record whose place is a text: its offset is one of a whole frame."""

    text: str

    @classmethod
    def at(cls, text: str) -> _PlacedRecord:
        return cls(topic="", source_partition={}, source_offset=NO_OFFSET, text=text)

    @property
    def where(self) -> str:
        return self.text


class JavaSourceTask(SourceTask):
    """One Java task, in a host of its own.

    A frame has the records of whole polls, of any topics, and the offsets after the last of them. It is passed on in
    parts, and its offsets with the last one. If Python runs the chain, it is passed on as records.
    """

    plugin: ClassVar[JavaPlugin]

    def start(self, config: Mapping[str, str]) -> None:
        """Start the host and the Java task."""
        self._host: PluginHost | None = None
        self._log: ServerLog | None = None
        self._typed = JavaSourceKeys.from_config(config)
        self._config = config
        self._frame: Frame | None = None
        self._meta: Mapping[str, Any] = {}
        self._parts: deque[_Part] = deque()
        self._returned = 0
        self._is_over = False
        self._in_columns = False
        self._reader = DataReader() if python_classes(config) else None
        committed = offsets_json(self.context.offset_reader.committed())
        self._rule = EndRule(
            name=self.plugin.class_name,
            idle_ms=self._typed.idle_ms,
            idle_polls=self._typed.idle_polls,
            start_timeout_ms=self._typed.start_timeout_ms,
            block_timeout_ms=self._typed.block_timeout_ms,
            grace_ms=EndRule.grace_of(self._typed.start_grace_ms, has_offsets=bool(committed)),
        )
        self._log = ServerLog.of(self.plugin.class_name, config, self._typed.idle_ms / 1000)
        self._host = start_host(self.plugin, config)
        self._host.call(
            "source",
            config=java_config(config, self.plugin.class_name),
            task=json.loads(config[TASK]),
            task_class=config[TASK_CLASS],
            task_id=int(config[TASK_ID]),
            offsets=committed,
            max_rows=self._rows_at_once(),
            max_bytes=FRAME_BYTES,
            stop_on_error=config.get("errors.tolerance", "none") != "all",
            data=self._reader is not None,
            timeout_s=self._typed.call_timeout_s,
        )

    def _rows_at_once(self) -> int:
        """How many records of small polls come at once: a limit ends a run after them, not inside."""
        limit = SourceKeys.from_config(self._config).run_max_records
        return min(FRAME_ROWS, max(LEAST_ROWS, limit)) if limit else FRAME_ROWS

    def poll_columns(self) -> SourceColumns | None:
        """The next part of a frame; None: nothing came, or only offsets, or Python runs the chain."""
        if self._reader is not None:
            return None
        self._in_columns = True
        if not self._parts and not self._next_frame():
            return None
        if not self._parts:
            self._end_of_frame()
            return None
        part = self._parts.popleft()
        columns = self._columns(part)
        if not self._parts:
            self._end_of_frame()
        return columns

    def poll(self) -> Sequence[SourceRecord] | None:
        """The records of a frame, where columns cannot be used."""
        if self._in_columns or not self._next_frame():
            return None
        if self._reader is not None:
            records = self._data_records(self._reader)
        else:
            records = [record for part in self._parts for record in _records(self._columns(part))]
        self._parts.clear()
        self._end_of_frame()
        return records

    def _data_records(self, reader: DataReader) -> list[SourceRecord]:
        """The records of the frame, with schemas and values; those that Python cannot hold are reported."""
        assert self._frame is not None
        records: list[SourceRecord] = []
        for row, content in enumerate(contents(self._frame, reader), 1):
            place = f"number {row} of {len(self._frame)} that {self.plugin.class_name} has returned together"
            if isinstance(content, DataError):
                self.context.report_failed(_PlacedRecord.at(place), not_held(self.plugin.class_name, content))
                continue
            records.append(
                _PlacedRecord(
                    topic=content.topic,
                    partition=content.partition,
                    key_schema=content.key.schema,
                    key=content.key.value,
                    value_schema=content.value.schema,
                    value=content.value.value,
                    timestamp=content.timestamp,
                    headers=content.headers,
                    source_partition={},
                    source_offset=NO_OFFSET,
                    text=f"{place}, for topic {content.topic}",
                )
            )
        return records

    def is_inside_batch(self) -> bool:
        """See `AtomicSourceTask`."""
        return bool(self._parts) or bool(self._meta.get("continues"))

    def has_ended(self) -> bool:
        """Whether the plugin has nothing more; see `ending.py`."""
        return self._is_over

    def commit(self) -> None:
        """Tell the Java task what is committed."""
        if self._host is None or not self._returned:
            return
        answer = self._host.call("ack", frame=self._returned, timeout_s=self._typed.call_timeout_s)
        for warning in answer.result.get("warnings", ()):
            self.context.note(f"{self.plugin.class_name} failed when it was told what is committed: {warning}.")

    def stop(self) -> None:
        """Stop the Java task and end its host."""
        host, self._host = getattr(self, "_host", None), None
        close_host(host)
        if (log := getattr(self, "_log", None)) is not None:
            log.close()

    def _next_frame(self) -> bool:
        """Ask the host for the next frame; False: there is none now."""
        assert self._host is not None
        reply = self._host.call("next", wait_ms=_WAIT_MS, timeout_s=self._typed.call_timeout_s + _WAIT_MS / 1000)
        if "frame" not in reply.result:
            self._is_over = self._has_nothing_more(reply.result)
            return False
        from airflow_connect.jvm.frames import decode

        self._rule.saw_records()
        self._frame, self._meta = decode(reply), reply.result
        if self._reader is not None:
            self._reader.learn(self._meta["schemas"])
        self._parts.extend(_parts_of(self._frame))
        self.context.count_dropped(int(self._meta["dropped"]))
        for failed in self._meta["failed"]:
            self.context.report_failed(_PlacedRecord.at(failed["where"]), failure_of(failed))
        return True

    def _end_of_frame(self) -> None:
        """The whole frame was returned: its offsets and its mark count."""
        for partition, offset in self._meta["offsets"]:
            self._reached(partition, offset)
        mark, transaction = self._meta["mark"], self.context.transaction
        if mark is not None and transaction is not None:
            if mark == "abort":
                transaction.abort_transaction()
            else:
                transaction.commit_transaction()
        self._returned = int(self._meta["frame"])
        self._frame = None
        idle = self._meta.get("idle")
        if idle is not None and idle["gated"] and idle["ready"]:
            self._is_over = self._has_nothing_more(idle)

    def _has_nothing_more(self, state: Mapping[str, Any]) -> bool:
        """Whether the run is complete: by what the plugin tells, and by its server's log."""
        now = time.monotonic()
        if not self._rule.is_over(state, now):
            return False
        if self._log is None:
            return True
        is_behind = self._log.is_behind(now)
        if self._log.unknown:
            self.context.note(
                "It is not known whether PostgreSQL has read its log for the slot up to the end:"
                f" {self._log.unknown}. If there is much log of other tables, a run may end before changes behind it:"
                f" raise {JavaSourceKeys.idle_ms}, or install airflow-connect[postgresql] where tasks run."
            )
        return not is_behind

    def _reached(self, partition: SourcePartition | None, offset: SourceOffset | None) -> None:
        """Keep an offset. Connect deletes that of a partition whose record has none; a run cannot.

        Raises:
            TaskFailedError: the plugin deletes an offset, or has one of no partition.
        """
        if partition is not None and offset is not None:
            self.context.skip_to(partition, offset)
        elif partition is None or self.context.offset_reader.offset(partition) is not None:
            raise TaskFailedError(
                f"{self.plugin.class_name} returned a record with the source partition {partition} and the source"
                f" offset {offset}.",
                code="java.offset",
                suggestion="A run can store an offset of a source partition, but not delete it: report this to the"
                " plugin's author.",
            )

    def _columns(self, part: _Part) -> SourceColumns:
        frame = self._frame
        assert frame is not None

        def taken(column: pa.Array[Any]) -> pa.Array[Any]:
            return column if part.rows is None else column.take(part.rows)

        keys, values, stamps = taken(frame.keys), taken(frame.values), taken(frame.timestamp)
        return SourceColumns(
            topic=part.topic,
            source_partition={},
            source_offset=None,
            key_schema=OPTIONAL_BYTES,
            keys=None if keys.null_count == len(keys) else keys,
            value_schema=OPTIONAL_BYTES,
            values=values,
            timestamps=_timestamps(stamps),
            partition=part.partition,
            headers=None if frame.headers is None else taken(frame.headers),  # type: ignore[arg-type]
        )


def _parts_of(frame: Frame) -> Iterable[_Part]:
    """Records of one topic and partition each, in the order of their first records."""
    import numpy as np

    if not len(frame):
        return
    topics, partitions = frame.topic.to_numpy(), frame.partition.to_numpy()
    codes = topics.astype(np.int64) << 32 | partitions.astype(np.int64) & 0xFFFFFFFF
    if (codes == codes[0]).all():
        groups: list[tuple[int, Any]] = [(0, None)]
    elif _mixes(topics, partitions):
        starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
        groups = [(int(rows[0]), rows) for rows in np.split(np.arange(len(codes)), starts[1:])]
    else:
        order = np.argsort(codes, kind="stable")
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        groups = sorted(((int(rows[0]), rows) for rows in np.split(order, ends)), key=lambda group: group[0])
    for first, rows in groups:
        partition = int(partitions[first])
        yield _Part(frame.topics[int(topics[first])], None if partition < 0 else partition, rows)


def _mixes(topics: Any, partitions: Any) -> bool:
    """Whether only some records of a topic name their partition: the key of the others may lead to the same one."""
    import numpy as np

    return bool(len(np.intersect1d(topics[partitions < 0], topics[partitions >= 0])))


def _timestamps(stamps: pa.Array[Any]) -> pa.Array[Any] | None:
    """Milliseconds; None: no record has any. -1 is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    without: Any = pc.less(stamps, pa.scalar(0, pa.int64()))
    count = int(pc.sum(without).as_py() or 0)
    if count == len(stamps):
        return None
    return pc.if_else(without, pa.scalar(None, pa.int64()), stamps) if count else stamps


def _records(columns: SourceColumns) -> Iterable[SourceRecord]:
    keys = [None] * len(columns.values) if columns.keys is None else columns.keys.to_pylist()
    stamps = [None] * len(keys) if columns.timestamps is None else columns.timestamps.to_pylist()
    headers = [()] * len(keys) if columns.headers is None else columns.headers.to_pylist()
    partition: SourcePartition = {}
    for key, value, stamp, pairs in zip(keys, columns.values.to_pylist(), stamps, headers, strict=True):
        yield SourceRecord(
            topic=columns.topic,
            partition=columns.partition,
            key_schema=None if key is None else BYTES,
            key=key,
            value_schema=OPTIONAL_BYTES,
            value=value,
            timestamp=stamp,
            headers=tuple(_header(pair) for pair in pairs or ()),
            source_partition=partition,
            source_offset=NO_OFFSET,
        )


def _header(pair: Mapping[str, Any]) -> Header:
    value = pair["value"]
    return Header(pair["key"].decode("utf-8", "surrogateescape"), OPTIONAL_BYTES if value is None else BYTES, value)
