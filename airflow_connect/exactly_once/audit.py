"""The audit: counts and positions must add up before anything becomes visible (invariant 7)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport, Plan, TaskReport
from airflow_connect.errors import AuditError
from airflow_connect.exactly_once.parts import by_partition, in_order


def audit(plan: Plan, reports: Sequence[TaskReport], value_records: Sequence[StagedFile] | None = None) -> None:
    """Compare what the tasks report with what was planned.

    Positions are compared, never counts of records with offset differences: control records, aborted records and
    compaction leave gaps in the offsets.

    Args:
        plan: the frozen plan.
        reports: one per task.
        value_records: the files that hold values (not keys, not headers); None to leave their sums unchecked.

    Raises:
        AuditError: names every mismatch.
    """
    findings = [*_coverage(plan, reports)]
    for report in (p for r in reports for p in r.partitions):
        findings.extend(_partition(report))
    findings.extend(_keys(reports))
    findings.extend(_dead_letters(reports))
    if value_records is not None:
        findings.extend(_files(reports, value_records))
    if findings:
        raise AuditError(
            "The audit failed, nothing was published: " + "; ".join(findings) + ".",
            suggestion="No offset was moved. Run again; if it happens again, report it with this message.",
        )


def _coverage(plan: Plan, reports: Sequence[TaskReport]) -> Iterable[str]:
    """Every planned range was copied once. Ranges after a gap must not be there (see parts.py)."""
    planned = by_partition(plan.ranges)
    reported = Counter((p.range.topic_partition, p.range.start) for r in reports for p in r.partitions)
    starts = {(tp, part.start) for tp, parts in planned.items() for part in parts}
    for tp, start in reported:
        if tp not in planned:
            yield f"{tp} was copied but not planned"
        elif (tp, start) not in starts:
            wanted = ", ".join(map(str, planned[tp]))
            yield f"{tp}[{start}, ...) was copied instead of {wanted}"
    copied = {(p.range.topic_partition, p.range.start): p for r in reports for p in r.partitions}
    for tp, parts in planned.items():
        is_behind_hole = False
        for part in parts:
            times, report = reported[tp, part.start], copied.get((tp, part.start))
            wanted_times = 0 if is_behind_hole else 1
            if times != wanted_times:
                behind = ", because the range before it is not complete" if is_behind_hole else ""
                yield f"{part} was reported {times} times instead of {('never', 'once')[wanted_times]}{behind}"
            if report is not None:
                yield from _end(part, report)
            is_behind_hole |= report is None or report.commit_offset < part.end


def _end(planned: OffsetRange, report: PartitionReport) -> Iterable[str]:
    if report.range.end > planned.end:
        yield f"{report.range} was copied instead of {planned}"
    elif report.range.end < planned.end and not report.stopped_early:
        yield f"{report.range} was copied instead of {planned} although no limit was reached"


def _partition(report: PartitionReport) -> Iterable[str]:
    accounted = report.written + report.filtered + report.dead_lettered + report.left
    if report.read != accounted:
        yield (
            f"{report.range}: read {report.read} but accounted for {accounted} (written {report.written}, "
            f"filtered {report.filtered}, dead-lettered {report.dead_lettered}, left {report.left})"
        )
    if report.position < report.range.end:
        yield f"{report.range}: the consumer stopped at {report.position}, before the planned end"
    if not report.range.start <= report.commit_offset <= report.range.end:
        yield f"{report.range}: the offset to commit, {report.commit_offset}, is outside the range"
    if report.left == 0 and report.commit_offset != report.range.end:
        yield f"{report.range}: nothing is left but the offset to commit is {report.commit_offset}"


def _files(reports: Sequence[TaskReport], files: Sequence[StagedFile]) -> Iterable[str]:
    parts: dict[TopicPartition, list[PartitionReport]] = {}
    for report in in_order(p for r in reports for p in r.partitions):
        parts.setdefault(report.range.topic_partition, []).append(report)
    in_files: Counter[tuple[TopicPartition, int]] = Counter()
    for file in files:
        tp = TopicPartition(file.topic, file.partition)
        own = parts.get(tp, [])
        at = bisect_right(own, file.start, key=lambda p: p.range.start) - 1
        if at < 0 or not file.start < file.end <= own[at].commit_offset:
            yield f"{file.key} holds [{file.start}, {file.end}), which this run does not commit"
        if own:
            in_files[tp, max(at, 0)] += file.records
    for tp, own in parts.items():
        for at, report in enumerate(own):
            if in_files[tp, at] != report.written:
                where = tp if len(own) == 1 else report.range
                yield f"{where}: {report.written} records were counted as written but the files hold {in_files[tp, at]}"


def _keys(reports: Sequence[TaskReport]) -> Iterable[str]:
    """Checked here, because a manifest that names a key twice could never be published."""
    times = Counter(file.key for report in reports for file in report.files)
    for key, count in times.items():
        if count > 1:
            yield f"{count} staged files have the key {key}"


def _dead_letters(reports: Sequence[TaskReport]) -> Iterable[str]:
    for report in reports:
        counted = sum(p.dead_lettered for p in report.partitions)
        if counted != len(report.dead_letters):
            yield f"task {report.task} counted {counted} dead letters but returned {len(report.dead_letters)}"
