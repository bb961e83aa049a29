"""The row of FileStreamSink: a topic into one local file, a line for each record, each line counted back."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.bench.database_sources import json_numbers
from tests.bench.topics import RECORD_BYTES, Load

STORE = "lines"
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_READ_BYTES = 1 << 26


class LineFiles:
    """Each run writes a file in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Creates nothing."""
        self._folder = folder

    def connector(self, name: str, load: Load, config: Mapping[str, str]) -> dict[str, str]:
        """A connector that copies the topic into a file; Kafka Connect takes it as it is."""
        file = self.file(name)
        file.parent.mkdir(parents=True)
        return {
            "name": name,
            "connector.class": "FileStreamSink",
            "tasks.max": "2",
            "topics": load.topic,
            "file": str(file),
            "key.converter": _STRINGS,
            "value.converter": _STRINGS,
            **config,
        }

    def file(self, name: str) -> Path:
        """The file of a connector."""
        return self._folder / name / "lines.txt"

    def check(self, name: str, load: Load) -> tuple[int, str]:
        """Bytes of the file, and what is wrong with it; its folder is removed."""
        found = check_lines(self.file(name), load.records)
        shutil.rmtree(self.file(name).parent)
        return found


def check_lines(path: Path, records: int) -> tuple[int, str]:
    """Bytes of a file of records as lines, and what is wrong: ids 0 to `records - 1` must be there exactly once.

    A line of another length than that of a record counts as broken: two writers of one file may tear each other's.
    """
    seen, broken, rest = np.zeros(records, np.int64), 0, b""
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            *lines, rest = (rest + block).split(b"\n")
            ids = json_numbers([line for line in lines if len(line) == RECORD_BYTES])
            known = ids[ids < records]
            broken += len(lines) - len(known)
            seen += np.bincount(known, minlength=records)
    broken += bool(rest)
    counts = ((seen == 0).sum(), "missing"), ((seen > 1).sum(), "there twice"), (broken, "broken or unknown")
    return path.stat().st_size, ", ".join(f"{count} {what}" for count, what in counts if count)
