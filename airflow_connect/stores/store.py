"""What a store is: one small class with two roles, what executors may do and what only the driver may do.

A stager creates things that nobody can see (an unfinished multipart upload, a temporary file). Only a publisher makes
them visible, and it is driven by a manifest (exactly_once/). Code on executors gets a `Stager` and has no way to
publish.

To add a store, write a `Store`, and prove it with `airflow_connect.testing.StoreConformance`. Partitioners, rotation,
formats, the manifest and the sweep know nothing of any particular one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_connect.api.run import StagedFile
from airflow_connect.api.staging import LeftOver, Outcome

HAS_TWIN = "has_twin"
"""Member of a staged file's token: something unpublished may lie beside it that only a listing finds."""


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What a staged file is, known when it is opened or closed.

    Attributes:
        key: final name inside the store, without bucket; where names hold the last offset too, the name without it.
        topic, partition: Kafka partition whose records it holds.
        start: offset of the first record inside.
        content_type: MIME type, or "".
        content_encoding: e.g. `gzip`, or "".
        role: `value`, `key` or `headers`.
        root: what `key` begins with whatever the topic is (`topics/`); a store may keep what it stages below it.
        key_at: where names hold the last offset: end (last offset plus one) -> final name.
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
        """What is said of the file once all of it is in the store.

        Args:
            key: the name that it gets when it is published: `key`, or `final_key`.
            end: last offset inside plus one.
            records: how many are inside.
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
        """Append bytes. A part may go up in the background; its error is raised by a later call or by `close`."""

    def spill(self) -> None:
        """Move buffered bytes to the executor's disk; called when the task's memory budget is used up."""

    def close(self, end: int, records: int) -> Future[StagedFile]:
        """Finish staging. `end`: last offset inside plus one. The result is there when every byte is on the server."""

    def abort(self) -> None:
        """Discard the file and everything already uploaded; idempotent."""


class Stager(Protocol):
    """Executor role."""

    def open(self, identity: FileIdentity) -> StagingFile:
        """Start a file; costs no request until the first part is full or the file is closed."""

    def close(self) -> None:
        """Release threads and connections; open files must have been closed or aborted."""


class Publisher(Protocol):
    """Driver role."""

    @property
    def may_have_twins(self) -> bool:
        """Whether this publisher itself may have staged something that only a listing finds."""

    def preflight(self) -> None:
        """Check reachability, bucket or directory, region and permissions before anything is copied.

        Raises:
            AccessError, UnavailableError, ConfigError: with what is missing.
        """

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Make files visible, in parallel and idempotently; returns key -> outcome. `progress` gets the number done.

        Raises:
            PublishConflictError: an object that is not the one in the manifest stands under a key.
            UnavailableError: after all retries; publishing again continues.
        """

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Discard staged files; idempotent; returns how many existed."""

    def list_staged(self, prefixes: Iterable[str]) -> Iterable[LeftOver]:
        """Everything staged and unpublished whose final key starts with one of the prefixes, of whatever origin.

        `LeftOver.key` is `FileIdentity.key` of the file, whether or not it was closed.
        """

    def close(self) -> None:
        """Release connections; idempotent."""


class FilePublisher(Publisher, Protocol):
    """Driver role of a store for files."""

    def mark(self, keys: Sequence[str]) -> None:
        """Make sure that an object without content stands under each key (`_SUCCESS`); idempotent.

        Raises:
            AccessError, UnavailableError: the store refused, or did not answer.
        """


class Store(Protocol):
    """A place for files, reached with given settings. Makes no request by itself."""

    @property
    def name(self) -> str:
        """Which place it is, for people and for the journal, without secrets: `s3://bucket`, `hdfs://name:8020`."""

    def stager(self, run_id: str) -> Stager:
        """The executor role; `run_id` is kept beside the staged data where the store has room for it."""

    def publisher(self, *, probe_prefix: str, overwrite: bool) -> FilePublisher:
        """The driver role.

        Args:
            probe_prefix: key prefix under which `preflight` tries to stage something.
            overwrite: replace another object that stands under a key, instead of refusing to.
        """


__all__ = [
    "HAS_TWIN",
    "FileIdentity",
    "FilePublisher",
    "LeftOver",
    "Outcome",
    "Publisher",
    "Stager",
    "StagingFile",
    "Store",
]
