"""Commands of `airflow-connect`, run in this process with streams that are kept."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from airflow_connect.cli.main import build_parser, execute
from airflow_connect.cli.terminal import Terminal


class Done(NamedTuple):
    """What a command printed and how it ended."""

    exit_code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        """The object that `--json` printed."""
        return dict(json.loads(self.out))

    @property
    def result(self) -> Any:
        """Its result."""
        return self.envelope["result"]


def run_command(*argv: str | Path) -> Done:
    """Run a command; both streams are pipes."""
    arguments = build_parser().parse_args([str(word) for word in argv])
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out, err, as_json=arguments.json, verbose=arguments.verbose)
    return Done(execute(arguments, terminal), out.getvalue(), err.getvalue())
