"""The doctor's checks with a limit of time: a server that does not answer must not keep a page waiting."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

from airflow_connect.observe.inspecting.doctor import Check
from airflow_connect.runtime.reporting.internal_errors import internal_error
from airflow_connect.runtime.reporting.redaction import Redactor


def checks_within(checks: Iterator[Check], redact: Redactor, limit_s: float) -> list[Check]:
    """The results of all checks that end within `limit_s`, without secrets; the last entry says if some did not.

    A check that has not ended goes on in its thread until its own requests have timed out.
    """
    results: queue.SimpleQueue[Check | None] = queue.SimpleQueue()
    threading.Thread(target=_make, args=(checks, redact, results), name="airflow-connect-doctor", daemon=True).start()
    found: list[Check] = []
    until_s = time.monotonic() + limit_s
    while True:
        try:
            check = results.get(timeout=max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            after = f'after "{found[-1].did}"' if found else "of the first check"
            told = f"No answer {after} within {limit_s:.0f} s: the other checks were not made."
            to_do = "airflow-connect doctor --deep waits longer. Look for a server that does not answer."
            return [*found, Check("time limit", told, to_do, is_ok=False)]
        if check is None:
            return found
        found.append(check)


def _make(checks: Iterator[Check], redact: Redactor, results: queue.SimpleQueue[Check | None]) -> None:
    try:
        for check in checks:
            results.put(Check(check.did, redact(check.found), redact(check.to_do), check.is_ok))
    except Exception as error:  # noqa: BLE001 (reported as a failed check: an exception of this thread would be lost)
        results.put(Check("doctor", str(internal_error(error, redact)), is_ok=False))
    results.put(None)
