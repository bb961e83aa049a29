"""`airflow-connect migrate`: move connectors from a running Kafka Connect cluster, with their offsets."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import add_yes, bullet, is_confirmed, not_confirmed
from airflow_connect.cli.control.target import WORKER_ENV, add_login, kafka_of, rest_client
from airflow_connect.cli.inputs import add_settings, complete_files
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome, exit_code_of
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import EXIT_CONFIG_WRONG, EXIT_DONE, ConnectError
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import plural

if TYPE_CHECKING:
    from airflow_connect.control.client.over_kafka import KafkaConnectors
    from airflow_connect.control.client.rest import ConnectRest
    from airflow_connect.control.migration.judging import Judged

NAME = "migrate"
HELP = "move connectors with their offsets from a running Kafka Connect cluster"
_MARKS = {"error": ("✗", "red"), "change": ("~", "yellow"), "note": ("·", "dim")}


def add_arguments(parser: ArgumentParser) -> None:
    """Cluster, connectors, and what is done."""
    parser.add_argument("connect_url", metavar="CONNECT_URL", help="REST API of the cluster, http://HOST:8083")
    parser.add_argument("names", nargs="*", metavar="name", help="connectors (default: all of the cluster)")
    complete_files(
        parser.add_argument(
            "--worker",
            default=None,
            metavar="FILE",
            help=f"worker configuration of the new installation (default: ${WORKER_ENV})",
        )
    )
    parser.add_argument("--plan", action="store_true", help="only show what would change")
    add_settings(parser, "changes", text="give every connector this key in the new installation; can be repeated")
    add_yes(parser)
    add_login(parser)
    parser.set_defaults(url=None)


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Judge all, ask, and move those that can."""
    return run_interruptible(lambda _: _migrate(arguments, terminal), terminal)


def _migrate(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.control.migration.judging import judge

    ours = kafka_of(arguments, terminal, NAME)
    cluster = rest_client(arguments.connect_url, arguments, terminal)
    found = judge(cluster, ours, arguments.names, dict(arguments.changes))
    for judged in found:
        terminal.hide({}, secret_values(judged.config))
    ready = [judged for judged in found if judged.can_move]
    plan = [block for judged in found for block in _blocks(judged)]
    told = f"{len(ready)} of {plural(len(found), 'connector')} can be moved."
    result: dict[str, Any] = {"connectors": [judged.to_json() for judged in found], "moved": []}
    code = EXIT_DONE if len(ready) == len(found) else EXIT_CONFIG_WRONG
    if arguments.plan or not ready:
        return CommandOutcome(told, result, [*plan, line(told)], exit_code=code)
    if not arguments.yes and not terminal.as_json:
        for block in [*plan, line(told)]:
            terminal.note(block)
    names = ", ".join(judged.name for judged in ready)
    if not is_confirmed(arguments, terminal, f"Stop {names} in the cluster, and run them here?"):
        return not_confirmed()
    options = f" --worker {shlex.quote(arguments.worker)}" if arguments.worker else ""
    return _moved(cluster, ours, ready, terminal, result, options)


def _moved(
    cluster: ConnectRest,
    ours: KafkaConnectors,
    ready: list[Judged],
    terminal: Terminal,
    result: dict[str, Any],
    options: str,
) -> CommandOutcome:
    from airflow_connect.control.migration.moving import move

    ours.open()
    lines: list[Block] = []
    errors: list[Mapping[str, Any]] = []
    for judged in ready:
        try:
            moved = move(cluster, ours, judged, lambda text: terminal.note(line(text)), options)
        except ConnectError as error:
            failure = {**error.to_json(), "message": f"{judged.name}: {error.message}"}
            errors.append(failure)
            continue
        result["moved"].append(moved)
        lines.append(bullet(f"{judged.name}: moved, {plural(moved['offsets'], 'offset')}, {moved['state']} here"))
    lines.append("They stay in the cluster, stopped. Delete them there when the new installation has proved itself.")
    left = len(result["connectors"]) - len(ready)
    told = f"{plural(len(result['moved']), 'connector')} moved, {len(errors)} failed, {left} could not be moved."
    code = max([*map(exit_code_of, errors), EXIT_CONFIG_WRONG if left else EXIT_DONE])
    return CommandOutcome(told, result, [*lines, line(told)], errors, code)


def _blocks(judged: Judged) -> list[Block]:
    mark = ("✓", "green") if judged.can_move else ("✗", "red")
    blocks: list[Block] = [line(mark, " ", (judged.name, "bold"), f"  {judged.kind}, {judged.state}")]
    for found in judged.findings:
        parts = (_MARKS[found.level], " ", (found.about, "bold"), f": {found.text}")
        blocks.append(line(*parts, indent=2, hang=4))
    return blocks
