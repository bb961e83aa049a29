"""`airflow-connect mirror`: one round of every connector of a MirrorMaker 2 properties file."""

from __future__ import annotations

import os
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.inputs import add_settings, complete_files, spark_settings
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.live_progress import progress_of
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.connectors.mirror.flows.maker_config import FlowConnector, connectors_of
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.config_files import read_worker_file
from airflow_connect.runtime.reporting.presentation import plan_parts, report_line
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import format_count, plural
from airflow_connect.runtime.spec import RunSpec

NAME = "mirror"
HELP = "run the mirrors of a MirrorMaker 2 properties file once: heartbeats, records, checkpoints"

_Done = tuple[dict[str, Any], list[Block], dict[str, Any] | None]
"""What a connector did, as JSON and for the terminal; its error."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the file, the choice of clusters, and the dry run."""
    complete_files(parser.add_argument("file", help="MirrorMaker 2 configuration, such as mm2.properties"))
    parser.add_argument(
        "--clusters",
        nargs="+",
        default=(),
        metavar="ALIAS",
        help="only flows to these clusters, as with connect-mirror-maker.sh",
    )
    parser.add_argument("--plan", action="store_true", help="show what a round would do; writes nothing")
    add_settings(parser)


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Run, or plan, the connectors of all enabled flows, even if one of them fails."""
    file = Path(arguments.file)
    found = connectors_of(read_worker_file(file), file.name, arguments.clusters)
    settings = dict(arguments.settings)
    if arguments.plan:
        return run_interruptible(
            lambda stopping: _each(found, stopping, terminal, lambda one: _planned(one, file, settings, terminal)),
            terminal,
        )

    def work(stopping: threading.Event) -> CommandOutcome:
        from airflow_connect.runtime.engine.spark import SparkEngine

        with SparkEngine(spark_settings(found[0].worker if found else {})) as engine:
            return _each(found, stopping, terminal, lambda one: _finished(one, file, settings, terminal, engine=engine))

    return run_interruptible(work, terminal)


def _each(
    found: Sequence[FlowConnector],
    stopping: threading.Event,
    terminal: Terminal,
    act: Callable[[FlowConnector], _Done],
) -> CommandOutcome:
    results: list[dict[str, Any]] = []
    lines: list[Block] = []
    errors: list[dict[str, Any]] = []
    for one in found:
        if stopping.is_set():
            break
        try:
            result, blocks, error = act(one)
        except ConnectError as failure:
            result, blocks, error = {}, [], failure.to_json()
        except Exception as failure:  # noqa: BLE001 (a defect must not keep the other connectors from running)
            result, blocks, error = {}, [], terminal.defect(failure).to_json()
        if error is not None:
            error = {**error, "message": f"{one.flow} {one.kind}: {error['message']}"}
            errors.append(error)
        lines += blocks
        results.append({"flow": one.flow, "connector": one.kind, **result, "error": error})
    records = sum(result["report"]["records"] for result in results if result.get("report"))
    done = f"{len(results) - len(errors)} of {plural(len(found), 'connector')}"
    is_plan = any("plan" in result for result in results)
    return CommandOutcome(
        summary=f"{done} planned." if is_plan else f"{done} done, {format_count(records)} records.",
        result={"connectors": results},
        lines=lines,
        errors=list(errors),
        exit_code=max(map(exit_code_of, errors), default=0),
    )


def _finished(one: FlowConnector, file: Path, settings: dict[str, str], terminal: Terminal, *, engine: Any) -> _Done:
    from airflow_connect.runtime.driver.entry import run_connector

    spec = _spec_of(one, file, settings, terminal)
    with progress_of(terminal) as progress:
        report = run_connector(spec, progress, engine)
    shown = [] if report.error else [line(("✓ ", "green"), f"{one.flow} {report_line(report)}", hang=2)]
    return {"report": report.to_json()}, list(shown), report.error


def _planned(one: FlowConnector, file: Path, settings: dict[str, str], terminal: Terminal) -> _Done:
    from airflow_connect.runtime.driver.entry import plan_connector

    plan = plan_connector(_spec_of(one, file, settings, terminal))
    parts = [line(part, indent=2) if isinstance(part, str) else part for part in plan_parts(plan, indent=2)]
    notes = [line((note, "yellow"), indent=2) for note in plan.notes]
    return {"plan": plan.to_json()}, [line((f"{one.flow} {one.kind}", "bold")), *parts, *notes], None


def _spec_of(one: FlowConnector, file: Path, settings: dict[str, str], terminal: Terminal) -> RunSpec:
    connector = {**one.config, **settings}
    spec = RunSpec(
        connector=connector,
        worker=one.worker,
        references=resolve_references(connector, one.worker).values,
        origin={"command": NAME, "user": os.environ.get("USER") or str(os.getuid()), "file": file.name},
    )
    terminal.hide(spec.references, secret_values(spec.connector, spec.worker))
    return spec
