"""Java converters, transformations and predicates in a chain that Python runs: the calls of one plugin host.

Records cross as Connect's data. A request sends records through one plugin, in their order, up to the first that fails:
the caller decides what becomes of that one, and sends those behind it again. So no record passes a plugin twice.
`helper/src/org/airflowconnect/host/Stages.java` is the other side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.record import ConnectRecord, SinkRecord
from airflow_connect.api.schema import Schema
from airflow_connect.jvm.data.records import contents, messages_frame, sink_frame, source_frame
from airflow_connect.jvm.data.tables import DataReader, DataWriter

if TYPE_CHECKING:
    from airflow_connect.jvm.frames import EncodedFrame
    from airflow_connect.jvm.host import PluginHost
    from airflow_connect.jvm.wire import Reply

R = TypeVar("R", bound=ConnectRecord)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of the first records of a request.

    Attributes:
        results: one for each record, up to the one that failed.
        failure: of the record after them, as the host tells it (`failures.py` makes an error of it); None: none failed.
    """

    results: list[T]
    failure: Mapping[str, Any] | None


class JavaStages:
    """The plugins of one chain, all in one host. Not for several threads at once."""

    def __init__(self, host: PluginHost, timeout_s: float) -> None:
        """`timeout_s`: how long each call of a plugin may take."""
        self._host = host
        self._timeout_s = timeout_s
        self._writer, self._reader = DataWriter(), DataReader()
        self._opened = 0

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
        number, self._opened = self._opened, self._opened + 1
        members: dict[str, Any] = {"stage": number, "kind": kind, "class": class_name, "config": dict(config)}
        self._host.call("open_stage", timeout_s=self._timeout_s, **members)
        return number

    def apply(self, stage: int, records: Sequence[R]) -> Outcome[R | None]:
        """Transform records of one kind; None: the transformation drops it.

        Raises:
            DataError: a record that cannot cross, the only one of its request.
        """
        reply, done = self._run(stage, "apply", self._frame(records))
        dropped = frozenset(reply.result["picked"])
        from airflow_connect.jvm.frames import decode

        changed = contents(decode(reply), self._reader)
        results: list[R | None] = []
        for row in range(done):
            if row in dropped:
                results.append(None)
                continue
            content, record = next(changed), records[row]
            partition = content.partition
            if partition is None and isinstance(record, SinkRecord):
                partition = record.partition
            results.append(
                record.changed(
                    topic=content.topic,
                    partition=partition,
                    timestamp=content.timestamp,
                    key_schema=content.key.schema,
                    key=content.key.value,
                    value_schema=content.value.schema,
                    value=content.value.value,
                    headers=content.headers,
                )
            )
        return Outcome(results, _failure(reply))

    def test(self, stage: int, records: Sequence[ConnectRecord]) -> Outcome[bool]:
        """Whether a predicate is true, for each record."""
        reply, done = self._run(stage, "test", self._frame(records))
        picked = frozenset(reply.result["picked"])
        return Outcome([row in picked for row in range(done)], _failure(reply))

    def to_connect(
        self, stage: int, topic: str, messages: Sequence[bytes | None], name: str | None = None
    ) -> Outcome[SchemaAndValue]:
        """Bytes to data, by a converter; `name`: of the header whose value each message is."""
        frame = messages_frame(topic, messages, name)
        reply, _done = self._run(stage, "to_connect", frame)
        from airflow_connect.jvm.frames import decode

        return Outcome([content.value for content in contents(decode(reply), self._reader)], _failure(reply))

    def from_connect(
        self, stage: int, topic: str, values: Sequence[tuple[Schema | None, Any]], name: str | None = None
    ) -> Outcome[bytes | None]:
        """Data to bytes, by a converter.

        Raises:
            DataError: a value that has no form in Java, or does not fit its schema.
        """
        write = self._writer.write
        frame = messages_frame(topic, [write(schema, value) for schema, value in values], name)
        frame.members["schemas"] = self._writer.take_fresh()
        reply, _done = self._run(stage, "from_connect", frame)
        from airflow_connect.jvm.frames import decode

        return Outcome(decode(reply).values.to_pylist(), _failure(reply))

    def close(self) -> list[str]:
        """Close the plugins, and end their host; returns what went wrong in that. Idempotent."""
        return self._host.close()

    def _frame(self, records: Sequence[Any]) -> EncodedFrame:
        if isinstance(records[0], SinkRecord):
            return sink_frame(records, self._writer)
        return source_frame(records, self._writer)

    def _run(self, stage: int, do: str, frame: EncodedFrame) -> tuple[Reply, int]:
        """The reply, and how many records are done."""
        members = {"stage": stage, "do": do, **frame.members}
        reply = self._host.call("run_stage", frame.body, timeout_s=self._timeout_s, **members)
        self._reader.learn(reply.result["schemas"])
        failure = _failure(reply)
        return reply, frame.members["rows"] if failure is None else failure["row"]


def _failure(reply: Reply) -> Mapping[str, Any] | None:
    failed: Sequence[Mapping[str, Any]] = reply.result.get("failed", ())
    return failed[0] if failed else None
