"""Whether a sink task is called in Connect's order, and stopped whatever happens. Needs no server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from airflow_connect.api.connector_config import ErrorConfig, SinkConnectorConfig
from airflow_connect.api.errors import ConnectError
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord, SinkRecord
from airflow_connect.api.resolved_config import connector_definition
from airflow_connect.api.sink import SinkConnector, SinkTask, SinkTaskContext
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.plugin_errors import PluginErrors
from airflow_connect.runtime.executor.plugin_sink import PluginSink


class OnPurposeError(Exception):
    """What a recorded task raises when it is told to fail."""


class Recorded(SinkTask):
    """Passes every call on to a task and writes it down; fails in the method that `fails_in` names."""

    def __init__(self, task: SinkTask, fails_in: str = "") -> None:
        """`task`: the real one."""
        self._task = task
        self._fails_in = fails_in
        self.calls: list[str] = []

    def _call(self, method: str, call: Callable[[], Any]) -> Any:
        self.calls.append(method)
        if method == self._fails_in:
            raise OnPurposeError
        return call()

    def initialize(self, context: SinkTaskContext) -> None:
        """Pass on."""
        self._call("initialize", lambda: self._task.initialize(context))

    def start(self, config: Mapping[str, str]) -> None:
        """Pass on."""
        self._call("start", lambda: self._task.start(config))

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Pass on."""
        self._call("open", lambda: self._task.open(partitions))

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Pass on."""
        self._call("put", lambda: self._task.put(records))

    def flush(self) -> Any:
        """Pass on."""
        return self._call("flush", self._task.flush)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Pass on."""
        self._call("close", lambda: self._task.close(partitions))

    def stop(self) -> None:
        """Pass on, also when it is to fail: what the task opened must not stay open."""
        try:
            self._call("stop", lambda: None)
        finally:
            self._task.stop()


def check_order_of_calls(connector: type[SinkConnector], config: Mapping[str, str], topic: str) -> None:
    """Run the task on made-up records, once well and once failing in each method.

    Raises:
        AssertionError: the order is not the promised one, or the task does not bear it.
    """
    assert calls_of(connector, config, topic) == [
        "initialize", "start", "open", "put", "flush", "close", "stop",
    ]  # fmt: skip
    for failing, expected in {
        "start": ["initialize", "start", "stop"],
        "open": ["initialize", "start", "open", "close", "stop"],
        "put": ["initialize", "start", "open", "put", "close", "stop"],
        "flush": ["initialize", "start", "open", "put", "flush", "close", "stop"],
    }.items():
        # A topic of its own: the sink may know that it has the record of the last one.
        found = calls_of(connector, config, f"{topic}-{failing}", failing)
        assert found == expected, f"After an error in {failing} the calls were {found}, not {expected}."


def calls_of(connector: type[SinkConnector], config: Mapping[str, str], topic: str, fails_in: str = "") -> list[str]:
    """The calls that a task got while it was given one record."""
    task = Recorded(connector.task_class(), fails_in)
    context = RoleContext(config, run_id="conformance", errors=_errors_of(config))
    sink = PluginSink(task, context, [OffsetRange(topic, 0, 0, 1)])
    message = KafkaRecord(topic, 0, 0, b"0", b'{"n": 0, "p": 0}')
    record = SinkRecord(topic=topic, partition=0, offset=0, key="0", value={"n": 0, "p": 0}, consumed=message)
    try:
        sink.open()
        sink.put(record)
        report = sink.finish(TopicPartition(topic, 0), 1, end=None, reason="")
        assert (report.read, report.written, report.commit_offset) == (1, 1, 1), report
    except ConnectError as error:
        if not isinstance(error.__cause__, OnPurposeError):
            raise
    finally:
        sink.abort()
    return task.calls


def _errors_of(config: Mapping[str, str]) -> PluginErrors:
    errors: ErrorConfig = SinkConnectorConfig.from_config(config, connector_definition(config)).errors
    return PluginErrors(ErrorPolicy("conformance", 0, errors), errors)
