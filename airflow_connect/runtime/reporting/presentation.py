"""Plans, progress and reports as text: the same in the Airflow log and on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from airflow_connect.documentation import error_url
from airflow_connect.documents.run import Plan, RunReport
from airflow_connect.runtime.reporting.source_presentation import source_plan_parts, source_report_line
from airflow_connect.runtime.reporting.texts import (
    MAX_PLAN_ROWS,
    Table,
    format_bytes,
    format_count,
    format_seconds,
    plural,
    spelled_out,
)

MOST_DIRECTORIES = 3
MOST_TABLES = 20
PROGRESS_EVERY_S = 10.0


def plan_table(plan: Plan) -> list[str]:
    """What a run will copy, as text: one line per partition, or per topic if there are many partitions."""
    table, *sentences = plan_parts(plan)
    return [*(table.lines() if isinstance(table, Table) else [table]), *sentences]


def plan_parts(plan: Plan, indent: int = 0) -> tuple[Table | str, *tuple[str, ...]]:
    """What a run will copy: a table, if there is anything to show in it, and sentences."""
    if plan.source is not None:
        return source_plan_parts(plan, indent)
    if plan.is_empty:
        return ("Nothing to copy.",)
    owner = {r: task.task for task in plan.tasks for r in task.ranges}
    if len(plan.ranges) <= MAX_PLAN_ROWS:
        header = ["TOPIC", "PARTITION", "START", "END", "RECORDS", "TASK"]
        rows = [[r.topic, *map(format_count, (r.partition, r.start, r.end, len(r), owner[r]))] for r in plan.ranges]
    else:
        header = ["TOPIC", "PARTITIONS", "RECORDS", "TASKS"]
        by_topic = {topic: list(ranges) for topic, ranges in groupby(plan.ranges, key=lambda r: r.topic)}
        rows = [
            [
                topic,
                *map(
                    format_count,
                    (len({r.partition for r in of}), sum(map(len, of)), len({owner[r] for r in of})),
                ),
            ]
            for topic, of in by_topic.items()
        ]
    return Table(header, rows, "<".ljust(len(header), ">"), indent), plan_sum(plan)


def plan_sum(plan: Plan) -> str:
    """`Up to 12,000 records of 5 partitions in 2 tasks.` Gaps in the offsets make it an upper bound."""
    records, partitions = sum(map(len, plan.ranges)), len({r.topic_partition for r in plan.ranges})
    where = f"{plural(partitions, 'partition')} in {plural(len(plan.tasks), 'task')}"
    return f"Up to {plural(records, 'record')} of {where}."


def progress_line(event: Mapping[str, Any]) -> str:
    """One `progress` event: `copy 41% 4,900 of 12,000 records, 1.2 MB, 52,000 records/s`."""
    done, total, seconds = int(event["done"]), int(event["total"]), float(event.get("seconds") or 0)
    unit = "record" if event["phase"] == "copy" else "file"
    if not total:  # the end of a source is known only when it is reached
        parts = [f"{event['phase']}: {plural(done, unit)}"]
    else:
        parts = [f"{event['phase']} {done * 100 // total}%: {format_count(done)} of {plural(total, unit)}"]
    if event.get("bytes"):
        parts.append(format_bytes(event["bytes"]))
    if seconds > 0:
        parts.append(f"{format_count(round(done / seconds))} {unit}s/s")
    return ", ".join(parts)


def _counts(recovered: Mapping[str, int]) -> str:
    if not recovered:
        return ""
    files = f" in {plural(recovered['files'], 'file')}" if recovered["files"] else ""
    return f": {plural(recovered['records'], 'record')}{files}"


def report_line(report: RunReport) -> str:
    """The outcome in one sentence."""
    seconds = format_seconds((report.ended_ms - report.started_ms) / 1000)
    if report.status == "failed":
        return f"{report.connector or 'The connector'} failed after {seconds}."
    if report.source is not None:
        return source_report_line(report)
    finished = f" Run {report.recovered_run_id} was finished first{_counts(report.recovered)}."
    recovered = finished if report.recovered_run_id else ""
    if report.status == "empty":
        return f"{report.connector}: nothing to copy, {seconds}.{recovered}{_complete(report)}"
    # A sink that writes rows or documents has no files.
    files = f" in {plural(report.files, 'file')}, {format_bytes(report.size_bytes)}" if report.files else ""
    more = "".join(
        f", {format_count(number)} {word}"
        for number, word in (
            (report.filtered, "filtered"),
            (report.dead_lettered, "dead-lettered"),
            (report.left, "left for the next run"),
            (report.late, "late"),
        )
        if number
    )
    written = f"{plural(report.records, 'record')}{files}{more}"
    return f"{report.connector}: {written}, {seconds}, {report.delivery_guarantee}.{recovered}{_complete(report)}"


def _complete(report: RunReport) -> str:
    """The directories that became complete: those that end last, and how many others."""
    if not report.complete:
        return ""
    names = [str(directory.get("directory", "")) for directory in report.complete[-MOST_DIRECTORIES:]]
    others = len(report.complete) - len(names)
    return f" Complete: {', '.join(names)}{f' and {format_count(others)} before' if others else ''}."


def table_lines(report: RunReport) -> list[str]:
    """The snapshots that a run tells of, a sentence each."""
    lines = []
    for one in report.tables[:MOST_TABLES]:
        run = "this run" if one.run_id == report.run_id else f"run {one.run_id}"
        on = f"{one.table}, branch {one.branch}," if one.branch != "main" else one.table
        counts = f"{plural(one.rows, 'row')} in {plural(one.files, 'file')}"
        lines.append(f"Table {on} has the snapshot {one.snapshot_id} of {run}: {counts}.")
    if (others := len(report.tables) - len(lines)) > 0:
        lines.append(f"{plural(others, 'more snapshot')}: the pages, --json and asset events have them all.")
    return lines


def error_lines(error: Mapping[str, Any]) -> list[str]:
    """A failure: `✗ code  key`, the message, `→ what to do`, the address of the code's entry in the documentation.

    Control characters in them are escaped: the message may name a file or a record.
    """
    head = f"✗ {error['code']}" + (f"  {error['configPath']}" if error.get("configPath") else "")
    advice = [f"  → {error['suggestion']}"] if error.get("suggestion") else []
    return [spelled_out(each) for each in (head, f"  {error['message']}", *advice, f"  {error_url(error['code'])}")]


class EventLines:
    """Turns events into lines: phases, the plan, progress every ten seconds and at last, warnings, the outcome."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        """Lines go to `write`, one at a time; `clock` counts seconds."""
        self._write = write
        self._clock = clock
        self._shown_at = clock()
        self._latest: Mapping[str, Any] | None = None

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event of `runtime.spec.Observer`."""
        kind = event["event"]
        if kind in ("phase", "end"):
            self._show_progress(self._latest)
        if kind == "start":
            self._write(f"{event['connector']}: run {event['run_id']}")
        elif kind == "phase":
            self._shown_at = self._clock()
            self._write(f"{event['phase']} ...")
        elif kind == "plan":
            plan = Plan.from_json(event["plan"])
            for line in [*plan_table(plan), *plan.notes]:
                self._write(line)
        elif kind == "progress":
            self._latest = event
            if self._clock() - self._shown_at >= PROGRESS_EVERY_S:
                self._show_progress(event)
        elif kind == "warning":
            self._write(f"Warning: {event['message']}")
        elif kind == "end":
            report = RunReport.from_json(event["report"])
            for line in (report_line(report), *table_lines(report)):
                self._write(line)

    def _show_progress(self, event: Mapping[str, Any] | None) -> None:
        """Write the last progress event if it was not written yet, so the log shows where a phase ended."""
        self._latest = None
        if event is not None:
            self._shown_at = self._clock()
            self._write(progress_line(event))
