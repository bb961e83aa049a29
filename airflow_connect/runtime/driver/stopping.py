"""Whether the runs of this process must stop."""

from __future__ import annotations

import threading

from airflow_connect.errors import ConnectError

_stop = threading.Event()


class StoppedError(ConnectError):
    """The run was stopped on request; nothing was committed after that."""

    code = "run.stopped"
    retriable = True


def request_stop() -> None:
    """Request that every run of this process ends before its next step; a run never commits after this."""
    _stop.set()


def refuse_when_stopping() -> None:
    """Raise if a stop was requested.

    Raises:
        StoppedError: the run ends here.
    """
    if _stop.is_set():
        raise StoppedError("The run was stopped before it committed.", suggestion="The next run continues from here.")
