"""Detects names that a file system refuses, for each record, before anything is staged.

A refusal by the file system itself comes too late: it fails the files of a whole task, and `errors.tolerance` cannot
tell which record caused it.
"""

from __future__ import annotations

from typing import NamedTuple

from airflow_connect.api.record import SinkRecord
from airflow_connect.errors import DataError
from airflow_connect.layout.partitioners import Partitioner, WrappingPartitioner

_SHOWN = 100


class NameRules(NamedTuple):
    """A file system's rules for the parts of a path.

    Attributes:
        system: its name, for messages.
        forbidden: characters that names must not contain; in field values they are escaped.
        max_part_bytes: maximum length of a name in UTF-8.
        code: of the errors.
    """

    system: str
    forbidden: str
    max_part_bytes: int
    code: str

    def broken_by(self, directory: str) -> str:
        """The problem of a directory, or ""."""
        for character in self.forbidden:
            if character in directory:
                return f"{self.system} does not allow {character!r} in names"
        for part in directory.split("/"):
            if part in (".", ".."):
                return f"{self.system} does not allow {part!r} as a name"
            if len(part.encode("utf-8", "surrogatepass")) > self.max_part_bytes:
                return f"{self.system} allows names of at most {self.max_part_bytes} bytes"
        return ""

    def check(self, directory: str) -> None:
        """Reject a directory that the file system would refuse.

        Raises:
            DataError: with the problem.
        """
        broken = self.broken_by(directory)
        if broken:
            raise DataError(
                f"Files cannot be written to {directory[:_SHOWN]!r}: {broken}.",
                code=self.code,
                suggestion="Let the partitioner return other names; with errors.tolerance=all such records go to the "
                "dead letter queue.",
            )


HDFS = NameRules("HDFS", ":", 255, "data.hdfs_name")
"""Source: DFSUtil.isValidNameForComponent; dfs.namenode.fs-limits.max-component-length, by default 255."""


class CheckedNames(WrappingPartitioner):
    """A partitioner that only returns directories that the file system accepts; others are errors of their records."""

    def __init__(self, inner: Partitioner, rules: NameRules) -> None:
        """Wrap `inner`."""
        super().__init__(inner, "/")
        self._rules = rules

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        """Directory of the record.

        Raises:
            DataError: the file system would refuse it.
        """
        directory = self.inner.directory(record, now_ms)
        try:
            self._rules.check(directory)
        except DataError as error:
            message = f"{error.message} ({record.where})"
            raise DataError(message, code=error.code, suggestion=error.suggestion) from error
        return directory

    def directory_regex(self) -> str:
        """As the wrapped one."""
        return self.inner.directory_regex()
