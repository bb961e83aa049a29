"""Whether the runs of this process were asked to stop."""

from __future__ import annotations

import threading

from airflow_connect.api.errors import ConnectError

_stop = threading.Event()


class StoppedError(ConnectError):
    """The run was asked to stop; nothing was committed after that."""

    code = "run.stopped"
    retriable = True


def request_stop() -> None:
    """Ask every run of this process to end before its next step; a run never commits after this."""
    _stop.set()


def refuse_when_stopping() -> None:
    """Raise if somebody has asked.

    Raises:
        StoppedError: the run ends here.
    """
    if _stop.is_set():
        raise StoppedError("The run was stopped before it committed.", suggestion="The next run goes on from here.")
