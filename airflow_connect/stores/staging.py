"""What stagers of several stores do alike: gather a file's bytes, hold sizes together, answer the waiting task."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from airflow_connect.api.errors import AuditError
from airflow_connect.formats.spill import SpillBuffer
from airflow_connect.stores.store import FileIdentity

T = TypeVar("T")


class BufferedFile:
    """An open file whose bytes wait in memory, or on local disk, until its store takes them. Used by one thread."""

    def __init__(self, identity: FileIdentity) -> None:
        """Nothing is written. `identity`: what the file is."""
        self._identity = identity
        self._buffer = SpillBuffer()
        self._written = 0
        self._is_closed = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes held in memory that were not handed over yet; those have the stager's own bound."""
        return self._buffer.buffered_bytes

    def spill(self) -> None:
        """Move buffered bytes to local disk.

        Raises:
            UnavailableError: the disk is full or broken.
        """
        self._buffer.spill()

    def _take(self) -> SpillBuffer:
        """What was gathered; the file begins to gather anew."""
        gathered, self._buffer = self._buffer, SpillBuffer()
        return gathered

    def _drop(self) -> None:
        """Forget what was gathered; the file takes no more."""
        self._is_closed = True
        self._buffer.close()

    def _check_open(self, failure: BaseException | None) -> None:
        """Refuse to go on after `failure`, or once the file is closed."""
        if failure is not None:
            raise failure
        if self._is_closed:
            raise ValueError(f"The staged file {self._identity.key} is closed.")


def check_size(place: str, written: int, found: int) -> None:
    """Hold what a store has against what was written to it (invariant 7 for bytes).

    Raises:
        AuditError: they differ.
    """
    if found != written:
        raise AuditError(
            f"{place} was written as {written} bytes, but holds {found}; nothing was published.",
            suggestion="No offset was moved. Run again; if it happens again, something else writes below +tmp.",
        )


def resolve(result: Future[T], make: Callable[[], T]) -> BaseException | None:
    """Give the waiting task what `make` returns or raises: a future that stays open would hang it.

    Returns:
        what was raised, or None. A result that was cancelled stays so.
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
