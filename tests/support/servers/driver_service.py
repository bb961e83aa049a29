"""`airflow-connect driver-service` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from airflow_connect.runtime.driver_service.serving import TOKEN_ENV
from tests.support.processes.drivers import PROJECT
from tests.support.waiting import wait_until

TOKEN = "a-token-of-the-tests-0123456789"
PATIENCE_S = 60.0
_LISTENS = re.compile(r"listens at (\S+):")


class DriverServiceProcess:
    """A service on a free port of loopback. Leaving the context manager ends it as SIGTERM does.

    Attributes:
        url: where it listens.
        printed: what it has printed.
    """

    def __init__(self, *options: str, env: Mapping[str, str] | None = None, token: str = TOKEN) -> None:
        """Start it; `env` is added to this process's own environment."""
        words = [sys.executable, "-m", "airflow_connect.cli", "driver-service", "--port", "0", *options]
        given = {"PYTHONPATH": str(PROJECT), **(env or {}), **({TOKEN_ENV: token} if token else {})}
        self._process = subprocess.Popen(
            words, env={**os.environ, **given}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.printed = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = ""

    def __enter__(self) -> Self:
        """Return when it listens."""

        def is_listening() -> bool:
            assert self._process.poll() is None, self.printed
            return _LISTENS.search(self.printed) is not None

        wait_until(is_listening, "the service to listen", PATIENCE_S)
        found = _LISTENS.search(self.printed)
        assert found is not None
        self.url = found[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.end(signal.SIGTERM)

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait; returns the exit code."""
        self._process.send_signal(number)
        exit_code = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return exit_code

    def connection(self, token: str = TOKEN, **extra: Any) -> dict[str, Any]:
        """An Airflow connection to it, as its JSON form has it."""
        scheme, _, rest = self.url.partition("://")
        host, _, port = rest.rpartition(":")
        return {
            "conn_type": "connect_driver",
            "host": host,
            "port": int(port),
            "schema": scheme,
            "password": token,
            "extra": extra,
        }

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            for line in stream:
                self.printed += line


def pids_in(file: Path) -> list[int]:
    """Pids that a scripted driver has written (`fake: hang`)."""
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []
