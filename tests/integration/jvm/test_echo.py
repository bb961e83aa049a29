"""Frames cross into the JVM and back without a change, whatever is in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.jvm.frames import Frame, decode, encode
from airflow_connect.jvm.host import PluginHost
from tests.support.session.searching import examples, settings

pytestmark = pytest.mark.integration

HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
BYTES = st.none() | st.binary(max_size=12)
HEADER = st.fixed_dictionaries({"key": st.text(max_size=6).map(str.encode), "value": BYTES})
ROW = st.tuples(
    st.sampled_from(["a", "тема", "c-3"]),
    st.integers(-1, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    BYTES,
    BYTES,
    st.lists(HEADER, max_size=3),
)


@pytest.fixture(scope="module")
def host():
    with PluginHost.start([], is_driver=True, heap_mb=128) as started:
        yield started


def frame_of(rows: list[tuple[Any, ...]]) -> Frame:
    topics = sorted({row[0] for row in rows})
    columns = list(zip(*rows, strict=True)) or [()] * 7
    return Frame(
        topics=topics,
        topic=pa.array([topics.index(name) for name in columns[0]], pa.int32()),
        partition=pa.array(columns[1], pa.int32()),
        offset=pa.array(columns[2], pa.int64()),
        timestamp=pa.array(columns[3], pa.int64()),
        keys=pa.array(columns[4], pa.binary()),
        values=pa.array(columns[5], pa.binary()),
        headers=pa.array(columns[6], HEADERS),
    )


def rows_of(frame: Frame) -> list[tuple[Any, ...]]:
    offsets = [None] * len(frame) if frame.offset is None else frame.offset.to_pylist()
    headers = [[]] * len(frame) if frame.headers is None else frame.headers.to_pylist()
    names = [frame.topics[index] for index in frame.topic.to_pylist()]
    columns = (frame.partition, frame.timestamp, frame.keys, frame.values)
    partition, timestamp, keys, values = (column.to_pylist() for column in columns)
    return list(zip(names, partition, offsets, timestamp, keys, values, headers, strict=True))


def echoed(host: PluginHost, frame: Frame) -> Frame:
    encoded = encode(frame)
    back = decode(host.call("echo", encoded.body, timeout_s=30, **encoded.members))
    for array in (back.keys, back.values, back.headers):
        if array is not None:
            array.validate(full=True)
    return back


@settings(max_examples=examples(200))
@given(rows=st.lists(ROW, max_size=40), skipped=st.integers(0, 12), timestamp_type=st.sampled_from([-1, 0, 1]))
def test_echo_gives_the_same_records(host, rows, skipped, timestamp_type):
    whole = frame_of(rows)
    sliced = Frame(
        topics=whole.topics,
        topic=whole.topic[skipped:],
        partition=whole.partition[skipped:],
        offset=whole.offset[skipped:],
        timestamp=whole.timestamp[skipped:],
        keys=whole.keys[skipped:],
        values=whole.values[skipped:],
        headers=whole.headers[skipped:],
        timestamp_type=timestamp_type,
    )
    back = echoed(host, sliced)
    assert rows_of(back) == rows[skipped:]
    assert len(back) == max(0, len(rows) - skipped)
    assert back.timestamp_type == timestamp_type


def test_echo_of_a_large_frame_and_of_one_large_record(host):
    many = [("a", 0, number, 0, b"key", b"v" * 180, []) for number in range(60_000)]
    assert rows_of(echoed(host, frame_of(many))) == many
    large = [("a", 0, 0, 0, None, bytes(range(256)) * 50_000, [])]
    assert rows_of(echoed(host, frame_of(large))) == large
