"""`airflow-connect standalone`: run each connector once, as Kafka Connect's connect-standalone, and end."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.inputs import add_files, label_of, spark_settings, spec_of
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.live_progress import progress_of
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.showing import show
from airflow_connect.cli.terminal import Terminal
from airflow_connect.connectors.file_stream.sink.config import is_line_output
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.presentation import report_line, table_lines
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import format_count, plural

if TYPE_CHECKING:
    from airflow_connect.runtime.engine.spark import SparkEngine

NAME = "standalone"
HELP = "run each connector once and end; --follow repeats"
DEFAULT_FOLLOW_S = 60.0


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for files and repetition."""
    add_files(parser)
    parser.add_argument(
        "--follow",
        type=float,
        nargs="?",
        const=DEFAULT_FOLLOW_S,
        metavar="SECONDS",
        help=f"repeat the run with this pause ({DEFAULT_FOLLOW_S:.0f} s if not given), until Ctrl-C",
    )


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Run the connectors one after the other, even if one of them fails."""
    worker = read_worker_file(arguments.worker)

    def work(stopping: threading.Event) -> CommandOutcome:
        from airflow_connect.runtime.engine.spark import SparkEngine

        with SparkEngine(spark_settings(worker)) as engine:
            outcome = _round(arguments, worker, engine, terminal)
            while arguments.follow is not None and not stopping.is_set():
                show(NAME, outcome, terminal)
                stopping.wait(arguments.follow)
                outcome = _round(arguments, worker, engine, terminal)
        return outcome

    return run_interruptible(work, terminal)


def _round(arguments: Namespace, worker: Mapping[str, Any], engine: SparkEngine, terminal: Terminal) -> CommandOutcome:
    results: list[dict[str, Any]] = []
    lines: list[Block] = []
    errors: list[dict[str, Any]] = []
    for path in arguments.connectors:
        report, error = _run_one(path, worker, arguments.settings, engine, terminal)
        if error is not None:
            errors.append(error)
        elif report is not None:
            lines.append(line(("✓ ", "green"), report_line(report), hang=2))
            lines += [line(told, indent=2) for told in table_lines(report)]
        results.append({"file": path, "report": report.to_json() if report else None, "error": error})
    done = len(results) - len(errors)
    records = sum(result["report"]["records"] for result in results if result["report"])
    return CommandOutcome(
        summary=f"{done} of {plural(len(results), 'connector')} done, {format_count(records)} records.",
        result={"connectors": results},
        lines=lines,
        errors=list(errors),
        exit_code=max(map(exit_code_of, errors), default=0),
    )


def _run_one(
    path: str, worker: Mapping[str, Any], settings: list[tuple[str, str]], engine: SparkEngine, terminal: Terminal
) -> tuple[RunReport | None, dict[str, Any] | None]:
    """A run and its error, with the connector's name before the message; without a report if it did not begin."""
    from airflow_connect.runtime.driver.entry import run_connector

    connector: Mapping[str, Any] | None = None
    report: RunReport | None = None
    try:
        spec = spec_of(path, worker, NAME, settings)
        connector = spec.connector
        terminal.hide(spec.references, secret_values(spec.connector, spec.worker))
        redirect_own_output(connector, terminal)
        with progress_of(terminal) as progress:
            report = run_connector(spec, progress, engine)
        error = report.error
    except ConnectError as failure:
        error = failure.to_json()
    except Exception as failure:  # noqa: BLE001 (a defect must not keep the other connectors from running)
        error = terminal.defect(failure).to_json()
    if error is not None:
        error = {**error, "message": f"{label_of(path, connector)}: {error['message']}"}
    return report, error


def redirect_own_output(connector: Mapping[str, Any], terminal: Terminal) -> None:
    """If a connector writes lines to standard output (`... | grep`), nothing else may be written there."""
    if not is_line_output(connector) or terminal.out is terminal.err:
        return
    from airflow_connect.connectors.file_stream.sink import output

    output.send_to(terminal.hand_over_stdout())
