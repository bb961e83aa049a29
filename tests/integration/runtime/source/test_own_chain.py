"""Sources that run converters and transformations themselves, and whose batches have their offsets at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from airflow_connect.api import SourceRecord
from airflow_connect.api.own_chain import ForeignException, RecordFailedError
from airflow_connect.api.schema import OPTIONAL_BYTES
from airflow_connect.api.source import NO_OFFSET, SourceColumns
from tests.integration.runtime.source.conftest import Numbers
from tests.integration.runtime.source.numbers import NumbersConnector, NumbersTask

CHAIN = f"{__name__}:ChainConnector"
SIZE = 6
"""Records of a batch: three parts of two. The last one of a batch fails, the one before it is dropped."""
WRITTEN = [n for n in range(24) if n % SIZE < SIZE - 2]


class ChainTask(NumbersTask):
    """Each batch of six numbers comes in three parts, and its offset with the last one."""

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self.parts: list[list[int]] = []
        self.in_columns = False

    def poll_columns(self) -> SourceColumns | None:
        self.in_columns = True
        if not self._has_part():
            return None
        import pyarrow as pa

        part = self._next_part()
        values = pa.array([self.value_of(n) for n in part], pa.binary())
        return SourceColumns(self.config["topic"], {}, None, None, None, OPTIONAL_BYTES, values, partition=0)

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.in_columns or not self._has_part():
            return None
        return [
            SourceRecord(
                topic=self.config["topic"], partition=0, value_schema=OPTIONAL_BYTES, value=self.value_of(n),
                source_partition={}, source_offset=NO_OFFSET,
            )
            for n in self._next_part()
        ]  # fmt: skip

    def is_inside_batch(self) -> bool:
        return bool(self.parts)

    def has_ended(self) -> bool:
        return not self.parts and super().has_ended()

    @staticmethod
    def value_of(n: int) -> bytes:
        return json.dumps({"p": 0, "n": n}).encode()

    def _has_part(self) -> bool:
        if not self.parts and self.next[0] < self.ends[0]:
            first = self.next[0]
            self.next[0] = first + SIZE
            self.parts = [[first, first + 1], [first + 2, first + 3], []]
        return bool(self.parts)

    def _next_part(self) -> list[int]:
        part = self.parts.pop(0)
        if not self.parts:
            end = self.next[0]
            self.context.count_dropped(1)
            place = SourceRecord(topic="", source_partition={"p": 0}, source_offset={"n": end})
            error = RecordFailedError(
                "com.example.Upper failed with java.lang.IllegalStateException: no.",
                "java.record",
                "TRANSFORMATION",
                "com.example.Upper",
                ForeignException("java.lang.IllegalStateException", "no", ""),
            )
            self.context.report_failed(place, error)
            self.context.skip_to({"p": 0}, {"n": end})
        return part


class ChainConnector(NumbersConnector):
    task_class = ChainTask
    runs_chain = True


@pytest.fixture
def chained(numbers: Numbers) -> Numbers:
    numbers.config |= {"connector.class": CHAIN, "tasks.max": "1", "errors.tolerance": "all"}
    numbers.feed(24)
    return numbers


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"], ids=["columns", "records"])
def test_dropped_and_failed_records_are_counted_and_offsets_come_last(chained: Numbers, guarantee: str) -> None:
    """Without transactions, records that Kafka refuses are skipped, so they are sent one by one."""
    report = chained.run(delivery_guarantee=guarantee)

    assert chained.values() == {0: WRITTEN}
    assert report.source is not None
    assert (report.records, report.filtered, report.source.failed) == (16, 4, 4)
    assert [move.after for move in report.source.offsets] == [{"n": 24}]
    assert chained.run().status == "empty"


def test_no_limit_and_no_interval_ends_a_transaction_inside_a_batch(chained: Numbers) -> None:
    chained.config |= {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1"}
    for _ in range(2):
        limited = chained.run(run_max_records="2", delivery_guarantee="exactly_once")
        assert limited.source is not None
        assert limited.source.ended_by == {"run.max.records": 1}
    assert chained.start(crash_at="source.task.polled").wait() is None
    chained.run()

    assert chained.values() == {0: WRITTEN}


def test_failed_record_ends_a_run_that_does_not_tolerate_it_and_names_its_place(chained: Numbers) -> None:
    report = chained.try_run(errors_tolerance="none")

    assert report.error is not None
    assert report.error["code"] == "java.record"
    assert "{'p': 0}@{'n': 6} failed in TRANSFORMATION: com.example.Upper failed" in report.error["message"]
    assert chained.values() == {}


def test_converters_and_transformations_are_left_to_the_plugin(chained: Numbers) -> None:
    """Neither the worker's JsonConverter nor this transformation touches the bytes."""
    chained.config |= {
        "transforms": "drop",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    }
    assert chained.run().records == 16
    assert chained.values() == {0: WRITTEN}
