"""`airflow-connect inspect`: decoded records of topics and files, offsets, tables of a lake; moves nothing."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import Actions, add_name, run_action
from airflow_connect.cli.control.chosen import spec_that_runs
from airflow_connect.cli.control.target import worker_configuration
from airflow_connect.cli.inputs import add_settings, positive
from airflow_connect.cli.looking.runs import time_of
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import Table, format_count, plural

if TYPE_CHECKING:
    from airflow_connect.observe.inspecting.lake_tables import TableAudit

NAME = "inspect"
HELP = "show records of a topic or a file, stored offsets, or what a lake table holds; moves nothing"
_WIDEST = 120

run = run_action


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of every action."""
    actions = Actions(parser)
    topic = actions.add("topic", _topic, "records of a sink's topics, through its converters and transformations")
    add_name(topic, or_file=True)
    _add_limit(topic)
    topic.add_argument("--from-beginning", action="store_true", help="the oldest records instead of the newest")
    add_settings(topic, what="the connector")
    stored = actions.add("object", _object, "records of a published file: Avro, Parquet, ORC, JSON lines, text")
    add_name(stored, or_file=True)
    stored.add_argument("file", help="the file, as `files` lists it")
    _add_limit(stored)
    actions.add("offsets", _offsets, "the offsets of all sources in the offsets topic")
    tables = actions.add("table", _tables, "snapshots of an Iceberg sink's tables, their offsets, and what is missing")
    add_name(tables, or_file=True)
    tables.add_argument("--table", action="append", default=[], metavar="TABLE", help="a table; can be repeated")
    tables.add_argument("--records", action="store_true", help="read the topics and count records that are missing")
    tables.add_argument("--limit", type=positive, default=10, metavar="N", help="the newest N snapshots (default: 10)")


def _add_limit(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", type=positive, default=10, metavar="N", help="at most N of each (default: 10)")


def _topic(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.observe.inspecting.records import look_at_records

    spec = spec_that_runs(arguments, terminal, "inspect topic")
    records = look_at_records(spec, arguments.limit, oldest=arguments.from_beginning)
    rows = [
        (
            record.where,
            time_of(record.timestamp_ms),
            record.outcome,
            _text(record.key),
            record.error or _text(record.value),
        )
        for record in records
    ]
    table = Table(("RECORD", "TIME", "OUTCOME", "KEY", "VALUE"), rows, "<<<<<")
    lines: list[Block] = [table] if rows else ["No records."]
    result = {"records": [plain(record.to_json()) for record in records]}
    return CommandOutcome(f"{plural(len(rows), 'record')}.", result, lines)


def _object(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.observe.inspecting.files import file_system_for
    from airflow_connect.observe.inspecting.objects import records_of

    spec = spec_that_runs(arguments, terminal, "inspect object")
    with file_system_for(spec) as files:
        records = [plain(record) for record in records_of(files, arguments.file, arguments.limit)]
    lines = [line(json.dumps(record, ensure_ascii=False), breaks=False) for record in records]
    return CommandOutcome(f"{plural(len(records), 'record')}.", {"records": records}, list(lines))


def _offsets(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.observe.inspecting.stored_offsets import stored_offsets

    worker = worker_configuration(arguments, "inspect offsets")
    terminal.hide({}, secret_values(worker))
    found = stored_offsets(worker)
    rows = [(str(entry["connector"]), _text(entry["partition"]), _text(entry["offset"])) for entry in found]
    lines: list[Block] = [Table(("CONNECTOR", "PARTITION", "OFFSET"), rows, "<<<")] if rows else ["No offsets."]
    return CommandOutcome(f"{plural(len(found), 'offset')}.", {"offsets": found}, lines)


def _tables(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.observe.inspecting.lake_tables import audit_tables

    spec = spec_that_runs(arguments, terminal, "inspect table")
    found = audit_tables(spec, arguments.table, reads=arguments.records)
    lines: list[Block] = []
    for audit in found:
        lines += _lines_of(audit, arguments.limit)
    count = sum(len(audit.findings) for audit in found)
    summary = f"{plural(len(found), 'table')}, {plural(count, 'finding')}."
    return CommandOutcome(summary, {"tables": [audit.to_json() for audit in found]}, lines)


def _lines_of(audit: TableAudit, limit: int) -> list[Block]:
    snapshots = [
        (one.snapshot_id, time_of(one.committed_ms), one.run_id, format_count(one.rows), format_count(one.files))
        for one in audit.snapshots[-limit:]
    ]
    partitions = [
        (
            f"{one.topic}-{one.partition}",
            format_count(one.start),
            format_count(one.end),
            "none" if one.committed is None else format_count(one.committed),
            format_count(one.missing),
            "not read" if one.missing_records is None else format_count(one.missing_records),
        )
        for one in audit.partitions
    ]
    rows = sum(one.rows for one in audit.snapshots)
    lines: list[Block] = [
        line(
            f"Table {audit.table}, branch {audit.branch}: {plural(len(audit.snapshots), 'snapshot')} with"
            f" {plural(rows, 'row')}."
        )
    ]
    if snapshots:
        lines.append(Table(("SNAPSHOT", "COMMITTED", "RUN", "ROWS", "FILES"), snapshots, "><<>>"))
    if partitions:
        header = ("PARTITION", "FIRST", "END", "COMMITTED", "MISSING OFFSETS", "MISSING RECORDS")
        lines.append(Table(header, partitions, "<>>>>>"))
    return [*lines, *(line(text) for text in (*audit.findings, *audit.notes))]


def plain(value: Any) -> Any:
    """A value as JSON has it; what JSON cannot hold is text."""
    return json.loads(json.dumps(value, default=_other, ensure_ascii=False))


def _other(value: Any) -> Any:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, (bytes, bytearray)) else str(value)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
