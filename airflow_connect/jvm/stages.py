"""Java converters, transformations and predicates in a chain that Python runs: the calls of one plugin host.

Records cross as Connect's data. A request sends records through one plugin, in their order, up to the first that fails:
the caller decides what becomes of that one, and sends those behind it again. So no record passes a plugin twice.
`helper/src/org/airflowconnect/host/Stages.java` is the other side.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.record import ConnectRecord, SinkRecord
from airflow_connect.errors import DataError
from airflow_connect.jvm.data.records import (
    Content,
    Data,
    Packed,
    Text,
    contents,
    messages_frame,
    name_size,
    pack_first,
    pack_record,
    require_utf_8,
    same_times,
    sink_frame,
    source_frame,
)
from airflow_connect.jvm.data.tables import DataReader, DataWriter

if TYPE_CHECKING:
    from airflow_connect.jvm.frames import EncodedFrame, Frame
    from airflow_connect.jvm.host import PluginHost
    from airflow_connect.jvm.wire import Reply

R = TypeVar("R", bound=ConnectRecord)
T = TypeVar("T")

MOST_RECORDS = 5_000
"""Of one request."""
_REQUEST_S = 1.0
"""How long a request goes on: the time limit is meant for a single call of the plugin."""
_PART = 10
"""Of the time limit, at most."""
_GROWTH = 8
"""How much larger than the last request one may be."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of the first records of those that were given; the rest has not been seen by the plugin.

    Attributes:
        results: one for each of them, up to the one that failed. An error is in the place of a result that Python
            cannot hold; the plugin has seen this record.
        failure: of the record after `results`: what the host tells about it (`failures.py` makes an error of it), or
            why it cannot cross. None: none failed.
    """

    results: Sequence[T | DataError]
    failure: Mapping[str, Any] | DataError | None


@dataclass(slots=True)
class _Opened:
    """A plugin. `most`: how many records its next request may have."""

    class_name: str
    most: int = field(default=1)

    def note(self, records: int, seconds: float) -> None:
        """Plan the next request by how long one has taken: what does not get its turn was packed for nothing."""
        by_time = int(records * _REQUEST_S / max(seconds, 1e-6))
        self.most = max(1, min(by_time, self.most * _GROWTH, MOST_RECORDS))


class JavaStages:
    """The plugins of one chain, all in one host. Not for several threads at once."""

    def __init__(self, host: PluginHost, timeout_s: float, where: str = "") -> None:
        """`timeout_s`: how long each call of a plugin may take. `where`: goes behind its name in errors."""
        self._host = host
        self._timeout_s = timeout_s
        self._where = where
        self._writer, self._reader = DataWriter(), DataReader()
        self._opened: list[_Opened] = []

    def open(self, kind: str, class_name: str, config: Mapping[str, str]) -> int:
        """Create and configure a plugin; returns its number.

        Args:
            kind: transformation, predicate, key_converter, value_converter or header_converter.
            class_name: of the plugin.
            config: its keys, without prefix.

        Raises:
            ConfigError: it refuses the configuration.
            ConnectError: it fails, or its host does.
        """
        number = len(self._opened)
        self._opened.append(_Opened(class_name))
        self._host.subject = f"{class_name}{self._where}"
        members: dict[str, Any] = {"stage": number, "kind": kind, "class": class_name, "config": dict(config)}
        self._host.call("open_stage", timeout_s=self._timeout_s, **members)
        return number

    def apply(self, stage: int, records: Sequence[R]) -> Outcome[R | None]:
        """Transform the first of these records, all of one kind; None: the transformation drops it."""
        packed, error = self._packed(stage, records)
        if not packed:
            return Outcome([], error)
        reply, done = self._run(stage, "apply", self._frame(records[: len(packed)], packed))
        dropped = frozenset(reply.result["picked"])
        changed = contents(_decoded(reply), self._reader)
        results: list[R | DataError | None] = [
            None if row in dropped else _changed(records[row], next(changed)) for row in range(done)
        ]
        return Outcome(results, _failure(reply) or (error if done == len(packed) else None))

    def test(self, stage: int, records: Sequence[ConnectRecord]) -> Outcome[bool]:
        """Whether a predicate is true, for the first of these records."""
        packed, error = self._packed(stage, records)
        if not packed:
            return Outcome([], error)
        reply, done = self._run(stage, "test", self._frame(records[: len(packed)], packed))
        picked = frozenset(reply.result["picked"])
        failure = _failure(reply) or (error if done == len(packed) else None)
        return Outcome([row in picked for row in range(done)], failure)

    def to_connect(self, stage: int, messages: Sequence[Text]) -> Outcome[SchemaAndValue]:
        """Bytes to data, by a converter."""

        def pack(text: Text) -> tuple[Text, int]:
            return text, name_size(text.name) + len(text.data or b"")

        packed, error = pack_first(messages, self._opened[stage].most, pack)
        if not packed:
            return Outcome([], error)
        reply, done = self._run(stage, "to_connect", messages_frame(packed, self._writer))
        found = contents(_decoded(reply), self._reader)
        failure = _failure(reply) or (error if done == len(packed) else None)
        return Outcome([one.value if isinstance(one, Content) else one for one in found], failure)

    def from_connect(self, stage: int, values: Sequence[Data]) -> Outcome[bytes | None]:
        """Data to bytes, by a converter."""

        def pack(data: Data) -> tuple[Text, int]:
            written = self._writer.write(data.schema, data.value)
            return Text(data.topic, written, data.name), name_size(data.name) + len(written or b"")

        packed, error = pack_first(values, self._opened[stage].most, pack)
        if not packed:
            return Outcome([], error)
        reply, done = self._run(stage, "from_connect", messages_frame(packed, self._writer))
        failure = _failure(reply) or (error if done == len(packed) else None)
        return Outcome(_decoded(reply).values.to_pylist(), failure)

    def close(self) -> list[str]:
        """Close the plugins, and end their host; returns what went wrong in that. Idempotent."""
        return self._host.close()

    def _packed(self, stage: int, records: Sequence[ConnectRecord]) -> tuple[list[Packed], DataError | None]:
        def pack(record: ConnectRecord) -> tuple[Packed, int]:
            for header in record.headers:
                require_utf_8(header.key)  # Otherwise the header would come back with another name.
            return pack_record(record, self._writer)

        return pack_first(same_times(records[: self._opened[stage].most]), MOST_RECORDS, pack)

    def _frame(self, records: Sequence[Any], packed: Sequence[Packed]) -> EncodedFrame:
        if isinstance(records[0], SinkRecord):
            return sink_frame(records, packed, self._writer)
        return source_frame(records, packed, self._writer)

    def _run(self, stage: int, operation: str, frame: EncodedFrame) -> tuple[Reply, int]:
        """The reply, and how many records are done."""
        opened, started = self._opened[stage], time.monotonic()
        self._host.subject = f"{opened.class_name}{self._where}"
        budget_ms = int(min(_REQUEST_S, self._timeout_s / _PART) * 1000)
        members = {"stage": stage, "do": operation, "budget_ms": budget_ms, **frame.members}
        reply = self._host.call("run_stage", frame.body, timeout_s=self._timeout_s, **members)
        self._reader.learn(reply.result["schemas"])
        done: int = reply.result["done"]
        opened.note(done + 1, time.monotonic() - started)
        return reply, done


def _changed(record: R, content: Content | DataError) -> R | DataError:
    if isinstance(content, DataError):
        return content
    partition = content.partition
    if partition is None and isinstance(record, SinkRecord):
        partition = record.partition
    return record.changed(
        topic=content.topic,
        partition=partition,
        timestamp=content.timestamp,
        key_schema=content.key.schema,
        key=content.key.value,
        value_schema=content.value.schema,
        value=content.value.value,
        headers=content.headers,
    )


def _decoded(reply: Reply) -> Frame:
    from airflow_connect.jvm.frames import decode

    return decode(reply)


def _failure(reply: Reply) -> Mapping[str, Any] | None:
    failed: Sequence[Mapping[str, Any]] = reply.result.get("failed", ())
    return failed[0] if failed else None
