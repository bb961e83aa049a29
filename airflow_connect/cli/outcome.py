"""The result of a command, for users, for `--json` and for the shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.cli.blocks import Block
from airflow_connect.errors import EXIT_CONFIG_WRONG, EXIT_DONE, EXIT_RUN_FAILED, ConnectError


@dataclass(frozen=True)
class CommandOutcome:
    """The result of a command.

    Attributes:
        summary: one sentence.
        result: plain JSON.
        lines: the output for users on stdout.
        errors: `ConnectError.to_json()` of every failure, shown on stderr.
        exit_code: see `airflow_connect.cli`.
    """

    summary: str
    result: Any = None
    lines: list[Block] = field(default_factory=list)
    errors: list[Mapping[str, Any]] = field(default_factory=list)
    exit_code: int = EXIT_DONE

    def envelope(self, command: str) -> dict[str, Any]:
        """The `--json` form; `error` is the worst of the errors, null for findings and for success."""
        worst = max(self.errors, key=exit_code_of, default=None)
        return {
            "command": command,
            "ok": self.exit_code == EXIT_DONE,
            "summary": self.summary,
            "result": self.result,
            "error": worst,
        }


def failed(error: ConnectError) -> CommandOutcome:
    """The outcome of a command that failed before doing anything."""
    return CommandOutcome(error.message, errors=[error.to_json()], exit_code=error.exit_code)


def exit_code_of(error: Mapping[str, Any] | None) -> int:
    """Exit code for a failure in JSON form."""
    if error is None:
        return EXIT_DONE
    return EXIT_CONFIG_WRONG if error.get("type") == "ConfigError" else EXIT_RUN_FAILED
