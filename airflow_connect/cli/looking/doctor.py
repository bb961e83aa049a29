"""`airflow-connect doctor`: whether everything that runs need is there."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.chosen import spec_that_runs
from airflow_connect.cli.control.target import (
    WORKER_ENV,
    add_target,
    complete_names,
    worker_configuration,
    worker_file_of,
)
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import EXIT_DONE, EXIT_RUN_FAILED
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.reporting.texts import plural

if TYPE_CHECKING:
    from airflow_connect.observe.inspecting.doctor import Check

NAME = "doctor"
HELP = "check software, brokers, registry; --deep: permissions, buckets, databases, clocks as well"


def add_arguments(parser: ArgumentParser) -> None:
    """Connectors, and how much is checked."""
    complete_names(
        parser.add_argument(
            "names", nargs="*", metavar="name", help="connectors that --deep checks, or their configuration files"
        ),
        or_file=True,
    )
    parser.add_argument("--deep", action="store_true", help="also what every connector needs; nothing becomes visible")
    add_target(parser)


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Make all checks, even if one of them fails."""
    return run_interruptible(lambda _: _examine(arguments, terminal), terminal)


def _examine(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.control.installation_checks import check_installation
    from airflow_connect.observe.inspecting.doctor import SERVERS, attempt, check_software, examine

    if not (arguments.names or arguments.deep or arguments.url) and worker_file_of(arguments) is None:
        return _outcome(
            list(check_software()), f" Only packages and Java: for brokers name --worker, or ${WORKER_ENV}."
        )
    worker = worker_configuration(arguments, NAME)
    terminal.hide({}, secret_values(worker))
    specs = [spec_that_runs(Namespace(**{**vars(arguments), "name": name}), terminal, NAME) for name in arguments.names]
    checks = list(examine(worker, specs, deep=arguments.deep))
    if all(check.is_ok for check in checks if check.did == SERVERS):  # Otherwise it would fail for the same reason.
        checks += attempt("registered connectors", lambda: check_installation(worker))
    return _outcome(checks)


def _outcome(checks: list[Check], rest: str = "") -> CommandOutcome:
    wrong = sum(not check.is_ok for check in checks)
    told = f"{plural(len(checks), 'check')}, {wrong} failed.{rest}"
    return CommandOutcome(
        told,
        {"checks": [check.to_json() for check in checks]},
        [*(block for check in checks for block in _blocks(check)), line(told)],
        exit_code=EXIT_RUN_FAILED if wrong else EXIT_DONE,
    )


def _blocks(check: Check) -> list[Block]:
    mark = ("✓", "green") if check.is_ok else ("✗", "red")
    blocks: list[Block] = [line(mark, " ", (check.did, "bold")), line(check.found, indent=4)]
    if check.to_do:
        blocks.append(line((f"→ {check.to_do}", "cyan"), indent=4, hang=2))
    return blocks
