"""A pooler in front of PostgreSQL that ignores the parameter `options`, as PgBouncer can be told to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

PROTOCOL_3 = 196608


@contextlib.contextmanager
def ignoring_options(host: str, port: int) -> Iterator[int]:
    """The port of a pooler in front of a server; connections end with those of the server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, (host, port)), daemon=True).start()
        yield int(listening.getsockname()[1])


def _accept(listening: socket.socket, server: tuple[str, int]) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # It is closed: the test has ended.
            return
        threading.Thread(target=_serve, args=(client, server), daemon=True).start()


def _serve(client: socket.socket, address: tuple[str, int]) -> None:
    with client, socket.create_connection(address) as server, contextlib.suppress(OSError):
        parameters = _startup(client)
        if parameters is None:
            return
        parameters.pop("options", None)
        content = struct.pack("!I", PROTOCOL_3) + b"".join(
            part.encode() + b"\0" for pair in parameters.items() for part in pair
        )
        server.sendall(struct.pack("!I", len(content) + 5) + content + b"\0")
        back = threading.Thread(target=_forward, args=(server, client), daemon=True)
        back.start()
        _forward(client, server)
        back.join()


def _startup(client: socket.socket) -> dict[str, str] | None:
    """The parameters of a client, without encryption; None: it asks for something else, or has gone."""
    while True:
        length = _exactly(client, 4)
        content = _exactly(client, struct.unpack("!I", length)[0] - 4) if length else b""
        if not content:
            return None
        kind = struct.unpack("!I", content[:4])[0]
        if kind >> 16 == PROTOCOL_3 >> 16:
            texts = content[4:].decode().split("\0")
            return dict(zip(texts[:-2:2], texts[1:-2:2], strict=True))
        if kind & 0xFFFF not in (5679, 5680):  # TLS, or GSSAPI
            return None
        client.sendall(b"N")


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            return b""
        found += more
    return found


def _forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
