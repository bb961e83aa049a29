"""The records of a chain of files in the order of their offsets.

Sinks with several directories for one partition write several files at a time, so files interleave. Names tell where a
file begins, so one is opened only when the records before it are returned, and those of all open files are merged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.passed import fingerprint, text_of
from airflow_connect.connectors.restore.progress import Progress
from airflow_connect.connectors.restore.read.formats import NoBackupError, open_columns
from airflow_connect.connectors.restore.read.opening import Store
from airflow_connect.connectors.restore.read.records import Records, checked, damaged, no_backup
from airflow_connect.connectors.restore.work import Chain
from airflow_connect.counting import names
from airflow_connect.errors import ConnectError, DataError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition

MOST_OPEN = 100
"""Files of a chain that may be open at a time: each needs memory for a row group."""


class Piece(NamedTuple):
    """Records that are restored next, and what is committed with them.

    Attributes:
        records: in order.
        first_open: start of the first file of which a part may be left before them.
        progress: after them.
    """

    records: Records
    first_open: int
    progress: Progress


class _OpenFile:
    """A file that is being read.

    Attributes:
        records: those that come next; empty at its end.
    """

    def __init__(self, reader: FileReader, file: BackupFile, position: int) -> None:
        self.file = file
        self._reader = reader
        self._batches = reader.batches(file, position)
        self.records = self._next()

    def take(self, count: int) -> Records:
        """The first `count` of its records."""
        taken, self.records = self.records.slice(0, count), self.records.slice(count, len(self.records))
        if not len(self.records):
            self.records = self._next()
        return taken

    def _next(self) -> Records:
        return next((one for one in self._batches if len(one)), _nothing())


def _nothing() -> Records:
    import numpy as np

    return Records(np.zeros(0, np.int64), {})


class FileReader:
    """Reads files of one partition."""

    def __init__(self, store: Store, file_format: str, tp: TopicPartition) -> None:
        """Opens nothing."""
        self.store, self._format, self._tp = store, file_format, tp

    def version(self, file: BackupFile) -> str:
        """What differs if the content of a file does."""
        return file.version(identity_is_content=self.store.files.identity_is_content)

    def batches(self, file: BackupFile, position: int) -> Iterator[Records]:
        """The records of a file from an offset on.

        Raises:
            DataError: it is damaged, holds no whole records, or was changed.
            UnavailableError, AccessError: it cannot be read.
        """
        import numpy as np

        name, version = self.store.full_name(file), self.version(file)
        content = self.store.open(file)
        previous = file.start - 1
        try:
            for batch in open_columns(self._format, content).batches(position):
                records = checked(batch, self._tp, name, version)
                if not len(records):
                    continue
                first = int(records.offsets[0])
                if first <= previous or (previous < file.start and position <= file.start and first != file.start):
                    raise damaged(name, version, f"its first record has offset {first}, unlike its name says")
                previous = int(records.offsets[-1])
                yield records.slice(int(np.searchsorted(records.offsets, position)), len(records))
            if file.end >= 0 and previous != file.end and (previous >= file.start or position <= file.end):
                raise damaged(name, version, f"its last record has offset {previous}, unlike its name says")
            if previous < file.start and position <= file.start:
                raise damaged(name, version, "it holds no record")
            self.store.ensure_unchanged(file)
        except NoBackupError as error:
            raise no_backup(name, error.args) from error
        except (ConnectError, MemoryError):
            raise
        except Exception as error:
            # Arrow hides the errors of the files that it reads.
            if content.error is not None:
                raise content.error from error
            self.store.ensure_unchanged(file)
            raise damaged(name, version, error) from error
        finally:
            content.close()

    def oldest(self, file: BackupFile) -> int | None:
        """The oldest timestamp of a file, as far as it is known without reading much.

        Raises:
            ConnectError: as `batches`.
        """
        name = self.store.full_name(file)
        content = self.store.open(file)
        try:
            return open_columns(self._format, content).oldest()
        except NoBackupError as error:
            raise no_backup(name, error.args) from error
        except (ConnectError, MemoryError):
            raise
        except Exception as error:
            if content.error is not None:
                raise content.error from error
            raise damaged(name, self.version(file), error) from error
        finally:
            content.close()


class ChainReader:
    """Merges the files of a chain."""

    def __init__(self, chain: Chain, reader: FileReader) -> None:
        """Opens nothing."""
        self._chain, self._reader = chain, reader
        self._starts = [file.start for file in chain.files]
        self._newest: list[int] = [chain.before_ms]
        self._names: list[int] = [chain.before_names]
        for file in chain.files:
            self._newest.append(max(self._newest[-1], file.modified_ms))
            self._names.append(fingerprint([file.name], self._names[-1]))
        self._position = chain.progress.position
        self._waiting = deque(chain.files)
        self._open: list[_OpenFile] = []

    def pieces(self) -> Iterator[Piece]:
        """Everything from the committed position to the end of the last file.

        Raises:
            DataError: a file is damaged or was changed, or two hold the same offset.
            UnavailableError, AccessError: a file cannot be read.
        """
        while self._prepare():
            bound = min(int(one.records.offsets[-1]) for one in self._open)
            if self._waiting:
                bound = min(bound, self._waiting[0].start - 1)
            yield self._taken(bound)

    def _prepare(self) -> bool:
        """Open every file that begins before the next record; returns whether there is a record."""
        self._open = [one for one in self._open if len(one.records)]
        while self._waiting:
            head = min((int(one.records.offsets[0]) for one in self._open), default=None)
            # What is restored already may begin earlier than the next record.
            if head is not None and self._waiting[0].start > head:
                break
            opened = _OpenFile(self._reader, self._waiting.popleft(), self._position)
            if len(opened.records):
                self._open.append(opened)
            if len(self._open) > MOST_OPEN:
                raise DataError(
                    f"More than {MOST_OPEN} files of {self._chain.topic_partition} interleave at offset"
                    f" {self._position}: {names(one.file.name for one in self._open)}.",
                    code="restore.interleaved",
                    suggestion="Back up with a partitioner that has fewer directories for the records of one time.",
                )
        return bool(self._open)

    def _taken(self, bound: int) -> Piece:
        """Take the records up to an offset."""
        import numpy as np

        before = self._first_open()
        cuts = [int(np.searchsorted(one.records.offsets, bound, "right")) for one in self._open]
        sources = [(one.file, one.take(cut)) for one, cut in zip(self._open, cuts, strict=True) if cut]
        last = max(sources, key=lambda source: int(source[1].offsets[-1]))[0]
        records = sources[0][1] if len(sources) == 1 else Records.merged([part for _, part in sources])
        self._refuse_repeated(records, [file for file, _ in sources])
        self._position = int(records.offsets[-1]) + 1
        known = self._chain.progress.after(file=last.name, version=self._reader.version(last))
        progress = self.progress_at(known, self._position, self._first_open())
        return Piece(records, before, progress)

    def _first_open(self) -> int:
        return min([*(one.file.start for one in self._open if len(one.records)), self._position])

    def _refuse_repeated(self, records: Records, files: list[BackupFile]) -> None:
        import numpy as np

        first = int(records.offsets[0])
        again = np.flatnonzero(np.diff(records.offsets) <= 0)
        if first < self._position or len(again):
            offset = int(records.offsets[again[0]]) if len(again) else first
            raise DataError(
                f"{self._chain.topic_partition}@{offset} is in more than one file of the backup:"
                f" {names(file.name for file in files)}.",
                code="restore.overlap",
                suggestion="Keep one of them below topics.dir. The same record is not restored twice.",
            )

    def progress_at(self, before: Progress, position: int, first_open: int) -> Progress:
        """What is committed when everything below `position` is restored.

        Args:
            before: what was committed, or returned, before.
            position: offset.
            first_open: start of the first file of which a part may be left; `position` if there is none.
        """
        passed = bisect_left(self._starts, position)
        return before.after(
            position=position,
            first_open=first_open,
            open=passed - bisect_left(self._starts, first_open),
            passed=self._chain.before + passed,
            newest_ms=self._newest[passed],
            names=text_of(self._names[passed]),
        )
