"""`airflow-connect worker` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.processes.drivers import PROJECT
from tests.support.servers.rest import Answered, send
from tests.support.waiting import wait_until

PATIENCE_S = 200.0
_LISTENS = re.compile(r"listens at https?://([^:\s]+):(\d+)\.")


class WorkerProcess:
    """A worker on a free port of loopback. Leaving the context manager ends it as SIGTERM does.

    Attributes:
        printed: what it has printed.
        exit_code: None while it runs.
    """

    def __init__(self, folder: Path, worker: Mapping[str, str]) -> None:
        """Start it; its configuration is written to `folder`."""
        file = folder / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in worker.items()))
        words = [sys.executable, "-m", "airflow_connect.cli", "worker", str(file)]
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        self._process = subprocess.Popen(
            words, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.printed = ""
        self.exit_code: int | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._address = ("", 0)

    def __enter__(self) -> Self:
        """Return when it listens."""

        def is_listening() -> bool:
            assert self._process.poll() is None, self.printed
            return _LISTENS.search(self.printed) is not None

        wait_until(is_listening, "the worker to listen", PATIENCE_S)
        found = _LISTENS.search(self.printed)
        assert found is not None
        self._address = found[1], int(found[2])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.end()

    def end(self) -> None:
        """End it as SIGTERM does."""
        self._process.send_signal(signal.SIGTERM)
        self.exit_code = self._process.wait(PATIENCE_S)
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, method: str, path: str, body: Any = None) -> Answered:
        """One request."""
        return send(self._address, method, path, body)

    def wait_for(self, path: str, wanted: str) -> Any:
        """The answer to GET `path`, once its JSON contains the text."""
        answers: list[Answered] = []

        def is_there() -> bool:
            answers[:] = [self.send("GET", path)]
            return wanted in str(answers[0].body)

        self.wait_until(is_there, f"{wanted} in {path}")
        return answers[0].body

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Return as soon as `condition()` holds; a failure shows what the worker has printed."""

        def holds() -> bool:
            assert self._process.poll() is None, self.printed
            return condition()

        try:
            wait_until(holds, what, PATIENCE_S, every_s=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.printed}") from error

    def _read(self) -> None:
        assert self._process.stderr is not None
        for text in self._process.stderr:
            self.printed += text
