"""`airflow-connect replay`: copy a range of a sink's topics again, exactly once, beside the connector's own offsets."""

from __future__ import annotations

import hashlib
import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.commands.standalone import redirect_own_output
from airflow_connect.cli.control.actions import add_name
from airflow_connect.cli.control.chosen import spec_that_runs
from airflow_connect.cli.control.target import add_target
from airflow_connect.cli.inputs import add_settings, spark_settings
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.live_progress import progress_of
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.reporting.presentation import report_line, table_lines

if TYPE_CHECKING:
    from airflow_connect.runtime.spec import RunSpec

NAME = "replay"
HELP = "copy a range of a sink's topics again, exactly once, without touching its offsets"


def add_arguments(parser: ArgumentParser) -> None:
    """Connector, range and place."""
    add_name(parser, or_file=True)
    position = "a time (ISO 8601: the first record at or after it), an offset, earliest or latest"
    parser.add_argument("--from", required=True, metavar="POSITION", dest="start", help=f"inclusive: {position}")
    parser.add_argument(
        "--to",
        default=None,
        metavar="POSITION",
        dest="until",
        help="exclusive, in the same forms (default: what the connector has committed)",
    )
    add_settings(parser, "into", text="change a key for the replay, such as topics.dir=replayed; can be repeated")
    parser.add_argument(
        "--same-place",
        action="store_true",
        help="write where the connector writes; remove the objects of the range first",
    )
    parser.add_argument(
        "--id",
        default="",
        help="last part of the replay's name; the same id continues (default: made from range and settings)",
    )
    add_target(parser)


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Run the replay; the same command again copies nothing twice."""
    return run_interruptible(lambda _: _replay(arguments, terminal), terminal)


def _replay(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.runtime.driver.entry import run_connector
    from airflow_connect.runtime.engine.spark import SparkEngine

    spec = replay_of(spec_that_runs(arguments, terminal, NAME), arguments)
    redirect_own_output(spec.connector, terminal)
    with SparkEngine(spark_settings(spec.worker)) as engine, progress_of(terminal) as progress:
        report = run_connector(spec, progress, engine)
    name = spec.connector["name"]
    if report.error is None:
        told = report_line(report)
        lines: list[Block] = [
            line(("✓ ", "green"), told, hang=2),
            *(line(one, indent=2) for one in table_lines(report)),
        ]
        return CommandOutcome(told, {"name": name, "report": report.to_json()}, lines)
    error = {**report.error, "message": f"{name}: {report.error['message']}"}
    return CommandOutcome(
        f"{name} failed.",
        {"name": name, "report": report.to_json()},
        errors=[error],
        exit_code=exit_code_of(error),
    )


def replay_of(spec: RunSpec, arguments: Namespace) -> RunSpec:
    """The input of the replay's run, as `ReplayOperator` makes it.

    Raises:
        ConfigError: a source, a wrong range, or a place where the connector itself writes.
    """
    from airflow_connect.runtime.driver.offsets.replaying import Replay, replay_spec

    into = dict(arguments.into)
    last = arguments.id or _id_of(arguments.start, arguments.until, into)
    wanted = Replay(
        f"{spec.connector.get('name')}-replay-{last}",
        arguments.start,
        arguments.until,
        into,
        allow_same_place=arguments.same_place,
    )
    return replay_spec(spec, wanted)


def _id_of(start: str, until: str | None, into: dict[str, str]) -> str:
    """The same for the same command, so that it continues instead of copying again."""
    return hashlib.sha256(json.dumps([start, until, into], sort_keys=True).encode()).hexdigest()[:10]
