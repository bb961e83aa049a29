"""`airflow-connect runs`: the committed runs of a connector."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from airflow_connect.cli.blocks import Block
from airflow_connect.cli.control.actions import add_name
from airflow_connect.cli.control.chosen import is_file
from airflow_connect.cli.control.target import add_target, worker_configuration
from airflow_connect.cli.inputs import positive
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import Table, format_bytes, format_count, format_seconds, plural

NAME = "runs"
HELP = "the committed runs of a connector: records, files, sizes, times"


def add_arguments(parser: ArgumentParser) -> None:
    """Connector and number of runs."""
    add_name(parser, or_file=True)
    parser.add_argument(
        "--limit", type=positive, default=20, metavar="N", help="the newest N, at most 100 (default: 20)"
    )
    add_target(parser)


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Read the runs topic."""
    return run_interruptible(lambda _: _runs(arguments, terminal), terminal)


def _runs(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.control.client.connectors import no_connector
    from airflow_connect.observe.status.history import names_with_state, runs_of

    worker = worker_configuration(arguments, "runs")
    terminal.hide({}, secret_values(worker))
    name = str(read_connector_file(arguments.name).get("name")) if is_file(arguments.name) else arguments.name
    found = runs_of(worker, name, arguments.limit)
    if not found and name not in (known := names_with_state(worker)):
        raise no_connector(name, known, "The runs topic")
    rows = [
        (
            run["run_id"],
            time_of(run["started_ms"]),
            format_seconds((run["ended_ms"] - run["started_ms"]) / 1000),
            format_count(run["records"]),
            format_count(run["files"]),
            format_bytes(run["size_bytes"]),
            format_count(run["dead_lettered"]),
        )
        for run in found
    ]
    header = ("RUN", "STARTED", "TOOK", "RECORDS", "FILES", "SIZE", "DEAD LETTERS")
    lines: list[Block] = [Table(header, rows, "<<>>>>>")] if rows else ["No committed runs."]
    return CommandOutcome(f"{plural(len(found), 'run')}.", {"name": name, "runs": found}, lines)


def time_of(moment_ms: int | None) -> str:
    """`2026-11-20T08:00:00Z`, or "" if there is none."""
    if moment_ms is None:
        return ""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
