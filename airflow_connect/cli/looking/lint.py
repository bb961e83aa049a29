"""`airflow-connect lint`: what works, but will probably disappoint."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.actions import add_name
from airflow_connect.cli.control.chosen import spec_that_runs
from airflow_connect.cli.control.target import add_target
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import EXIT_CONFIG_WRONG, EXIT_DONE, EXIT_RUN_FAILED
from airflow_connect.runtime.reporting.texts import plural

if TYPE_CHECKING:
    from airflow_connect.observe.inspecting.lint import Advice

NAME = "lint"
HELP = "warn of small files, keys without effect, and records that Kafka deletes before they are copied"
_MARKS = {"error": ("✗", "red"), "warning": ("⚠", "yellow"), "note": ("·", "dim")}


def add_arguments(parser: ArgumentParser) -> None:
    """Connectors."""
    add_name(parser, several=True, or_file=True)
    add_target(parser)


def run(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Look at every connector."""
    return run_interruptible(lambda _: _lint(arguments, terminal), terminal)


def _lint(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    from airflow_connect.observe.inspecting.lint import lint

    found = {
        name: lint(spec_that_runs(Namespace(**{**vars(arguments), "name": name}), terminal, NAME))
        for name in arguments.names
    }
    lines = [block for name, advices in found.items() for block in _blocks(name, advices)]
    levels = [advice.level for advices in found.values() for advice in advices]
    result: dict[str, Any] = {name: [advice.to_json() for advice in advices] for name, advices in found.items()}
    code = EXIT_CONFIG_WRONG if "error" in levels else EXIT_RUN_FAILED if "warning" in levels else EXIT_DONE
    told = f"{plural(levels.count('error'), 'error')}, {plural(levels.count('warning'), 'warning')}."
    return CommandOutcome(told, {"connectors": result}, lines, exit_code=code)


def _blocks(name: str, advices: list[Advice]) -> list[Block]:
    if not advices:
        return [line(("✓", "green"), " ", (name, "bold"))]
    blocks: list[Block] = [line((name, "bold"))]
    for advice in advices:
        blocks += [
            line(_MARKS[advice.level], " ", (advice.about, "bold"), f" ({advice.level})", indent=2),
            line(advice.found, indent=6),
        ]
        if advice.to_do:
            blocks.append(line((f"→ {advice.to_do}", "cyan"), indent=6, hang=2))
    return blocks
