"""A server that speaks MongoDB's protocol, in Java: there is no package of the real one that a test could fetch."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from airflow_connect.devstack.launching.java_server import JavaServer
from tests.devstack.jars import LOCKS, fetch_jars
from tests.devstack.java_compiler import compiled_jar

DEFAULT_HEAP_MB = 192
PROGRAM = Path(__file__).with_name("mongodb_program") / "MongoProgram.java"
_OP_MSG = 2013
_HEADER = struct.Struct("<iiii")
_INT, _LONG, _DOUBLE = struct.Struct("<i"), struct.Struct("<q"), struct.Struct("<d")
_MOST_DOCUMENTS = 1_000_000


class MongoDbServer(JavaServer):
    """A running server; its data is in memory.

    Attributes:
        uri: for `connection.uri`.
        pid: process id of the server.
    """

    name = "mongo-java-server 1.47.0"
    lock_name = "mongo-java-server-1.47.0"
    locks = LOCKS
    port_count = 1

    @classmethod
    def start(cls, data_dir: Path | None = None, heap_mb: int = DEFAULT_HEAP_MB) -> Self:
        """Start a server on a free port and return when it listens.

        Args:
            data_dir: where its log goes; a temporary folder unless given.
            heap_mb: largest Java heap in MiB.

        Raises:
            DevStackError: it could not be fetched (4 MB, once) or did not come up (with the end of its log).
        """
        server = cls(data_dir, heap_mb)
        server._start_on_free_ports()
        return server

    @property
    def uri(self) -> str:
        """Return `mongodb://127.0.0.1:<port>`."""
        return f"mongodb://127.0.0.1:{self.ports[0]}"

    def documents(self, database: str, collection: str) -> list[dict[str, Any]]:
        """All documents of a collection."""
        answer = self._command_answer({"find": collection, "batchSize": _MOST_DOCUMENTS, "$db": database})
        documents: list[dict[str, Any]] = answer["cursor"]["firstBatch"]
        return documents

    def _command_answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """The answer to a command. Source: MongoDB's wire protocol, OP_MSG."""
        body = _INT.pack(0) + b"\0" + _bson(command)
        with socket.create_connection(("127.0.0.1", self.ports[0]), 30) as connection:
            connection.sendall(_HEADER.pack(_HEADER.size + len(body), 1, 0, _OP_MSG) + body)
            size, *_ = _HEADER.unpack(_exactly(connection, _HEADER.size))
            answer = _exactly(connection, size - _HEADER.size)
        return _document(answer, _INT.size + 1)[0]

    def _class_path(self) -> list[Path]:
        jars = fetch_jars(self.lock_name)
        return [compiled_jar([PROGRAM], jars), *jars]

    def _program(self) -> Sequence[str]:
        return ["MongoProgram", str(self.ports[0])]

    def _is_ready(self) -> bool:
        try:
            return self._command_answer({"ping": 1, "$db": "admin"})["ok"] == 1
        except OSError:
            return False


def _exactly(connection: socket.socket, size: int) -> bytes:
    got = connection.recv(size, socket.MSG_WAITALL)
    if len(got) < size:
        raise ConnectionError(f"The server closed the connection after {len(got)} of {size} bytes.")
    return got


def _bson(document: dict[str, Any]) -> bytes:
    """A flat document of texts and 32-bit numbers."""
    parts = bytearray()
    for name, value in document.items():
        if isinstance(value, int):
            parts += b"\x10" + name.encode() + b"\0" + _INT.pack(value)
        else:
            text = value.encode() + b"\0"
            parts += b"\x02" + name.encode() + b"\0" + _INT.pack(len(text)) + text
    return _INT.pack(_INT.size + len(parts) + 1) + bytes(parts) + b"\0"


def _document(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    """The document that starts there, and where it ends."""
    end = at + _INT.unpack_from(data, at)[0]
    at += _INT.size
    found: dict[str, Any] = {}
    while data[at]:
        kind, zero = data[at], data.index(b"\0", at + 1)
        name = data[at + 1 : zero].decode()
        found[name], at = _value(kind, data, zero + 1)
    return found, end


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    """A value of those types that tests use, and where it ends. Source: bsonspec.org."""
    match kind:
        case 0x01:
            return _DOUBLE.unpack_from(data, at)[0], at + _DOUBLE.size
        case 0x02:
            size = _INT.unpack_from(data, at)[0]
            return data[at + _INT.size : at + _INT.size + size - 1].decode(), at + _INT.size + size
        case 0x03:
            return _document(data, at)
        case 0x04:
            items, end = _document(data, at)
            return list(items.values()), end
        case 0x07:
            return data[at : at + 12].hex(), at + 12
        case 0x08:
            return bool(data[at]), at + 1
        case 0x0A:
            return None, at
        case 0x10:
            return _INT.unpack_from(data, at)[0], at + _INT.size
        case 0x09 | 0x11 | 0x12:
            return _LONG.unpack_from(data, at)[0], at + _LONG.size
    raise ValueError(f"BSON type {kind:#x} is not one that tests use.")
