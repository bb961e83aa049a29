"""Entry point of `airflow-connect`: arguments, dispatch, and the only place that prints outcomes."""

from __future__ import annotations

import os
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from types import ModuleType

from airflow_connect import __version__
from airflow_connect.cli.blocks import line
from airflow_connect.cli.commands import dlq, driver_service, mirror, plan, restore, standalone, validate, worker
from airflow_connect.cli.control import connectors, loggers, migrate, offsets, plugins, tasks, topics
from airflow_connect.cli.demo import command as demo
from airflow_connect.cli.inputs import sentence
from airflow_connect.cli.looking import doctor, expire_snapshots, files, inspect, lint, replay, runs, status
from airflow_connect.cli.outcome import CommandOutcome, failed
from airflow_connect.cli.private_streams import NoiseFilter, take_streams
from airflow_connect.cli.showing import show
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import ConnectError

EXIT_INTERRUPTED = 130
COMMANDS: tuple[ModuleType, ...] = (
    *(standalone, worker, mirror, plan, validate),
    *(connectors, offsets, tasks, topics, plugins, loggers),
    *(status, runs, files, inspect, lint, doctor),
    *(replay, dlq, restore, migrate, expire_snapshots),
    *(driver_service, demo),
)
DESCRIPTION = "Kafka Connect's connectors as bounded, exactly-once runs."
EPILOG = "Exit code: 0 done, 1 a run failed, 2 the configuration is wrong; of several connectors the worst."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of this process's command line; returns the exit code."""
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell requests completions
        import argcomplete

        argcomplete.autocomplete(parser)
    arguments = parser.parse_args(argv)
    out, err = take_streams(verbose=arguments.verbose)
    noise = NoiseFilter(err) if arguments.verbose else None
    return execute(arguments, Terminal(out, err, as_json=arguments.json, verbose=arguments.verbose, noise=noise))


def execute(arguments: Namespace, terminal: Terminal) -> int:
    """Run a parsed command on a terminal; returns the exit code."""
    try:
        outcome: CommandOutcome = arguments.command.run(arguments, terminal)
    except KeyboardInterrupt:
        terminal.drawn.close()
        terminal.note("\nInterrupted.")
        return EXIT_INTERRUPTED
    except ConnectError as error:
        if terminal.verbose:
            terminal.note(line(traceback.format_exc(), breaks=False))
        outcome = failed(error)
    except Exception as error:  # noqa: BLE001 (the last resort of a program: a defect still gets its envelope)
        outcome = failed(terminal.defect(error))
    show(arguments.command.NAME, outcome, terminal)
    return outcome.exit_code


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
            module.NAME, parents=[common], help=module.HELP, description=sentence(module.HELP), epilog=EPILOG
        )
        module.add_arguments(sub)
        sub.set_defaults(command=module)
    return parser


if __name__ == "__main__":
    sys.exit(main())
