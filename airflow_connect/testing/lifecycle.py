"""Checks that a sink task is called in Connect's order, and always stopped. Needs no server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import KafkaRecord, SinkRecord
from airflow_connect.api.sink import SinkConnector, SinkTask, SinkTaskContext
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.config.resolved.sink import ErrorConfig, SinkConnectorConfig
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.sink.put_errors import PutErrors
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner, task_class_of


class OnPurposeError(Exception):
    """Raised by a recorded task in the method that must fail."""


class Recorded(SinkTask):
    """Records every call and forwards it to a task; fails in the method `fails_in`."""

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

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Pass on."""
        return self._task.pre_commit(offsets)

    def details(self, partition: TopicPartition) -> Mapping[str, Any]:
        """Pass on."""
        return self._task.details(partition)

    def abort(self) -> None:
        """Pass on."""
        self._task.abort()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Pass on."""
        self._call("close", lambda: self._task.close(partitions))

    def stop(self) -> None:
        """Forward even if it must fail, so that the task closes what it opened."""
        try:
            self._call("stop", lambda: None)
        finally:
            self._task.stop()


def check_order_of_calls(connector: type[SinkConnector], config: Mapping[str, str], topic: str) -> None:
    """Run the task on a generated record: once without an error, then with an error in each method.

    Raises:
        AssertionError: the order is wrong, or the task fails.
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
        # A separate topic: the sink may remember the record of the previous one.
        found = calls_of(connector, config, f"{topic}-{failing}", failing)
        assert found == expected, f"After an error in {failing} the calls were {found}, not {expected}."


def calls_of(connector: type[SinkConnector], config: Mapping[str, str], topic: str, fails_in: str = "") -> list[str]:
    """The calls that a task received for one record."""
    task = Recorded(task_class_of(connector)(), fails_in)
    context = RoleContext(config, run_id="conformance", errors=_errors_of(config))
    runner = SinkTaskRunner(task, context, [OffsetRange(topic, 0, 0, 1)])
    message = KafkaRecord(topic, 0, 0, b"0", b'{"n": 0, "p": 0}')
    record = SinkRecord(topic=topic, partition=0, offset=0, key="0", value={"n": 0, "p": 0}, consumed=message)
    try:
        runner.open()
        runner.put(record)
        report = runner.report(TopicPartition(topic, 0), 1, end=None, reason="")
        assert (report.read, report.written, report.commit_offset) == (1, 1, 1), report
        runner.close()
    except ConnectError as error:
        if not isinstance(error.__cause__, OnPurposeError):
            raise
    finally:
        runner.abort()
    return task.calls


def _errors_of(config: Mapping[str, str]) -> PutErrors:
    errors: ErrorConfig = SinkConnectorConfig.from_config(config, connector_definition(config)).errors
    return PutErrors(ErrorPolicy("conformance", 0, errors), errors)
