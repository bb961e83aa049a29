"""Entry of `airflow-connect`: arguments, dispatch, and the one place where outcomes become output."""

from __future__ import annotations

import json
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from types import ModuleType

from airflow_connect import __version__
from airflow_connect.api.errors import ConnectError
from airflow_connect.cli.commands import dlq, plan, standalone, validate
from airflow_connect.cli.demo import command as demo
from airflow_connect.cli.outcome import Outcome, failed
from airflow_connect.cli.private_streams import NoiseFilter, take_streams
from airflow_connect.cli.terminal import Terminal

EXIT_INTERRUPTED = 130
COMMANDS: tuple[ModuleType, ...] = (standalone, plan, validate, dlq, demo)
DESCRIPTION = "Kafka Connect's connectors as bounded, exactly-once runs."
EPILOG = "Exit code: 0 done, 1 a run failed, 2 the configuration is wrong; of several connectors the worst."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of this process's command line; returns the exit code."""
    arguments = build_parser().parse_args(argv)
    out, err = take_streams(verbose=arguments.verbose)
    noise = NoiseFilter(err) if arguments.verbose else None
    return execute(arguments, Terminal(out, err, as_json=arguments.json, verbose=arguments.verbose, noise=noise))


def execute(arguments: Namespace, terminal: Terminal) -> int:
    """Run a parsed command on a terminal; returns the exit code."""
    try:
        outcome: Outcome = arguments.command.run(arguments, terminal)
    except KeyboardInterrupt:
        terminal.note("\nInterrupted.")
        return EXIT_INTERRUPTED
    except ConnectError as error:
        if terminal.verbose:
            terminal.note(traceback.format_exc())
        outcome = failed(error)
    except Exception as error:  # noqa: BLE001 (the last resort of a program: a defect still gets its envelope)
        outcome = failed(terminal.defect(error))
    show(arguments.command.NAME, outcome, terminal)
    return outcome.exit_code


def show(command: str, outcome: Outcome, terminal: Terminal) -> None:
    """Print an outcome: one envelope with `--json`, else the result for people; errors go to stderr in both."""
    if terminal.as_json:
        terminal.print(json.dumps(outcome.envelope(command)))
    else:
        for line in outcome.lines:
            terminal.print(line)
    for error in outcome.errors:
        terminal.error(error)


def build_parser() -> ArgumentParser:
    """The whole command line."""
    parser = ArgumentParser("airflow-connect", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"airflow-connect {__version__}")
    common = ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print the result as one JSON object")
    common.add_argument("-v", "--verbose", action="store_true", help="show the logs of Spark, Kafka and Airflow")
    commands = parser.add_subparsers(metavar="command", required=True)
    for module in COMMANDS:
        sub = commands.add_parser(
            module.NAME, parents=[common], help=module.HELP, description=module.HELP.capitalize() + ".", epilog=EPILOG
        )
        module.add_arguments(sub)
        sub.set_defaults(command=module)
    return parser


if __name__ == "__main__":
    sys.exit(main())
