"""A value converter that does what a record tells it to, in the process that runs the task.

A record's value is JSON. With a member `do` the converter acts before it converts, up to `times` times over all
processes (files in the folder `fault.folder` count):

- `unavailable`, `refused`, `bad`, `bug`: raise an error that is worth another attempt, one that is not, one about this
  record, one that is not ours.
- `die`: this process gets SIGKILL.
- `hold`: wait until the test calls `Faults.release()`.

Every process that converts anything leaves a file that says who it is.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.errors import AccessError, DataError, UnavailableError
from tests.support.waiting import wait_until

FOLDER = "fault.folder"
HOLD_LIMIT_S = 120.0
SUGGESTION = "Ask the test why."


class Faults:
    """The folder, as the test and the converters see it."""

    def __init__(self, folder: Path) -> None:
        """`folder`: exists."""
        self._folder = folder

    def config(self) -> dict[str, str]:
        """What the connector's configuration needs; `_` stands for `.` as in `make_sink`.

        The sink gets records in lists of five: those before a fault are written when it happens.
        """
        return {
            "consumer_override_max_poll_records": "5",
            "value_converter": "tests.support.faulty_converter:FaultyConverter",
            f"value_converter_{FOLDER.replace('.', '_')}": str(self._folder),
            "value_converter_schemas_enable": "false",
        }

    def visit(self) -> None:
        """Say once who this process is."""
        note = self._folder / f"process-{os.getpid()}"
        if not note.exists():
            draft = note.with_name(f".{note.name}-{threading.get_ident()}")  # runs of one process visit at once
            draft.write_text(json.dumps({"pid": os.getpid(), "parent": os.getppid(), "cwd": os.getcwd()}))
            draft.rename(note)

    def visitors(self) -> list[dict[str, Any]]:
        """`pid`, `parent` (pyspark's daemon: one for each executor) and `cwd` of every process that ran a task."""
        return [json.loads(note.read_text()) for note in sorted(self._folder.glob("process-*"))]

    def take(self, times: int) -> bool:
        """Whether a fault that happens `times` times is to happen now."""
        for number in range(times):
            try:
                os.close(os.open(self._folder / f"fault-{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return True
        return False

    def taken(self) -> int:
        """How often the fault happened."""
        return len(list(self._folder.glob("fault-*")))

    def hold(self) -> None:
        """Wait for `release()`, in the process of a task."""
        (self._folder / f"held-{os.getpid()}").touch()
        wait_until((self._folder / "released").exists, "the test releases this task", HOLD_LIMIT_S)

    def held(self) -> list[int]:
        """Pids of the processes that wait or have waited."""
        return sorted(int(note.name.partition("-")[2]) for note in self._folder.glob("held-*"))

    def release(self) -> None:
        """Let every process go on, now and later."""
        (self._folder / "released").touch()


class FaultyConverter:
    """JsonConverter with faults."""

    def __init__(self) -> None:
        self._json = JsonConverter()

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Take `fault.folder` and JsonConverter's keys."""
        self._faults = Faults(Path(config[FOLDER]))
        self._faults.visit()
        self._json.configure(config, is_key)

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Act, then convert."""
        order = json.loads(data or b"{}")
        if "do" in order and self._faults.take(order["times"]):
            self._act(order["do"])
        return self._json.to_connect(topic, data)

    def _act(self, action: str) -> None:
        if action == "unavailable":
            raise UnavailableError("The server of the test is away.", code="test.away", suggestion=SUGGESTION)
        if action == "refused":
            raise AccessError("The test is refused.", code="test.no", suggestion=SUGGESTION, config_path="test.key")
        if action == "bad":
            raise DataError("The test does not like this record.", suggestion=SUGGESTION)
        if action == "bug":
            raise ZeroDivisionError("a defect of somebody")
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "hold":
            self._faults.hold()
