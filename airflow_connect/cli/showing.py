"""Prints the outcome of a command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from airflow_connect.cli.blocks import line

if TYPE_CHECKING:
    from airflow_connect.cli.outcome import CommandOutcome
    from airflow_connect.cli.terminal import Terminal


def show(command: str, outcome: CommandOutcome, terminal: Terminal) -> None:
    """Print an outcome: one envelope with `--json`, else the result for users; errors go to stderr in both cases."""
    if terminal.as_json:
        terminal.print(line(json.dumps(outcome.envelope(command)), breaks=False))
    else:
        for block in outcome.lines:
            terminal.print(block)
    for error in outcome.errors:
        terminal.error(error)
