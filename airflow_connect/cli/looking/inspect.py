"""`airflow-connect inspect`: decoded records of topics and files, and stored offsets; moves nothing."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import Actions, add_name, run_action
from airflow_connect.cli.control.chosen import spec_that_runs
from airflow_connect.cli.control.target import worker_configuration
from airflow_connect.cli.inputs import add_settings, positive
from airflow_connect.cli.looking.runs import time_of
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import Table, plural

NAME = "inspect"
HELP = "show decoded records of a topic or a file, or all stored offsets; moves nothing"
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
