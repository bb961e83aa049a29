"""What the commands about registered connectors share: their actions, questions, and shown configurations."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from airflow_connect.api.config.values import HIDDEN, masked
from airflow_connect.cli.blocks import Block, line
from airflow_connect.cli.control.target import add_target, complete_names
from airflow_connect.cli.inputs import common_flags, sentence
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.outcome import CommandOutcome
from airflow_connect.cli.terminal import Terminal
from airflow_connect.errors import ConfigError

Run = Callable[[Namespace, Terminal], CommandOutcome]


class Actions:
    """The actions of a command."""

    def __init__(self, parser: ArgumentParser) -> None:
        """`parser`: of the command."""
        self._common = common_flags()
        self._actions = parser.add_subparsers(metavar="action", required=True)

    def add(self, name: str, run: Run, what: str) -> ArgumentParser:
        """An action, with the arguments that say where its requests go; `what`: its help."""
        parser = self._actions.add_parser(name, parents=[self._common], help=what, description=sentence(what))
        parser.set_defaults(action=run)
        add_target(parser)
        return parser


def run_action(arguments: Namespace, terminal: Terminal) -> CommandOutcome:
    """Run the chosen action in a thread of its own, so that Ctrl-C ends it."""
    run: Run = arguments.action
    return run_interruptible(lambda _: run(arguments, terminal), terminal)


def add_name(parser: ArgumentParser, *, several: bool = False, or_file: bool = False) -> None:
    """The name of a registered connector, completed with live names."""
    what = "name of a registered connector" + (", or configuration file of any connector" if or_file else "")
    if several:
        action = parser.add_argument("names", nargs="+", metavar="name", help=what)
    else:
        action = parser.add_argument("name", help=what)
    complete_names(action, or_file=or_file)


def add_yes(parser: ArgumentParser) -> None:
    """`--yes`."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def is_confirmed(arguments: Namespace, terminal: Terminal, question: str) -> bool:
    """Ask on the terminal, unless `--yes` is given.

    Raises:
        ConfigError: the input is not a terminal.
    """
    if arguments.yes:
        return True
    if terminal.as_json or not sys.stdin.isatty():
        raise ConfigError(
            "This command asks for confirmation, but the input is not a terminal.",
            suggestion="Look at what would be changed, then add --yes.",
        )
    terminal.note(line(f"{question} [y/N] ", breaks=False))
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def not_confirmed() -> CommandOutcome:
    """The outcome of a question that was answered with no."""
    return CommandOutcome("Nothing was changed.", result={"changed": False}, lines=["Nothing was changed."])


def shown_config(config: Mapping[str, Any], *, with_secrets: bool = False) -> dict[str, Any]:
    """A configuration as commands print it, sorted; secrets are hidden, references to config providers stay."""
    return dict(sorted((config if with_secrets else masked(config)).items()))


def refuse_hidden(config: Mapping[str, Any], where: str) -> None:
    """Refuse a configuration that was printed with hidden secrets: it would replace the real ones.

    Raises:
        ConfigError: names the key.
    """
    for key, value in config.items():
        if value == HIDDEN:
            raise ConfigError(
                f"{key} in {where} is {HIDDEN}, which stands for a secret that was not shown.",
                config_path=key,
                suggestion="Write a reference to a config provider there, ${provider:path:key}, or print the"
                " configuration with --with-secrets.",
            )


def bullet(text: str, mark: str = "✓", style: str = "green") -> Block:
    """A line with a mark before it."""
    return line((f"{mark} ", style), text, hang=2)
