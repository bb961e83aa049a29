"""A time limit for a server that keeps its connection and never answers: a frozen process, a machine that hangs.

No setting of the drivers or of TCP helps there: the kernel of the server's machine goes on to acknowledge packets. So a
thread shuts down the sockets on which this process waits, and the driver finds its connection closed.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_DESCRIPTORS = Path("/dev/fd")


class ReadTimeout:
    """Watches the connections of one reader. One thread reads; call everything from there.

    Attributes:
        expired: whether the connections were shut down during the last `watching`.
    """

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s`: the longest time without a sign of life."""
        self.timeout_s = timeout_s
        self.expired = False
        self._sockets: set[int] = set()
        self._deadline: float | None = None
        self._is_closed = self._is_idle = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, descriptors: set[int]) -> None:
        """Watch these sockets, until `forget`."""
        with self._changed:
            self._sockets |= descriptors

    def forget(self) -> None:
        """Watch none any more. To be called before they are closed, because others may get their numbers."""
        with self._changed:
            self._sockets.clear()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While this is entered, the time counts."""
        self.expired = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="read-timeout", daemon=True)
            self._thread.start()
        self._set(time.monotonic() + self.timeout_s)
        try:
            yield
        finally:
            self._set(None)

    def progressed(self) -> None:
        """The server has answered: the time begins again, if it counts."""
        with self._changed:
            if self._deadline is not None:
                self._deadline = time.monotonic() + self.timeout_s

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _set(self, deadline: float | None) -> None:
        with self._changed:
            self._deadline = deadline
            # Otherwise the thread looks again at the end of the deadline before, which is earlier.
            if self._is_idle and deadline is not None:
                self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_closed:
                left_s = None if self._deadline is None else self._deadline - time.monotonic()
                if left_s is not None and left_s <= 0 and not self._sockets:
                    self._deadline = time.monotonic() + self.timeout_s  # Nothing is connected yet.
                elif left_s is not None and left_s <= 0:
                    self.expired = True
                    self._deadline = None
                    for descriptor in self._sockets:
                        _shut_down(descriptor)
                else:
                    self._is_idle = left_s is None
                    self._changed.wait(left_s)


def socket_of(driver_connection: Any) -> set[int]:
    """Descriptor of the socket of a connection of psycopg or PyMySQL; none if it has none, or hides it."""
    found = getattr(driver_connection, "_sock", None) or driver_connection
    fileno = getattr(found, "fileno", None)
    return set() if fileno is None else {int(fileno())}


def sockets_to(peer: Any) -> set[int]:
    """Descriptors of this process that are connected to an address, as `peer_of` returns it."""
    found = set()
    for name in os.listdir(_DESCRIPTORS) if _DESCRIPTORS.exists() else ():
        if peer_of(int(name)) == peer:
            found.add(int(name))
    return found


def peer_of(descriptor: int) -> Any:
    """The address to which a socket is connected; None if it is none, or is not."""
    try:
        with _copied(descriptor) as copied:
            return copied.getpeername()
    except OSError:
        return None


def _shut_down(descriptor: int) -> None:
    # The server may have closed it at this very moment.
    with suppress(OSError), _copied(descriptor) as copied:
        copied.shutdown(socket.SHUT_RDWR)


def _copied(descriptor: int) -> socket.socket:
    """The socket with a descriptor of its own.

    Raises:
        OSError: it is closed, or something else than a socket.
    """
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    copy = os.dup(descriptor)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
