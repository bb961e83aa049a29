"""The sentence about a task that took much longer than the others: the slowest task decides how long a run takes."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.documents.run import TaskReport

LARGE_RATIO = 1.5
"""Skew is large if the slowest task takes so many times the mean ..."""
LEAST_DIFFERENCE_MS = 10_000
"""... and so much longer than it. In short runs, the start of a process decides which task is the slowest."""


def skew_notes(reports: Sequence[TaskReport]) -> tuple[str, ...]:
    """Compare the slowest task with the mean of all tasks, by time; () unless the skew is large."""
    if len(reports) < 2:
        return ()
    slowest = max(reports, key=_took_ms)
    longest, mean = _took_ms(slowest), sum(map(_took_ms, reports)) / len(reports)
    if longest < LARGE_RATIO * mean or longest - mean < LEAST_DIFFERENCE_MS:
        return ()
    mean_records = sum(map(_records, reports)) / len(reports)
    sentence = (
        f"Task {slowest.task} took {longest / 1000:,.1f} s, {longest / mean:.1f} times the mean of {len(reports)} tasks"
        f" ({mean / 1000:,.1f} s). It had {_records(slowest):,} records, the mean is {mean_records:,.0f}."
    )
    return (sentence,)


def _took_ms(report: TaskReport) -> int:
    return sum(report.timings_ms.values())


def _records(report: TaskReport) -> int:
    return report.source.written if report.source else sum(p.read for p in report.partitions)
