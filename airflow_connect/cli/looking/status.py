"""`airflow-connect status`: states, lag and last runs of all connectors, once or repeatedly."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Block
from airflow_connect.cli.control.target import add_target, connectors_of, worker_file_of
from airflow_connect.cli.inputs import positive
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.looking.runs import time_of
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.showing import show
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import EXIT_DONE, EXIT_RUN_FAILED, ConnectError
from airflow_connect.runtime.reporting.texts import Table, format_count, plural

if TYPE_CHECKING:
    from airflow_connect.control.client.connectors import Connectors
    from airflow_connect.control.client.over_kafka import KafkaConnectors

NAME = "status"
HELP = "states of all connectors; with --worker their lag and last runs as well"


def add_arguments(parser: ArgumentParser) -> None:
    """Whether to repeat."""
    parser.add_argument(
        "--watch",
        type=positive,
        nargs="?",
        const=5,
        default=None,
        metavar="SECONDS",
        help="repeat with this pause (5 s if not given), until Ctrl-C",
    )
    add_target(parser)


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Show the states."""
    return run_interruptible(lambda stopping: _watch(arguments, terminal, stopping), terminal)


def _watch(arguments: Namespace, terminal: Terminal, stopping: threading.Event) -> CommandOutcome:
    connectors = connectors_of(arguments, terminal)
    outcome = _look(connectors, arguments)
    while arguments.watch is not None and not stopping.is_set():
        if not terminal.as_json:
            terminal.clear()
        show(NAME, outcome, terminal)
        stopping.wait(arguments.watch)
        outcome = _look(connectors, arguments)
    return outcome


def _look(connectors: Connectors, arguments: Namespace) -> CommandOutcome:
    from airflow_connect.control.client.over_kafka import KafkaConnectors

    found = connectors.expanded()
    more: Mapping[str, dict[str, Any]] = {}
    if isinstance(connectors, KafkaConnectors):
        worker = worker_file_of(arguments) or {}
        more = {name: _more(connectors, worker, name) for name in found}
    header = ("NAME", "TYPE", "STATE", "FAILED TASKS", *(("LAG", "LAST RUN", "RECORDS") if more else ()))
    rows = [_row(name, known.get("status", {}), more.get(name)) for name, known in sorted(found.items())]
    failed = sum("FAILED" in str(_states(known.get("status", {}))) for known in found.values())
    result = {name: {"status": known.get("status"), **more.get(name, {})} for name, known in sorted(found.items())}
    lines: list[Block] = [Table(header, rows, "<<<>><>"[: len(header)])] if rows else ["No connectors."]
    told = f"{plural(len(found), 'connector')}, {failed} failed."
    return CommandOutcome(told, {"connectors": result}, lines, exit_code=EXIT_RUN_FAILED if failed else EXIT_DONE)


def _more(connectors: KafkaConnectors, worker: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What only Kafka knows; an error is shown in its place."""
    from airflow_connect.control.herder.task_configs import SINK, kind_of
    from airflow_connect.observe.status.connector_state import lag_of
    from airflow_connect.observe.status.history import runs_of

    spec = connectors.spec(name)
    try:
        lag: Any = sum(part.lag for part in lag_of(spec)) if kind_of(spec.connector) == SINK else None
        return {"lag": lag, "last_run": next(iter(runs_of(worker, name, 1)), None)}
    except ConnectError as error:
        return {"lag": error.code, "last_run": None, "error": error.to_json()}


def _row(name: str, status: Mapping[str, Any], more: Mapping[str, Any] | None) -> tuple[str, ...]:
    tasks = status.get("tasks", ())
    failed = sum(task["state"] == "FAILED" for task in tasks)
    shown = (
        name,
        str(status.get("type") or "unknown"),
        str(status.get("connector", {}).get("state", "UNASSIGNED")),
        f"{failed} of {len(tasks)}",
    )
    if more is None:
        return shown
    lag, last = more["lag"], more["last_run"]
    return (
        *shown,
        "-" if lag is None else format_count(lag) if isinstance(lag, int) else str(lag),
        time_of(last["ended_ms"]) if last else "never",
        format_count(last["records"]) if last else "",
    )


def _states(status: Mapping[str, Any]) -> list[str]:
    return [part["state"] for part in (status.get("connector", {"state": ""}), *status.get("tasks", ()))]
