"""Staged files of a manifest that the store has lost: copied again, or given up as far as Kafka lost their records."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.counting import agreeing, plural
from airflow_connect.documents.run import TaskPlan
from airflow_connect.errors import ConnectError, OffsetError
from airflow_connect.planning.packing import pack
from airflow_connect.stores.store import NAME_NOT_KEPT

if TYPE_CHECKING:
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.documents.run import TaskReport
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
    from airflow_connect.runtime.driver.sink.staged_files import StagedFiles

OUT_OF_RANGE = "offsets.out.of.range"
NAMED = 20
"""Files that a note names. The log names every one."""


@dataclass(frozen=True, slots=True)
class LostFiles:
    """What a run needs to copy lost files again.

    Attributes:
        config: of the run that copies.
        staged: its store.
        get_engine: starts Spark on first use.
        warn: receives a sentence for the log.
    """

    config: SinkConfiguration
    staged: StagedFiles
    get_engine: Callable[[], Engine]
    warn: Callable[[str], None]

    def copy_again(self, kafka: SinkSession, manifest: Manifest, lost: Sequence[StagedFile]) -> list[StagedFile]:
        """Stage the lost files again, laid out by the manifest's own configuration and clock; returns all it staged.

        Raises:
            OffsetError: Kafka no longer holds the beginning of a range, or has another topic of that name.
            ConnectError: the copy failed.
        """
        self.warn(f"Run {manifest.run_id} has lost {plural(len(lost), 'staged file')}; copying them again.")
        # As they were copied: a range begins a new file.
        ranges = [r for r in manifest.ranges if any(r.holds(f.topic, f.partition, f.start) for f in lost)]
        # The ranges are those that were copied, limits included.
        limits = replace(self.config.policy.limits, max_bytes=0, max_seconds=0, max_dead_letter_bytes=0)
        reports = self._run(kafka, manifest, pack(ranges, self.config.tasks_max, {}, limits))
        return [f for r in reports for f in r.files]

    def save(self, kafka: SinkSession, manifest: Manifest, lost: Sequence[StagedFile], why: str) -> Manifest:
        """The manifest with what Kafka still holds of the lost files; what it no longer holds is given up.

        Each file is copied alone: a record of its directory and offsets was in it, and in no other file. So nothing
        comes twice, even if other files of its partition are visible. If Kafka has lost the first records of a file,
        the rest gets the name of its own first offset.

        Args:
            kafka: the session of the run that copies.
            manifest: an open one.
            lost: its files that the store does not have, and that cannot be copied again as they were.
            why: the reason, without a full stop.

        Raises:
            OffsetError: a topic was recreated while it was read.
            ConnectError: the copy failed for another reason.
        """
        ids = {f.topic: manifest.topic_ids[f.topic] for f in lost}
        gone = kafka.gone_topics(ids)
        pieces = _pieces([f for f in lost if f.topic not in gone], kafka)
        reports = self._saved(kafka, manifest, sorted(set(pieces.values()), key=str))
        saved = {f.key: _part_of(f, reports.get(pieces.get(f.key), ())) for f in lost}
        kept = {id(s) for parts in saved.values() for s in parts}
        self.staged.store_of(manifest)[1].abort([s for every in reports.values() for s in every if id(s) not in kept])
        files = tuple(new for f in manifest.files for new in saved.get(f.key, (f,)))
        notes = self._told(manifest, lost, saved, why)
        unnamed = [f for f in lost if f.key in pieces and pieces[f.key] not in reports]
        if unnamed:
            ranges = ", ".join(sorted({str(pieces[f.key]) for f in unnamed})[:NAMED])
            notes.append(
                f"Kafka still holds records of {plural(len(unnamed), 'file')} whose names the store does not keep:"
                f" {ranges}. To copy them under other names, correct the names and replay these offsets"
                " (airflow-connect replay)."
            )
            self.warn(notes[-1])
        missing = {f.key: f.records - sum(s.records for s in saved[f.key]) for f in lost}
        role = self.config.sink.counted_role
        counts = {
            **manifest.counts,
            "records": manifest.counts.get("records", 0) - sum(missing[f.key] for f in lost if f.role == role),
            "files": len(files),
            "size_bytes": sum(f.size_bytes for f in files),
        }
        return replace(manifest, files=files, counts=counts, notes=(*manifest.notes, *notes))

    def _saved(
        self, kafka: SinkSession, manifest: Manifest, pieces: Sequence[OffsetRange]
    ) -> dict[OffsetRange | None, tuple[StagedFile, ...]]:
        """What can be staged of each range."""
        try:
            return self._copied(kafka, manifest, pieces)
        except ConnectError as error:
            if error.code != NAME_NOT_KEPT:
                raise
        found: dict[OffsetRange | None, tuple[StagedFile, ...]] = {}
        for piece in pieces:  # One by one: the store does not keep some of the names.
            try:
                found |= self._copied(kafka, manifest, [piece])
            except ConnectError as error:
                if error.code != NAME_NOT_KEPT:
                    raise
        return found

    def _copied(
        self, kafka: SinkSession, manifest: Manifest, pieces: Sequence[OffsetRange]
    ) -> dict[OffsetRange | None, tuple[StagedFile, ...]]:
        tasks = tuple(TaskPlan(number, (piece,)) for number, piece in enumerate(pieces))
        reports = self._run(kafka, manifest, tasks) if tasks else []
        return {pieces[r.task]: tuple(r.files) for r in reports}

    def _run(self, kafka: SinkSession, manifest: Manifest, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        """Copy, and write the last file of each range, whatever the configuration says."""
        there = self.staged.configuration_of(manifest)
        settings = there.task_settings(manifest.created_ms)
        settings = replace(settings, state=manifest.for_tasks, flush_on_end=True)
        self.staged.may_be_named()
        topics = {r.topic: manifest.topic_ids[r.topic] for task in tasks for r in task.ranges}
        _refuse_gone(kafka, topics)
        reports = self.staged.by(lambda: self.get_engine().run(settings, tuple(tasks)))
        _refuse_gone(kafka, topics)  # Again: it may have been recreated while it was read.
        return reports

    def _told(
        self,
        manifest: Manifest,
        lost: Sequence[StagedFile],
        saved: Mapping[str, Sequence[StagedFile]],
        why: str,
    ) -> list[str]:
        """One note for each partition that has lost records; the log gets a line for each file as well."""
        value = f"{OUT_OF_RANGE}={self.config.policy.out_of_range}"
        notes = []
        for tp in sorted({TopicPartition(f.topic, f.partition) for f in lost}):
            files = [f for f in lost if (f.topic, f.partition) == tp]
            short = [f for f in files if sum(s.records for s in saved[f.key]) < f.records]
            if not short:
                continue
            lines = [_line(f, saved[f.key]) for f in short]
            for text in lines:
                self.warn(f"Given up of run {manifest.run_id}: {text}.")
            shown = "; ".join(lines[:NAMED]) + (f"; and {len(lines) - NAMED} more" if len(lines) > NAMED else "")
            given_up = _given_up(short, saved)
            notes.append(
                f"Run {manifest.run_id} has lost {plural(len(short), 'staged file')} of {tp} that cannot be copied"
                f" again as they were: {why}. Because of {value}, what Kafka still holds of them is written, and"
                f" {plural(given_up, 'record')} between offsets {min(f.start for f in short)} and"
                f" {max(f.end for f in short)} {agreeing(given_up, 'are')} given up: {shown}."
            )
        for note in notes:
            self.warn(note)
        return notes


def _pieces(lost: Iterable[StagedFile], kafka: SinkSession) -> dict[str, OffsetRange]:
    """By key of the file: the part of its offsets that Kafka still holds; without those of which nothing is left."""
    files = list(lost)
    held = kafka.held(sorted({TopicPartition(f.topic, f.partition) for f in files}))
    found = {}
    for f in files:
        low, end = held[TopicPartition(f.topic, f.partition)]
        piece = OffsetRange(f.topic, f.partition, max(f.start, low), min(f.end, end))
        if not piece.is_empty:
            found[f.key] = piece
    return found


def _part_of(lost: StagedFile, staged: Iterable[StagedFile]) -> tuple[StagedFile, ...]:
    """Those of the files staged from the offsets of `lost` that hold its records."""
    place = (lost.role, posixpath.dirname(lost.key))
    return tuple(s for s in staged if (s.role, posixpath.dirname(s.key)) == place)


def _given_up(short: Iterable[StagedFile], saved: Mapping[str, Sequence[StagedFile]]) -> int:
    """Records of which a file is missing: their value, key and headers may be in one file each."""
    groups: dict[tuple[str, int], int] = {}
    for f in short:
        group = (posixpath.dirname(f.key), f.start)
        groups[group] = max(groups.get(group, 0), f.records - sum(s.records for s in saved[f.key]))
    return sum(groups.values())


def _line(lost: StagedFile, saved: Sequence[StagedFile]) -> str:
    missing = lost.records - sum(s.records for s in saved)
    rest = f", the others are in {', '.join(s.key for s in saved)}" if saved else ""
    return f"{lost.key}, offsets [{lost.start}, {lost.end}): {missing} of {plural(lost.records, 'record')}{rest}"


def _refuse_gone(kafka: SinkSession, topic_ids: Mapping[str, str]) -> None:
    """Refuse to read records of another topic of the same name.

    Raises:
        OffsetError: names the first topic that Kafka has no more.
    """
    for what in kafka.gone_topics(topic_ids).values():
        raise OffsetError(what)
