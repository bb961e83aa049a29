"""Answers of HDFS with a bound: hdfs-native waits for ever for a NameNode that takes requests and stays silent.

A stopped process, a full disk under the NameNode's log or a firewall that forgot the connection all look like this: no
error, no end of the connection. Java's client counts the seconds by itself (`ipc.client.rpc-timeout.ms`), hdfs-native
counts them for DataNodes only. Here a request is made on a thread of its own, and the caller stops waiting: nobody can
end the request, so its thread is left behind, and it may still be carried out later. That is no news for a store: a
request of a dead run can arrive late too, see hdfs_publish.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from airflow_connect.stores.hdfs_errors import NoAnswerError

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus, WriteOptions

ANSWER_S = 120.0
"""Default of Hadoop's `ipc.client.rpc-timeout.ms`, and of `HdfsSettings.answer_s`."""
_LISTED_AT_ONCE = 1000
"""Names that a NameNode sends in one answer (`dfs.ls.limit`)."""

T = TypeVar("T")


class Answers:
    """Makes requests and waits a bounded time for each. Safe to use from several threads.

    While a request is overdue, no other is made: each would cost the whole time again, and a thread.
    """

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        """No thread is started yet; `answer_s`: seconds for one request."""
        self._answer_s = answer_s
        self._lock = threading.Lock()
        self._idle: list[_Requester] = []
        self._overdue: list[_Requester] = []

    def get(self, request: Callable[[], T]) -> T:
        """What `request` returns, or raises.

        Raises:
            NoAnswerError: it did neither within the time, or an earlier one has not done so until now.
        """
        requester = self._free_requester()
        requester.requests.put(request)
        try:
            result, error = requester.outcomes.get(timeout=self._answer_s)
        except Empty:
            requester.requests.put(None)
            with self._lock:
                self._overdue.append(requester)
            raise NoAnswerError(f"the request was not answered within {self._answer_s:.0f} s") from None
        except BaseException:
            requester.requests.put(None)
            raise
        with self._lock:
            self._idle.append(requester)
        if error is not None:
            try:
                raise error
            finally:
                del error  # It knows this frame: a circle would keep it, and what it holds.
        return cast("T", result)

    def close(self) -> None:
        """End the threads that wait for requests; idempotent."""
        with self._lock:
            idle, self._idle = self._idle, []
        for requester in idle:
            requester.requests.put(None)

    def __del__(self) -> None:
        """Whoever forgets a client leaves no threads."""
        self.close()

    def _free_requester(self) -> _Requester:
        with self._lock:
            self._overdue = [requester for requester in self._overdue if requester.outcomes.empty()]
            if self._overdue:
                raise NoAnswerError(f"an earlier request is not answered since {self._answer_s:.0f} s or more")
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
        except BaseException as error:  # noqa: BLE001 (raised again by `Answers.get`)
            outcome = (None, error)
        del request
        outcomes.put(outcome)
        del outcome


class AnsweringClient:
    """`hdfs_native.Client`, as far as it is used here, with a bound for every answer."""

    def __init__(self, client: Client, answer_s: float = ANSWER_S) -> None:
        """Nothing is sent."""
        self._client = client
        self._answers = Answers(answer_s)

    def close(self) -> None:
        """Let go of the threads; idempotent."""
        self._answers.close()

    def get_file_info(self, path: str) -> FileStatus:
        """Of a file or directory."""
        return self._answers.get(lambda: self._client.get_file_info(path))

    def list_status(self, path: str, recursive: bool = False) -> Iterator[FileStatus]:
        """What is in a directory, or, with `recursive`, below it."""
        found = self._answers.get(lambda: self._client.list_status(path, recursive))
        while part := self._answers.get(lambda: list(islice(found, _LISTED_AT_ONCE))):
            yield from part

    def mkdirs(self, path: str, permission: int, create_parent: bool) -> None:
        """Make a directory, which may be there."""
        self._answers.get(lambda: self._client.mkdirs(path, permission, create_parent))

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        """Move a file; never over another one unless `overwrite`."""
        self._answers.get(lambda: self._client.rename(source, target, overwrite))

    def delete(self, path: str, recursive: bool) -> bool:
        """Whether it was there."""
        return self._answers.get(lambda: self._client.delete(path, recursive))

    def recover_lease(self, path: str) -> bool:
        """Whether the file is closed now."""
        return self._answers.get(lambda: self._client.recover_lease(path))

    def create(self, path: str, options: WriteOptions) -> AnsweringWriter:
        """Create a file, with its parents."""
        # Not `Client.create`: Python closes what that returns when nobody holds it any more, without a bound.
        return AnsweringWriter(self._answers.get(lambda: self._client.inner.create(path, options)), self._answers)

    def read(self, path: str) -> AnsweringReader:
        """The file as it is now."""
        return AnsweringReader(self._answers.get(lambda: self._client.read(path)), self._answers)


class AnsweringWriter:
    """`hdfs_native.FileWriter`, with a bound for every answer."""

    def __init__(self, writer: Any, answers: Answers) -> None:
        """Made by `AnsweringClient.create`."""
        self._writer = writer
        self._answers = answers

    def write(self, data: bytes | bytearray) -> int:
        """Append bytes; returns how many."""
        return self._answers.get(lambda: int(self._writer.write(data)))

    def close(self) -> None:
        """Wait until HDFS has all of it."""
        self._answers.get(self._writer.close)


class AnsweringReader:
    """`hdfs_native.FileReader`, with a bound for every answer."""

    def __init__(self, reader: Any, answers: Answers) -> None:
        """Made by `AnsweringClient.read`."""
        self._reader = reader
        self._answers = answers

    def __len__(self) -> int:
        """Size in bytes; not asked for again."""
        return len(self._reader)

    def read_range(self, start: int, length: int) -> bytes:
        """`length` bytes from `start` on."""
        return self._answers.get(lambda: bytes(self._reader.read_range(start, length)))


__all__ = ["ANSWER_S", "AnsweringClient", "AnsweringReader", "AnsweringWriter", "Answers"]
