"""Timeouts for HDFS: hdfs-native waits forever for a NameNode that accepts requests and never answers.

A stopped process, a full disk under the NameNode's log, or a firewall that dropped the connection all look like this:
no error, and the connection stays open. Java's client has its own timeout (`ipc.client.rpc-timeout.ms`); hdfs-native
has one for DataNodes only. Here each request runs on its own thread, and the caller stops waiting after the timeout.
The request cannot be cancelled, so its thread is left behind, and it may still be carried out later. Stores must expect
that anyway: a request of a dead run can also arrive late, see publish.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from airflow_connect.stores.hdfs.errors import NoAnswerError

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus, WriteOptions

ANSWER_S = 120.0
"""Default of Hadoop's `ipc.client.rpc-timeout.ms`, and of `HdfsSettings.answer_s`."""
FIRST_ANSWER_S = 8.0
"""Seconds for the very first answer: an address that never answered is more likely wrong than busy."""
_LISTED_AT_ONCE = 1000
"""Names that a NameNode sends in one answer (`dfs.ls.limit`)."""

T = TypeVar("T")


class RequestTimeouts:
    """Makes requests and waits a limited time for each. Safe to use from several threads.

    While a request is overdue, no other is made: each would take the full time again, and another thread.
    """

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        """No thread is started yet; `answer_s`: seconds for one request."""
        self._answer_s = answer_s
        self._lock = threading.Lock()
        self._idle: list[_Requester] = []
        self._overdue: list[_Requester] = []

    def get(self, request: Callable[[], T], within_s: float | None = None) -> T:
        """Return, or raise, what `request` does.

        Args:
            request: called on another thread.
            within_s: seconds for this request, instead of the default.

        Raises:
            NoAnswerError: the time is over, or an earlier request is still unanswered.
        """
        requester = self._free_requester()
        requester.requests.put(request)
        bound_s = self._answer_s if within_s is None else within_s
        try:
            result, error = requester.outcomes.get(timeout=bound_s)
        except Empty:
            requester.requests.put(None)
            with self._lock:
                self._overdue.append(requester)
            raise NoAnswerError(f"the request was not answered within {bound_s:.0f} s") from None
        except BaseException:
            requester.requests.put(None)
            raise
        with self._lock:
            self._idle.append(requester)
        if error is not None:
            try:
                raise error
            finally:
                del error  # It refers to this frame: the reference cycle would keep both alive.
        return cast("T", result)

    def close(self) -> None:
        """End the threads that wait for requests; idempotent."""
        with self._lock:
            idle, self._idle = self._idle, []
        for requester in idle:
            requester.requests.put(None)

    def __del__(self) -> None:
        """A client that was not closed leaves no threads."""
        self.close()

    def _free_requester(self) -> _Requester:
        with self._lock:
            self._overdue = [requester for requester in self._overdue if requester.outcomes.empty()]
            if self._overdue:
                raise NoAnswerError("an earlier request has still not been answered")
            if self._idle:
                return self._idle.pop()
        return _Requester()


class _Requester:
    """A thread that makes one request after another; None ends it. It never keeps the interpreter from ending."""

    def __init__(self) -> None:
        self.requests: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self.outcomes: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        threading.Thread(target=_serve, args=(self.requests, self.outcomes), name="hdfs-request", daemon=True).start()


def _serve(
    requests: SimpleQueue[Callable[[], Any] | None], outcomes: SimpleQueue[tuple[Any, BaseException | None]]
) -> None:
    while (request := requests.get()) is not None:
        try:
            outcome: tuple[Any, BaseException | None] = (request(), None)
        except BaseException as error:  # noqa: BLE001 (raised again by `RequestTimeouts.get`)
            outcome = (None, error)
        del request
        outcomes.put(outcome)
        del outcome


class TimeoutClient:
    """The parts of `hdfs_native.Client` that are used here, with a timeout for every answer."""

    def __init__(self, client: Client, answer_s: float = ANSWER_S) -> None:
        """Nothing is sent."""
        self._client = client
        self._timeouts = RequestTimeouts(answer_s)

    def close(self) -> None:
        """Release the threads; idempotent."""
        self._timeouts.close()

    def contact(self, within_s: float) -> None:
        """Send any request, with its own timeout."""
        self._timeouts.get(lambda: self._client.get_file_info("/"), within_s)

    def get_file_info(self, path: str) -> FileStatus:
        """The status of a file or directory."""
        return self._timeouts.get(lambda: self._client.get_file_info(path))

    def list_status(self, path: str, recursive: bool = False) -> Iterator[FileStatus]:
        """The entries of a directory, or everything below it with `recursive`."""
        found = self._timeouts.get(lambda: self._client.list_status(path, recursive))
        while part := self._timeouts.get(lambda: list(islice(found, _LISTED_AT_ONCE))):
            yield from part

    def mkdirs(self, path: str, permission: int, create_parent: bool) -> None:
        """Create a directory; it may exist."""
        self._timeouts.get(lambda: self._client.mkdirs(path, permission, create_parent))

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        """Move a file; never over another one unless `overwrite`."""
        self._timeouts.get(lambda: self._client.rename(source, target, overwrite))

    def delete(self, path: str, recursive: bool) -> bool:
        """Delete a file or directory; returns whether it existed."""
        return self._timeouts.get(lambda: self._client.delete(path, recursive))

    def recover_lease(self, path: str) -> bool:
        """Whether the file is closed now."""
        return self._timeouts.get(lambda: self._client.recover_lease(path))

    def create(self, path: str, options: WriteOptions) -> TimeoutWriter:
        """Create a file, with its parents."""
        # Not `Client.create`: Python closes its result without a timeout once it is no longer referenced.
        return TimeoutWriter(self._timeouts.get(lambda: self._client.inner.create(path, options)), self._timeouts)

    def read(self, path: str) -> TimeoutReader:
        """Open a file in its current state."""
        return TimeoutReader(self._timeouts.get(lambda: self._client.read(path)), self._timeouts)


class TimeoutWriter:
    """`hdfs_native.FileWriter`, with a timeout for every answer."""

    def __init__(self, writer: Any, timeouts: RequestTimeouts) -> None:
        """Created by `TimeoutClient.create`."""
        self._writer = writer
        self._timeouts = timeouts

    def write(self, data: bytes | bytearray) -> int:
        """Append bytes; returns their number."""
        return self._timeouts.get(lambda: int(self._writer.write(data)))

    def close(self) -> None:
        """Wait until HDFS has stored everything."""
        self._timeouts.get(self._writer.close)


class TimeoutReader:
    """`hdfs_native.FileReader`, with a timeout for every answer."""

    def __init__(self, reader: Any, timeouts: RequestTimeouts) -> None:
        """Created by `TimeoutClient.read`."""
        self._reader = reader
        self._timeouts = timeouts

    def __len__(self) -> int:
        """Size in bytes; not requested again."""
        return len(self._reader)

    def read_range(self, start: int, length: int) -> bytes:
        """`length` bytes from `start`."""
        return self._timeouts.get(lambda: bytes(self._reader.read_range(start, length)))


__all__ = ["ANSWER_S", "FIRST_ANSWER_S", "RequestTimeouts", "TimeoutClient", "TimeoutReader", "TimeoutWriter"]
