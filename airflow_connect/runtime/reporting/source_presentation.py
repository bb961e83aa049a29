"""Plans and reports of sources as text for people."""

from __future__ import annotations

from airflow_connect.documents.run import Plan, RunReport
from airflow_connect.kafka.state.offsets.offsets_topic import identity
from airflow_connect.runtime.reporting.texts import (
    MAX_PLAN_ROWS,
    Table,
    format_bytes,
    format_count,
    format_seconds,
    plural,
)

MOST_TOPICS = 3


def source_plan_parts(plan: Plan, indent: int = 0) -> tuple[Table | str, *tuple[str, ...]]:
    """Where a run of a source resumes: a table of its first source partitions, and sentences."""
    source = plan.source
    if source is None:
        raise TypeError("This is a plan of a sink.")
    where = " and ".join(source.offsets_topics)
    how = f"{source.delivery_guarantee}, a transaction per {source.boundary}" if source.boundary else ""
    end = f"{plural(len(plan.tasks), 'task')}, {how or source.delivery_guarantee}, offsets in {where}."
    if not source.offsets:
        return "No offsets yet: the source is read from its beginning.", end
    shown = source.offsets[:MAX_PLAN_ROWS]
    rows = [[identity(move.partition), identity(move.before or {})] for move in shown]
    table = Table(["SOURCE PARTITION", "OFFSET"], rows, "<<", indent)
    left = source.partitions - len(shown)
    return (table, f"... and {plural(left, 'more source partition')}.", end) if left > 0 else (table, end)


def source_report_line(report: RunReport) -> str:
    """The outcome in one sentence."""
    source = report.source
    if source is None:
        raise TypeError("This is a report of a sink.")
    seconds = format_seconds((report.ended_ms - report.started_ms) / 1000)
    if report.status == "empty":
        return f"{report.connector}: nothing to copy, {seconds}."
    topics = list(source.topics)
    named = ", ".join(topics[:MOST_TOPICS]) + (
        f" and {len(topics) - MOST_TOPICS} more" if len(topics) > MOST_TOPICS else ""
    )
    more = "".join(
        f", {format_count(number)} {word}"
        for number, word in (
            (report.filtered, "filtered"),
            (source.failed, "failed and skipped"),
            (source.discarded, "discarded by the connector"),
        )
        if number
    )
    to = f" to {named}" if named else ""
    written = f"{plural(report.records, 'record')}{to}, {format_bytes(report.size_bytes)}{more}"
    how = f" in {plural(source.transactions, 'transaction')}" if report.delivery_guarantee == "exactly_once" else ""
    return f"{report.connector}: {written}{how}, {seconds}, {report.delivery_guarantee}."
