"""`airflow connect ...`: the whole command line of `airflow-connect` as a command of Airflow's.

Airflow asks for it whenever its own command line starts, so nothing of ours is imported before the command runs.
"""

from __future__ import annotations

import sys
from argparse import REMAINDER, Namespace

from airflow.cli.cli_config import ActionCommand, Arg, CLICommand, lazy_load_command

_WORDS = Arg(  # type: ignore[no-untyped-call] # Airflow's
    ("words",), nargs=REMAINDER, metavar="...", help="command and arguments of airflow-connect; `help` lists them"
)


def get_cli_commands() -> list[CLICommand]:
    """The command, for the key `cli` of the provider's metadata."""
    return [
        ActionCommand(
            name="connect",
            help="Run Kafka Connect's connectors: the same as airflow-connect",
            func=lazy_load_command("airflow_connect.airflow.command.run"),
            args=(_WORDS,),
        )
    ]


def run(arguments: Namespace) -> None:
    """Run the command, and end the process with its exit code."""
    from airflow_connect.cli.main import main

    words = list(arguments.words)
    sys.exit(main(words if words and words != ["help"] else ["--help"]))
