"""The audit: counts and positions must add up before anything becomes visible (invariant 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.staging import StagedFile
from airflow_connect.documents.run import PartitionReport, Plan, TaskReport
from airflow_connect.errors import AuditError


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
    planned = {r.topic_partition: r for r in plan.ranges}
    reported = Counter(p.range.topic_partition for r in reports for p in r.partitions)
    for tp, planned_range in planned.items():
        if reported[tp] != 1:
            yield f"{planned_range} was reported {reported[tp]} times instead of once"
    for tp in reported:
        if tp not in planned:
            yield f"{tp} was copied but not planned"
    for report in (p for r in reports for p in r.partitions):
        wanted = planned.get(report.range.topic_partition)
        if wanted is None:
            continue
        if report.range.start != wanted.start or report.range.end > wanted.end:
            yield f"{report.range} was copied instead of {wanted}"
        elif report.range.end < wanted.end and not report.stopped_early:
            yield f"{report.range} was copied instead of {wanted} although no limit was reached"


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
    in_files: Counter[TopicPartition] = Counter()
    for file in files:
        in_files[TopicPartition(file.topic, file.partition)] += file.records
    for report in (p for r in reports for p in r.partitions):
        tp = report.range.topic_partition
        if in_files[tp] != report.written:
            yield f"{tp}: {report.written} records were counted as written but the files hold {in_files[tp]}"
    ranges = {p.range.topic_partition: p for r in reports for p in r.partitions}
    for file in files:
        found = ranges.get(TopicPartition(file.topic, file.partition))
        if found is None or not found.range.start <= file.start < file.end <= found.commit_offset:
            yield f"{file.key} holds [{file.start}, {file.end}), which this run does not commit"


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
