"""What is left to copy of files of values: compared with what is committed, before the first record is written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.passed import fingerprint, others, told_of_missing
from airflow_connect.connectors.restore.progress import partition_of, topic_partition_of
from airflow_connect.connectors.restore.values.files import ValueFile
from airflow_connect.connectors.restore.values.progress import (
    FileProgress,
    ValueProgress,
    full_name_of,
    partition_of_file,
)
from airflow_connect.connectors.restore.values.work import ValueChain
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConnectError, OffsetError
from airflow_connect.java.patterns.compiled import JavaPattern
from airflow_connect.stores.file_system import FoundFile

_AGAIN = (
    "Records are restored in the order of the backup, so they can no longer come to their place. To restore the"
    " partition once more, restore to an empty topic with another name of the connector."
)


def known_of_backup(
    root: str, offsets: Iterable[tuple[SourcePartition, SourceOffset]], selects: Callable[[str], bool]
) -> dict[TopicPartition, ValueProgress]:
    """What is committed for the chosen topics of a backup."""
    found = {}
    for partition, offset in offsets:
        tp = topic_partition_of(root, partition)
        if tp is not None and selects(tp.topic):
            found[tp] = ValueProgress.of(offset)
    return found


def left_of_backup(
    root: str,
    chains: Mapping[TopicPartition, Sequence[ValueFile]],
    known: Mapping[TopicPartition, ValueProgress],
    version_of: Callable[[ValueFile], str],
    target_of: Callable[[str], str],
) -> list[ValueChain]:
    """The chains that have something to restore, in the order of their partitions.

    Raises:
        OffsetError: files were added, changed or deleted where earlier runs have been.
    """
    found = []
    for tp, files in chains.items():
        progress = known.get(tp, ValueProgress())
        if progress.record == 0 and not progress.file:
            progress = progress.after(start=-1, done=1, passed=0, newest_ms=0)
        passed = bisect_right(files, progress.start, key=lambda file: file.start)
        _check_passed(tp, files[:passed], progress, version_of)
        first = passed if progress.done else passed - 1
        if left := list(files[first:]):
            newest_ms = max((file.modified_ms for file in files[:first]), default=0)
            source, offset = partition_of(root, tp), progress.to_offset()
            target = target_of(tp.topic)
            is_one = len({file.first.name.rpartition("/")[0] for file in files}) == 1
            before = fingerprint(file.first.name for file in files[:first])
            place = (source, str(tp), target, tp.partition)
            found.append(ValueChain(*place, offset, left, first, newest_ms, is_one, before))
    for tp, progress in known.items():
        if tp not in chains and not progress.done:
            raise _gone(tp, progress)
    return found


def missing_files(
    chains: Mapping[TopicPartition, Sequence[ValueFile]], known: Mapping[TopicPartition, ValueProgress]
) -> list[str]:
    """Sentences about restored files that are deleted, which is allowed."""
    found = []
    for tp, progress in known.items():
        files = chains.get(tp, ())
        passed = files[: bisect_right(files, progress.start, key=lambda file: file.start)]
        missing, _ = others((file.first.name for file in passed), progress.passed, progress.names)
        if missing and passed:  # If all are deleted, none has come.
            found.append(told_of_missing(str(tp), missing))
    return found


def _check_passed(
    tp: TopicPartition, passed: Sequence[ValueFile], progress: ValueProgress, version_of: Callable[[ValueFile], str]
) -> None:
    """Check whether the files that earlier runs have read are still those."""
    last = passed[-1] if passed and passed[-1].start == progress.start else None
    if last is None and not progress.done:
        raise _gone(tp, progress)
    if last is not None and version_of(last) != progress.version:
        raise OffsetError(
            f"{last.first.name}, of which {plural(progress.record, 'record')} of {tp} were restored, has changed: it is"
            f" {version_of(last)}, and was {progress.version}.",
            code="restore.changed",
            suggestion=_AGAIN,
        )
    newer = [file.first.name for file in passed if file.modified_ms > progress.newest_ms]
    more = len(passed) - progress.passed
    _, is_other = others((file.first.name for file in passed), progress.passed, progress.names)
    if newer or is_other:
        how_many = f"{plural(more, 'file')} more than before" if more > 0 else "as many as before, with other names"
        which = names(newer) if newer else how_many
        raise OffsetError(
            f"Files have come, or have changed, that begin at offset {progress.start} or before, up to which {tp} was"
            f" restored: {which}.",
            code="restore.late_file",
            suggestion=_AGAIN,
        )


def _gone(tp: TopicPartition, progress: ValueProgress) -> OffsetError:
    return OffsetError(
        f"{tp} was restored up to record {progress.record} of {progress.file}, and this file is not there any more.",
        code="restore.gone",
        suggestion="Put the deleted file back; a bucket with versions still has it. The rest of its records was not"
        " restored.",
    )


class Import:
    """The files of mode=GENERIC.

    Attributes:
        chains: what is left, a file each.
        left_out: files that cannot be imported, and why.
        unmatched: files that no expression of `topic.regex.list` matches; with some of their names.
        too_old: files that were modified before `file.discovery.starting.timestamp`.
        done: files that are imported.
    """

    def __init__(
        self, root: str, key_of: Callable[[str], str], patterns: Sequence[tuple[str, JavaPattern]], from_ms: int
    ) -> None:
        """`key_of`: what the expressions must match, by the name of a file."""
        self._root, self._key_of, self._patterns, self._from_ms = root, key_of, patterns, from_ms
        self.chains: list[ValueChain] = []
        self.left_out: list[tuple[str, ConnectError]] = []
        self.unmatched: list[str] = []
        self.too_old = self.done = 0

    def take(
        self,
        listed: Iterable[FoundFile],
        offsets: Iterable[tuple[SourcePartition, SourceOffset]],
        version_of: Callable[[ValueFile], str],
    ) -> None:
        """Compare a listing with what is committed, also by runs that began at another directory."""
        known: dict[str, tuple[SourcePartition, FileProgress]] = {}
        for partition, offset in offsets:
            if (name := full_name_of(partition)) is not None:
                one = (partition, FileProgress.of(offset))
                known[name] = max(known.get(name, one), one, key=lambda found: (found[1].done, found[1].record))
        for found in listed:
            topic, before = self.topic_of(found.name), known.pop(found.name, None)
            if topic is None:
                self.unmatched.append(found.name)
                if before is not None and not before[1].done:
                    self.left_out.append((found.name, self._not_chosen(found.name, before[1])))
                continue
            name = found.name.removeprefix(f"{self._root}/")
            of = BackupFile(name, found.size, found.modified_ms, found.nanoseconds, found.identity, 0)
            file = ValueFile(0, of)
            self._take(topic, file, before, version_of(file))
        for name, (_, progress) in known.items():
            if not progress.done and name.startswith(f"{self._root}/"):
                gone = OffsetError(
                    f"{name} is not there any more, and {progress.record} of its records were imported.",
                    code="restore.import_gone",
                    suggestion="Put the file back, or delete its offset.",
                )
                self.left_out.append((name, gone))
        self.chains.sort(key=lambda chain: (chain.topic, chain.label))

    def _not_chosen(self, name: str, progress: FileProgress) -> OffsetError:
        return OffsetError(
            f"No expression matches {name} any more, and {plural(progress.record, 'record')} of it were imported.",
            code="restore.import_gone",
            suggestion="Change topic.regex.list so that it matches, or delete the offset of the file.",
        )

    def topic_of(self, name: str) -> str | None:
        """Where the records of a file with this name go; None: no expression matches."""
        key = self._key_of(name)
        return next((topic for topic, pattern in self._patterns if pattern.fullmatch(key) is not None), None)

    def _take(
        self, topic: str, file: ValueFile, before: tuple[SourcePartition, FileProgress] | None, version: str
    ) -> None:
        name = file.first.name
        source, progress = before or (partition_of_file(self._root, name), None)
        if progress is None and file.modified_ms < self._from_ms:
            self.too_old += 1
        elif progress is not None and progress.version != version:
            changed = OffsetError(
                f"{self._root}/{name} has changed since {plural(progress.record, 'record')} of it were imported: it is"
                f" {version}, and was {progress.version}.",
                code="restore.import_changed",
                suggestion="Write changed data to a file with a new name. To import this one once more, delete its"
                " offset.",
            )
            self.left_out.append((f"{self._root}/{name}", changed))
        elif progress is not None and progress.done:
            self.done += 1
        else:
            offset = (progress or FileProgress(version)).to_offset()
            self.chains.append(ValueChain(source, name, topic, -1, offset, [file]))

    def notes(self) -> Iterator[str]:
        """Sentences about what is not imported."""
        if self.unmatched:
            what = plural(len(self.unmatched), "file")
            yield f"No expression of topic.regex.list matches {what}, and none is read: {names(self.unmatched)}."
        if self.too_old:
            what = plural(self.too_old, "file")
            yield f"Not imported, because modified before file.discovery.starting.timestamp: {what}."
