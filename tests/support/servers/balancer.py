"""A balancer in front of several servers, as a network may have one: who connects reaches one of them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def balancer(port_of: Callable[[], int]) -> Iterator[int]:
    """The port of a balancer on this machine.

    Args:
        port_of: gives the port of the server for the next connection.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, port_of), daemon=True).start()
        yield int(listening.getsockname()[1])


def _accept(listening: socket.socket, port_of: Callable[[], int]) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # It is closed: the test has ended.
            return
        threading.Thread(target=_serve, args=(client, port_of()), daemon=True).start()


def _serve(client: socket.socket, port: int) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as server, contextlib.suppress(OSError):
        back = threading.Thread(target=_forward, args=(server, client), daemon=True)
        back.start()
        _forward(client, server)
        back.join()


def _forward(origin: socket.socket, target: socket.socket) -> None:
    """Pass everything on, and the end of it."""
    with contextlib.suppress(OSError):
        while data := origin.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
