from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from airflow_connect.api.record import KafkaRecord
from airflow_connect.kafka.reading.column_batch import ColumnBatch, join_batches
from airflow_connect.runtime.executor.sink import coalescing
from airflow_connect.runtime.executor.sink.coalescing import BatchCoalescer


def batch(partition: int, offsets: range, kind: int = 1) -> ColumnBatch:
    records = [KafkaRecord("t", partition, n, None, b"%d" % n, n, kind, (("h", b"%d" % n),)) for n in offsets]
    column = pa.array([r.value for r in records], pa.binary())
    numbers = np.array(offsets, dtype=np.int64)
    keys = pa.nulls(len(records), pa.binary())
    return ColumnBatch("t", partition, kind, numbers, numbers, keys, column, lambda start, stop: records[start:stop])


def test_joined_batches_read_their_records_across_their_borders() -> None:
    joined = join_batches([batch(0, range(3)), batch(0, range(10, 11)), batch(0, range(20, 25))])
    assert joined.offsets.tolist() == [0, 1, 2, 10, 20, 21, 22, 23, 24]
    assert joined.values.to_pylist() == [b"%d" % n for n in joined.offsets.tolist()]
    assert [r.offset for r in joined.slice(2, 6).records()] == [2, 10, 20, 21]
    assert [r.offset for r in joined.slice(2, 6).slice(1, 2).records()] == [10]
    assert joined.slice(2, 6).size_bytes == 1 + 2 + 2 + 2


def test_batches_wait_until_a_partition_has_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "PARTITION_RECORDS", 10)
    coalescer = BatchCoalescer()
    assert list(coalescer.add(batch(0, range(6)), 60)) == []
    assert list(coalescer.add(batch(1, range(9)), 90)) == []
    (full,) = coalescer.add(batch(0, range(6, 12)), 60)
    assert (full.partition, full.offsets.tolist()) == (0, list(range(12)))
    (rest,) = coalescer.take_all()
    assert (rest.partition, len(rest)) == (1, 9)
    assert list(coalescer.take_all()) == []


def test_all_partitions_are_written_when_together_they_hold_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "ALL_BYTES", 100)
    coalescer = BatchCoalescer()
    assert list(coalescer.add(batch(0, range(3)), 50)) == []
    assert sorted(b.partition for b in coalescer.add(batch(1, range(3)), 50)) == [0, 1]


def test_partition_with_the_most_records_is_written_when_all_hold_too_many() -> None:
    coalescer = BatchCoalescer(most_records=10)
    assert list(coalescer.add(batch(0, range(4)), 1)) == []
    assert list(coalescer.add(batch(1, range(5)), 1)) == []
    (largest,) = coalescer.add(batch(2, range(1)), 1)
    assert (largest.partition, len(largest)) == (1, 5)
    assert sorted(b.partition for b in coalescer.take_all()) == [0, 2]


def test_another_timestamp_type_ends_a_batch() -> None:
    coalescer = BatchCoalescer()
    assert list(coalescer.add(batch(0, range(3), kind=1), 1)) == []
    (first,) = coalescer.add(batch(0, range(3, 5), kind=2), 1)
    (second,) = coalescer.take_all()
    assert [(b.timestamp_type, len(b)) for b in (first, second)] == [(1, 3), (2, 2)]
