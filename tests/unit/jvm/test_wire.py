"""Messages of the plugin host over a pair of sockets."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest

from airflow_connect.jvm.wire import ClosedError, Wire


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Wire(ours), theirs


def test_message_has_header_json_and_body(pair):
    wire, theirs = pair
    wire.send({"op": "é"}, [b"ab", memoryview(b"cd")])
    sent = theirs.recv(100)
    json_length, zero, body_length = struct.unpack("<iiq", sent[:16])
    assert (json_length, zero, body_length) == (11, 0, 4)
    assert sent[16:] == '{"op":"é"}'.encode() + b"abcd"


def test_message_that_comes_in_pieces_is_read_whole(pair):
    wire, theirs = pair
    message = struct.pack("<iiq", 7, 0, 3) + b'{"a":1}' + b"xyz"

    def write():
        for byte in message:
            theirs.send(bytes([byte]))

    writer = threading.Thread(target=write)
    writer.start()
    reply = wire.receive(time.monotonic() + 10)
    writer.join()
    assert (reply.result, bytes(reply.body)) == ({"a": 1}, b"xyz")


def test_message_without_a_body_has_none(pair):
    wire, theirs = pair
    theirs.send(struct.pack("<iiq", 2, 0, 0) + b"{}")
    assert wire.receive().body is None


def test_end_of_the_other_side_is_told_in_both_directions(pair):
    wire, theirs = pair
    theirs.send(struct.pack("<iiq", 100, 0, 0) + b"{")
    theirs.close()
    with pytest.raises(ClosedError):
        wire.receive()
    with pytest.raises(ClosedError):
        wire.send({"op": "next"})


def test_deadline_holds_for_both_directions(pair):
    wire, _theirs = pair
    with pytest.raises(TimeoutError):
        wire.receive(time.monotonic() + 0.05)
    with pytest.raises(TimeoutError):
        wire.send({}, [bytes(1 << 20)] * 50, time.monotonic() + 0.05)


def test_header_that_makes_no_sense_is_refused(pair):
    wire, theirs = pair
    theirs.send(struct.pack("<iiq", -1, 0, 0))
    with pytest.raises(ValueError, match="lengths -1 and 0"):
        wire.receive()
