"""What was appended to a file: a small document next to it, replaced as a whole before and after every publish.

It makes appending idempotent. `open` is written before the first byte is appended and contains the length of the file
at that time. `done` lists the runs whose lines are all in the file. The state of a run is in Kafka; this document only
records how far the last step got.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import Any

from airflow_connect.errors import StateError
from airflow_connect.stores.local.directories import refusals, sync_directory

VERSION = 1
REMEMBERED_RUNS = 100
"""Number of runs in `done`. Only a run's recovery and publishers that were believed dead look for it, soon or never."""


@dataclass(frozen=True, slots=True)
class OpenPublish:
    """A publish that has begun and may have stopped at any point.

    Attributes:
        run_id: whose lines.
        base: length of the file in bytes before the first of them.
        limit: bytes that may have been appended.
        segments: paths of the temporary files, in the order of appending.
    """

    run_id: str
    base: int
    limit: int
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AppendJournal:
    """The document.

    Attributes:
        done: runs that are appended, oldest first.
        open: the one that is being appended, or None.
    """

    done: tuple[str, ...] = ()
    open: OpenPublish | None = None

    def begun(self, publish: OpenPublish) -> AppendJournal:
        """The document with a publish that is going to append."""
        return replace(self, open=publish)

    def finished(self, run_id: str) -> AppendJournal:
        """The document with a run whose lines are all in the file."""
        others = tuple(known for known in self.done if known != run_id)
        return AppendJournal((*others, run_id)[-REMEMBERED_RUNS:])

    def rolled_back(self) -> AppendJournal:
        """The document without the open publish."""
        return replace(self, open=None)


def journal_path(target: str) -> str:
    """Path of a file's journal: a hidden file next to it."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f".{name}.airflow-connect")


def read_journal(path: str) -> AppendJournal:
    """The journal; an empty one if it does not exist yet.

    Raises:
        StateError: it is damaged, or has a newer version.
        AccessError, UnavailableError: it cannot be read.
    """
    with refusals("read", path):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return AppendJournal()
    try:
        document: dict[str, Any] = json.loads(text)
        if document["v"] != VERSION:
            raise ValueError(f"version {document['v']}")
        begun = document["open"]
        publish = None
        if begun is not None:
            publish = OpenPublish(begun["run_id"], begun["base"], begun["limit"], tuple(begun["segments"]))
        return AppendJournal(tuple(document["done"]), publish)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"The journal {path} cannot be read: {type(error).__name__}: {error}.",
            code="file.journal_unreadable",
            suggestion="Use a version of this package that supports it. If it is damaged, check that the lines of the "
            "last run are complete in the file next to it, repair the file, and delete the journal.",
        ) from error


def write_journal(path: str, journal: AppendJournal) -> None:
    """Replace the journal; it survives a power failure once this returns.

    Raises:
        AccessError, UnavailableError: the file system refused.
    """
    begun = None
    if journal.open is not None:
        publish = journal.open
        begun = {
            "run_id": publish.run_id,
            "base": publish.base,
            "limit": publish.limit,
            "segments": list(publish.segments),
        }
    text = json.dumps({"v": VERSION, "done": list(journal.done), "open": begun})
    new = f"{path}.new"
    with refusals("write", path):
        with open(new, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    sync_directory(os.path.dirname(path))
