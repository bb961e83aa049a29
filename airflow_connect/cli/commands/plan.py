"""`airflow-connect plan`: what a run would copy now. Writes nothing, fences nobody."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from airflow_connect.api.errors import ConnectError
from airflow_connect.api.run import Plan
from airflow_connect.cli.inputs import add_files, label_of, spec_of
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import Outcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.presentation import plan_table, plural
from airflow_connect.runtime.redaction import secret_values

NAME = "plan"
HELP = "show what a run would copy now; writes nothing"

add_arguments = add_files


def run(arguments: Namespace, terminal: Terminal) -> Outcome:
    """Plan every connector; one that fails does not keep the others from being planned."""
    worker = read_worker_file(arguments.worker)
    return run_interruptible(lambda stopping: _plan_all(arguments, worker, terminal, stopping), terminal)


def _plan_all(
    arguments: Namespace, worker: Mapping[str, Any], terminal: Terminal, stopping: threading.Event
) -> Outcome:
    results: list[dict[str, Any]] = []
    lines: list[str] = []
    errors: list[dict[str, Any]] = []
    for path in arguments.connectors:
        if stopping.is_set():
            break
        plan, error = _plan_one(path, worker, arguments.settings, terminal)
        results.append({"file": path, "plan": plan.to_json() if plan else None, "error": error})
        if error is not None:
            errors.append(error)
        if plan is not None:
            lines += _lines(plan, terminal)
    records = sum(len(r) for result in results if result["plan"] for r in Plan.from_json(result["plan"]).ranges)
    sources = sum(1 for result in results if result["plan"] and result["plan"]["source"])
    more = f", and what {plural(sources, 'source')} will find" if sources else ""
    done = plural(len(results) - len(errors), "connector")
    return Outcome(
        summary=f"Up to {plural(records, 'record')}{more} to copy by {done}.",
        result={"plans": results},
        lines=lines,
        errors=list(errors),
        exit_code=max(map(exit_code_of, errors), default=0),
    )


def _plan_one(
    path: str, worker: Mapping[str, Any], settings: list[tuple[str, str]], terminal: Terminal
) -> tuple[Plan | None, dict[str, Any] | None]:
    from airflow_connect.runtime.driver.run import plan_connector

    connector: Mapping[str, Any] | None = None
    try:
        spec = spec_of(path, worker, NAME, settings)
        connector = spec.connector
        terminal.hide(spec.references, secret_values(spec.connector, spec.worker))
        return plan_connector(spec), None
    except ConnectError as error:
        return None, {**error.to_json(), "message": f"{label_of(path, connector)}: {error.message}"}


def _lines(plan: Plan, terminal: Terminal) -> list[str]:
    table = plan_table(plan)
    if not plan.is_empty:
        table[0] = terminal.style(table[0], "dim")
    notes = [terminal.style(note, "yellow") for note in plan.notes]
    return [terminal.style(plan.connector, "bold"), *(f"  {line}" for line in [*table, *notes])]
