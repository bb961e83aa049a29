"""What is left to copy of a backup of values: compared with what is committed, before the first record is written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.restore.passed import fingerprint, others, told_of_missing
from airflow_connect.connectors.restore.progress import partition_of, topic_partition_of
from airflow_connect.connectors.restore.values.files import ValueFile
from airflow_connect.connectors.restore.values.progress import ValueProgress
from airflow_connect.connectors.restore.values.work import ValueChain
from airflow_connect.counting import names, plural
from airflow_connect.errors import OffsetError

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
