"""What is left to import (mode=GENERIC): files and ranges of files, compared with what is committed.

A large file can be divided: several tasks copy ranges of its rows, each of which has an offset. The offsets of all
ranges are committed before a task begins, in one transaction, so that later runs know them, however many tasks they
have. When all rows are imported, one offset of the file takes their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.connectors.restore.backup import BackupFile
from airflow_connect.connectors.restore.values.files import ValueFile
from airflow_connect.connectors.restore.values.progress import (
    FileProgress,
    RangeProgress,
    RowRange,
    full_name_of,
    partition_of_file,
    rows_of,
    whole_of,
)
from airflow_connect.connectors.restore.values.work import ValueChain
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConnectError, OffsetError
from airflow_connect.java.patterns.compiled import JavaPattern
from airflow_connect.stores.file_system import FoundFile

Changes = list[tuple[SourcePartition, SourceOffset | None]]


class Committed(NamedTuple):
    """What is committed of a file.

    Attributes:
        source: the source partition.
        progress: its offset.
        rows: of the file, which is divided; None: all.
    """

    source: SourcePartition
    progress: FileProgress
    rows: RowRange | None

    @property
    def copied(self) -> int:
        """How many records are imported."""
        return self.progress.record - (0 if self.rows is None else self.rows.start)


def committed_files(offsets: Iterable[tuple[SourcePartition, SourceOffset]]) -> dict[str, list[Committed]]:
    """What is committed, by the whole name of a file, also by runs that began at another directory.

    Raises:
        OffsetError: an offset has another form.
    """
    found: dict[str, list[Committed]] = {}
    for partition, offset in offsets:
        if (name := full_name_of(partition)) is None:
            continue
        rows = rows_of(partition)
        one = Committed(partition, (FileProgress if rows is None else RangeProgress).of(offset), rows)
        known = found.setdefault(name, [])
        if rows is None and known and known[0].rows is None:
            known[0] = max(known[0], one, key=lambda each: (each.progress.done, each.progress.record))
        else:
            known.append(one)
    return found


def join_finished(known: dict[str, list[Committed]]) -> Changes:
    """Give each divided file of which everything is imported one offset, here and in the changes."""
    changes: Changes = []
    for name, parts in known.items():
        if all(one.rows is not None and one.progress.done for one in parts) and not _fault(parts):
            progress = FileProgress(parts[0].progress.version, sum(one.copied for one in parts), 1)
            whole = Committed(whole_of(parts[0].source), progress, None)
            changes += [*((one.source, None) for one in parts), (whole.source, progress.to_offset())]
            known[name] = [whole]
    return changes


def _fault(parts: Sequence[Committed]) -> str:
    """Why the offsets of a divided file are not those of all its rows, each once; "": they are."""
    ranges = sorted(((one.rows, one.progress) for one in parts if one.rows is not None), key=lambda pair: pair[0])
    sizes = {progress.size for _, progress in ranges if isinstance(progress, RangeProgress)}
    if len(ranges) < len(parts):
        return "the whole file has an offset, too"
    if len(sizes) > 1:
        return f"they tell of {' and of '.join(map(str, sorted(sizes)))} rows"
    end = 0
    for rows, progress in [*ranges, (RowRange(*sizes, *sizes), None)]:
        if rows.start > end:
            return f"the rows {RowRange(end, rows.start)} have none"
        if rows.start < end:
            return f"the rows {RowRange(rows.start, end)} have two"
        if progress is not None and not rows.start <= progress.record <= rows.end:
            return f"that of the rows {rows} is at row {progress.record}"
        end = rows.end
    return ""


class Import:
    """The files of mode=GENERIC.

    Attributes:
        chains: what is left, a file or a range of one each.
        changes: offsets of ranges of files, to be written before tasks begin.
        left_out: files that cannot be imported, and why.
        unmatched: files that no expression of `topic.regex.list` matches.
        divided: how many ranges are left of each divided file.
        too_old: files that were modified before `file.discovery.starting.timestamp`.
        done: files that are imported.
    """

    def __init__(
        self,
        root: str,
        key_of: Callable[[str], str],
        patterns: Sequence[tuple[str, JavaPattern]],
        from_ms: int,
        cuts_of: Callable[[ValueFile], Sequence[int]],
    ) -> None:
        """An import.

        Args:
            root: the directory, see `RestoreConfig`.
            key_of: what the expressions must match, by the name of a file.
            patterns: `topic.regex.list`.
            from_ms: `file.discovery.starting.timestamp`.
            cuts_of: see `ValueFileReader.cuts`.
        """
        self._root, self._key_of, self._patterns, self._from_ms = root, key_of, patterns, from_ms
        self._cuts_of = cuts_of
        self.chains: list[ValueChain] = []
        self.changes: Changes = []
        self.left_out: list[tuple[str, ConnectError]] = []
        self.unmatched: list[str] = []
        self.divided: dict[str, int] = {}
        self.too_old = self.done = 0

    def take(
        self,
        listed: Iterable[FoundFile],
        known: dict[str, list[Committed]],
        version_of: Callable[[ValueFile], str],
    ) -> None:
        """Compare a listing with what is committed; `known` is used up."""
        for found in listed:
            topic, before = self.topic_of(found.name), known.pop(found.name, [])
            if topic is None:
                self.unmatched.append(found.name)
                self._leave(found.name, before, self._not_chosen)
                continue
            name = found.name.removeprefix(f"{self._root}/")
            of = BackupFile(name, found.size, found.modified_ms, found.nanoseconds, found.identity, 0)
            file = ValueFile(0, of)
            self._take(topic, file, before, version_of(file))
        for name, before in known.items():
            if name.startswith(f"{self._root}/"):
                self._leave(name, before, self._gone)
        self.chains.sort(key=lambda chain: (chain.topic, chain.files[0].first.name, chain.rows or ()))

    def _leave(self, name: str, before: list[Committed], error: Callable[[str, int], OffsetError]) -> None:
        """A file is not chosen or not there any more."""
        if _is_claimed_only(before):
            self._forget(before)
        elif before and not _is_done(before):
            self.left_out.append((name, error(name, _copied(before))))

    def _forget(self, before: Iterable[Committed]) -> None:
        """Delete the offsets of a divided file of which nothing was imported."""
        self.changes += [(one.source, None) for one in before]

    def _gone(self, name: str, copied: int) -> OffsetError:
        return OffsetError(
            f"{name} is not there any more, and {copied} of its records were imported.",
            code="restore.import_gone",
            suggestion="Put the file back, or delete its offsets.",
        )

    def _not_chosen(self, name: str, copied: int) -> OffsetError:
        return OffsetError(
            f"No expression matches {name} any more, and {plural(copied, 'record')} of it were imported.",
            code="restore.import_gone",
            suggestion="Change topic.regex.list so that it matches, or delete the offsets of the file.",
        )

    def topic_of(self, name: str) -> str | None:
        """Where the records of a file with this name go; None: no expression matches."""
        key = self._key_of(name)
        return next((topic for topic, pattern in self._patterns if pattern.fullmatch(key) is not None), None)

    def _take(self, topic: str, file: ValueFile, before: list[Committed], version: str) -> None:
        others = [one.progress.version for one in before if one.progress.version != version]
        if _is_claimed_only(before) and (others or _fault(before)):
            self._forget(before)
            before, others = [], []
        if not before:
            self._begin(topic, file, version)
        elif others:
            self._refuse_changed(file, version, others[0], _copied(before))
        elif _is_done(before):
            self.done += 1
        elif before[0].rows is None and len(before) == 1:
            self._add(topic, file, before[0])
        elif fault := _fault(before):
            self._refuse_ranges(file, fault)
        else:
            self._add_ranges(topic, file, before)

    def _begin(self, topic: str, file: ValueFile, version: str) -> None:
        if file.modified_ms < self._from_ms:
            self.too_old += 1
            return
        name, cuts = file.first.name, self._cuts_of(file)
        if not cuts:
            self._add(topic, file, Committed(partition_of_file(self._root, name), FileProgress(version), None))
            return
        ranges = [RowRange(*pair) for pair in pairwise(cuts)]
        claims = [
            Committed(partition_of_file(self._root, name, rows), RangeProgress(version, rows.start, 0, cuts[-1]), rows)
            for rows in ranges
        ]
        self.changes += [(one.source, one.progress.to_offset()) for one in claims]
        self._add_ranges(topic, file, claims)

    def _add(self, topic: str, file: ValueFile, one: Committed) -> None:
        label = file.first.name if one.rows is None else f"{file.first.name}, rows {one.rows}"
        chain = ValueChain(one.source, label, topic, -1, one.progress.to_offset(), [file], rows=one.rows)
        if one.rows is not None and isinstance(one.progress, RangeProgress):
            left = one.rows.end - one.progress.record
            chain = chain._replace(size_bytes=file.size * left // one.progress.size)
        self.chains.append(chain)

    def _add_ranges(self, topic: str, file: ValueFile, parts: Iterable[Committed]) -> None:
        left = [one for one in parts if not one.progress.done]
        self.divided[file.first.name] = len(left)
        for one in left:
            self._add(topic, file, one)

    def _refuse_changed(self, file: ValueFile, version: str, before: str, copied: int) -> None:
        name = f"{self._root}/{file.first.name}"
        changed = OffsetError(
            f"{name} has changed since {plural(copied, 'record')} of it were imported: it is {version}, and was"
            f" {before}.",
            code="restore.import_changed",
            suggestion="Write changed data to a file with a new name. To import this one once more, delete its"
            " offsets.",
        )
        self.left_out.append((name, changed))

    def _refuse_ranges(self, file: ValueFile, fault: str) -> None:
        name = f"{self._root}/{file.first.name}"
        wrong = OffsetError(
            f"{name} is divided into ranges of rows, and their offsets do not fit together: {fault}.",
            code="restore.import_ranges",
            suggestion="Some were deleted or changed. Delete all offsets of the file to import it once more.",
        )
        self.left_out.append((name, wrong))

    def notes(self) -> Iterator[str]:
        """Sentences about what is not imported, and what is not in the order of its file."""
        if self.unmatched:
            what = plural(len(self.unmatched), "file")
            yield f"No expression of topic.regex.list matches {what}, and none is read: {names(self.unmatched)}."
        if self.too_old:
            what = plural(self.too_old, "file")
            yield f"Not imported, because modified before file.discovery.starting.timestamp: {what}."
        if self.divided:
            what, ranges = plural(len(self.divided), "file"), plural(sum(self.divided.values()), "range")
            yield (
                f"Divided by split.bytes, so that only the rows of a range keep their order: {what}, with {ranges}"
                f" left: {names(self.divided)}."
            )


def _copied(parts: Iterable[Committed]) -> int:
    return sum(one.copied for one in parts)


def _is_done(parts: Iterable[Committed]) -> bool:
    """Whether a file is imported; the ranges of a divided one have become one offset then."""
    return any(one.rows is None and one.progress.done for one in parts)


def _is_claimed_only(parts: Sequence[Committed]) -> bool:
    """Whether a file was divided, and nothing of it is imported."""
    return bool(parts) and all(one.rows is not None and not one.copied and not one.progress.done for one in parts)
