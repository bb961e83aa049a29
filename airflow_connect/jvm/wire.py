"""Messages between this process and the plugin host: a header, JSON, and a body of bytes.

The header has 16 bytes, little endian: int32 length of the JSON, int32 zero, int64 length of the body. The same format
is used both ways: `helper/src/org/airflowconnect/host/Wire.java` is the other side. One request, one reply, in order.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Buffer = bytes | bytearray | memoryview
_HEADER = struct.Struct("<iiq")
_MAX_JSON_BYTES = 1 << 30


class ClosedError(Exception):
    """The other side has closed the connection: the JVM has ended."""


@dataclass(frozen=True)
class Reply:
    """What the host answered.

    Attributes:
        result: the members of its JSON.
        body: the bytes that came with it, or None.
    """

    result: dict[str, Any]
    body: memoryview | None


class Wire:
    """The connection to the JVM."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: dict[str, Any], body: Sequence[Buffer] = (), deadline: float | None = None) -> None:
        """Send one message.

        Args:
            message: its JSON.
            body: pieces of its body, sent one after the other without copying them.
            deadline: of `time.monotonic()`; None: wait as long as it takes.

        Raises:
            ClosedError: the JVM has ended.
            TimeoutError: the JVM did not read it in time.
        """
        text = _json(message)
        header = _HEADER.pack(len(text), 0, sum(memoryview(piece).nbytes for piece in body))
        try:
            for piece in (header + text, *body):
                self._wait(deadline)
                self._socket.sendall(piece)
        except ConnectionError as error:
            raise ClosedError from error

    def receive(self, deadline: float | None = None) -> Reply:
        """Wait for the next message; its errors are those of `send`."""
        json_length, _zero, body_length = _HEADER.unpack(self._exactly(_HEADER.size, deadline))
        if not 0 <= json_length <= _MAX_JSON_BYTES or body_length < 0:
            raise ValueError(f"The plugin host sent a header with the lengths {json_length} and {body_length}.")
        members = json.loads(bytes(self._exactly(json_length, deadline)))
        body = self._exactly(body_length, deadline) if body_length else None
        return Reply(members, body)

    def close(self) -> None:
        """Close the connection; the JVM ends when it sees that."""
        self._socket.close()

    def _exactly(self, length: int, deadline: float | None) -> memoryview:
        whole = memoryview(bytearray(length))
        missing = whole
        while missing:
            self._wait(deadline)
            try:
                count = self._socket.recv_into(missing)
            except ConnectionError as error:
                raise ClosedError from error
            if not count:
                raise ClosedError
            missing = missing[count:]
        return whole

    def _wait(self, deadline: float | None) -> None:
        """Let the next call on the socket wait until the deadline only."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


def _json(message: dict[str, Any]) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # The name of a file, in a source partition, that is no UTF-8: escapes hold it.
        return json.dumps(message, separators=(",", ":")).encode()
