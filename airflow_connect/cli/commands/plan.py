"""`airflow-connect plan`: what a run would copy now. Writes nothing, and fences no run."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.inputs import add_files, label_of, spec_of
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.documents.run import Plan
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.presentation import plan_parts
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import plural

NAME = "plan"
HELP = "show what a run would copy now; writes nothing"

add_arguments = add_files


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Plan every connector, even if one of them fails."""
    worker = read_worker_file(arguments.worker)
    return run_interruptible(lambda stopping: _plan_all(arguments, worker, terminal, stopping), terminal)


def _plan_all(
    arguments: Namespace, worker: Mapping[str, Any], terminal: Terminal, stopping: threading.Event
) -> CommandOutcome:
    results: list[dict[str, Any]] = []
    lines: list[Block] = []
    errors: list[dict[str, Any]] = []
    for path in arguments.connectors:
        if stopping.is_set():
            break
        plan, error = _plan_one(path, worker, arguments.settings, terminal)
        results.append({"file": path, "plan": plan.to_json() if plan else None, "error": error})
        if error is not None:
            errors.append(error)
        if plan is not None:
            lines += _blocks(plan)
    records = sum(len(r) for result in results if result["plan"] for r in Plan.from_json(result["plan"]).ranges)
    sources = sum(1 for result in results if result["plan"] and result["plan"]["source"])
    more = f", plus the data of {plural(sources, 'source')}" if sources else ""
    done = plural(len(results) - len(errors), "connector")
    return CommandOutcome(
        summary=f"Up to {plural(records, 'record')}{more} to copy by {done}.",
        result={"plans": results},
        lines=lines,
        errors=list(errors),
        exit_code=max(map(exit_code_of, errors), default=0),
    )


def _plan_one(
    path: str, worker: Mapping[str, Any], settings: list[tuple[str, str]], terminal: Terminal
) -> tuple[Plan | None, dict[str, Any] | None]:
    from airflow_connect.runtime.driver.entry import plan_connector

    connector: Mapping[str, Any] | None = None
    try:
        spec = spec_of(path, worker, NAME, settings)
        connector = spec.connector
        terminal.hide(spec.references, secret_values(spec.connector, spec.worker))
        return plan_connector(spec), None
    except ConnectError as error:
        return None, {**error.to_json(), "message": f"{label_of(path, connector)}: {error.message}"}


def _blocks(plan: Plan) -> list[Block]:
    parts = [line(part, indent=2) if isinstance(part, str) else part for part in plan_parts(plan, indent=2)]
    notes = [line((note, "yellow"), indent=2) for note in plan.notes]
    return [line((plan.connector, "bold")), *parts, *notes]
