"""The store interface: one small class with two roles, one for executors and one for the driver only.

A stager creates invisible things (an unfinished multipart upload, a temporary file). Only a publisher makes them
visible, and a manifest controls it (exactly_once/). Code on executors gets a `Stager` and cannot publish.

To add a store, write a `Store`, and prove it with `airflow_connect.testing.StoreConformance`. Partitioners, rotation,
formats, the manifest and the sweep do not depend on any particular store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_connect.api.publishing import Publisher
from airflow_connect.api.staging import LeftOver, Outcome, StagedFile
from airflow_connect.errors import ConfigError

PROBE_NAME = ".airflow-connect-preflight"
"""Prefix of the names of trial uploads, with which a preflight checks permissions."""
NAME_NOT_KEPT = "s3.odd_name"
"""Code of the error for a file whose name the store changes or refuses."""
POSSIBLE_DUPLICATE = "has_twin"
"""Member of a staged file's token: there may be another unpublished upload of it that only a listing finds."""


def has_odd_directories(key: str) -> bool:
    """Whether a part of the key between slashes is empty, `.` or `..`: only Amazon S3 certainly keeps such a name."""
    return bool({"", ".", ".."} & set(key.split("/")))


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The identity of a staged file, known when it is opened or closed.

    Attributes:
        key: final name inside the store, without bucket; if names contain the last offset, the name without it.
        topic, partition: Kafka partition whose records it holds.
        start: offset of the first record inside.
        content_type: MIME type, or "".
        content_encoding: e.g. `gzip`, or "".
        role: `value`, `key` or `headers`.
        root: the part of `key` before the topic (`topics/`); a store may keep staged files below it.
        key_at: if names contain the last offset: end (last offset plus one) -> final name.
    """

    key: str
    topic: str
    partition: int
    start: int
    content_type: str = ""
    content_encoding: str = ""
    role: str = "value"
    root: str = ""
    key_at: Callable[[int], str] | None = None

    def final_key(self, end: int) -> str:
        """The final name of a file whose last offset plus one is `end`."""
        return self.key if self.key_at is None else self.key_at(end)

    def staged(self, key: str, end: int, records: int, size_bytes: int, token: dict[str, Any]) -> StagedFile:
        """Describe the file once all of it is in the store.

        Args:
            key: its name when it is published: `key`, or `final_key`.
            end: last offset inside plus one.
            records: number of records inside.
            size_bytes: of the file.
            token: what the store's publisher needs.
        """
        return StagedFile(
            key=key,
            topic=self.topic,
            partition=self.partition,
            start=self.start,
            end=end,
            records=records,
            size_bytes=size_bytes,
            token=token,
            role=self.role,
        )


class StagingFile(Protocol):
    """An open staged file. Bytes are uploaded in parts while it grows; nothing is visible."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes held in memory by this file."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes. A part may be uploaded in the background; its error is raised by a later call or by `close`."""

    def spill(self) -> None:
        """Move buffered bytes to the executor's disk; called when the task's memory budget is exhausted."""

    def close(self, end: int, records: int) -> Future[StagedFile]:
        """Finish staging. `end`: last offset inside plus one. The future completes when every byte is on the server."""

    def abort(self) -> None:
        """Discard the file and everything already uploaded; idempotent."""


class Stager(Protocol):
    """Executor role."""

    def open(self, identity: FileIdentity) -> StagingFile:
        """Start a file; no request is made until the first part is full or the file is closed."""

    def close(self) -> None:
        """Release threads and connections; open files must have been closed or aborted."""


class FilePublisher(Publisher, Protocol):
    """Driver role of a store for files."""

    def mark(self, keys: Sequence[str]) -> None:
        """Make sure that an empty object exists under each key (`_SUCCESS`); idempotent.

        Raises:
            AccessError, UnavailableError: the store refused, or did not answer.
        """

    def write(self, key: str, data: bytes) -> None:
        """Put a small file under a key, whole, in place of an earlier one; for what is known when a run publishes.

        Raises:
            AccessError, UnavailableError: the store refused, or did not answer.
            ConfigError: a store that does not define this method has none.
        """
        raise ConfigError(
            f"{type(self).__name__} has no method write, which files of whole records need (store.kafka.records).",
            suggestion="Add it to the store, see airflow_connect.stores.store.FilePublisher.",
        )


class Store(Protocol):
    """A store for files with given settings. Creating it makes no request."""

    @property
    def name(self) -> str:
        """Identifies the store for people and for the journal, without secrets: `s3://bucket`, `hdfs://name:8020`."""

    def stager(self, run_id: str) -> Stager:
        """The executor role; `run_id` is kept along with the staged data if the store supports that."""

    def publisher(self, *, probe_prefix: str, overwrite: bool) -> FilePublisher:
        """The driver role.

        Args:
            probe_prefix: key prefix under which `preflight` tries to stage something.
            overwrite: replace another object under a key, instead of refusing to.
        """


__all__ = [
    "NAME_NOT_KEPT",
    "POSSIBLE_DUPLICATE",
    "PROBE_NAME",
    "FileIdentity",
    "FilePublisher",
    "LeftOver",
    "Outcome",
    "Publisher",
    "Stager",
    "StagingFile",
    "Store",
    "has_odd_directories",
]
