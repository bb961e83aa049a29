"""Code shared by stagers: buffer a file's bytes, compare sizes, give the waiting task its result."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from airflow_connect.errors import AuditError
from airflow_connect.formats.spill import SpillBuffer
from airflow_connect.stores.store import FileIdentity

T = TypeVar("T")
END_WITHIN_S = 30.0
"""How long a task that ends waits for pending requests of its stager."""

log = logging.getLogger(__name__)


class StagingThreads:
    """The threads of a stager.

    A task must end even if its store does not answer: `close` waits for pending work with a time limit. Work on an
    aborted file costs nothing, so remaining queued work is done at once.
    """

    def __init__(self, count: int, name: str) -> None:
        """No thread is started yet. `name`: prefix of the threads' names."""
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._changed = threading.Condition()
        self._unfinished = 0

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` on one of the threads."""
        with self._changed:
            self._unfinished += 1
        future = self._pool.submit(work)
        future.add_done_callback(self._note_end)
        return future

    def close(self, within_s: float = END_WITHIN_S) -> None:
        """Wait until all work is done, at most `within_s` seconds, and let the threads end; idempotent."""
        with self._changed:
            has_ended = self._changed.wait_for(lambda: not self._unfinished, within_s)
        if not has_ended:
            log.warning(
                "The store did not answer %d requests within %g s; what they staged stays until the next sweep.",
                self._unfinished,
                within_s,
            )
        self._pool.shutdown(wait=has_ended, cancel_futures=True)

    def _note_end(self, _: Future[Any]) -> None:
        with self._changed:
            self._unfinished -= 1
            self._changed.notify_all()


class BufferedFile:
    """An open file whose bytes wait in memory, or on local disk, until the store accepts them. Used by one thread."""

    def __init__(self, identity: FileIdentity) -> None:
        """Nothing is written. `identity`: what the file is."""
        self._identity = identity
        self._buffer = SpillBuffer()
        self._written = 0
        self._is_closed = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes held in memory and not yet handed over; the stager limits the others."""
        return self._buffer.buffered_bytes

    def spill(self) -> None:
        """Move buffered bytes to local disk.

        Raises:
            UnavailableError: the disk is full or broken.
        """
        self._buffer.spill()

    def _take(self) -> SpillBuffer:
        """Return the buffered bytes, and start a new buffer."""
        gathered, self._buffer = self._buffer, SpillBuffer()
        return gathered

    def _drop(self) -> None:
        """Discard the buffered bytes; the file accepts no more."""
        self._is_closed = True
        self._buffer.close()

    def _check_open(self, failure: BaseException | None) -> None:
        """Raise if there was a `failure`, or if the file is closed."""
        if failure is not None:
            raise failure
        if self._is_closed:
            raise ValueError(f"The staged file {self._identity.key} is closed.")


def check_size(place: str, written: int, found: int) -> None:
    """Compare the size in the store with what was written (invariant 7 for bytes).

    Raises:
        AuditError: they differ.
    """
    if found != written:
        raise AuditError(
            f"{place} was written as {written} bytes, but holds {found}; nothing was published.",
            suggestion="No offset was moved. Run again; if it happens again, something else writes below +tmp.",
        )


def resolve(result: Future[T], make: Callable[[], T]) -> BaseException | None:
    """Resolve the future with what `make` returns or raises: a future left open would hang the waiting task.

    Returns:
        the exception raised, or None. A cancelled result stays cancelled.
    """
    try:
        made = make()
    except BaseException as error:  # noqa: BLE001 (raised again in the task's thread, by `result`)
        if result.set_running_or_notify_cancel():
            result.set_exception(error)
        return error
    if result.set_running_or_notify_cancel():
        result.set_result(made)
    return None


def results(staged: Sequence[Future[T]]) -> list[T]:
    """Wait for all of them.

    Raises:
        Exception: the first failure, as soon as it is known; work queued after it is not awaited.
    """
    done, _ = wait(staged, return_when=FIRST_EXCEPTION)
    for future in done:
        error = future.exception()
        if error is not None:
            raise error
    return [future.result() for future in staged]
