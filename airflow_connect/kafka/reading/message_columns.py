"""Messages of the Python client as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from airflow_connect.kafka.reading.column_batch import ColumnBatch
from airflow_connect.kafka.reading.messages import record_of

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition

LARGEST_BYTES = 256 << 20
"""Bytes of a batch: an Arrow column of bytes ends at 2 GB."""


def columns_of(tp: TopicPartition, run: Sequence[Message[Any, Any]]) -> Iterator[ColumnBatch]:
    """Batches of the messages, cut where the timestamp type changes and where they grow too large.

    A topic's timestamp type is a setting of the topic: all messages have the same, unless it was changed in between.
    """
    values = list(map(Message.value, run))
    if len(run) > 1 and sum(map(len, filter(None, values))) > LARGEST_BYTES:
        yield from columns_of(tp, run[: len(run) // 2])
        yield from columns_of(tp, run[len(run) // 2 :])
        return
    stamps = list(map(Message.timestamp, run))
    start = 0
    kinds = {kind for kind, _ in stamps}
    lengths = [len(run)] if len(kinds) == 1 else [len(list(same)) for _, same in groupby(stamps, key=lambda s: s[0])]
    for length in lengths:
        stop = start + length
        yield _batch(tp, run[start:stop], stamps[start:stop], values[start:stop])
        start = stop


def _batch(
    tp: TopicPartition, run: Sequence[Message[Any, Any]], stamps: list[tuple[int, int]], values: list[Any]
) -> ColumnBatch:
    keys: Any = pa.array(list(map(Message.key, run)), pa.binary())
    column: Any = pa.array(values, pa.binary())
    return ColumnBatch(
        tp.topic,
        tp.partition,
        stamps[0][0],
        np.array(list(map(Message.offset, run)), dtype=np.int64),
        np.array([stamp for _, stamp in stamps], dtype=np.int64),
        keys,
        column,
        lambda start, stop: [record_of(tp, message) for message in run[start:stop]],
        read_header_bytes=lambda start, stop: pa.array(map(_header_bytes, run[start:stop]), pa.binary()),
    )


def _header_bytes(message: Message[Any, Any]) -> bytes:
    headers: Any = message.headers() or ()
    return b"".join(value or b"" for _, value in headers)
