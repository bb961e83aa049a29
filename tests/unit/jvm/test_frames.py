"""Frames as Arrow arrays: the buffers of the wire, without a JVM."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from airflow_connect.errors import InternalError
from airflow_connect.jvm import frames
from airflow_connect.jvm.frames import Frame, decode, encode
from airflow_connect.jvm.wire import Reply

HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
KEY, VALUE, HEADER_LISTS = 4, 7, 10


def frame(keys: list[bytes | None], values: list[bytes | None], headers: Any = None) -> Frame:
    rows = len(keys)
    return Frame(
        topics=["a", "b"],
        topic=pa.array([row % 2 for row in range(rows)], pa.int32()),
        partition=pa.array([-1] * rows, pa.int32()),
        offset=None,
        timestamp=pa.array(range(rows), pa.int64()),
        keys=pa.array(keys, pa.binary()),
        values=pa.array(values, pa.binary()),
        headers=None if headers is None else pa.array(headers, HEADERS),
    )


def sent(encoded: frames.EncodedFrame) -> Reply:
    """What the other side would get."""
    return Reply(encoded.members, memoryview(b"".join(bytes(piece) for piece in encoded.body)))


def test_encode_leaves_out_what_every_record_lacks():
    lengths = encode(frame([None, None], [b"v", b""])).members["buffers"]
    assert lengths[2] == 0  # offsets of sources
    assert lengths[KEY : KEY + 3] == [0, 0, 0]
    assert lengths[VALUE : VALUE + 3] == [0, 12, 1]  # no value is null
    assert lengths[HEADER_LISTS:] == [0] * 6


def test_encode_starts_each_buffer_at_a_multiple_of_eight():
    encoded = encode(frame([b"key", None, b"k"], [b"v", None, b"vv"], [[], [{"key": b"h", "value": None}], []]))
    body = b"".join(bytes(piece) for piece in encoded.body)
    lengths = encoded.members["buffers"]
    assert len(body) == sum(length + -length % 8 for length in lengths)
    before_keys = sum(length + -length % 8 for length in lengths[: KEY + 2])
    assert body[before_keys : before_keys + 4] == b"keyk"
    assert body[before_keys - 16 - 8] == 0b101  # their validity, least significant bit first


def test_decode_gives_back_what_was_encoded_without_copying():
    whole = frame(
        [b"k", None, b""], [None, b"v", b""], [[{"key": b"h", "value": b"1"}], [], [{"key": b"", "value": None}]]
    )
    reply = sent(encode(whole))
    back = decode(reply)
    assert (back.keys, back.values, back.headers) == (whole.keys, whole.values, whole.headers)
    assert (list(back.topics), back.topic, back.timestamp) == (whole.topics, whole.topic, whole.timestamp)
    assert back.offset is None
    body = pa.py_buffer(reply.body)
    data = back.values.buffers()[2]
    assert body.address <= data.address < body.address + body.size


@pytest.mark.parametrize("skipped", [1, 3, 8, 9, 17])
def test_encode_of_a_slice_sends_the_slice_only(skipped):
    keys = [None if row % 3 == 0 else b"k%d" % row for row in range(20)]
    values = [None if row % 5 == 0 else b"v%d" % row for row in range(20)]
    headers = [[{"key": b"h%d" % row, "value": None if row % 2 else b"x"}] * (row % 3) for row in range(20)]
    whole = frame(keys, values, headers)
    columns = ("topic", "partition", "timestamp", "keys", "values", "headers")
    part = dataclasses.replace(whole, **{name: getattr(whole, name)[skipped:] for name in columns})
    encoded = encode(part)
    back = decode(sent(encoded))
    assert back.keys.to_pylist() == keys[skipped:]
    assert back.values.to_pylist() == values[skipped:]
    found = [] if back.headers is None else back.headers.to_pylist()
    assert found == headers[skipped:]
    assert encoded.members["buffers"][KEY + 2] == sum(len(key) for key in keys[skipped:] if key)


def test_text_and_other_layouts_of_bytes_are_sent_as_bytes():
    whole = frame([b"a", None], [b"b", b"c"])
    other = dataclasses.replace(whole, keys=pa.array(["a", None]), values=pa.array([b"b", b"c"], pa.large_binary()))
    assert decode(sent(encode(other))).keys.to_pylist() == [b"a", None]
    assert decode(sent(encode(other))).values.to_pylist() == [b"b", b"c"]


def test_frame_without_records_can_be_sent():
    empty = frame([], [], [])
    back = decode(sent(encode(empty)))
    assert (len(back), back.keys.to_pylist(), back.headers) == (0, [], None)


def test_frame_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(frames, "_MAX_BYTES", 100)
    with pytest.raises(InternalError, match="A frame of 1 records has 1020 bytes; the limit is 2 GiB"):
        encode(frame([None], [b"x" * 996]))


def test_body_of_another_length_is_refused():
    encoded = encode(frame([b"k"], [b"v"]))
    cut = Reply(encoded.members, sent(encoded).body[:-8])
    with pytest.raises(InternalError, match="for 16 buffers"):
        decode(cut)
