"""What is left to restore of a backup: compared with what is committed, before the first record is written."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import Backup, BackupFile
from airflow_connect.connectors.restore.passed import fingerprint, others, told_of_missing
from airflow_connect.connectors.restore.progress import Progress
from airflow_connect.connectors.restore.work import Chain
from airflow_connect.counting import names, plural
from airflow_connect.errors import OffsetError

_AGAIN = (
    "Records are restored in the order of the backup, so they can no longer come to their place. To restore the"
    " partition once more, restore to an empty topic with another name of the connector."
)


def chains_left(
    backup: Backup, committed: Mapping[TopicPartition, Progress], *, identity_is_content: bool
) -> list[Chain]:
    """The chains that have something to restore, in the order of their partitions.

    Raises:
        OffsetError: files were added, changed or deleted where earlier runs have been.
    """
    found = []
    for tp, files in backup.chains.items():
        first = files[0].start
        progress = committed.get(tp, Progress(first, first))
        if not progress.passed:
            # Nothing was restored: at most, an earlier run has chosen the topic.
            progress = progress.after(position=first, first_open=first)
        chain = _chain(tp, files, progress)
        if tp in committed:
            _check_known(tp, files, progress, identity_is_content=identity_is_content)
        if chain.files:
            found.append(chain)
    for tp, progress in committed.items():
        if tp not in backup.chains and progress.open:
            raise _gone(tp, progress, 0)
    return found


def _chain(tp: TopicPartition, files: Sequence[BackupFile], progress: Progress) -> Chain:
    first = bisect_left(files, progress.first_open, key=lambda file: file.start)
    before_ms = max((file.modified_ms for file in files[:first]), default=0)
    before_names = fingerprint(file.name for file in files[:first])
    left = list(files[first:])
    return Chain(tp.topic, tp.partition, progress, left, first, before_ms, before_names=before_names)


def missing_files(backup: Backup, committed: Mapping[TopicPartition, Progress]) -> list[str]:
    """Sentences about restored files that are deleted, which is allowed."""
    found = []
    for tp, progress in committed.items():
        passed = _passed(backup.chains.get(tp, ()), progress)
        missing, _ = others((file.name for file in passed), progress.passed, progress.names)
        if missing and passed:  # If all are deleted, none has come.
            found.append(told_of_missing(str(tp), missing))
    return found


def _passed(files: Sequence[BackupFile], progress: Progress) -> Sequence[BackupFile]:
    return files[: bisect_left(files, progress.position, key=lambda file: file.start)]


def _check_known(
    tp: TopicPartition, files: Sequence[BackupFile], progress: Progress, *, identity_is_content: bool
) -> None:
    """Check whether the files that earlier runs have read are still those.

    Raises:
        OffsetError: one is new, was changed, or is gone before all of it was restored.
    """
    passed = _passed(files, progress)
    for file in passed:
        version = file.version(identity_is_content=identity_is_content)
        if file.name == progress.file and version != progress.version:
            raise OffsetError(
                f"{file.name}, which {tp} was restored from up to offset {progress.position}, has changed: it is"
                f" {version}, and was {progress.version}.",
                code="restore.changed",
                suggestion=_AGAIN,
            )
    newer = [file.name for file in passed if file.modified_ms > progress.newest_ms]
    more = len(passed) - progress.passed
    _, is_other = others((file.name for file in passed), progress.passed, progress.names)
    if newer or is_other:
        # The time of an object is that at which its upload began, so a new one need not be newer.
        how_many = f"{plural(more, 'file')} more than before" if more > 0 else "as many as before, with other names"
        which = names(newer) if newer else how_many
        raise OffsetError(
            f"Files have come, or have changed, that begin before offset {progress.position}, up to which {tp} was"
            f" restored: {which}.",
            code="restore.late_file",
            suggestion=_AGAIN,
        )
    begun = sum(file.start >= progress.first_open for file in passed)
    if begun < progress.open:
        raise _gone(tp, progress, begun)


def _gone(tp: TopicPartition, progress: Progress, found: int) -> OffsetError:
    return OffsetError(
        f"{tp} was restored up to offset {progress.position}, in the middle of {progress.open} files that begin at"
        f" offset {progress.first_open} or later, and the backup has {found} of them now.",
        code="restore.gone",
        suggestion="Put the deleted files back; a bucket with versions still has them. The rest of their records was"
        " not restored.",
    )
