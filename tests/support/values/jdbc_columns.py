"""The loop of a sink task over given messages, with the JDBC sink behind it: in columns, or record by record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from airflow_connect.api.columns import RecordColumns
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import TIMESTAMP_CREATE_TIME, KafkaRecord
from airflow_connect.api.schema import Schema
from airflow_connect.config.resolved.loading import load_connector_config
from airflow_connect.converters.json.schema import schema_to_json
from airflow_connect.documents.run import PartitionReport, TaskPlan
from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.runtime.executor.converting import RecordConverter
from airflow_connect.runtime.executor.error_policy import ErrorPolicy
from airflow_connect.runtime.executor.progress import ProgressSender
from airflow_connect.runtime.executor.sink import coalescing
from airflow_connect.runtime.executor.sink.loop import SinkLoop
from airflow_connect.runtime.executor.sink.put_errors import PutErrors
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.copies.jdbc_sink_tasks import TOPIC, SinkRun

PARTITION = TopicPartition(TOPIC, 0)
_JSON = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True)
class Copied:
    """What a loop has done.

    Attributes:
        report: of the partition.
        in_columns: number of records that took the columnar path.
        letters: offsets of dead letters.
        notes: sentences for the report.
    """

    report: PartitionReport
    in_columns: int
    letters: list[int]
    notes: tuple[str, ...] = ()


class _CountingRunner(SinkTaskRunner):
    in_columns = 0

    def put_columns(self, batches: Sequence[RecordColumns], read: Any, nulls: Any = None) -> bool:
        written = super().put_columns(batches, read, nulls)
        self.in_columns += len(read) if written else 0
        return written


class ColumnRun(SinkRun):
    """A run over messages of JSON, whose schema is in the configuration."""

    def __init__(self, database: Any, schema: Schema, name: str = "sink", **config: str) -> None:
        super().__init__(database, name, **config)
        self.config |= {
            "value.converter": _JSON,
            "value.converter.schema.content": schema_to_json(schema, lambda _, default: json.dumps(default)),
            "errors.deadletterqueue.topic.name": "letters",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        }

    def copy(
        self,
        values: Sequence[Any],
        *,
        first: int = 0,
        keys: Sequence[bytes] | None = None,
        columnar: bool = True,
        batch: int = 10_000,
    ) -> Copied:
        """Copy values (None: a null), which have consecutive offsets, by a task of their own."""
        messages = [
            KafkaRecord(
                TOPIC, 0, first + n, keys[n] if keys else None, None if value is None else json.dumps(value).encode(), 1
            )
            for n, value in enumerate(values)
        ]
        resolved = load_connector_config(self.config, {"bootstrap.servers": "x:1"})
        policy = ErrorPolicy(self.config["name"], 0, resolved.connector.errors)
        self.errors = PutErrors(policy, resolved.connector.errors)  # type: ignore[assignment]
        planned = OffsetRange(TOPIC, 0, self.start, first + len(values))
        runner = self.open(end=planned.end, kind=_CountingRunner)
        assert isinstance(runner, _CountingRunner)
        resumed = runner.read_ranges()[0].start
        left = [message for message in messages if message.offset >= resumed]
        reader: Any = _Given([left[n : n + batch] for n in range(0, len(left), batch)], planned.end)
        loop = SinkLoop(runner, RecordConverter(resolved), policy, ProgressSender({}, 0, 0))
        try:
            with patch.object(coalescing, "PARTITION_RECORDS", batch):  # Batches stay as they are.
                loop.read(reader, TaskPlan(0, (planned,)), columnar=columnar)
            (report,) = loop.finish(reader, TaskPlan(0, (planned,)))
        finally:
            runner.abort()
        letters = sorted(letter["origin"][2] for letter in policy.dead_letters)
        return Copied(report, runner.in_columns, letters, runner.notes.sentences)


class _Given:
    """A reader of messages."""

    def __init__(self, batches: Sequence[list[KafkaRecord]], end: int) -> None:
        self._batches = batches
        self._end = end

    def records(self) -> Iterator[tuple[TopicPartition, list[KafkaRecord]]]:
        for batch in self._batches:
            yield PARTITION, batch

    def columns(self) -> Iterator[ColumnBatch]:
        yield from map(_columns_of, self._batches)

    def positions(self) -> dict[TopicPartition, int]:
        return {PARTITION: self._end}


def _columns_of(messages: list[KafkaRecord]) -> ColumnBatch:
    return ColumnBatch(
        TOPIC,
        0,
        TIMESTAMP_CREATE_TIME,
        np.array([m.offset for m in messages], np.int64),
        np.array([m.timestamp for m in messages], np.int64),
        pa.array([m.key for m in messages], pa.binary()),
        pa.array([m.value for m in messages], pa.binary()),
        lambda start, stop: messages[start:stop],
    )
